// Glob patterns, with the results that Redis 7.0's KEYS gives.
#include <eddy/base/glob.hpp>

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy {
namespace {

struct glob_case {
    std::string_view pattern;
    std::string_view text;
    bool matches;
};

TEST(glob, matches_like_redis) {
    constexpr glob_case cases[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "", false},
        {"abc", "abc", true},
        {"abc", "abcd", false},
        {"abc", "ABC", false},
        {"*", "", true},
        {"*", "anything", true},
        {"***", "x", true},
        {"h?llo", "hello", true},
        {"h?llo", "hllo", false},
        {"?", "", false},
        {"h*llo", "hllo", true},
        {"h*llo", "heeeello", true},
        {"h*llo", "heeeellop", false},
        {"*a*b", "xaxbxab", true},
        {"*a*b", "xaxbxabc", false},
        {"user:*:name", "user:7:8:name", true},
        {"h[ae]llo", "hello", true},
        {"h[ae]llo", "hillo", false},
        {"h[^e]llo", "hallo", true},
        {"h[^e]llo", "hello", false},
        {"h[a-b]llo", "hbllo", true},
        {"h[a-b]llo", "hcllo", false},
        {"[z-a]", "m", true},
        {"[a-]", "-", false},  // the range from ']' to 'a', and an open class
        {"[a-]", "_", true},
        {"[-a]", "-", true},
        {"[]", "a", false},
        {"[]a]", "]", false},
        {"[\\]]", "]", true},
        {"[\\^a]", "^", true},
        {"[a\\-z]", "m", false},
        {"[a\\-z]", "-", true},
        {"[abc", "b", true},
        {"[abc", "d", false},
        {"[", "a", false},
        {"[^", "a", true},
        {"[a-", "-", true},
        {"[!a]", "!", true},
        {"[!a]", "b", false},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"\\?\\[", "?[", true},
        {"a\\", "a\\", true},
        {"a\\b", "ab", true},
        {"*\\*", "abc*", true},
        {"[a]*[b]", "a..b", true},
    };
    for (const glob_case& c : cases) {
        EXPECT_EQ(glob_match(c.pattern, c.text), c.matches) << c.pattern << " on " << c.text;
    }
}

TEST(glob, is_binary_safe) {
    using namespace std::string_view_literals;
    EXPECT_TRUE(glob_match("a?b"sv, "a\0b"sv));
    EXPECT_TRUE(glob_match("a\0b"sv, "a\0b"sv));
    EXPECT_FALSE(glob_match("a\0b"sv, "a\0c"sv));
    EXPECT_TRUE(glob_match("[\x80-\xff]", "\xe9"));
    EXPECT_FALSE(glob_match("[\x80-\xff]", "e"));
    EXPECT_TRUE(glob_match("[a-\xff]", "\x80")) << "ranges are of unsigned bytes";
}

TEST(glob, does_not_blow_up) {
    // A matcher that tries every split of the stars would not end within a lifetime.
    std::string pattern;
    for (int i = 0; i < 500; ++i) pattern += "a*";
    pattern += "b";
    const std::string text(20000, 'a');
    EXPECT_FALSE(glob_match(pattern, text));
    EXPECT_TRUE(glob_match(pattern, text + "b"));
}

// The plain definition, exponential; the judge of the quick one.
bool slow_match(std::string_view pattern, std::string_view text) {
    if (pattern.empty()) return text.empty();
    if (pattern[0] == '*') {
        return slow_match(pattern.substr(1), text) ||
               (!text.empty() && slow_match(pattern, text.substr(1)));
    }
    if (text.empty()) return false;
    if (pattern.starts_with("[ab]")) {
        return (text[0] == 'a' || text[0] == 'b') && slow_match(pattern.substr(4), text.substr(1));
    }
    return (pattern[0] == '?' || pattern[0] == text[0]) &&
           slow_match(pattern.substr(1), text.substr(1));
}

TEST(glob, agrees_with_the_definition) {
    const std::uint64_t seed = testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    constexpr std::string_view parts[] = {"a", "b", "c", "?", "*", "*", "[ab]"};
    for (int i = 0; i < 20000; ++i) {
        std::string pattern, text;
        for (std::uint64_t n = random.below(8); n > 0; --n) pattern += parts[random.below(7)];
        for (std::uint64_t n = random.below(10); n > 0; --n) {
            text += static_cast<char>('a' + random.below(3));
        }
        ASSERT_EQ(glob_match(pattern, text), slow_match(pattern, text))
            << pattern << " on " << text;
    }
}

TEST(glob, distinguishes_wildcards_from_names) {
    EXPECT_FALSE(glob_has_wildcard("web-1"));
    for (const char* pattern : {"web*", "web?", "[ab]", "a\\*"}) {
        EXPECT_TRUE(glob_has_wildcard(pattern)) << pattern;
    }
}

}  // namespace
}  // namespace eddy
