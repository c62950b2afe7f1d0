// Tests of a blocking state: its functions, and its limits of memory and time.
#include "lua/blocking_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <new>
#include <string>
#include <vector>

namespace eddy::lua {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::array<const char*, 2> names = {"double", "missing"};

class blocking : public ::testing::Test {
protected:
    void load(std::string_view text) {
        const auto loaded = state_.load(text, "own.lua", names);
        ASSERT_TRUE(loaded.has_value()) << loaded.error();
    }
    /// The text that double(number) returns, or its error behind "error: ".
    std::string call(double number, std::chrono::nanoseconds limit = 30s) {
        std::string text;
        const auto called = state_.call(
            0, limit,
            [&](stack in) {
                in.pushnumber(number);
                return 1;
            },
            1, [&](stack in) { text = in.tostring(1); });
        return called ? text : "error: " + called.error();
    }

    std::vector<std::string> printed_;
    blocking_state state_{{.bytes = std::size_t{8} << 20, .load = 30s},
                          [this](std::string_view line) { printed_.emplace_back(line); }};
};

TEST_F(blocking, functions_are_called_by_their_place) {
    load("print('loading', 1) function double(n) print(n) return 2 * n end");
    EXPECT_EQ(state_.defined(), (std::vector<bool>{true, false}));
    EXPECT_EQ(call(21), "42");
    EXPECT_EQ(printed_, (std::vector<std::string>{"loading\t1", "21"}));
}

TEST_F(blocking, a_text_that_does_not_load_says_why) {
    EXPECT_THAT(state_.compile("x = = 1", "own.lua").error(), HasSubstr("own.lua:1:"));
    EXPECT_TRUE(state_.compile("error('not run')", "own.lua").has_value());
    EXPECT_EQ(state_.load("missing = 1", "own.lua", names).error(), "missing must be a function");
}

TEST_F(blocking, a_call_ends_at_its_limit_of_time) {
    load(
        "function double(n) while n == 0 do pcall(function() while true do end end) end "
        "return 2 * n end");
    EXPECT_EQ(call(0, 10ms), "error: own.lua:1: it took longer than it may; called from own.lua:1");
    EXPECT_EQ(call(1), "2");
}

TEST_F(blocking, an_end_or_error_has_the_calls_that_led_there) {
    load(
        "local function a(n)\n if n == 0 then while true do end end\n"
        " if n == 1 then error('spoilt') end\n return n\nend\n"
        "local function b(n)\n local x = pcall(a, 5) and a(n)\n return x\nend\n"
        "function double(n)\n local x = b(n)\n return x\nend");
    constexpr std::string_view calls = "; called from own.lua:7, own.lua:11";
    EXPECT_EQ(call(0, 10ms), "error: own.lua:2: it took longer than it may" + std::string(calls));
    EXPECT_EQ(call(1), "error: own.lua:3: spoilt" + std::string(calls));
    EXPECT_EQ(call(2), "2");
}

TEST_F(blocking, many_calls_and_a_long_text_are_cut) {
    load(
        "local function f(n)\n if n == 0 then error(('x'):rep(5000)) end\n"
        " local x = f(n - 1)\n return x\nend\n"
        "function double(n)\n local x = f(n)\n return x\nend");
    const std::string why = call(20);
    EXPECT_EQ(why.size(), std::string("error: ").size() + blocking_state::max_error);
    EXPECT_TRUE(why.ends_with("own.lua:3, own.lua:3, ...")) << why;
}

TEST_F(blocking, functions_that_are_their_own_metamethods_end) {
    load(
        "local t = setmetatable({}, {__tostring = tostring, __call = pcall}) "
        "function double(n) if n == 0 then return tostring(t) end return select('#', t()) end");
    EXPECT_THAT(call(0, 10ms), HasSubstr("it took longer than it may"));
    EXPECT_GT(std::stoi(call(1)), 2);
}

TEST_F(blocking, a_call_ends_at_the_limit_of_memory) {
    load("function double(n) return #('x'):rep(n) end");
    EXPECT_EQ(call(1e9), "error: not enough memory");
    EXPECT_EQ(call(9 << 20), "error: not enough memory");
    // Garbage is no reason to fail.
    for (int i = 0; i < 10; ++i) EXPECT_EQ(call(3e6), "3000000");
    EXPECT_LE(state_.used_bytes(), state_.max_bytes());
}

TEST_F(blocking, lack_of_memory_in_c_plus_plus_is_an_error) {
    load("function double(n) return n end");
    const auto pushed =
        state_.call(0, 30s, [](stack) -> int { throw std::bad_alloc(); }, 0, [](stack) {});
    EXPECT_EQ(pushed.error(), "not enough memory");
    const auto read =
        state_.call(0, 30s, [](stack) { return 0; }, 1, [](stack) { throw std::bad_alloc(); });
    EXPECT_EQ(read.error(), "not enough memory");
    EXPECT_EQ(call(1), "1");
}

}  // namespace
}  // namespace eddy::lua
