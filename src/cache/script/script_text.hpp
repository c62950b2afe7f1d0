// First line of a script: "#!lua" with its flags, or with a library's name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::cache {

/// Flags in a script's first line, "#!lua flags=no-writes,allow-oom".
namespace script_flag {
inline constexpr std::uint32_t no_writes = 1 << 0;
inline constexpr std::uint32_t allow_oom = 1 << 1;
inline constexpr std::uint32_t allow_stale = 1 << 2;
inline constexpr std::uint32_t no_cluster = 1 << 3;
inline constexpr std::uint32_t allow_cross_slot_keys = 1 << 4;
/// No first line: as before Redis 7, each command is checked when it is called.
inline constexpr std::uint32_t unsaid = 1 << 5;
}  // namespace script_flag

/// The flag's bit, or 0 for an unknown name.
std::uint32_t script_flag_named(std::string_view name) noexcept;

struct script_head {
    std::uint32_t flags = script_flag::unsaid;
    std::string_view rest;  ///< the script without the line, but with its end; lines count the same
    std::string engine;     ///< of a library; not checked here
    std::string name;       ///< of a library,
    bool has_name = false;  ///< if it is given
    std::string refusal;    ///< fault of the line; empty: none
};

/// Removes the first line, if it is a head. Scripts may have flags, libraries a name. Its words are
/// quoted like those of an inline command.
script_head take_script_head(std::string_view text, bool is_library);

}  // namespace eddy::cache
