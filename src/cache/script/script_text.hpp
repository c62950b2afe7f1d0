// What is done to a script's text before it is compiled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::cache {

/// What a script says of itself in its first line, "#!lua flags=no-writes,allow-oom".
namespace script_flag {
inline constexpr std::uint32_t no_writes = 1 << 0;
inline constexpr std::uint32_t allow_oom = 1 << 1;
inline constexpr std::uint32_t allow_stale = 1 << 2;
inline constexpr std::uint32_t no_cluster = 1 << 3;
inline constexpr std::uint32_t allow_cross_slot_keys = 1 << 4;
/// It says nothing: as before Redis 7, each command is looked at when it is called.
inline constexpr std::uint32_t unsaid = 1 << 5;
}  // namespace script_flag

/// The bit, or 0 when there is no such flag.
std::uint32_t script_flag_named(std::string_view name) noexcept;

struct script_head {
    std::uint32_t flags = script_flag::unsaid;
    std::string_view rest;  ///< the script without the line, but with its end; lines count the same
    std::string_view name;  ///< of a library,
    bool has_name = false;  ///< if it is given
    std::string refusal;    ///< what is wrong with the line; empty: nothing
};

/// Takes the first line away, if it is one. Scripts may have flags, libraries a name.
script_head take_script_head(std::string_view text, bool is_library);

/// The text with brackets around what is returned, where the meaning stays the same, so that no
/// call is a tail call: "return (f(x))". In LuaJIT a tail call takes the caller's frame away also
/// when it is a function of C that is called, and with it the line that Redis tells with an error.
/// For a script's own level, of which one value is used, that is every "return"; within functions
/// only calls of functions that return one value. Lines stay where they are.
std::string without_tail_calls(std::string_view text);

}  // namespace eddy::cache
