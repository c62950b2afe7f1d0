// Every call into Lua is protected: an unprotected error would end the process.
#include "lua/blocking_state.hpp"

#include "lua/errors.hpp"
#include "lua/libraries.hpp"

#include <lua.hpp>

#include <algorithm>
#include <utility>

namespace eddy::lua {
namespace {

using clock = std::chrono::steady_clock;

// Removes dangerous parts of the standard libraries. LuaJIT does not check bytecode: malformed
// bytecode crashes it.
constexpr std::string_view prelude = R"(
local say, is_over = ...
local load, loadfile, tostring, select, concat, error, pcall, xpcall, type =
      load, loadfile, tostring, select, table.concat, error, pcall, xpcall, type

os.exit, os.setlocale, string.dump, package.loadlib = nil, nil, nil, nil
for name in pairs(debug) do
    if name ~= 'traceback' and name ~= 'getinfo' then debug[name] = nil end
end
for _, name in ipairs{'ffi', 'jit', 'jit.util', 'jit.opt', 'jit.profile'} do
    package.preload[name], package.loaded[name] = nil, nil
end
jit = nil

-- LuaJIT's own load() would call a reader in protected mode without restoring the state of the
-- count hook: an error of the time limit there would leave the limit off.
local function read_all(read)
    local pieces = {}
    while true do
        local piece = read()
        if piece == nil or piece == '' then return concat(pieces) end
        if type(piece) ~= 'string' then error('reader function must return a string', 0) end
        pieces[#pieces + 1] = piece
    end
end
local function load_text(chunk, name, env)
    if type(chunk) == 'function' then
        local ok, text = pcall(read_all, chunk)
        if not ok then return nil, text end
        chunk, name = text, name or '=(load)'
    end
    if env == nil then return load(chunk, name, 't') end
    return load(chunk, name, 't', env)
end
function _G.load(chunk, name, mode, env) return load_text(chunk, name, env) end
function _G.loadstring(text, name) return load_text(text, name) end
function _G.loadfile(name, mode, env)
    if env == nil then return loadfile(name, 't') end
    return loadfile(name, 't', env)
end
function _G.dofile(name)
    local run, why = loadfile(name, 't')
    if not run then error(why, 0) end
    return run()
end
-- No interrupt comes within a handler that is called for the end of the time.
function _G.xpcall(run, handle, ...)
    return xpcall(run, function(why)
        if is_over() then return why end
        return handle(why)
    end, ...)
end
-- As metamethods that lead to themselves, LuaJIT's own check neither the time nor the stack.
function _G.pcall(...) return pcall(...) end
function _G.tostring(...) return tostring(...) end
function print(...)
    local words = {}
    for i = 1, select('#', ...) do words[i] = tostring((select(i, ...))) end
    say(concat(words, '\t'))
end
)";

constexpr std::string_view timeout_text = "it took longer than it may";

// The error object on top of the stack, which is popped. Nothing of Lua is called for it.
std::string take_error(lua_State* in, int status) {
    std::string text;
    if (status == LUA_ERRMEM) {
        text = "not enough memory";
    } else if (lua_type(in, -1) == LUA_TSTRING) {
        std::size_t size = 0;
        const char* const bytes = lua_tolstring(in, -1, &size);
        text.assign(bytes, std::min(size, blocking_state::max_error));
    } else {
        text = std::string("an error that is no text but of type ") +
               lua_typename(in, lua_type(in, -1));
    }
    lua_settop(in, 0);
    for (char& each : text) {
        if (static_cast<unsigned char>(each) < ' ') each = ' ';
    }
    return text;
}

// Leaves the function on top. Bytecode is refused.
void load_text(lua_State* in, std::string_view text, const char* name) {
    if (luaL_loadbufferx(in, text.data(), text.size(), name, "t") != 0) lua_error(in);
}

}  // namespace

blocking_state::blocking_state(limits most, printer prints)
    : state(most.bytes), most_(most), prints_(std::move(prints)) {
    open(&blocking_state::resize);
    limit_memory(true);
}

blocking_state::~blocking_state() { close(); }

std::expected<void, std::string> blocking_state::protect(std::chrono::nanoseconds limit,
                                                         void (*body)(stack in, void* of),
                                                         void* of) {
    struct frame {
        blocking_state* self;
        void (*body)(stack in, void* of);
        void* of;
        int status;
    } here{this, body, of, 0};
    is_over_ = false;
    over_at_.clear();
    calls_.clear();
    end_ = clock::now() + limit;
    interrupt_each(instructions_a_look);
    const int status = lua_cpcall(
        raw(),
        [](lua_State* in) -> int {
            frame& what = *static_cast<frame*>(lua_touserdata(in, 1));
            lua_settop(in, 0);
            // Where an error is handled its calls are still there.
            lua_pushlightuserdata(in, what.self);
            lua_pushcclosure(in, &blocking_state::note_calls, 1);
            lua_pushlightuserdata(in, &what);
            lua_pushcclosure(
                in,
                [](lua_State* within) -> int {
                    const frame& its =
                        *static_cast<frame*>(lua_touserdata(within, lua_upvalueindex(1)));
                    its.body(within, its.of);
                    return 0;
                },
                1);
            what.status = lua_pcall(in, 0, 0, 1);
            return what.status == 0 ? 0 : lua_error(in);
        },
        &here);
    interrupt_each(0);
    if (status == 0) {
        lua_settop(raw(), 0);
        return {};
    }
    return std::unexpected(describe(here.status == LUA_ERRMEM ? LUA_ERRMEM : status));
}

/// Error handler. The object of the error is not changed: it may be no text.
int blocking_state::note_calls(lua_State* in) {
    auto& self = *static_cast<blocking_state*>(lua_touserdata(in, lua_upvalueindex(1)));
    try {
        self.calls_ = find_running(in).calls;
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the error is known without
    }
    lua_settop(in, 1);
    return 1;
}

/// The error object on top of the stack, which is popped, as a text.
std::string blocking_state::describe(int status) {
    std::string why = take_error(raw(), status);
    if (is_over_) return over_at_.empty() ? std::string(timeout_text) : over_at_;
    if (status == LUA_ERRMEM) return why;
    if (why.size() + calls_.size() > max_error) why.resize(max_error - calls_.size());
    return why + calls_;
}

std::expected<void, std::string> blocking_state::compile(std::string_view text,
                                                         const std::string& name) {
    const std::string chunk = "@" + name;
    return run(most_.load, [&](stack in) { load_text(in.raw(), text, chunk.c_str()); });
}

std::expected<void, std::string> blocking_state::load(std::string_view text,
                                                      const std::string& name,
                                                      std::span<const char* const> functions) {
    const std::string chunk = "@" + name;
    functions_.assign(functions.size(), LUA_NOREF);
    return run(most_.load, [&](stack by) {
        lua_State* const in = by.raw();
        luaL_openlibs(in);
        check_standard_libraries(in);
        // The library jit has just turned it on.
        luaJIT_setmode(in, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
        load_text(in, prelude, "=[prelude]");
        lua_pushlightuserdata(in, this);
        lua_pushcclosure(in, &blocking_state::print, 1);
        lua_pushlightuserdata(in, this);
        lua_pushcclosure(in, &blocking_state::push_is_over, 1);
        lua_call(in, 2, 0);
        load_text(in, text, chunk.c_str());
        lua_call(in, 0, 0);
        for (std::size_t i = 0; i < functions.size(); ++i) {
            lua_getglobal(in, functions[i]);
            if (lua_isfunction(in, -1)) {
                functions_[i] = luaL_ref(in, LUA_REGISTRYINDEX);
                continue;
            }
            if (!lua_isnil(in, -1)) luaL_error(in, "%s must be a function", functions[i]);
            lua_pop(in, 1);
        }
    });
}

std::vector<bool> blocking_state::defined() const {
    std::vector<bool> all(functions_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = functions_[i] != LUA_NOREF;
    return all;
}

std::expected<double, std::string> blocking_state::global_number(const char* name,
                                                                 double if_absent) {
    double found = if_absent;
    const auto read = run(most_.load, [&](stack in) {
        in.getglobal(name);
        if (in.isnil(1)) return;
        if (in.type(1) != value_type::number) luaL_error(in.raw(), "%s must be a number", name);
        found = in.tonumber(1);
    });
    if (!read) return std::unexpected(read.error());
    return found;
}

int blocking_state::print(lua_State* in) {
    blocking_state& self = *static_cast<blocking_state*>(lua_touserdata(in, lua_upvalueindex(1)));
    std::size_t size = 0;
    const char* const bytes = luaL_checklstring(in, 1, &size);
    try {
        self.prints_({bytes, size});
    } catch (const std::bad_alloc&) {
        // Then the line is lost.
    }
    return 0;
}

int blocking_state::push_is_over(lua_State* in) {
    const auto* const self =
        static_cast<const blocking_state*>(lua_touserdata(in, lua_upvalueindex(1)));
    lua_pushboolean(in, self->is_over_ ? 1 : 0);
    return 1;
}

void blocking_state::interrupt(lua_State* in) {
    if (!is_over_ && clock::now() < end_) return;
    if (!is_over_) {
        is_over_ = true;
        try {
            const running_place at = find_running(in);
            if (!at.place.empty())
                over_at_ = at.place + ": " + std::string(timeout_text) + at.calls;
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is said without
        }
    }
    // From here on every instruction fails, so that a pcall() cannot continue.
    interrupt_each(1);
    luaL_error(in, "%s", timeout_text.data());
}

// Lua itself would rather fail than collect at the limit.
void blocking_state::collect_if_full() {
    if (used_bytes() <= max_bytes() / 2) return;
    static_cast<void>(run(collection_limit, [](stack in) {
        lua_gc(in.raw(), LUA_GCCOLLECT, 0);
        lua_gc(in.raw(), LUA_GCCOLLECT, 0);
    }));
}

}  // namespace eddy::lua
