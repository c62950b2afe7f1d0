// Tests of brackets around what a script returns.
#include "lua/tail_calls.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::lua {
namespace {

TEST(tail_calls, brackets_what_a_script_returns) {
    EXPECT_EQ(without_tail_calls("return f(x)"), "return( f(x))");
    EXPECT_EQ(without_tail_calls("if a then return f(x) end return g{1} -- end"),
              "if a then return( f(x)) end return( g{1}) -- end");
    EXPECT_EQ(without_tail_calls("for i=1,2 do return f() end"), "for i=1,2 do return( f()) end");
    EXPECT_EQ(without_tail_calls("repeat return f() until x"), "repeat return( f()) until x");
    EXPECT_EQ(without_tail_calls("return f(function() return g(), 1 end)\n;"),
              "return( f(function() return g(), 1 end))\n;");
    EXPECT_EQ(without_tail_calls("return 'a)' .. \"b\\\"(\" .. [[ return ]] .. [=[]]]=]"),
              "return( 'a)' .. \"b\\\"(\" .. [[ return ]] .. [=[]]]=])");
    EXPECT_EQ(without_tail_calls("-- return f()\nreturn --[[x]] f()"),
              "-- return f()\nreturn( --[[x]] f())");
}

TEST(tail_calls, takes_no_longer_for_more_returns) {
    // A text that is no Lua stays as it is. As many steps as characters squared would take minutes.
    std::string returns;
    std::string functions;
    std::string ends;
    for (int i = 0; i < 100'000; ++i) {
        returns += "return ";
        functions += "return function() ";
        ends += " end";
    }
    EXPECT_EQ(without_tail_calls(returns), returns);
    const std::string nested = functions + "return f()" + ends;
    EXPECT_GT(without_tail_calls(nested).size(), nested.size());
    EXPECT_EQ(without_tail_calls("if a then return elseif b then return f() else return g() end"),
              "if a then return elseif b then return( f()) else return( g()) end");
}

TEST(tail_calls, brackets_only_single_values_within_functions) {
    EXPECT_EQ(without_tail_calls("local function f() return redis.call('x') end"),
              "local function f() return( redis.call('x')) end");
    EXPECT_EQ(without_tail_calls("local function f() return error('x') end"),
              "local function f() return( error('x')) end");
    for (const std::string_view same :
         {"local function f() return g(1) end", "local function f() return redis.call('x'), 1 end",
          "local function f() return redis.call('x')[1] end",
          "local function f() return unpack(redis.call('x')) end",
          "local function f() return redis.call('x')() end"}) {
        EXPECT_EQ(without_tail_calls(same), same);
    }
}

TEST(tail_calls, leaves_alone_what_it_does_not_understand) {
    for (const std::string_view same :
         {"", "return", "return;", "return 1, 2", "end", "return )", "if x then return f()",
          "return 'open", "return [[open", "x = function() return f(", "return }", "--[[",
          "return -- f()"}) {
        const std::string made = without_tail_calls(same);
        if (same == "return 'open" || same == "return [[open") {
            EXPECT_NE(made.find("open"), std::string::npos);
        } else {
            EXPECT_EQ(made, same);
        }
    }
}

}  // namespace
}  // namespace eddy::lua
