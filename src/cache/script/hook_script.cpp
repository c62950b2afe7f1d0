// Every call into Lua is protected: an unprotected error would end the process.
#include "cache/script/hook_script.hpp"

#include "cache/script/vm.hpp"

#include <lua.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <type_traits>
#include <utility>

namespace eddy::cache {
namespace {

using clock = std::chrono::steady_clock;

// What the standard libraries have too much. Bytecode is not checked by LuaJIT: a wrong one
// crashes.
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
-- The clock is not looked at within a handler that is called for the end of the time.
function _G.xpcall(run, handle, ...)
    return xpcall(run, function(why)
        if is_over() then return why end
        return handle(why)
    end, ...)
end
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
        text.assign(bytes, std::min(size, hook_script::max_error));
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

}  // namespace

/// A Lua state with limits of memory and time.
class hook_script::machine {
public:
    enum { miss, write, erase, expire, hooks };
    static constexpr std::array<const char*, hooks> names = {"on_miss", "on_write", "on_delete",
                                                             "on_expire"};

    explicit machine(printer says) : says_(std::move(says)) {
        state_ = luaL_newstate();
        if (state_ == nullptr) throw std::bad_alloc();
        used_ = static_cast<std::size_t>(lua_gc(state_, LUA_GCCOUNT, 0)) * 1024 +
                static_cast<std::size_t>(lua_gc(state_, LUA_GCCOUNTB, 0));
        allocate_ = lua_getallocf(state_, &allocator_);
        lua_setallocf(state_, &machine::allocate, this);
    }
    machine(const machine&) = delete;
    machine& operator=(const machine&) = delete;
    ~machine() {
        // Its own allocator gives everything back at once.
        lua_setallocf(state_, allocate_, allocator_);
        lua_close(state_);
    }

    /// Calls f(state) protected; the error is its text.
    template <class F>
    std::expected<void, std::string> protect(std::chrono::nanoseconds limit, F&& f) {
        struct frame {
            std::remove_reference_t<F>& what;
        } here{f};
        begin(limit);
        const int status = lua_cpcall(
            state_,
            [](lua_State* in) -> int {
                frame& of = *static_cast<frame*>(lua_touserdata(in, 1));
                lua_settop(in, 0);
                of.what(in);
                return 0;
            },
            &here);
        lua_sethook(state_, nullptr, 0, 0);
        if (status == 0) {
            lua_settop(state_, 0);
            return {};
        }
        std::string why = take_error(state_, status);
        if (is_over_) why = timeout_text;
        return std::unexpected(std::move(why));
    }

    std::expected<void, std::string> compile(std::string_view text, const std::string& name) {
        return protect(load_limit, [&](lua_State* in) {
            if (luaL_loadbufferx(in, text.data(), text.size(), name.c_str(), "t") != 0)
                lua_error(in);
            lua_pop(in, 1);
        });
    }

