// Functions of C that call back into Lua: each level of them takes native stack, from 80 bytes
// (coroutine.resume) to 9 KiB (string.gsub), and a script nests them as deep as it likes. So each
// one counts its level, checks the native stack that is left, and raises "C stack overflow".
//
// Those of Lua's functions that LuaJIT runs without a level of C need no check: pcall and xpcall of
// its own, metamethods of the interpreter's, tostring, table.foreach.
#include "lua/libraries.hpp"
#include "lua/native_stack.hpp"

#include <lua.hpp>

#include <array>

namespace eddy::lua {
namespace {

// --- coroutine.resume and wrap -------------------------------------------------------------------
// As Lua 5.1 has them. LuaJIT's own call no function of C that could check.

enum class coroutine_state : std::uint8_t { suspended, running, normal, dead };
constexpr std::array<const char*, 4> state_names{"suspended", "running", "normal", "dead"};

coroutine_state state_of(lua_State* in, lua_State* other) {
    if (in == other) return coroutine_state::running;
    const int status = lua_status(other);
    if (status == LUA_YIELD) return coroutine_state::suspended;
    if (status != 0) return coroutine_state::dead;
    lua_Debug frame;
    if (lua_getstack(other, 0, &frame) > 0) return coroutine_state::normal;
    return lua_gettop(other) == 0 ? coroutine_state::dead : coroutine_state::suspended;
}

constexpr int failed = -1;

// Passes the upper `count` values, and takes the results: how many there are, or `failed` with the
// error on top.
int resume(lua_State* in, lua_State* other, int count) {
    const coroutine_state state = state_of(in, other);
    if (lua_checkstack(other, count) == 0) luaL_error(in, "too many arguments to resume");
    if (state != coroutine_state::suspended) {
        lua_pushfstring(in, "cannot resume %s coroutine",
                        state_names[static_cast<std::size_t>(state)]);
        return failed;
    }
    lua_xmove(in, other, count);
    const int status = lua_resume(other, count);
    if (status != 0 && status != LUA_YIELD) {
        lua_xmove(other, in, 1);
        return failed;
    }
    const int results = lua_gettop(other);
    if (lua_checkstack(in, results + 1) == 0) luaL_error(in, "too many results to resume");
    lua_xmove(other, in, results);
    return results;
}

int own_resume(lua_State* in) {
    lua_State* const other = lua_tothread(in, 1);
    luaL_argcheck(in, other != nullptr, 1, "coroutine expected");
    enter_callback(in);
    const int results = resume(in, other, lua_gettop(in) - 1);
    if (results == failed) {
        lua_pushboolean(in, 0);
        lua_insert(in, -2);
        return 2;
    }
    lua_pushboolean(in, 1);
    lua_insert(in, -(results + 1));
    return results + 1;
}

// The upvalue is the coroutine.
int resume_wrapped(lua_State* in) {
    enter_callback(in);
    const int results = resume(in, lua_tothread(in, lua_upvalueindex(1)), lua_gettop(in));
    if (results != failed) return results;
    if (lua_type(in, -1) == LUA_TSTRING) {
        luaL_where(in, 1);
        lua_insert(in, -2);
        lua_concat(in, 2);
    }
    return lua_error(in);
}

int own_wrap(lua_State* in) {
    luaL_checktype(in, 1, LUA_TFUNCTION);
    lua_State* const made = lua_newthread(in);
    lua_pushvalue(in, 1);
    lua_xmove(in, made, 1);
    lua_pushcclosure(in, resume_wrapped, 1);
    return 1;
}

// --- LuaJIT's own functions ----------------------------------------------------------------------

// The upvalue is the address of such a function. It runs in the place of this one, so that its
// errors name it and say where it was called.
int run_checked(lua_State* in) {
    enter_callback(in);
    return reinterpret_cast<lua_CFunction>(lua_touserdata(in, lua_upvalueindex(1)))(in);
}

// Replaces a function of the table on top by a checked one.
void check_field(lua_State* in, const char* name) {
    lua_getfield(in, -1, name);
    const lua_CFunction original = lua_tocfunction(in, -1);
    if (original == nullptr) luaL_error(in, "%s is no function of C", name);
    lua_pushlightuserdata(in, reinterpret_cast<void*>(original));
    lua_pushcclosure(in, run_checked, 1);
    lua_getfenv(in, -2);
    lua_setfenv(in, -2);
    lua_setfield(in, -3, name);
    lua_pop(in, 1);
}

}  // namespace

void check_native_stack(stack in) {
    if (!native_stack::has_room()) [[unlikely]]
        luaL_error(in.raw(), "C stack overflow");
}

void enter_callback_at(lua_State* in, const void* frame) {
    if (!native_stack::enter_level(frame)) [[unlikely]]
        luaL_error(in, "C stack overflow");
}

void set_coroutine_functions(lua_State* in) {
    lua_pushcfunction(in, own_resume);
    lua_setfield(in, -2, "resume");
    lua_pushcfunction(in, own_wrap);
    lua_setfield(in, -2, "wrap");
}

void check_standard_libraries(lua_State* in) {
    lua_getglobal(in, "coroutine");
    set_coroutine_functions(in);
    lua_getglobal(in, "string");
    for (const char* const name : {"gsub", "format"}) check_field(in, name);
    lua_getglobal(in, "table");
    check_field(in, "sort");
    lua_pushvalue(in, LUA_GLOBALSINDEX);
    for (const char* const name : {"load", "require", "module", "collectgarbage"})
        check_field(in, name);
    lua_pop(in, 4);
}

}  // namespace eddy::lua
