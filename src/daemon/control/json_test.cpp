// Tests of reading and writing JSON, with untrusted input.
#include "daemon/control/json.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::daemon {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(parse_json, takes_nesting_up_to_the_limit) {
    EXPECT_TRUE(parse_json(nested(json_depth_limit), "it"));
    const auto deeper = parse_json(nested(json_depth_limit + 1), "it");
    ASSERT_FALSE(deeper);
    EXPECT_EQ(deeper.error().message, "it nests deeper than 32 levels");
    EXPECT_FALSE(parse_json(std::string(1'000'000, '['), "it"));
    EXPECT_FALSE(parse_json(std::string(1'000'000, '{'), "it"));
}

TEST(parse_json, brackets_in_strings_do_not_nest) {
    EXPECT_TRUE(
        parse_json("[\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\"]", "it"));
}

TEST(parse_json, refuses_what_is_no_json) {
    for (const char* text :
         {"", " ", "{", "}", "{]", "nul", "{\"a\":}", "[1,]", "\"\\x\"", "\xff", "1 2", "NaN"}) {
        const auto parsed = parse_json(text, "the text");
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().status, 400);
        EXPECT_EQ(parsed.error().message, "the text is not valid JSON");
    }
}

TEST(dump_json, replaces_bytes_that_are_no_utf_8) {
    EXPECT_EQ(dump_json(json("a\xff")), "\"a\xEF\xBF\xBD\"");
}

TEST(members, have_their_kind_or_are_absent) {
    const json object = {{"text", "a"}, {"flag", true}, {"number", 1}, {"null", nullptr}};
    EXPECT_EQ(*text_member(object, "text"), "a");
    EXPECT_EQ(*text_member(object, "absent"), "");
    EXPECT_EQ(*text_member(object, "null"), "");
    EXPECT_FALSE(text_member(object, "number"));
    EXPECT_EQ(flag_member(object, "number", true).error().message,
              "\"number\" must be true or false, not number");
    EXPECT_TRUE(*flag_member(object, "absent", true));
    EXPECT_TRUE(*flag_member(object, "flag", false));
}

TEST(times, survive_a_round_trip) {
    for (const char* text :
         {"1970-01-01T00:00:00Z", "2026-11-21T21:22:04Z", "2100-02-28T23:59:59Z"})
        EXPECT_EQ(format_time(*parse_time(text)), text);
    for (const char* text : {"", "now", "2026-11-21", "2026-11-21T21:22:04",
                             "2026-11-21T21:22:04Zx", "2026-13-01T00:00:00Z"})
        EXPECT_FALSE(parse_time(text)) << text;
}

}  // namespace
}  // namespace eddy::daemon
