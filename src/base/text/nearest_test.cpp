// The nearest word to a misspelt one.
#include <eddy/base/nearest.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace eddy {
namespace {

constexpr std::array<std::string_view, 4> words = {"start", "stop", "stats", "remove"};

TEST(nearest_word, finds_what_a_slip_of_the_finger_meant) {
    EXPECT_EQ(nearest_word("strat", words), "start");
    EXPECT_EQ(nearest_word("stpo", words), "stop");
    EXPECT_EQ(nearest_word("remov", words), "remove");
    EXPECT_EQ(nearest_word("start", words), "start");
}

TEST(nearest_word, finds_nothing_when_nothing_is_near) {
    EXPECT_EQ(nearest_word("dashboard", words), "");
    EXPECT_EQ(nearest_word("", words), "");
    EXPECT_EQ(nearest_word("start", {}), "");
    EXPECT_EQ(nearest_word(std::string(1000, 's'), words), "");
}

TEST(word_distance, counts_single_changes) {
    EXPECT_EQ(word_distance("", ""), 0U);
    EXPECT_EQ(word_distance("abc", "abc"), 0U);
    EXPECT_EQ(word_distance("abc", ""), 3U);
    EXPECT_EQ(word_distance("abc", "acb"), 1U);
    EXPECT_EQ(word_distance("kitten", "sitting"), 3U);
    EXPECT_EQ(word_distance(std::string(64, 'a'), std::string(64, 'b')), 64U);
    EXPECT_EQ(word_distance(std::string(65, 'a'), "a"), nearest_word_limit);
}

}  // namespace
}  // namespace eddy
