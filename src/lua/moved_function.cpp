// Bytecode of functions, and the variables around them.
#include "lua/moved_function.hpp"

#include <lua.hpp>

#include <new>

namespace eddy::lua {

std::string dump_function(stack in, int index) {
    struct writing {
        std::string code = {};
        bool lacks_memory = false;
    } to;
    lua_State* const raw = in.raw();
    lua_pushvalue(raw, index);
    const int status = lua_dump(
        raw,
        [](lua_State*, const void* bytes, std::size_t size, void* of) -> int {
            auto& its = *static_cast<writing*>(of);
            // Exceptions must not pass Lua's frames.
            try {
                its.code.append(static_cast<const char*>(bytes), size);
            } catch (const std::bad_alloc&) {
                its.lacks_memory = true;
            }
            return its.lacks_memory ? 1 : 0;
        },
        &to);
    lua_pop(raw, 1);
    if (to.lacks_memory) throw std::bad_alloc();
    if (status != 0) to.code.clear();
    return std::move(to.code);
}

const char* push_upvalue(stack in, int index, int which) noexcept {
    return lua_getupvalue(in.raw(), index, which);
}

void push_dumped(stack in, std::string_view code) {
    if (luaL_loadbufferx(in.raw(), code.data(), code.size(), "=function", "b") != 0)
        lua_error(in.raw());
}

void set_upvalue(stack in, int index, int which) noexcept {
    if (lua_setupvalue(in.raw(), index, which) == nullptr) lua_pop(in.raw(), 1);
}

}  // namespace eddy::lua
