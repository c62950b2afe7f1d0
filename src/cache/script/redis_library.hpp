// Table "redis" of scripts: redis.call() and its like, in a sandbox that a script_runner
// supervises.
#pragma once

#include "lua/stack.hpp"

namespace eddy::cache {

/// Pushes the table that scripts use, or that functions use once their library is loaded.
void push_redis_library(lua::stack in, bool for_functions);
/// Pops that table into the globals at 1, as "redis" and as "server", its name in Valkey.
void set_redis_library(lua::stack in);
/// Pushes the globals that a library of functions has while it is loaded: "redis" alone, as in
/// Redis, also as "server". redis.register_function() is the function on top, which is popped.
void push_load_globals(lua::stack in);

}  // namespace eddy::cache
