// Command table: descriptions of all commands, found by name.
//
// The room catalog holds static facts about commands; nothing in it depends on data or sessions.
// Files in reading order:
//
//   command_flags.hpp    flags and ACL categories by name
//   command_row.hpp      the columns of a row; rows/ has the rows, one file a family
//   command_table.hpp    the table made of the rows, and the lookup by name
//   commands.hpp         the functions in it, by the file of commands/ that defines them
//   command_keys.hpp     the arguments that are keys
//   command_names.hpp    rename-command
//   command_syntax.hpp   the arguments for COMMAND DOCS
//
// It stands on base alone. A new command gets its row in rows/.
#pragma once

#include "cache/catalog/command_flags.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {

struct call;

/// A command, or a form of a command with subcommands ("config|set"). Its texts have static
/// lifetime. The members that each execution reads are in the first cache line.
struct alignas(64) command_spec {
    std::string_view name;  ///< lower case, with a null byte behind it
    void (*run)(call&) = nullptr;
    std::uint64_t flags = 0;     ///< command_flag; of a form also its command's, but for own_flags
    std::int16_t arity = 0;      ///< with the name; negative: at least so many
    std::int16_t first_key = 0;  ///< 0: none, or not at a fixed place
    std::int16_t last_key = 0;   ///< negative: from the end
    std::int16_t key_step = 0;
    const command_spec* first_form = nullptr;
    std::uint64_t shown_flags = 0;  ///< as COMMAND shows them
    std::uint32_t categories = 0;   ///< command_category
    std::uint32_t form_count = 0;

    // As command_row describes them.
    std::string_view key_specs;
    std::string_view since;
    std::string_view deprecated_since;  ///< a version, or empty
    std::string_view group;
    std::string_view syntax;
    std::string_view summary;
    std::string_view tips;

    /// Forms in the order of their names; none for a command without subcommands.
    std::span<const command_spec> forms() const noexcept { return {first_form, form_count}; }
};

/// A command's name as three words in upper case, for the lookup.
struct command_name {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::uint64_t third = 0;  ///< its size is the last byte
    bool operator==(const command_name&) const noexcept = default;
};

inline constexpr std::size_t max_command_name = 23;

/// Maps a name longer than max_command_name to one that no command has.
command_name fold_command_name(std::string_view name) noexcept;

/// The command, or null. About three nanoseconds.
const command_spec* find_command(command_name name) noexcept;

/// The command's form with this name, in any case, or null.
const command_spec* find_form(const command_spec& command, std::string_view word) noexcept;

/// In the order in which COMMAND lists them.
std::span<const command_spec> all_commands() noexcept;
/// Forms of all commands, in the order of their names.
std::span<const command_spec> all_forms() noexcept;

/// Flags of the command, or of the form that args[1] selects.
std::uint64_t flags_of(const command_spec& spec, const std::string_view* args,
                       std::size_t count) noexcept;

/// True if commands with these flags may change keys.
inline bool writes_keys(std::uint64_t flags) noexcept {
    const bool runs_script = (flags & command_flag::runs_script) != 0;
    return (flags & command_flag::write) != 0 ||
           (runs_script && (flags & command_flag::readonly) == 0);
}

}  // namespace eddy::cache
