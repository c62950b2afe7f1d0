// Source text of Lua without tail calls, so that errors can name the line of the caller.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace eddy::lua {

/// The text with brackets around returned values, where the meaning stays the same, so that no call
/// is a tail call: "return (f(x))". In LuaJIT a tail call removes the caller's frame also when a
/// function of C is called, and with it the line that Redis adds to an error. For a script's own
/// level, of which one value is used, that is every "return"; within functions only calls of
/// functions that return one value. Lines stay where they are. `between` is called between pieces
/// of the work, if it is there.
std::string without_tail_calls(std::string_view text, const std::function<void()>& between = {});

}  // namespace eddy::lua
