// Redis's form of errors, and the place where they were raised.
#include "lua/errors.hpp"

#include <lua.hpp>

#include <string_view>

namespace eddy::lua {

void push_error(stack to, std::string_view text) {
    lua_State* const in = to.raw();
    lua_createtable(in, 0, 4);
    std::string_view code = "ERR";
    if (text.starts_with('-')) {
        text.remove_prefix(1);
        const std::size_t end = text.find(' ');
        if (end != std::string_view::npos) {
            code = text.substr(0, end);
            text.remove_prefix(end + 1);
        }
    }
    constexpr std::string_view ends = "\r\n";
    while (!text.empty() && ends.find(text.front()) != std::string_view::npos)
        text.remove_prefix(1);
    while (!text.empty() && ends.find(text.back()) != std::string_view::npos) text.remove_suffix(1);
    lua_pushlstring(in, code.data(), code.size());
    lua_pushliteral(in, " ");
    lua_pushlstring(in, text.data(), text.size());
    lua_concat(in, 3);
    lua_setfield(in, -2, "err");
}

void raise_error(stack in, std::string_view text) {
    push_error(in, text);
    lua_error(in.raw());
    __builtin_unreachable();
}

namespace {

/// Levels that are searched: Lua finds each by way of all before.
constexpr int max_levels = 2000;

/// The innermost function of the script's from a level on, and its level; -1 if there is none.
/// Those of a sandbox that are written in Lua are named like "[tostring]".
int find_place(lua_State* in, lua_Debug& where, int level = 0) noexcept {
    for (; level < max_levels && lua_getstack(in, level, &where) != 0; ++level) {
        lua_getinfo(in, "Sl", &where);
        if (*where.what != 'C' && *where.short_src != '[') return level;
    }
    return -1;
}

}  // namespace

void raise_here(stack to, const char* text) {
    lua_State* const in = to.raw();
    lua_Debug where;
    if (find_place(in, where) >= 0)
        lua_pushfstring(in, "%s:%d: %s", where.short_src, where.currentline, text);
    else
        lua_pushstring(in, text);
    lua_error(in);
    __builtin_unreachable();
}

int note_error(lua_State* in) {
    lua_settop(in, 1);
    lua_Debug where;
    if (!lua_istable(in, 1)) {
        lua_createtable(in, 0, 3);
        lua_pushliteral(in, "ERR ");
        // As tostring() writes a value that has a text.
        switch (lua_type(in, 1)) {
            case LUA_TSTRING:
                // LuaJIT reports this error without a place.
                if (stack(in).tostring(1) == "stack overflow" && lua_getstack(in, 1, &where) != 0) {
                    lua_getinfo(in, "Sl", &where);
                    lua_pushfstring(in, "%s:%d: stack overflow", where.short_src,
                                    where.currentline);
                    break;
                }
                [[fallthrough]];
            case LUA_TNUMBER: lua_pushvalue(in, 1); break;
            case LUA_TBOOLEAN:
                lua_pushstring(in, lua_toboolean(in, 1) != 0 ? "true" : "false");
                break;
            case LUA_TNIL: lua_pushliteral(in, "nil"); break;
            default:
                lua_pushfstring(in, "%s: %p", luaL_typename(in, 1), lua_topointer(in, 1));
                break;
        }
        lua_concat(in, 2);
        lua_setfield(in, -2, "err");
        lua_replace(in, 1);
    }
    for (int level = 1; level <= 2; ++level) {
        if (lua_getstack(in, level, &where) == 0) break;
        lua_getinfo(in, "Sl", &where);
        if (*where.what == 'C') continue;
        lua_pushstring(in, where.source);
        lua_setfield(in, 1, "source");
        lua_pushinteger(in, where.currentline);
        lua_setfield(in, 1, "line");
        break;
    }
    return 1;
}

namespace {

/// True for "name:12: text", which error() with a level gives.
bool has_place(std::string_view text) noexcept {
    const std::size_t name = text.find(':');
    if (name == 0 || name == std::string_view::npos || text.substr(0, name).contains(' '))
        return false;
    const std::size_t end = text.find_first_not_of("0123456789", name + 1);
    return end != std::string_view::npos && end > name + 1 && text[end] == ':';
}

/// Calls behind the function at a level, the innermost first: "; called from a.lua:3, a.lua:9".
/// Levels are found one by one, so endless recursion costs no more than a few of them.
std::string calls_behind(lua_State* failed, int level) {
    std::string text;
    lua_Debug where;
    for (std::size_t count = 0; (level = find_place(failed, where, level + 1)) >= 0; ++count) {
        text += count == 0 ? "; called from " : ", ";
        if (count == max_traced_calls) return text + "...";
        text += where.short_src;
        if (where.currentline > 0) text += ":" + std::to_string(where.currentline);
    }
    return text;
}

}  // namespace

running_place find_running(stack in) {
    running_place found;
    lua_Debug where;
    const int level = find_place(in.raw(), where);
    if (level < 0) return found;
    found.place = where.short_src;
    if (where.currentline > 0) found.place += ":" + std::to_string(where.currentline);
    found.calls = calls_behind(in.raw(), level);
    return found;
}

std::string describe_failure(stack failed, stack to, std::size_t most) {
    lua_State* const in = to.raw();
    lua_xmove(failed.raw(), in, 1);
    std::string text;
    if (lua_type(in, -1) == LUA_TSTRING) {
        text = to.tostring(-1);
    } else if (lua_istable(in, -1)) {
        // Searches the fields without making a text, for which there may be no memory.
        lua_pushnil(in);
        while (lua_next(in, -2) != 0) {
            if (lua_type(in, -2) == LUA_TSTRING && lua_type(in, -1) == LUA_TSTRING &&
                to.tostring(-2) == "err")
                text = to.tostring(-1);
            lua_pop(in, 1);
        }
        // Functions of the sandbox prefix their errors with this.
        if (text.starts_with("ERR ")) text.erase(0, 4);
    }
    if (text.empty()) text = std::string("an error that is a ") + luaL_typename(in, -1);
    lua_Debug where;
    std::string calls;
    if (const int level = find_place(failed.raw(), where); level >= 0) {
        calls = calls_behind(failed.raw(), level);
        std::string place = std::string(where.short_src) + ":";
        // It is unknown where the function itself has failed, not one that it called.
        if (where.currentline > 0) place += std::to_string(where.currentline) + ":";
        if (!has_place(text) && !text.starts_with(std::string(where.short_src) + ":"))
            text.insert(0, place + " ");
    }
    // A long text of the script's leaves room for the calls.
    if (calls.size() > most / 2) calls.resize(most / 2);
    if (text.size() > most - calls.size()) text.resize(most - calls.size());
    text += calls;
    for (char& each : text)
        if (static_cast<unsigned char>(each) < ' ') each = ' ';
    return text;
}

}  // namespace eddy::lua
