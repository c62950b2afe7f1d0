// load() and loadstring(), and how any text of Lua is compiled: in small pieces, between which the
// clock is looked at. Lua's compiler may take long, most of all for a text that is made for it.
//
// Text only: what is compiled already could do anything.
#include "base/processor_time.hpp"
#include "lua/libraries.hpp"

#include <lua.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

namespace eddy::lua {
namespace {

// A name is looked for among thousands of others at worst: this takes some milliseconds then.
constexpr std::size_t piece_bytes = 512;

// LuaJIT skips a first line that begins with '#', and a byte order mark, as if each text came from
// a file. For Lua 5.1 they are syntax errors, as they are behind a space.
bool is_skipped_at_front(std::string_view text) noexcept {
    return text.starts_with('#') || text.starts_with('\xef');
}

// Lua reads it through a callback.
class source {
public:
    explicit source(std::string_view text, bool begun = false) noexcept
        : left_(text), begun_(begun) {}

    // The next piece, null at the end.
    const char* next(std::size_t& size) noexcept {
        size = std::min(left_.size(), piece_bytes);
        if (size == 0) return nullptr;
        if (!std::exchange(begun_, true) && is_skipped_at_front(left_)) {
            size = 1;
            return " ";
        }
        const char* const piece = left_.data();
        left_.remove_prefix(size);
        return piece;
    }
    bool is_empty() const noexcept { return left_.empty(); }
    bool has_begun() const noexcept { return begun_; }

private:
    std::string_view left_;
    bool begun_;
};

// --- Within a script -----------------------------------------------------------------------------

// The function that gives a text, or nil, is at index 1 of Lua's stack, its last text at 3.
const char* next_piece(lua_State* in, void* of, std::size_t* size) {
    source& text = *static_cast<source*>(of);
    sandbox::of(in).count_steps(in, instructions_a_look);
    if (text.is_empty() && lua_isfunction(in, 1)) {
        luaL_checkstack(in, 2, "too many nested functions");
        lua_pushvalue(in, 1);
        // lua_loadx() catches errors without restoring the state of the count hook: one raised
        // there, as a script is killed, would be the hook's last. lua_pcall() restores it.
        if (lua_pcall(in, 0, 1, 0) != 0) lua_error(in);
        if (!lua_isnil(in, -1) && lua_isstring(in, -1) == 0)
            luaL_error(in, "reader function must return a string");
        std::size_t given = 0;
        const char* const bytes = lua_tolstring(in, -1, &given);
        text = source({bytes, given}, text.has_begun());
        lua_replace(in, 3);
    }
    return text.next(*size);
}

int load(lua_State* in, std::string_view text, const char* name) {
    source from(text);
    if (lua_loadx(in, next_piece, &from, name, "t") == 0) return 1;
    lua_pushnil(in);
    lua_insert(in, -2);
    return 2;
}

int own_load(lua_State* in) {
    luaL_checktype(in, 1, LUA_TFUNCTION);
    const char* const name = luaL_optstring(in, 2, "=(load)");
    lua_settop(in, 3);
    enter_callback(in);
    return load(in, {}, name);
}

int own_loadstring(lua_State* in) {
    std::size_t size = 0;
    const char* const text = luaL_checklstring(in, 1, &size);
    const char* const name = luaL_optstring(in, 2, text);
    lua_settop(in, 3);
    check_native_stack(in);
    return load(in, {text, size}, name);
}

// --- A whole script ------------------------------------------------------------------------------

struct timed_source {
    source text;
    std::chrono::nanoseconds ends;  // of the thread's time
};

const char* next_timed_piece(lua_State* in, void* of, std::size_t* size) {
    timed_source& from = *static_cast<timed_source*>(of);
    if (processor_time() > from.ends) luaL_error(in, "to compile it takes too long");
    sandbox::of(in).let_others_run();
    return from.text.next(*size);
}

}  // namespace

void set_load_functions(lua_State* in) {
    lua_pushcfunction(in, own_load);
    lua_setfield(in, -2, "load");
    lua_pushcfunction(in, own_loadstring);
    lua_setfield(in, -2, "loadstring");
}

int load_within(lua_State* in, std::string_view text, const char* name,
                std::chrono::nanoseconds limit) {
    timed_source from{source(text), processor_time() + limit};
    return lua_loadx(in, next_timed_piece, &from, name, "t");
}

}  // namespace eddy::lua
