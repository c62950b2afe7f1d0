// Tests of a script's first line.
#include "cache/script/script_text.hpp"

#include <gtest/gtest.h>

namespace eddy::cache {
namespace {

TEST(script_text, reads_the_first_line) {
    const script_head none = take_script_head("return 1", false);
    EXPECT_EQ(none.rest, "return 1");
    EXPECT_EQ(none.flags, script_flag::unsaid);
    const script_head some = take_script_head("#!lua  flags=no-writes,allow-oom \nreturn 1", false);
    EXPECT_EQ(some.rest, "\nreturn 1");
    EXPECT_EQ(some.flags, script_flag::no_writes | script_flag::allow_oom);
    EXPECT_EQ(take_script_head("#!lua flags=\nx", false).refusal, "");
    EXPECT_EQ(take_script_head("#!lua flags=x\n", false).refusal,
              "Unexpected flag in script shebang: x");
    EXPECT_EQ(take_script_head("#!lua flags=no-writes,\n", false).refusal,
              "Unexpected flag in script shebang: ");
}

TEST(script_text, splits_the_first_line_as_an_inline_command) {
    const script_head some =
        take_script_head("#!\"lua\"  'flags=no-writes,allow-oom' \r\nreturn 1", false);
    EXPECT_EQ(some.refusal, "");
    EXPECT_EQ(some.rest, "\nreturn 1");
    EXPECT_EQ(some.flags, script_flag::no_writes | script_flag::allow_oom);
    EXPECT_EQ(take_script_head("#!lua NAME=\"\\x61b\"\n", true).name, "ab");
    EXPECT_EQ(take_script_head("#!lua name=\"a\n", true).refusal, "Invalid library metadata");
    EXPECT_EQ(take_script_head("#!lua name=\"a\"b\n", true).refusal, "Invalid library metadata");
    EXPECT_EQ(take_script_head("#!lua \"flags=\n", false).refusal,
              "Invalid engine in script shebang");
    // A line has no limit.
    const std::string name(100'000, 'x');
    EXPECT_EQ(take_script_head("#!lua name=" + name + "\n", true).name, name);
}

TEST(script_text, ends_at_a_zero_byte) {
    const auto refused = [](std::string_view text, bool is_library) {
        return take_script_head(text, is_library).refusal;
    };
    EXPECT_EQ(refused({"#!lua\0name=a\n", 13}, true), "Invalid library metadata");
    EXPECT_EQ(refused({"#!lua name=a\0\n", 14}, true), "Invalid library metadata");
    EXPECT_EQ(refused({"#!lua \0\nreturn 1", 16}, false), "Invalid script shebang");
    EXPECT_EQ(refused("#!lua name=a \"b\\x00c\"\n", true), "Invalid metadata value given: b");
    EXPECT_EQ(refused("#!lua \"a\\x00b\"\n", false), "Unknown lua shebang option: a");
    EXPECT_EQ(refused("#!\"a\\x00b\"\n", false), "Unexpected engine in script shebang: #!a");
    EXPECT_EQ(refused("#!\"lua\\x00b\" \"flags=allow-oom\\x00,x\"\n", false),
              "Unexpected flag in script shebang: x");
}

TEST(script_text, takes_the_engine_of_a_library_in_any_case) {
    EXPECT_EQ(take_script_head("#!LUA name=a\n", true).refusal, "");
    EXPECT_EQ(take_script_head("#!Lua name=a\n", true).refusal, "");
    EXPECT_EQ(take_script_head("#!LuaX name=a\n", true).engine, "LuaX");
    EXPECT_EQ(take_script_head("#! name=a\n", true).engine, "");
    EXPECT_EQ(take_script_head("#! lua name=a\n", true).refusal,
              "Invalid metadata value given: lua");
    // Redis checks this for libraries, not for scripts.
    EXPECT_EQ(take_script_head("#!LUA\n", false).refusal,
              "Unexpected engine in script shebang: #!LUA");
}

}  // namespace
}  // namespace eddy::cache
