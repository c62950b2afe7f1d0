// Libraries of a sandbox, for the files of this layer alone: each function below is of the file
// that is named above it.
#pragma once

#include "lua/errors.hpp"
#include "lua/sandbox.hpp"

#include <chrono>
#include <string_view>

struct lua_State;

namespace eddy::lua {

// globals.cpp. Both leave Lua's stack as it was.
/// Puts what scripts may use into a new state; `add` puts more into its table of globals.
void furnish(lua_State* in, const sandbox::furnisher& add);
/// Raises an error when the value there is a table that cannot be changed.
void refuse_protected(lua_State* in, int index);

// Functions that process whole texts and tables: Lua's own call no interrupt. Each sets its
// functions in the library's table on top; Lua's own table is at `from`.
/// patterns.cpp: find, match, gmatch, gsub, and more.
void set_string_functions(lua_State* in, int from);
/// format.cpp: format.
void set_format_function(lua_State* in);
/// tables.cpp: sort, concat, insert, maxn.
void set_table_functions(lua_State* in, int from);
/// callbacks.cpp: coroutine.resume and wrap.
void set_coroutine_functions(lua_State* in);
/// loading.cpp: load and loadstring, of texts alone, in the table of globals on top.
void set_load_functions(lua_State* in);
/// As lua_load() of a text, which fails if it takes more of the thread's time than that.
int load_within(lua_State* in, std::string_view text, const char* name,
                std::chrono::nanoseconds limit);

// callbacks.cpp
/// A function of C that calls back into Lua calls enter_callback() before: raises "C stack
/// overflow" when too little is left of the native stack, and at native_stack::max_levels.
void enter_callback_at(lua_State* in, const void* frame);
[[gnu::always_inline]] inline void enter_callback(lua_State* in) {
    enter_callback_at(in, __builtin_frame_address(0));
}
/// Makes all functions of the standard libraries that call back do so.
void check_standard_libraries(lua_State* in);

// cjson.cpp, cmsgpack.cpp, struct.cpp: each pushes one table.
void push_cjson_library(lua_State* in);
void push_cmsgpack_library(lua_State* in);
void push_struct_library(lua_State* in);

}  // namespace eddy::lua
