// For tests: what LuaJIT itself answers, with its own libraries.
#pragma once

#include <gtest/gtest.h>
#include <lua.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::lua::testing {

/// A chunk that returns a text, as a script of an engine would be run: with its arguments in ARGV.
class original_lua {
public:
    explicit original_lua(std::string_view chunk) : state_(luaL_newstate()) {
        luaL_openlibs(state_.get());
        EXPECT_EQ(luaL_loadbuffer(state_.get(), chunk.data(), chunk.size(), "@user_script"), 0);
    }

    std::string operator()(const std::vector<std::string>& arguments) {
        lua_State* const in = state_.get();
        lua_newtable(in);
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            lua_pushlstring(in, arguments[i].data(), arguments[i].size());
            lua_rawseti(in, -2, static_cast<int>(i) + 1);
        }
        lua_setglobal(in, "ARGV");
        lua_pushvalue(in, 1);
        if (lua_pcall(in, 0, 1, 0) != 0) ADD_FAILURE() << lua_tostring(in, -1);
        std::size_t size = 0;
        const char* const text = lua_tolstring(in, -1, &size);
        std::string made(text, size);
        lua_pop(in, 1);
        return made;
    }

private:
    struct closes {
        void operator()(lua_State* it) const noexcept { lua_close(it); }
    };
    std::unique_ptr<lua_State, closes> state_;
};

}  // namespace eddy::lua::testing
