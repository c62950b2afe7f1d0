// Conversion of replies to Lua's values, and of a script's result to a reply.
#pragma once

#include "cache/engine/call.hpp"
#include "lua/stack.hpp"

#include <string>
#include <string_view>

namespace eddy::cache {

/// Pushes one value for a whole reply of one of the cache's commands. True for an error: a table
/// that says so. May suspend the script, as any function that raises errors.
bool push_reply(lua::stack in, std::string_view reply);

/// True if INFO has counted the error whose table is on top: it is the reply to a command.
bool is_counted_error(lua::stack in);
/// Marks the error whose table is on top as counted.
void mark_counted(lua::stack in);
/// Replies with an error that a script made or passes on; newlines at its end are removed, and all
/// others become spaces.
void reply_with_script_error(call& c, std::string text, bool is_counted);

/// Replies with the value on top of the stack, and pops it; RESP3's types as far as the client has
/// them; booleans are numbers unless the script has selected RESP3. Raises Lua's "not enough
/// memory", and the error of a killed script.
void reply_with_value(call& c, lua::stack in, bool has_booleans);

}  // namespace eddy::cache
