// Replies of commands as Lua's values, and what a script returns as a reply.
#pragma once

#include "cache/engine/call.hpp"
#include "lua/stack.hpp"

#include <string>
#include <string_view>

namespace eddy::cache {

/// Pushes one value for a whole reply, which one of our own commands has written. True when it is
/// an error: a table that says so. May leave the script in the middle, as what raises errors may.
bool push_reply(lua::stack in, std::string_view reply);

/// Whether INFO has counted the error whose table is on top: it is the reply to a command.
bool is_counted_error(lua::stack in);
/// Marks the error whose table is on top as counted.
void mark_counted(lua::stack in);
/// Replies with an error that a script made or passes on: of its newlines those at the end go, and
/// all others become spaces.
void reply_with_script_error(call& c, std::string text, bool is_counted);

/// Replies with the value on top of the stack, which is popped; RESP3's types as far as the client
/// has them; booleans are numbers unless the script has asked for RESP3. Raises Lua's "not enough
/// memory", and that the script is killed.
void reply_with_value(call& c, lua::stack in, bool has_booleans);

}  // namespace eddy::cache
