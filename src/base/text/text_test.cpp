// Words in any case, names of options, and lookup by view.
#include "base/text/text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <unordered_map>

namespace eddy {
namespace {

using namespace std::string_view_literals;

static_assert(is_word("GeT", "get"));
static_assert(!is_word("gets", "get"));
static_assert(equal_in_any_case("Content-LENGTH", "content-length"));

TEST(text, words_match_in_any_case) {
    EXPECT_TRUE(is_word("withscores", "withscores"));
    EXPECT_TRUE(is_word("", ""));
    EXPECT_FALSE(is_word("", "get"));
    EXPECT_FALSE(is_word("ge\0"sv, "get"));
    EXPECT_FALSE(is_word("g\xC5t", "g\xE5t")) << "letters beyond ASCII have no case here";
    EXPECT_FALSE(is_word("[", "{")) << "only letters have a case";
    EXPECT_FALSE(equal_in_any_case("a", "ab"));
}

TEST(text, lower_changes_only_letters) {
    EXPECT_EQ(lower("AZ@[az_09\xC4"), "az@[az_09\xC4");
    EXPECT_EQ(lower("A\0B"sv), "a\0b"sv);
}

TEST(text, a_nul_or_the_limit_ends_text) {
    EXPECT_EQ(until_nul("abc\0def"sv), "abc");
    EXPECT_EQ(until_nul("abcdef", 2), "ab");
    EXPECT_EQ(until_nul("", 2), "");
}

TEST(text, options_have_a_flag_and_a_key) {
    EXPECT_EQ(option_key("max-connections"), "max_connections");
    EXPECT_EQ(option_flag("max_connections"), "max-connections");
}

TEST(text, views_look_strings_up) {
    std::unordered_map<std::string, int, string_hash, std::equal_to<>> map{{"one", 1}};
    EXPECT_EQ(map.find("one"sv)->second, 1);
    EXPECT_FALSE(map.contains("two"sv));
}

}  // namespace
}  // namespace eddy
