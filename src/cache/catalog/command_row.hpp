// Row of the command table: the static facts of one command or one form.
//
// The rows are in rows/, one file a family. A form ("config|set") has a row of its own behind its
// command's; forms stand in the order of their names. command_table.cpp makes the table of them,
// and fails to compile when a row is not in order.
#pragma once

#include "cache/catalog/command_flags.hpp"

#include <cstdint>
#include <string_view>

namespace eddy::cache {

struct call;

struct command_row {
    std::string_view name;  ///< lower case; of a form "config|set"
    void (*run)(call&);     ///< of a command with forms commands::subcommand
    std::int16_t arity;     ///< with all words of the name; negative: at least so many
    /// command_flag. Forms have those of their own that COMMAND shows, and the flags of own_flags
    /// in command_table.cpp; the others are their command's.
    std::uint64_t flags;
    /// command_category, without those implied by the flags: @write, @read, @admin with @dangerous,
    /// @pubsub, @blocking, and @fast or @slow.
    std::uint32_t categories = 0;
    /// Key specifications as COMMAND INFO shows them, separated by semicolons: "flags|begin|find".
    ///   begin  i1: at this argument; kSTREAMS.1: behind this word, searched from here on
    ///          (negative: from the end, backwards); u: unknown
    ///   find   r0.1.0: up to this argument counted from there (negative: from the end), in steps,
    ///          and of so much of the rest (2: the first half); n0.1.1: this argument is their
    ///          number, the first one, in steps; u: unknown
    std::string_view keys = "";
    std::string_view since;       ///< a Redis version; "1.0.0!6.2.0" is deprecated since the second
    std::string_view group = "";  ///< as "string"; empty for a form, which has its command's
    std::string_view syntax = "";  ///< the arguments, in the notation of command_syntax.hpp
    std::string_view summary;      ///< a sentence
    std::string_view tips = "";    ///< for clients, separated by commas
};

// Flags shared by many rows, and abbreviations.
namespace rows {

using namespace command_flag;
namespace category = command_category;

inline constexpr std::uint64_t read_fast = readonly | fast;
inline constexpr std::uint64_t write_fast = write | fast;
inline constexpr std::uint64_t grow = write | denyoom;
inline constexpr std::uint64_t grow_fast = write | denyoom | fast;
inline constexpr std::uint64_t always = loading | stale;
inline constexpr std::uint64_t scripting_ro = noscript | stale | runs_script;
inline constexpr std::uint64_t scripting = scripting_ro | may_replicate;

}  // namespace rows

}  // namespace eddy::cache
