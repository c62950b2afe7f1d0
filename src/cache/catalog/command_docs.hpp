// COMMAND's facts about Redis 7.0's commands beyond the command table: key specifications, tips and
// summaries, by which clients find keys and route commands. Includes commands that the cache does
// not have yet.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {

/// One command, or one form of a command that has several: "object|encoding".
struct command_facts {
    std::string_view name;
    std::string_view since;    ///< a Redis version; empty for a form
    std::string_view group;    ///< as "string"; empty for a form
    std::uint32_t flags;       ///< bits, in the order of command_flag_names
    std::uint32_t categories;  ///< bits, in the order of command_category_names
    std::string_view tips;     ///< separated by commas
    /// Where the keys are, for each of some groups, separated by semicolons: "flags|begin|find".
    ///   begin  i1: at this argument; kSTREAMS.1: behind this word, searched from here on
    ///          (negative: from the end, backwards); u: unknown
    ///   find   r0.1.0: up to this argument counted from there (negative: from the end), in steps,
    ///          and of so much of the rest (2: the first half); n0.1.1: this argument is their
    ///          number, the first one, in steps; u: unknown
    std::string_view key_specs;
    std::string_view summary;  ///< empty for a form: see command_syntax
};

std::span<const std::string_view> command_flag_names() noexcept;
std::span<const std::string_view> command_category_names() noexcept;

/// By lower-case name; null when there are none.
const command_facts* find_facts(std::string_view name) noexcept;

}  // namespace eddy::cache