    std::expected<hook_functions, std::string> load(std::string_view text,
                                                    const std::string& name) {
        hook_functions found;
        auto loaded = protect(load_limit, [&](lua_State* in) {
            luaL_openlibs(in);
            check_standard_libraries(in);
            // The library jit has just turned it on.
            luaJIT_setmode(in, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
            if (luaL_loadbufferx(in, prelude.data(), prelude.size(), "=prelude", "t") != 0)
                lua_error(in);
            lua_pushlightuserdata(in, this);
            lua_pushcclosure(in, &machine::say, 1);
            lua_pushlightuserdata(in, this);
            lua_pushcclosure(in, &machine::tell_whether_over, 1);
            lua_call(in, 2, 0);
            if (luaL_loadbufferx(in, text.data(), text.size(), name.c_str(), "t") != 0)
                lua_error(in);
            lua_call(in, 0, 0);
            for (std::size_t i = 0; i < hooks; ++i) {
                lua_getglobal(in, names[i]);
                if (lua_isfunction(in, -1)) {
                    functions_[i] = luaL_ref(in, LUA_REGISTRYINDEX);
                    continue;
                }
                if (!lua_isnil(in, -1)) luaL_error(in, "%s must be a function", names[i]);
                lua_pop(in, 1);
            }
        });
        if (!loaded) return std::unexpected(std::move(loaded.error()));
        found.miss = functions_[miss] != LUA_NOREF;
        found.write = functions_[write] != LUA_NOREF;
        found.erase = functions_[erase] != LUA_NOREF;
        found.expire = functions_[expire] != LUA_NOREF;
        return found;
    }

    hook_answer run(const hook_job& job, std::chrono::nanoseconds limit) {
        hook_answer answer;
        answer.result.id = job.id;
        // Written by C++ below frames of Lua, which leaves them without destroying anything: all
        // that lives longer than a line is out here.
        bool no_memory = false;
        auto called = protect(limit, [&](lua_State* in) {
            lua_rawgeti(in, LUA_REGISTRYINDEX, functions_[index_of(job.what)]);
            lua_pushlstring(in, job.key.data(), job.key.size());
            int arguments = 1;
            if (job.what == hook_job::kind::write) {
                lua_pushlstring(in, job.value->data(), job.value->size());
                if (job.ttl_ms != 0)
                    lua_pushnumber(in, static_cast<double>(job.ttl_ms) / 1000);
                else
                    lua_pushnil(in);
                arguments += 2;
            }
            lua_pushinteger(in, static_cast<lua_Integer>(job.database));
            lua_call(in, arguments + 1, 2);
            try {
                read(in, job.what, answer);
            } catch (const std::bad_alloc&) {
                no_memory = true;
            }
        });
        if (no_memory) called = std::unexpected("not enough memory");
        if (!called) {
            answer.result.failed = true;
            answer.result.value.reset();
            answer.error = std::move(called.error());
        }
        collect_if_full();
        return answer;
    }

private:
    static std::size_t index_of(hook_job::kind what) noexcept {
        switch (what) {
            case hook_job::kind::miss: return miss;
            case hook_job::kind::write: return write;
            case hook_job::kind::erase: return erase;
            default: return expire;
        }
    }

    static std::string_view text_at(lua_State* in, int index) {
        std::size_t size = 0;
        const char* const bytes = lua_tolstring(in, index, &size);
        return {bytes, size};
    }

    /// Two results: a value and its time, or nothing (false) and why.
    static void read(lua_State* in, hook_job::kind what, hook_answer& into) {
        const auto fail = [&](std::string_view why) {
            into.result.failed = true;
            into.error = why.substr(0, max_error);
        };
        const bool is_nothing = lua_isnil(in, 1) || (lua_isboolean(in, 1) && !lua_toboolean(in, 1));
        if (is_nothing && lua_type(in, 2) == LUA_TSTRING) return fail(text_at(in, 2));
        if (what != hook_job::kind::miss) {
            if (lua_isboolean(in, 1) && !lua_toboolean(in, 1)) fail("it returned false");
            return;
        }
        if (is_nothing && !lua_isnil(in, 1)) return fail("it returned false");
        if (!is_nothing) {
            const int type = lua_type(in, 1);
            if (type != LUA_TSTRING && type != LUA_TNUMBER) {
                fail("it returned a value of type ");
                into.error += lua_typename(in, type);
                into.error += ", not a string";
                return;
            }
            into.result.value = text_at(in, 1);
        }
        if (lua_isnil(in, 2)) return;
        const double seconds = lua_type(in, 2) == LUA_TNUMBER ? lua_tonumber(in, 2) : -1;
        if (!(seconds >= 0) || std::isinf(seconds))
            return fail("its second result, seconds to live, is no number from 0 on");
        constexpr double longest_s = 1e11;
        // Zero is no time to live; next to nothing is one.
        const double ms = std::min(seconds, longest_s) * 1000;
        into.result.ttl_ms = ms > 0 && ms < 1 ? 1 : static_cast<std::int64_t>(ms);
    }

    static int say(lua_State* in) {
        machine& self = *static_cast<machine*>(lua_touserdata(in, lua_upvalueindex(1)));
        std::size_t size = 0;
        const char* const bytes = luaL_checklstring(in, 1, &size);
        try {
            self.says_({bytes, size});
        } catch (const std::bad_alloc&) {
            // Then it is not said.
        }
        return 0;
    }

    static int tell_whether_over(lua_State* in) {
        const auto* const self =
            static_cast<const machine*>(lua_touserdata(in, lua_upvalueindex(1)));
        lua_pushboolean(in, self->is_over_ ? 1 : 0);
        return 1;
    }

    void begin(std::chrono::nanoseconds limit) {
        is_over_ = false;
        end_ = clock::now() + limit;
        lua_sethook(state_, &machine::look_at_clock, LUA_MASKCOUNT, instructions_a_look);
    }

    static void look_at_clock(lua_State* in, lua_Debug*) {
        void* self = nullptr;
        static_cast<void>(lua_getallocf(in, &self));
        machine& me = *static_cast<machine*>(self);
        if (!me.is_over_ && clock::now() < me.end_) return;
        me.is_over_ = true;
        // From here on every instruction fails, so that no pcall() goes on.
        lua_sethook(in, &machine::look_at_clock, LUA_MASKCOUNT, 1);
        luaL_error(in, "%s", timeout_text.data());
    }

    static void* allocate(void* self, void* block, std::size_t old_bytes, std::size_t bytes) {
        machine& me = *static_cast<machine*>(self);
        if (bytes > old_bytes && me.used_ - old_bytes + bytes > max_bytes) return nullptr;
        void* const made = me.allocate_(me.allocator_, block, old_bytes, bytes);
        if (made != nullptr || bytes == 0) me.used_ += bytes - old_bytes;
        return made;
    }

    /// Lua itself would rather fail than collect at the limit.
    void collect_if_full() {
        if (used_ <= max_bytes / 2) return;
        static_cast<void>(protect(std::chrono::seconds(5), [](lua_State* in) {
            lua_gc(in, LUA_GCCOLLECT, 0);
            lua_gc(in, LUA_GCCOLLECT, 0);
        }));
    }

    printer says_;
    lua_State* state_ = nullptr;
    std::array<int, hooks> functions_ = {LUA_NOREF, LUA_NOREF, LUA_NOREF, LUA_NOREF};
    std::size_t used_ = 0;
    bool is_over_ = false;
    clock::time_point end_;
    void* (*allocate_)(void*, void*, std::size_t, std::size_t) = nullptr;
    void* allocator_ = nullptr;
};

hook_script::hook_script(std::unique_ptr<machine> of, hook_functions functions)
    : machine_(std::move(of)), functions_(functions) {}

hook_script::~hook_script() = default;

std::expected<std::unique_ptr<hook_script>, std::string> hook_script::load(std::string_view text,
                                                                           const std::string& name,
                                                                           printer says) {
    auto made = std::make_unique<machine>(std::move(says));
    const auto functions = made->load(text, "@" + name);
    if (!functions) return std::unexpected(functions.error());
    return std::unique_ptr<hook_script>(new hook_script(std::move(made), *functions));
}

std::expected<void, std::string> hook_script::compile(std::string_view text,
                                                      const std::string& name) {
    return machine([](std::string_view) {}).compile(text, "@" + name);
}

hook_answer hook_script::run(const hook_job& job, std::chrono::nanoseconds limit) {
    return machine_->run(job, limit);
}

}  // namespace eddy::cache
