// Names that are found to be wrong, in texts of Lua.
#include "script/script_check.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::script {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> check(std::string_view text, std::string_view owner = {}) {
    script_names known;
    known.callbacks = {"on_start", "on_message", "on_tick", "on_http_request", "on_reload"};
    known.owner = owner;
    known.tables = {"self", "eddy"};
    known.functions = {"send", "broadcast", "name", "json", "json.encode", "timer", "timer.after"};
    std::vector<std::string> lines;
    for (const name_fault& each : check_names(text, known))
        lines.push_back(
            fmt::format("{}{}: {}", each.is_warning ? "warning " : "", each.line, each.text));
    return lines;
}

TEST(script_check, names_what_no_type_has) {
    EXPECT_THAT(check("function on_start() end\nfunction on_message(c) end"), IsEmpty());
    EXPECT_THAT(check("\nfunction on_mesage(c) end\non_strt = function() end"),
                ElementsAre("2: there is no callback on_mesage; did you mean on_message?",
                            "3: there is no callback on_strt; did you mean on_start?"));
    EXPECT_THAT(check("function on_full_moon() end", "a server"),
                ElementsAre("1: a server has no callback on_full_moon"));
    EXPECT_THAT(check("require('x') function on_mesage() end"),
                ElementsAre("warning 1: there is no callback on_mesage; did you mean on_message?"));
}

TEST(script_check, leaves_names_that_are_used_otherwise) {
    for (const char* const text :
         {"function on_timer() end self.set_interval = on_timer", "local function on_timer() end",
          "local on_timer = 5", "local t = {} t.on_timer = 5", "function t.on_timer() end",
          "function t:on_timer() end", "return {on_timer = 5}", "if on_timer == 5 then end",
          "print(on_timer)",
          "function on_join() end function on_message(c, t) _G['on_' .. t](c) end"})
        EXPECT_THAT(check(text), IsEmpty()) << text;
}

TEST(script_check, passes_over_strings_and_comments) {
    for (const char* const text :
         {"-- function on_x() end", "--[[ function on_x() end\n]]", "--[==[ ]] on_x = 1 ]==]",
          "x = 'function on_x() end'", "x = \"\\\" on_x = 1\"", "x = [[\non_x = 1]]",
          "x = [=[ ]] on_x = 1 ]=]", "x = t[on_start] -- on_x = 1", "x = [[self.brodcast()]]"})
        EXPECT_THAT(check(text), IsEmpty()) << text;
    EXPECT_THAT(check("--[[\n\n]] x = [[\n]] y = 'a\\\nb'\non_x = 1"),
                ElementsAre("6: there is no callback on_x"));
    EXPECT_THAT(check("x = t[t[1]] on_x = 1"), ElementsAre("1: there is no callback on_x"));
}

TEST(script_check, ends_at_the_end_of_any_text) {
    for (const char* const text : {"",
                                   "\"",
                                   "'\\",
                                   "[[",
                                   "--[[",
                                   "[=",
                                   "--",
                                   "on_",
                                   "on_x =",
                                   "function",
                                   "function on_",
                                   "function on_x(",
                                   "local",
                                   "for",
                                   "for a",
                                   "self",
                                   "self.",
                                   "self.json.",
                                   "end end end",
                                   "}])",
                                   "until",
                                   "else",
                                   "local function",
                                   "self.x(",
                                   "do do do"})
        static_cast<void>(check(text));
}

TEST(script_check, names_functions_that_there_are_not) {
    EXPECT_THAT(check("function on_message(c, t)\n  self.brodcast(t)\nend"),
                ElementsAre("2: there is no function self.brodcast; did you mean self.broadcast?"));
    EXPECT_THAT(
        check("eddy.nothing{}\nself.json.encod 'x'\nself.send(eddy.name)"),
        ElementsAre("1: there is no function eddy.nothing",
                    "2: there is no function self.json.encod; did you mean self.json.encode?"));
    EXPECT_THAT(check("do local self = {} self.x() end self.y()"),
                ElementsAre("1: there is no function self.y"));
    EXPECT_THAT(check("for self in pairs(t) do self.x() end while eddy.a() do end"),
                ElementsAre("1: there is no function eddy.a"));
    EXPECT_THAT(check("function f(self) if self.x() then g(function() return self.x() end) else "
                      "self.x() end end self.b()"),
                ElementsAre("1: there is no function self.b"));
}

TEST(script_check, leaves_functions_that_may_be_there) {
    for (const char* const text :
         {"self.send(1) eddy.json.encode({}) self.timer.after(1, f) print(self.nothing)",
          "if self.subscribe then self.subscribe('x') end", "local f = self.subscribe f()",
          "local self = require('x') self.y()", "function obj:m() self.count() end",
          "function f(a, self) self.x() end", "local a, eddy = 1, {} eddy.x()",
          "for _, self in pairs(t) do self.x() end", "local function self() end self.x()",
          "repeat local self = f() until self.x()", "t.self.x() t:self().x()",
          "self:x() self['x']()", "setfenv(1, {self = t}) self.x()",
          "local f = function(self) return self.x() end", "eddy = {} eddy.x()",
          "function on_start() self = {} end self.x()",
          "x = {self = 1, f = function(self) self.x() end}"})
        EXPECT_THAT(check(text), IsEmpty()) << text;
}

TEST(script_check, warns_of_globals_that_a_callback_assigns) {
    EXPECT_THAT(check("function on_message(c, t)\n  count = t\nend"),
                ElementsAre("warning 2: on_message() sets the global variable count, which nothing "
                            "else does: write `local count` in front, or at the file's beginning"));
    EXPECT_THAT(check("on_tick = function()\nif true then\nfunction helper() end end end").size(),
                1U);
    for (const char* const text :
         {"count = 0 function on_message() count = count + 1 end",
          "function on_start() count = 0 end function on_message() count = 1 end",
          "function on_message() local count = 0 count = 1 end",
          "local count function on_message() count = 1 end",
          "function on_message(count) count = 1 return {x = 1, f(y == 1)} end",
          "function on_message() for i = 1, 2 do i = 3 end t.count = 1 t['x'] = 2 end",
          "function setup() count = 1 end",
          "function on_message() if x == 1 or y <= 2 then end end",
          "function on_message() return function(a) a = 1 end end"})
        EXPECT_THAT(check(text), IsEmpty()) << text;
}

}  // namespace
}  // namespace eddy::script
