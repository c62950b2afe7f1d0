// Each function is one or a few of Lua's own; none is inline, so that no includer needs its header.
#include "lua/stack.hpp"

#include <lua.hpp>

namespace eddy::lua {

static_assert(static_cast<int>(type::none) == LUA_TNONE && static_cast<int>(type::nil) == LUA_TNIL);
static_assert(static_cast<int>(type::boolean) == LUA_TBOOLEAN);
static_assert(static_cast<int>(type::pointer) == LUA_TLIGHTUSERDATA);
static_assert(static_cast<int>(type::number) == LUA_TNUMBER);
static_assert(static_cast<int>(type::text) == LUA_TSTRING);
static_assert(static_cast<int>(type::table) == LUA_TTABLE);
static_assert(static_cast<int>(type::function) == LUA_TFUNCTION);
static_assert(static_cast<int>(type::userdata) == LUA_TUSERDATA);
static_assert(static_cast<int>(type::coroutine) == LUA_TTHREAD);

int stack::closed_over(int which) noexcept { return lua_upvalueindex(which); }

int stack::height() const noexcept { return lua_gettop(in_); }
void stack::set_height(int height) const noexcept { lua_settop(in_, height); }
void stack::pop(int count) const noexcept { lua_pop(in_, count); }
void stack::push_copy(int index) const noexcept { lua_pushvalue(in_, index); }
void stack::insert(int index) const noexcept { lua_insert(in_, index); }
void stack::replace(int index) const noexcept { lua_replace(in_, index); }
void stack::remove(int index) const noexcept { lua_remove(in_, index); }
bool stack::reserve(int slots) const { return lua_checkstack(in_, slots) != 0; }
void stack::require(int slots, const char* why) const { luaL_checkstack(in_, slots, why); }

type stack::type_at(int index) const noexcept { return static_cast<type>(lua_type(in_, index)); }
const char* stack::type_name_at(int index) const noexcept { return luaL_typename(in_, index); }
bool stack::has_text(int index) const noexcept { return lua_isstring(in_, index) != 0; }
bool stack::has_number(int index) const noexcept { return lua_isnumber(in_, index) != 0; }
bool stack::boolean_at(int index) const noexcept { return lua_toboolean(in_, index) != 0; }
double stack::number_at(int index) const noexcept { return lua_tonumber(in_, index); }

std::string_view stack::text_at(int index) const {
    std::size_t size = 0;
    const char* const text = lua_tolstring(in_, index, &size);
    return {text, size};
}

type stack::read_text(int index, std::string_view& text) const noexcept {
    const auto what = static_cast<type>(lua_type(in_, index));
    if (what == type::text) {
        std::size_t size = 0;
        const char* const bytes = lua_tolstring(in_, index, &size);
        text = {bytes, size};
    }
    return what;
}

void* stack::pointer_at(int index) const noexcept { return lua_touserdata(in_, index); }

void stack::push_nil() const noexcept { lua_pushnil(in_); }
void stack::push_boolean(bool value) const noexcept { lua_pushboolean(in_, value ? 1 : 0); }
void stack::push_number(double value) const noexcept { lua_pushnumber(in_, value); }
void stack::push_integer(std::int64_t value) const noexcept {
    lua_pushinteger(in_, static_cast<lua_Integer>(value));
}
void stack::push_pointer(void* value) const { lua_pushlightuserdata(in_, value); }
void stack::push_text(std::string_view text) const {
    lua_pushlstring(in_, text.data(), text.size());
}

void stack::push_texts(const std::string_view* texts, std::size_t count) const {
    lua_createtable(in_, static_cast<int>(count), 0);
    for (std::size_t i = 0; i < count; ++i) {
        lua_pushlstring(in_, texts[i].data(), texts[i].size());
        lua_rawseti(in_, -2, static_cast<int>(i + 1));
    }
}

void stack::push_function(function run, int values) const { lua_pushcclosure(in_, run, values); }
void* stack::push_bytes(std::size_t bytes) const { return lua_newuserdata(in_, bytes); }
void stack::push_table(int elements, int fields) const { lua_createtable(in_, elements, fields); }
void stack::concatenate(int count) const { lua_concat(in_, count); }

void stack::push_field(int index, const char* name) const { lua_getfield(in_, index, name); }

void stack::push_raw_field(int index, std::string_view name) const {
    lua_pushlstring(in_, name.data(), name.size());
    lua_rawget(in_, index < 0 && index > LUA_REGISTRYINDEX ? index - 1 : index);
}

void stack::push_raw_element(int index, int which) const noexcept {
    lua_rawgeti(in_, index, which);
}

void stack::set_field(int index, const char* name) const { lua_setfield(in_, index, name); }

void stack::set_text(const char* name, std::string_view text) const {
    lua_pushlstring(in_, text.data(), text.size());
    lua_setfield(in_, -2, name);
}

void stack::set_boolean(const char* name, bool value) const {
    lua_pushboolean(in_, value ? 1 : 0);
    lua_setfield(in_, -2, name);
}

void stack::set_number(const char* name, double value) const {
    lua_pushnumber(in_, value);
    lua_setfield(in_, -2, name);
}

void stack::set_functions(std::initializer_list<named_function> all) const {
    for (const named_function& each : all) {
        lua_pushcfunction(in_, each.run);
        lua_setfield(in_, -2, each.name);
    }
}

void stack::set_raw_element(int index, int which) const { lua_rawseti(in_, index, which); }
void stack::set_raw(int index) const { lua_rawset(in_, index); }
bool stack::push_next(int index) const { return lua_next(in_, index) != 0; }
void stack::set_metatable(int index) const { lua_setmetatable(in_, index); }
void stack::push_global(const char* name) const { lua_getglobal(in_, name); }

int stack::keep() const { return luaL_ref(in_, LUA_REGISTRYINDEX); }
void stack::push_kept(int kept) const noexcept { lua_rawgeti(in_, LUA_REGISTRYINDEX, kept); }
void stack::forget(int kept) const noexcept { luaL_unref(in_, LUA_REGISTRYINDEX, kept); }

void stack::call(int arguments, int results) const { lua_call(in_, arguments, results); }
bool stack::try_call(int arguments, int results, int handler) const {
    return lua_pcall(in_, arguments, results, handler) == 0;
}

void stack::raise() const {
    lua_error(in_);
    __builtin_unreachable();
}

void stack::raise_text(const char* text) const {
    luaL_error(in_, "%s", text);
    __builtin_unreachable();
}

}  // namespace eddy::lua
