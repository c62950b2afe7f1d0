// LuaJIT's own allocator stays below the limit: it is fast, and closing the state gives all back at
// once.
#include "lua/state.hpp"

#include <eddy/base/assert.hpp>

#include <lua.hpp>

#include <new>

namespace eddy::lua {

// Finalizers use members of the derived class, so that class closes the state.
state::~state() { EDDY_ASSERT(raw_ == nullptr); }

void state::open(allocator allocate) {
    is_limited_ = false;
    used_ = 0;
    raw_ = luaL_newstate();
    if (raw_ == nullptr) throw std::bad_alloc();
    used_ = static_cast<std::size_t>(lua_gc(raw_, LUA_GCCOUNT, 0)) * 1024 +
            static_cast<std::size_t>(lua_gc(raw_, LUA_GCCOUNTB, 0));
    below_ = lua_getallocf(raw_, &below_self_);
    lua_setallocf(raw_, allocate, this);
    luaJIT_setmode(raw_, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
}

void state::close() noexcept {
    is_limited_ = false;
    lua_sethook(raw_, nullptr, 0, 0);
    lua_setallocf(raw_, below_, below_self_);
    lua_close(raw_);
    raw_ = nullptr;
}

void state::interrupt_each(int instructions) noexcept {
    if (instructions == 0)
        lua_sethook(raw_, nullptr, 0, 0);
    else
        lua_sethook(raw_, &state::count_hook, LUA_MASKCOUNT, instructions);
}

void state::count_hook(lua_State* in, lua_Debug*) { owner_of(in).interrupt(in); }

}  // namespace eddy::lua
