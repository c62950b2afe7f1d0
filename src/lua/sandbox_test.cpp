// Tests of a sandbox: its limits of memory and time, and what scripts find in it.
#include "lua/sandbox.hpp"

#include "lua/sandbox_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::lua {
namespace {

using testing::counting_supervisor;
using ::testing::HasSubstr;
using testing::sandboxed_lua;
using ::testing::StartsWith;

TEST(sandbox, memory_ends_at_the_limit) {
    constexpr std::size_t limit = std::size_t{8} << 20;
    sandboxed_lua lua(limit);
    for (const char* const script :
         {"local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e4) .. i end return ''",
          "return ('x'):rep(1e9)", "local s = 'x' while true do s = s .. s end",
          "return cjson.encode({('x'):rep(3e6), ('x'):rep(3e6)})"}) {
        EXPECT_THAT(lua(script), HasSubstr("not enough memory")) << script;
        EXPECT_LE(lua.machine.used_bytes(), limit);
        EXPECT_EQ(lua("return 'alive'"), "alive");
    }
    // Garbage is no reason to fail.
    for (int i = 0; i < 20; ++i) EXPECT_EQ(lua("return #('x'):rep(3e6) .. ''"), "3000000");
}

TEST(sandbox, blocks_of_the_limit_fit_and_one_more_byte_does_not) {
    sandboxed_lua lua(std::size_t{8} << 20);
    const std::size_t left = lua.machine.max_bytes() - lua.machine.used_bytes();
    const std::string script = "return #('x'):rep(tonumber(ARGV[1])) .. ''";
    EXPECT_EQ(lua(script, {std::to_string(left / 3)}), std::to_string(left / 3));
    EXPECT_THAT(lua(script, {std::to_string(left + 1)}), HasSubstr("not enough memory"));
}

TEST(sandbox, an_error_of_the_supervisor_ends_any_script) {
    for (const char* const script :
         {"while true do end", "while true do pcall(function() while true do end end) end",
          "local function f() return f() end f()", "repeat local ok = pcall(error) until false",
          "xpcall(function() while true do end end, function() while true do end end)",
          "coroutine.wrap(function() while true do end end)()",
          "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
          "load(function() while true do end end)",
          "table.sort({3, 2, 1}, function() while true do end end)",
          "('x'):gsub('x', function() while true do end end)",
          "local t = setmetatable({}, {__tostring = tostring}) return tostring(t)",
          "while true do table.concat({'a', 'b'}) end",
          "return ('a'):rep(300000):find(('.-'):rep(20) .. 'b')"}) {
        sandboxed_lua lua;
        lua.by.raises_from = 3;
        EXPECT_THAT(lua(script), HasSubstr("stopped")) << script;
        EXPECT_GE(lua.by.checks, 3U);
        lua.by.raises_from = SIZE_MAX;
        EXPECT_EQ(lua("return 'alive'"), "alive") << script;
    }
}

TEST(sandbox, pcall_as_a_metamethod_of_itself_checks_the_stack) {
    sandboxed_lua lua;
    EXPECT_THAT(lua("local t = setmetatable({}, {__call = pcall}) return tostring(t())"),
                HasSubstr("true"));
    EXPECT_EQ(lua("return 'alive'"), "alive");
    EXPECT_THAT(lua("return tostring()"), HasSubstr("bad argument #1 to 'tostring'"));
}

TEST(sandbox, steps_are_checked_like_instructions) {
    sandboxed_lua lua;
    const stack in = lua.machine.values();
    lua.by.checks = 0;
    lua.machine.count_steps(in, instructions_a_look - 1);
    EXPECT_EQ(lua.by.checks, 0U);
    lua.machine.count_steps(in, 1);
    EXPECT_EQ(lua.by.checks, 1U);
    lua.machine.count_steps(in, 1);
    EXPECT_EQ(lua.by.checks, 1U);
}

TEST(sandbox, a_large_text_has_checks_come_sooner) {
    const auto checks_of = [](const std::string& first) {
        sandboxed_lua lua;
        EXPECT_EQ(lua(first + " for i = 1, 1e6 do end return 'done'"), "done");
        return lua.by.checks;
    };
    const std::size_t usual = checks_of("");
    EXPECT_GE(usual, 50U);
    EXPECT_GT(checks_of("local s = ('x'):rep(4e6)"), 20 * usual);
}

TEST(sandbox, collecting_beyond_half_raises_nothing) {
    sandboxed_lua lua(std::size_t{8} << 20);
    lua.by.raises_from = 1;
    // The script itself is too short for a check.
    lua.by.checks = 0;
    EXPECT_EQ(lua("local s = ('x'):rep(5e6) return 'x'").substr(0, 6), "error:");
    EXPECT_LE(lua.machine.used_bytes(), lua.machine.max_bytes() / 2);
}

TEST(sandbox, has_no_way_out) {
    sandboxed_lua lua;
    for (const char* const name :
         {"io", "debug", "require", "dofile", "loadfile", "module", "package", "newproxy", "jit",
          "ffi", "print", "getfenv", "setfenv", "redis"}) {
        EXPECT_EQ(lua("return tostring(rawget(_G, ARGV[1]))", {name}), "nil") << name;
    }
    EXPECT_EQ(lua("local all = {} for name in pairs(os) do all[#all + 1] = name end "
                  "return table.concat(all, ' ')"),
              "clock");
    for (const char* const name : {"cjson", "cmsgpack", "struct", "bit", "string", "table", "math"})
        EXPECT_EQ(lua("return type(_G[ARGV[1]])", {name}), "table") << name;
    EXPECT_THAT(lua("return assert(loadstring('\\27LJ\\2\\0'))"), HasSubstr("attempt to load"));
}

TEST(sandbox, a_first_line_with_a_number_sign_is_a_syntax_error) {
    sandboxed_lua lua;
    const auto is_refused = [&](const std::string& text, const char* near) {
        EXPECT_THAT(lua(text), HasSubstr(near)) << text;
    };
    is_refused("#comment", ":1: unexpected symbol near '#'");
    is_refused("#\nreturn 'x'", ":1: unexpected symbol near '#'");
    is_refused("#!/usr/bin/lua\nreturn 'x'", ":1: unexpected symbol near '#'");
    is_refused("return assert(loadstring('#\\nreturn 1'))", "unexpected symbol near '#'");
    is_refused(
        "local n = 0 return assert(load(function() n = n + 1 "
        "return ({'#', '\\nreturn 1'})[n] end))",
        "unexpected symbol near '#'");
    EXPECT_THAT(lua("\xef\xbb\xbfreturn 'x'"), StartsWith("error: "));
    // Later pieces are as they are.
    EXPECT_EQ(lua("local n = 0 return assert(load(function() n = n + 1 "
                  "return ({'return \"', '#a', '\\195\\169\"'})[n] end))()"),
              "#a\xc3\xa9");
}

TEST(sandbox, keeps_nothing_of_a_script) {
    sandboxed_lua lua;
    for (const char* const script :
         {"x = 1", "_G.x = 1", "rawset(_G, 'x', 1)", "string.x = 1", "rawset(string, 'x', 1)",
          "table.insert(string, 1)", "setmetatable(_G, {})", "getmetatable('').__index.x = 1",
          "cjson.encode = nil"}) {
        EXPECT_THAT(lua(std::string(script) + " return ''"), StartsWith("error: ")) << script;
    }
    EXPECT_THAT(lua("return x"), HasSubstr("nonexistent global variable 'x'"));
    EXPECT_EQ(lua("return tostring(string.x)"), "nil");
}

TEST(sandbox, furnishing_is_done_anew_by_a_reset) {
    counting_supervisor by;
    int furnished = 0;
    sandbox machine(by, std::size_t{8} << 20, [&](stack in) {
        ++furnished;
        in.createtable();
        in.set_text("name", "own");
        sandbox::protect(in);
        in.setfield(1, "own");
    });
    const std::size_t at_first = machine.used_bytes();
    std::string why;
    for (int i = 1; i <= 2; ++i) {
        EXPECT_EQ(furnished, i);
        const int function = machine.compile("own.name = 1", "@user_script", why);
        ASSERT_NE(function, 0) << why;
        EXPECT_FALSE(machine.call_protected(
            [](lua_State* raw) {
                const stack in(raw);
                in.getref(*static_cast<int*>(in.touserdata(1)));
                in.call(0, 0);
                return 0;
            },
            const_cast<int*>(&function)));
        EXPECT_THAT(machine.values().tostring(-1), HasSubstr("readonly table"));
        machine.values().settop(0);
        machine.reset();
        EXPECT_LT(machine.used_bytes(), at_first + 4096);
    }
    EXPECT_EQ(furnished, 3);
}

TEST(sandbox, a_text_that_does_not_compile_says_where) {
    sandboxed_lua lua;
    EXPECT_THAT(lua("return 1 +"), HasSubstr("user_script:1:"));
    EXPECT_THAT(lua("\n\nreturn return"), HasSubstr("user_script:3:"));
    EXPECT_THAT(lua("\x1bLJ\x02"), HasSubstr("attempt to load"));
}

TEST(sandbox, random_numbers_repeat_by_their_seed) {
    sandboxed_lua lua;
    lua.machine.seed_random(7);
    const std::string first = lua("return math.random(1000000) .. ''");
    EXPECT_NE(lua("return math.random(1000000) .. ''"), first);
    lua.machine.seed_random(7);
    EXPECT_EQ(lua("return math.random(1000000) .. ''"), first);
}

// The face of Lua's C API, as the other layers use it.
TEST(stack, values_come_back_as_they_were_pushed) {
    sandboxed_lua lua;
    const stack in = lua.machine.values();
    const int height = in.gettop();
    const std::array<std::string_view, 3> texts{"a", std::string_view("b\0c", 3), ""};
    in.pushstrings(texts.data(), texts.size());
    for (int i = 1; i <= 3; ++i) {
        in.rawgeti(-1, i);
        std::string_view text;
        EXPECT_EQ(in.read_text(-1, text), value_type::string);
        EXPECT_EQ(text, texts[static_cast<std::size_t>(i) - 1]);
        in.pop();
    }
    in.set_number("n", 2.5);
    in.set_boolean("b", true);
    in.rawgetfield(-1, "n");
    EXPECT_EQ(in.tonumber(-1), 2.5);
    std::string_view untouched = "untouched";
    EXPECT_EQ(in.read_text(-1, untouched), value_type::number);
    EXPECT_EQ(untouched, "untouched");
    EXPECT_EQ(in.tostring(-1), "2.5");
    in.rawgetfield(-2, "b");
    EXPECT_TRUE(in.toboolean(-1));
    in.getfield(-3, "none");
    EXPECT_TRUE(in.isnil(-1));
    EXPECT_EQ(in.type(height + 100), value_type::none);
    in.settop(height);
}

TEST(stack, a_function_has_what_it_was_closed_over) {
    sandboxed_lua lua;
    const stack in = lua.machine.values();
    in.pushstring("closed");
    in.pushcclosure(
        [](lua_State* raw) {
            const stack of(raw);
            of.pushvalue(stack::upvalueindex(1));
            of.pushvalue(1);
            of.concat(2);
            return 1;
        },
        1);
    const int kept = in.ref();
    in.getref(kept);
    in.pushstring(" over");
    ASSERT_TRUE(in.pcall(1, 1));
    EXPECT_EQ(in.tostring(-1), "closed over");
    in.pop();
    in.unref(kept);
    in.pushcclosure([](lua_State* raw) -> int { stack(raw).error("no"); });
    EXPECT_FALSE(in.pcall(0, 0));
    EXPECT_EQ(in.tostring(-1), "no");
    in.pop();
}

}  // namespace
}  // namespace eddy::lua
