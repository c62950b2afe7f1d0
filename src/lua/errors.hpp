// Errors of a sandbox: tables {err = "CODE text"}, as Redis's own functions raise them.
#pragma once

#include "lua/stack.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::lua {

/// Raises a table {err = "ERR text"}. "-CODE text" names another code word.
[[noreturn]] void raise_error(stack in, std::string_view text);
/// Raises a text behind the place in Lua that is running.
[[noreturn]] void raise_here(stack in, const char* text);
/// Pushes that table.
void push_error(stack in, std::string_view text);
/// Error handler for stack::pcall(): makes such a table of any error, and notes the line.
int note_error(lua_State* in);
/// Calls that describe_failure() names at most.
inline constexpr std::size_t max_traced_calls = 8;
/// Text of the error on top of a coroutine that has failed, with the place where it was raised and
/// the calls that led there: at most `most` bytes of one line. The error is moved to `in`, of
/// a running function with three places left. Throws std::bad_alloc; raises nothing.
std::string describe_failure(stack failed, stack in, std::size_t most);
/// Place of the innermost function of the script's that is running, such as "a.lua:3", and the
/// calls that led there, such as "; called from a.lua:9"; both are empty where there is none.
struct running_place {
    std::string place;
    std::string calls;
};
/// The state is within a call or hook. Throws std::bad_alloc; raises nothing.
running_place find_running(stack in);
/// Raises "C stack overflow" when too little is left of the native stack. Functions that recurse
/// call it at each level. callbacks.cpp has it.
void check_native_stack(stack in);

}  // namespace eddy::lua
