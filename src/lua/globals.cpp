// Globals of a sandbox: the parts of Lua's libraries that Redis allows, and tables that cannot be
// changed, so that a script cannot leave anything to another one.
//
// A protected table is an empty one whose metatable points to the real one. Functions that write
// without a metatable (rawset and its like) are replaced by ones that check for protection.
#include <eddy/base/assert.hpp>

#include "lua/libraries.hpp"

#include <lua.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>
#include <span>

namespace eddy::lua {
namespace {

// Registry keys, and that of the real table in a protected one's metatable.
constexpr char globals_key = 0;
constexpr char real_key = 0;
constexpr char getinfo_key = 0;

void* key(const char& of) noexcept { return const_cast<char*>(&of); }

constexpr const char* read_only_text = "Attempt to modify a readonly table";

// True, with the real table pushed, when the value there is a protected table.
bool push_real(lua_State* in, int index) {
    if (lua_type(in, index) != LUA_TTABLE || lua_getmetatable(in, index) == 0) return false;
    lua_pushlightuserdata(in, key(real_key));
    lua_rawget(in, -2);
    lua_remove(in, -2);
    if (lua_istable(in, -1)) return true;
    lua_pop(in, 1);
    return false;
}

int refuse_change(lua_State* in) { return luaL_error(in, "%s", read_only_text); }

}  // namespace

void refuse_protected(lua_State* in, int index) {
    if (push_real(in, index)) raise_error(in, read_only_text);
}

int sandbox::refuse_unknown_global(lua_State* in) {
    if (lua_isstring(in, 2) == 0)
        return luaL_error(in, "Script attempted to access nonexistent global variable");
    return luaL_error(in, "Script attempted to access nonexistent global variable '%s'",
                      lua_tostring(in, 2));
}

namespace {

// --- Functions of Lua's own that must know of protected tables ---------------------------------

int own_pairs(lua_State* in) {
    luaL_checktype(in, 1, LUA_TTABLE);
    lua_settop(in, 1);
    if (push_real(in, 1)) {
        // A copy: the real table must not become reachable.
        lua_newtable(in);
        lua_pushnil(in);
        while (lua_next(in, 2) != 0) {
            lua_pushvalue(in, -2);
            lua_insert(in, -2);
            lua_rawset(in, 3);
        }
        lua_replace(in, 1);
        lua_settop(in, 1);
    }
    lua_pushvalue(in, lua_upvalueindex(1));  // next
    lua_insert(in, 1);
    lua_pushnil(in);
    return 3;
}

// An error that is a table with a text is given as that text, as Redis does.
int own_pcall(lua_State* in) {
    luaL_checkany(in, 1);
    enter_callback(in);
    const int status = lua_pcall(in, lua_gettop(in) - 1, LUA_MULTRET, 0);
    if (status != 0 && lua_istable(in, -1)) {
        lua_pushliteral(in, "err");
        lua_rawget(in, -2);
        lua_isstring(in, -1) != 0 ? lua_replace(in, -2) : lua_pop(in, 1);
    }
    luaL_checkstack(in, 1, nullptr);
    lua_pushboolean(in, status == 0 ? 1 : 0);
    lua_insert(in, 1);
    return lua_gettop(in);
}

// The upvalue is the script's own handler, which could run for ever: within Lua's hook, which ends
// a script, the clock is not checked.
int handle_error(lua_State* in) {
    if (sandbox::of(in).supervised_by().is_ending()) return 1;
    lua_settop(in, 1);
    lua_pushvalue(in, lua_upvalueindex(1));
    lua_insert(in, 1);
    lua_call(in, 1, 1);
    return 1;
}

int own_xpcall(lua_State* in) {
    luaL_checkany(in, 2);
    enter_callback(in);
    lua_settop(in, 2);
    lua_pushcclosure(in, handle_error, 1);
    lua_insert(in, 1);
    const int status = lua_pcall(in, 0, LUA_MULTRET, 1);
    lua_pushboolean(in, status == 0 ? 1 : 0);
    lua_replace(in, 1);
    return lua_gettop(in);
}

int own_setmetatable(lua_State* in) {
    luaL_checktype(in, 1, LUA_TTABLE);
    const int type = lua_type(in, 2);
    luaL_argcheck(in, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
    if (luaL_getmetafield(in, 1, "__metatable") != 0) {
        refuse_protected(in, 1);
        return luaL_error(in, "cannot change a protected metatable");
    }
    lua_settop(in, 2);
    lua_setmetatable(in, 1);
    return 1;
}

int own_rawset(lua_State* in) {
    luaL_checktype(in, 1, LUA_TTABLE);
    luaL_checkany(in, 2);
    luaL_checkany(in, 3);
    refuse_protected(in, 1);
    lua_settop(in, 3);
    lua_rawset(in, 1);
    return 1;
}

int own_rawget(lua_State* in) {
    luaL_checktype(in, 1, LUA_TTABLE);
    luaL_checkany(in, 2);
    lua_settop(in, 2);
    if (push_real(in, 1)) lua_replace(in, 1);
    lua_rawget(in, 1);
    return 1;
}

int obsolete_setn(lua_State* in) { return luaL_error(in, "'setn' is obsolete"); }

// A script must not turn the collector off for those after it.
int own_collectgarbage(lua_State* in) {
    static const char* const names[] = {"collect", "count",    "step",       "stop",
                                        "restart", "setpause", "setstepmul", nullptr};
    constexpr int usual = 200;
    switch (luaL_checkoption(in, 1, "collect", names)) {
        case 0:
            sandbox::of(in).collect_all(in);
            lua_pushinteger(in, 0);
            break;
        case 1:
            lua_pushnumber(in, lua_gc(in, LUA_GCCOUNT, 0) + lua_gc(in, LUA_GCCOUNTB, 0) / 1024.0);
            break;
        case 2: {
            const lua_Integer wanted = luaL_optinteger(in, 2, 0);
            bool ended = sandbox::of(in).collect_some(in);
            for (lua_Integer done = 1; !ended && (wanted < 0 || done < wanted); ++done)
                ended = sandbox::of(in).collect_some(in);
            lua_pushboolean(in, ended ? 1 : 0);
            break;
        }
        case 3:
        case 4: lua_pushinteger(in, 0); break;
        default: lua_pushinteger(in, usual); break;
    }
    return 1;
}

int own_gcinfo(lua_State* in) {
    lua_pushinteger(in, lua_gc(in, LUA_GCCOUNT, 0));
    return 1;
}

int own_random(lua_State* in) {
    constexpr std::uint32_t most = std::numeric_limits<std::int32_t>::max();
    const double r = static_cast<double>(sandbox::of(in).random() % most) / most;
    switch (lua_gettop(in)) {
        case 0: lua_pushnumber(in, r); return 1;
        case 1: {
            const auto high = static_cast<int>(luaL_checkinteger(in, 1));
            luaL_argcheck(in, high >= 1, 1, "interval is empty");
            lua_pushnumber(in, std::floor(r * high) + 1);
            return 1;
        }
        case 2: {
            const auto low = static_cast<int>(luaL_checkinteger(in, 1));
            const auto high = static_cast<int>(luaL_checkinteger(in, 2));
            luaL_argcheck(in, low <= high, 2, "interval is empty");
            lua_pushnumber(in, std::floor(r * (static_cast<double>(high) - low + 1)) + low);
            return 1;
        }
        default: return luaL_error(in, "wrong number of arguments");
    }
}

int own_randomseed(lua_State* in) {
    sandbox::of(in).seed_random(static_cast<std::uint32_t>(luaL_checkinteger(in, 1)));
    return 0;
}

// LuaJIT's, but for counts above 8, which are 8 in Redis, as is the one that has no positive
// counterpart.
int own_tohex(lua_State* in) {
    constexpr double numbers = 4294967296.0;
    constexpr double most = 8;
    luaL_checknumber(in, 1);
    if (lua_gettop(in) >= 2) {
        // In 32 bits, with a sign; what is no number is 0.
        double count = std::remainder(std::nearbyint(luaL_checknumber(in, 2)), numbers);
        if (std::isnan(count)) count = 0;
        if (count == numbers / 2) count = -count;
        lua_pushnumber(in, std::clamp(count, -most, most));
        lua_replace(in, 2);
    }
    lua_pushvalue(in, lua_upvalueindex(1));
    lua_insert(in, 1);
    lua_call(in, lua_gettop(in) - 1, 1);
    return 1;
}

int own_clock(lua_State* in) {
    lua_pushnumber(in, static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
    return 1;
}

// --- The tables ----------------------------------------------------------------------------------

constexpr const char* base_names[] = {"_VERSION", "assert", "error",    "getmetatable",
                                      "ipairs",   "next",   "rawequal", "select",
                                      "tonumber", "type",   "unpack"};

struct part {
    const char* library;
    std::span<const char* const> names;
};
constexpr const char* string_names[] = {"byte",   "char",    "dump", "find",  "format",
                                        "gmatch", "gsub",    "len",  "lower", "match",
                                        "rep",    "reverse", "sub",  "upper"};
constexpr const char* table_names[] = {"concat", "foreach", "foreachi", "getn",
                                       "maxn",   "remove",  "sort"};
constexpr const char* math_names[] = {"abs",   "acos", "asin",  "atan",  "atan2", "ceil",  "cos",
                                      "cosh",  "deg",  "exp",   "floor", "fmod",  "frexp", "huge",
                                      "ldexp", "log",  "log10", "max",   "min",   "modf",  "pi",
                                      "pow",   "rad",  "sin",   "sinh",  "sqrt",  "tan",   "tanh"};
constexpr const char* coroutine_names[] = {"create", "resume", "running",
                                           "status", "wrap",   "yield"};
constexpr const char* bit_names[] = {"arshift", "band", "bnot", "bor",    "bswap", "bxor",
                                     "lshift",  "rol",  "ror",  "rshift", "tobit", "tohex"};
constexpr part parts[] = {{"string", string_names},
                          {"table", table_names},
                          {"math", math_names},
                          {"coroutine", coroutine_names},
                          {"bit", bit_names}};

// Sets field `name` of the table on top to what field `from_name` of the table at `from` is.
void copy_field(lua_State* in, int from, const char* from_name, const char* name) {
    lua_getfield(in, from, from_name);
    lua_setfield(in, -2, name);
}

void set_function(lua_State* in, const char* name, lua_CFunction function) {
    lua_pushcfunction(in, function);
    lua_setfield(in, -2, name);
}

void open(lua_State* in, const char* name, lua_CFunction library) {
    lua_pushcfunction(in, library);
    lua_pushstring(in, name);
    lua_call(in, 1, 0);
}

// The library's table is on top, the original one at `from`.
void add_own_parts(lua_State* in, const char* library, int from) {
    if (std::strcmp(library, "string") == 0) {
        set_string_functions(in, from);
        set_format_function(in);
    }
    if (std::strcmp(library, "table") == 0) {
        set_table_functions(in, from);
        set_function(in, "setn", obsolete_setn);
    }
    if (std::strcmp(library, "coroutine") == 0) set_coroutine_functions(in);
    if (std::strcmp(library, "bit") == 0) {
        lua_getfield(in, from, "tohex");
        lua_pushcclosure(in, own_tohex, 1);
        lua_setfield(in, -2, "tohex");
    }
    if (std::strcmp(library, "math") == 0) {
        copy_field(in, from, "fmod", "mod");
        set_function(in, "random", own_random);
        set_function(in, "randomseed", own_randomseed);
    }
}

// The methods of strings: those of the restricted library, whose table is on top and whose
// protected one lies below it.
void set_string_methods(lua_State* in) {
    lua_pushliteral(in, "");
    lua_getmetatable(in, -1);
    lua_pushvalue(in, -3);
    lua_setfield(in, -2, "__index");
    lua_newtable(in);
    lua_pushvalue(in, -5);
    lua_setfield(in, -2, "__index");
    sandbox::protect(in);
    lua_setfield(in, -2, "__metatable");
    lua_pop(in, 2);
}

}  // namespace

void sandbox::wrap_in_lua(stack function) {
    lua_State* const in = function.raw();
    constexpr const char* text =
        "local original = ... return function(...) return original(...) end";
    if (luaL_loadbuffer(in, text, std::strlen(text), "=[library]") != 0) lua_error(in);
    lua_insert(in, -2);
    lua_call(in, 1, 1);
}

void sandbox::protect(stack table) {
    lua_State* const in = table.raw();
    lua_newtable(in);  // what is seen
    lua_newtable(in);  // its metatable
    lua_pushvalue(in, -3);
    lua_setfield(in, -2, "__index");
    set_function(in, "__newindex", refuse_change);
    lua_pushlightuserdata(in, key(real_key));
    lua_pushvalue(in, -4);
    lua_rawset(in, -3);
    // Result of getmetatable(): an empty table, equivalent to this one.
    lua_pushvalue(in, -2);
    lua_setfield(in, -2, "__metatable");
    lua_setmetatable(in, -2);
    lua_remove(in, -2);
}

void sandbox::set_global(stack value, const char* name) {
    lua_State* const in = value.raw();
    lua_pushlightuserdata(in, key(globals_key));
    lua_rawget(in, LUA_REGISTRYINDEX);
    lua_pushstring(in, name);
    lua_pushvalue(in, -3);
    lua_rawset(in, -3);
    lua_pop(in, 2);
}

void sandbox::extend(stack to, int index, std::string_view name) {
    lua_State* const in = to.raw();
    lua_pushvalue(in, index);
    if (push_real(in, -1)) lua_remove(in, -2);
    to.pushstring(name);
    lua_pushvalue(in, -3);
    lua_rawset(in, -3);
    lua_pop(in, 2);
}

int sandbox::parameters_of(stack function) {
    lua_State* const in = function.raw();
    lua_pushlightuserdata(in, key(getinfo_key));
    lua_rawget(in, LUA_REGISTRYINDEX);
    lua_pushvalue(in, -2);
    lua_pushliteral(in, "u");
    lua_call(in, 2, 1);
    lua_getfield(in, -1, "isvararg");
    lua_getfield(in, -2, "nparams");
    const int count = lua_toboolean(in, -2) != 0 ? -1 : static_cast<int>(lua_tointeger(in, -1));
    lua_pop(in, 3);
    return count;
}

void sandbox::show_globals(stack table) {
    lua_State* const in = table.raw();
    lua_pushvalue(in, LUA_GLOBALSINDEX);
    lua_getmetatable(in, -1);
    lua_remove(in, -2);
    lua_insert(in, -2);
    if (lua_isnil(in, -1)) {
        lua_pop(in, 1);
        lua_pushlightuserdata(in, key(real_key));
        lua_rawget(in, -2);
    }
    lua_setfield(in, -2, "__index");
    lua_pop(in, 1);
}

namespace {

/// Places on the stack while a sandbox is set up: the libraries' own globals, and the scripts'.
constexpr int old = 1;
constexpr int globals = 2;

void open_libraries(lua_State* in) {
    open(in, "", luaopen_base);
    open(in, LUA_TABLIBNAME, luaopen_table);
    open(in, LUA_STRLIBNAME, luaopen_string);
    open(in, LUA_MATHLIBNAME, luaopen_math);
    open(in, LUA_BITLIBNAME, luaopen_bit);
    // For parameters_of() alone.
    open(in, LUA_DBLIBNAME, luaopen_debug);
    lua_settop(in, 0);
    lua_pushlightuserdata(in, key(getinfo_key));
    lua_getglobal(in, LUA_DBLIBNAME);
    lua_getfield(in, -1, "getinfo");
    lua_remove(in, -2);
    lua_rawset(in, LUA_REGISTRYINDEX);
}

// tostring() and __tostring: see sandbox::wrap_in_lua().
void set_tostring(lua_State* in) {
    lua_getfield(in, old, "tostring");
    sandbox::wrap_in_lua(in);
    lua_setfield(in, globals, "tostring");
}

void set_base_functions(lua_State* in) {
    for (const char* const name : base_names) copy_field(in, old, name, name);
    set_tostring(in);
    lua_getfield(in, old, "next");
    lua_pushcclosure(in, own_pairs, 1);
    lua_setfield(in, globals, "pairs");
    set_load_functions(in);
    set_function(in, "setmetatable", own_setmetatable);
    set_function(in, "pcall", own_pcall);
    set_function(in, "xpcall", own_xpcall);
    set_function(in, "rawset", own_rawset);
    set_function(in, "rawget", own_rawget);
    set_function(in, "collectgarbage", own_collectgarbage);
    set_function(in, "gcinfo", own_gcinfo);
}

/// The allowed part of Lua's libraries, and of `os` a clock.
void set_libraries(lua_State* in) {
    for (const part& each : parts) {
        lua_getfield(in, old, each.library);
        const int from = lua_gettop(in);
        lua_newtable(in);
        for (const char* const name : each.names) copy_field(in, from, name, name);
        add_own_parts(in, each.library, from);
        lua_pushvalue(in, -1);
        sandbox::protect(in);
        lua_pushvalue(in, -1);
        lua_setfield(in, globals, each.library);
        lua_insert(in, -2);
        if (std::strcmp(each.library, "string") == 0) set_string_methods(in);
        lua_settop(in, globals);
    }
    lua_newtable(in);
    set_function(in, "clock", own_clock);
    sandbox::protect(in);
    lua_setfield(in, globals, "os");
}

/// The libraries that Redis adds.
void set_added_libraries(lua_State* in) {
    push_cjson_library(in);
    sandbox::protect(in);
    lua_setfield(in, globals, "cjson");
    push_cmsgpack_library(in);
    sandbox::protect(in);
    lua_setfield(in, globals, "cmsgpack");
    push_struct_library(in);
    sandbox::protect(in);
    lua_setfield(in, globals, "struct");
}

/// From here on scripts have these globals, and cannot change them.
void seal_globals(lua_State* in) {
    lua_newtable(in);
    set_function(in, "__index", sandbox::refuse_unknown_global);
    lua_setmetatable(in, globals);
    lua_pushlightuserdata(in, key(globals_key));
    lua_pushvalue(in, globals);
    lua_rawset(in, LUA_REGISTRYINDEX);
    lua_pushvalue(in, globals);
    sandbox::protect(in);
    lua_pushvalue(in, -1);
    lua_setfield(in, globals, "_G");
    lua_replace(in, LUA_GLOBALSINDEX);
    lua_settop(in, 0);
}

}  // namespace

void sandbox::push_time_library(stack to) {
    lua_State* const in = to.raw();
    // Into the globals of the libraries, which are hidden in the end.
    lua::open(in, LUA_OSLIBNAME, luaopen_os);
    lua_getglobal(in, LUA_OSLIBNAME);
    const int from = lua_gettop(in);
    lua_newtable(in);
    for (const char* const name : {"date", "difftime", "time"}) copy_field(in, from, name, name);
    set_function(in, "clock", own_clock);
    lua_remove(in, from);
}

void furnish(lua_State* in, const sandbox::furnisher& add) {
    open_libraries(in);
    lua_pushvalue(in, LUA_GLOBALSINDEX);
    lua_newtable(in);
    EDDY_ASSERT(lua_gettop(in) == globals);
    set_base_functions(in);
    set_libraries(in);
    set_added_libraries(in);
    if (add) {
        // The table of globals is its first value.
        lua_remove(in, old);
        add(in);
        lua_settop(in, 1);
        lua_pushvalue(in, LUA_GLOBALSINDEX);
        lua_insert(in, old);
    }
    seal_globals(in);
}

}  // namespace eddy::lua
