// Rarely called functions of the face, and the check of its declarations against Lua's header.
#include "lua/stack.hpp"

#include <lua.hpp>

namespace eddy::lua {

static_assert(static_cast<int>(value_type::none) == LUA_TNONE &&
              static_cast<int>(value_type::nil) == LUA_TNIL);
static_assert(static_cast<int>(value_type::boolean) == LUA_TBOOLEAN);
static_assert(static_cast<int>(value_type::lightuserdata) == LUA_TLIGHTUSERDATA);
static_assert(static_cast<int>(value_type::number) == LUA_TNUMBER);
static_assert(static_cast<int>(value_type::string) == LUA_TSTRING);
static_assert(static_cast<int>(value_type::table) == LUA_TTABLE);
static_assert(static_cast<int>(value_type::function) == LUA_TFUNCTION);
static_assert(static_cast<int>(value_type::userdata) == LUA_TUSERDATA);
static_assert(static_cast<int>(value_type::thread) == LUA_TTHREAD);

int stack::upvalueindex(int which) noexcept { return lua_upvalueindex(which); }

const char* stack::type_name(int index) const noexcept { return luaL_typename(in_, index); }
bool stack::isnumber(int index) const noexcept { return lua_isnumber(in_, index) != 0; }
void stack::pushinteger(std::int64_t value) const noexcept {
    lua_pushinteger(in_, static_cast<lua_Integer>(value));
}
void stack::pushlightuserdata(void* value) const { lua_pushlightuserdata(in_, value); }
void stack::pushstrings(const std::string_view* texts, std::size_t count) const {
    lua_createtable(in_, static_cast<int>(count), 0);
    for (std::size_t i = 0; i < count; ++i) {
        lua_pushlstring(in_, texts[i].data(), texts[i].size());
        lua_rawseti(in_, -2, static_cast<int>(i + 1));
    }
}

void* stack::newuserdata(std::size_t bytes) const { return lua_newuserdata(in_, bytes); }
void stack::concat(int count) const { lua_concat(in_, count); }

void stack::getfield(int index, const char* name) const { lua_getfield(in_, index, name); }

void stack::set_functions(std::initializer_list<named_function> all) const {
    for (const named_function& each : all) {
        lua_pushcfunction(in_, each.run);
        lua_setfield(in_, -2, each.name);
    }
}

void stack::setmetatable(int index) const { lua_setmetatable(in_, index); }
void stack::getglobal(const char* name) const { lua_getglobal(in_, name); }

int stack::ref() const { return luaL_ref(in_, LUA_REGISTRYINDEX); }
void stack::getref(int kept) const noexcept { lua_rawgeti(in_, LUA_REGISTRYINDEX, kept); }
void stack::unref(int kept) const noexcept { luaL_unref(in_, LUA_REGISTRYINDEX, kept); }

void stack::call(int arguments, int results) const { lua_call(in_, arguments, results); }
stack stack::newthread() const { return lua_newthread(in_); }
void stack::xmove(stack other, int count) const noexcept { lua_xmove(in_, other.in_, count); }
int stack::yield(int count) const { return lua_yield(in_, count); }
bool stack::isyieldable() const noexcept { return lua_isyieldable(in_) != 0; }
void stack::setfenv(int index) const noexcept { lua_setfenv(in_, index); }

progress stack::resume(int arguments) const noexcept {
    const int status = lua_resume(in_, arguments);
    if (status == 0) return progress::ended;
    return status == LUA_YIELD ? progress::suspended : progress::failed;
}

void stack::error() const {
    lua_error(in_);
    __builtin_unreachable();
}

void stack::error(const char* text) const {
    luaL_error(in_, "%s", text);
    __builtin_unreachable();
}

}  // namespace eddy::lua
