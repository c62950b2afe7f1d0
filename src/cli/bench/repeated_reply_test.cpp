// Tests of the comparison with a repeated reply: at every split, with every wrong byte.
#include "cli/bench/repeated_reply.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::cli::bench {
namespace {

const std::string original = "HEAD date: 123 END body";
constexpr std::size_t varying_at = 11;

struct outcome {
    std::size_t used = 0;
    std::size_t replies = 0;
    std::uint64_t at = 0;
};

/// Matches a text in two pieces.
outcome match(const repeated_reply& of, std::string_view text, std::size_t split,
              std::size_t most = 100) {
    outcome made;
    made.used = of.match(text.substr(0, split), most, made.at, made.replies);
    if (made.used == split) made.used += of.match(text.substr(split), most, made.at, made.replies);
    return made;
}

TEST(repeated_reply, counts_replies_at_any_split) {
    const repeated_reply expected(original, original.size(), varying_at, 3);
    const std::string three = original + "HEAD date: 999 END body" + original;
    for (std::size_t split = 0; split <= three.size(); ++split) {
        const outcome all = match(expected, three, split);
        EXPECT_EQ(all.used, three.size());
        EXPECT_EQ(all.replies, 3U);
        EXPECT_EQ(all.at, 0U);
        const outcome part = match(expected, std::string_view(three).substr(0, 30), split);
        EXPECT_EQ(part.replies, 1U);
        EXPECT_EQ(part.at, 30 - original.size());
    }
}

TEST(repeated_reply, leaves_what_differs) {
    const repeated_reply expected(original, original.size(), varying_at, 3);
    for (std::size_t wrong = 0; wrong < original.size(); ++wrong) {
        std::string text = original + original;
        const bool varies = wrong >= varying_at && wrong < varying_at + 3;
        text[original.size() + wrong] = varies ? '\r' : '#';
        for (std::size_t split = 0; split <= text.size(); ++split) {
            const outcome found = match(expected, text, split);
            EXPECT_EQ(found.replies, 1U);
            EXPECT_LE(found.used, original.size() + wrong);
            // No byte is lost between the replies that matched and the partial one behind them.
            const std::string again = original + std::string(expected.read_so_far(found.at));
            EXPECT_EQ(again.size(), found.used);
            EXPECT_EQ(again, text.substr(0, found.used));
        }
    }
}

TEST(repeated_reply, stops_at_the_last_awaited_one) {
    const repeated_reply expected(original, original.size());
    const outcome found = match(expected, original + original + original, 3, 2);
    EXPECT_EQ(found.replies, 2U);
    EXPECT_EQ(found.used, 2 * original.size());
}

TEST(repeated_reply, skips_the_tail) {
    const repeated_reply expected(original, original.size() + 5, varying_at, 3);
    const std::string text = original + "12345" + original + "abcde" + original + "1";
    for (std::size_t split = 0; split <= text.size(); ++split) {
        const outcome found = match(expected, text, split);
        EXPECT_EQ(found.replies, 2U);
        EXPECT_EQ(found.used, text.size());
        EXPECT_EQ(found.at, original.size() + 1);
    }
}

TEST(repeated_reply, matches_nothing_when_empty) {
    const outcome found = match(repeated_reply(), "x", 0);
    EXPECT_EQ(found.used, 0U);
    EXPECT_EQ(found.replies, 0U);
}

}  // namespace
}  // namespace eddy::cli::bench
