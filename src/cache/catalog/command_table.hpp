// Command table: arity, flags, keys and function of each command, by its name.
//
// The room catalog holds static facts about commands; nothing in it depends on data or sessions.
// Files in reading order:
//
//   command_table.hpp    the table and the lookup by name
//   commands.hpp         the functions in it, by the file of commands/ that defines them
//   command_keys.hpp     the arguments that are keys
//   acl_forms.hpp        subcommands and their ACL categories
//   command_names.hpp    rename-command
//   command_docs.hpp     COMMAND's facts; command_syntax.hpp the arguments for COMMAND DOCS
//
// It stands on base alone. A new command gets its row in command_table.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {

struct call;

/// As COMMAND shows them.
namespace command_flag {
inline constexpr std::uint32_t write = 1 << 0;
inline constexpr std::uint32_t readonly = 1 << 1;
inline constexpr std::uint32_t denyoom = 1 << 2;  ///< refused when memory is short
inline constexpr std::uint32_t admin = 1 << 3;
inline constexpr std::uint32_t fast = 1 << 4;
inline constexpr std::uint32_t noauth = 1 << 5;  ///< allowed before AUTH
inline constexpr std::uint32_t loading = 1 << 6;
inline constexpr std::uint32_t stale = 1 << 7;
inline constexpr std::uint32_t noscript = 1 << 8;
inline constexpr std::uint32_t dangerous = 1 << 9;  ///< in admin mode only; not shown by COMMAND
inline constexpr std::uint32_t no_multi = 1 << 10;  ///< not between MULTI and EXEC
inline constexpr std::uint32_t may_replicate = 1 << 11;  ///< CLIENT PAUSE WRITE holds it up
inline constexpr std::uint32_t pubsub = 1 << 13;
inline constexpr std::uint32_t blocking = 1 << 14;  ///< it may wait
/// O(1) but for the size of a value, and frequent: not timed by slow_log. Not shown by COMMAND.
inline constexpr std::uint32_t brief = 1 << 15;
/// Runs scripts, or may run them: see script/scripts.hpp. Not shown by COMMAND.
inline constexpr std::uint32_t runs_script = 1 << 24;
/// acl_forms.hpp has its forms, as of CONFIG GET and SET. Not shown by COMMAND.
inline constexpr std::uint32_t has_forms = 1 << 25;
/// Touches nothing but the values of its keys, and replies with an error before it has changed any
/// of them: see lane.hpp. Not shown by COMMAND.
inline constexpr std::uint32_t local = 1 << 26;
/// Changes files, users, settings or the server's role, and so is refused in readonly mode as
/// `write` is. Not shown by COMMAND.
inline constexpr std::uint32_t alters = 1 << 27;
}  // namespace command_flag

struct command_spec {
    std::string_view name;  ///< lower case
    void (*run)(call&);
    std::int16_t arity;  ///< with the name; negative: at least so many
    std::uint32_t flags;
    std::int16_t first_key;  ///< 0: none, or not at a fixed place
    std::int16_t last_key;   ///< negative: from the end
    std::int16_t key_step;
};

/// A command's name as three words in upper case: what the lookup works with.
struct command_name {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::uint64_t third = 0;  ///< its size is the last byte
    bool operator==(const command_name&) const noexcept = default;
};

inline constexpr std::size_t max_command_name = 23;

/// Names above max_command_name come out as no command's name.
command_name fold_command_name(std::string_view name) noexcept;

/// The command, or null. Some three nanoseconds.
const command_spec* find_command(command_name name) noexcept;

std::span<const command_spec> all_commands() noexcept;

}  // namespace eddy::cache
