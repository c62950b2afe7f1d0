// Path patterns: what is one, which segments fit, and the segments of paths.
#include "http/routing/path_pattern.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {
namespace {

using kind = pattern_segment::kind;

pattern_segment one(std::string_view pattern) {
    const auto segments = parse_pattern(pattern);
    if (!segments || segments->size() != 1) return {};
    return segments->front();
}

TEST(parse_pattern, takes_segments_apart) {
    const auto all = parse_pattern("/users/{id:int}/v{version}.json/{path...}");
    ASSERT_TRUE(all);
    const std::vector<pattern_segment> wanted = {{kind::text, "users", "", ""},
                                                 {kind::integer, "", "id", ""},
                                                 {kind::any, "v", "version", ".json"},
                                                 {kind::rest, "", "path", ""}};
    EXPECT_EQ(*all, wanted);
    EXPECT_EQ(parse_pattern("/")->size(), 1U);
    EXPECT_EQ(parse_pattern("/a/")->size(), 2U);
}

TEST(parse_pattern, refuses_malformed_ones) {
    for (const char* const pattern :
         {"", "a", "/{", "/}", "/{}", "/{a}{b}", "/{a:text}", "/{a/b}", "/{a b}", "/{a}/{a}",
          "/{a...}/b", "/x{a...}", "/{a...}x", "/{{a}}", "/}a{"})
        EXPECT_FALSE(parse_pattern(pattern)) << pattern;
}

TEST(pattern_segment, matches_what_fits) {
    EXPECT_EQ(one("/{a}").match("x y"), "x y");
    EXPECT_FALSE(one("/{a}").match(""));
    EXPECT_EQ(one("/v{a}.json").match("v1.2.json"), "1.2");
    EXPECT_FALSE(one("/v{a}.json").match("v.json"));
    EXPECT_FALSE(one("/v{a}.json").match("v1.html"));
    EXPECT_FALSE(one("/aa{x}aa").match("aaa")) << "the texts overlap";
    EXPECT_EQ(one("/{a:int}").match("-7"), "-7");
    for (const char* const text : {"7x", "+7", "0x7", "", " 7", "9223372036854775808"})
        EXPECT_FALSE(one("/{a:int}").match(text)) << text;
    EXPECT_TRUE(one("/text").match("text"));
    EXPECT_FALSE(one("/text").match("Text"));
}

TEST(pattern_segment, is_ordered_by_how_much_it_fixes) {
    const char* const in_order[] = {"/text", "/{a:int}", "/v{a}.json", "/v{a}", "/{a}", "/{a...}"};
    for (std::size_t i = 0; i + 1 < std::size(in_order); ++i) {
        EXPECT_TRUE(one(in_order[i]).precedes(one(in_order[i + 1]))) << in_order[i];
        EXPECT_FALSE(one(in_order[i + 1]).precedes(one(in_order[i]))) << in_order[i];
    }
}

TEST(take_segment, takes_them_one_by_one) {
    std::string_view path = "//ab/";
    EXPECT_EQ(take_segment(path), "");
    EXPECT_EQ(take_segment(path), "ab");
    EXPECT_EQ(path, "/");
    EXPECT_EQ(take_segment(path), "");
    EXPECT_EQ(path, "");
}

TEST(decode_path, decodes_segments) {
    EXPECT_EQ(decode_path("/a%20b/%61/"), "/a b/a/");
    EXPECT_EQ(decode_path("/"), "/");
    EXPECT_EQ(decode_path("//a"), "//a");
}

TEST(decode_path, refuses_segments_that_hide_something) {
    for (const char* const path : {"/a%2Fb", "/a%00b", "/a%0Ab", "/a%7F", "/a%zz", "/a%", "a", ""})
        EXPECT_FALSE(decode_path(path)) << path;
}

}  // namespace
}  // namespace eddy::http
