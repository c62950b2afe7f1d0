// Ranges: what a field selects.
#include "http/fields/byte_ranges.hpp"

#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <string>

namespace eddy::http {
namespace {

/// "whole", "none", or the ranges such as "0+10 5+1".
std::string selected(std::string_view field, std::uint64_t size) {
    const range_selection made = select_ranges(field, size);
    if (made.what == range_selection::kind::whole) return "whole";
    if (made.what == range_selection::kind::unsatisfiable) return "none";
    std::string text;
    for (const byte_range& each : made.ranges)
        text += (text.empty() ? "" : " ") + std::to_string(each.first) + "+" +
                std::to_string(each.size);
    return text;
}

TEST(http_byte_ranges, single_ranges) {
    EXPECT_EQ(selected("bytes=0-0", 100), "0+1");
    EXPECT_EQ(selected("bytes=0-99", 100), "0+100");
    EXPECT_EQ(selected("bytes=0-", 100), "0+100");
    EXPECT_EQ(selected("bytes=50-1000", 100), "50+50");
    EXPECT_EQ(selected("bytes=99-", 100), "99+1");
    EXPECT_EQ(selected("bytes=-1", 100), "99+1");
    EXPECT_EQ(selected("bytes=-100", 100), "0+100");
    EXPECT_EQ(selected("bytes=-1000", 100), "0+100");
    EXPECT_EQ(selected("BYTES= 1-2 ", 100), "1+2");
    EXPECT_EQ(selected("bytes=5-99999999999999999999999999", 100), "5+95");
    EXPECT_EQ(selected("bytes=-99999999999999999999999999", 100), "0+100");
}

TEST(http_byte_ranges, what_is_beyond_the_end_is_unsatisfiable) {
    EXPECT_EQ(selected("bytes=100-", 100), "none");
    EXPECT_EQ(selected("bytes=100-200", 100), "none");
    EXPECT_EQ(selected("bytes=-0", 100), "none");
    EXPECT_EQ(selected("bytes=0-0", 0), "none");
    EXPECT_EQ(selected("bytes=99999999999999999999999999-", 100), "none");
    EXPECT_EQ(selected("bytes=100-, 200-300", 100), "none");
    EXPECT_EQ(selected("bytes=-5", 0), "whole") << "satisfied by nothing, which has no range";
    EXPECT_EQ(selected("bytes=-0", 0), "none");
}

TEST(http_byte_ranges, what_is_malformed_is_ignored) {
    for (const char* field :
         {"",           "bytes",        "bytes=",      "bytes=,",     "bytes=-",
          "bytes=a-b",  "bytes=1",      "bytes=1-2-3", "bytes=2-1",   "bytes=1-2;3-4",
          "bytes=+1-2", "bytes=1 -2",   "bytes=--1",   "items=0-1",   "bytes 0-1",
          "=0-1",       "bytes=0-1, x", "bytes=0x1-2", "bytes=1.5-2", "bytes=0-1,2-1"})
        EXPECT_EQ(selected(field, 100), "whole") << field;
}

TEST(http_byte_ranges, several_keep_their_order) {
    EXPECT_EQ(selected("bytes=0-1,10-19", 100), "0+2 10+10");
    EXPECT_EQ(selected("bytes=90-, 0-9, -0, 200-", 100), "90+10 0+10");
    EXPECT_EQ(selected("bytes=0-9,10-19", 100), "0+10 10+10") << "neighbours";
    EXPECT_EQ(selected("bytes=, 0-1, ,", 100), "0+2");
}

TEST(http_byte_ranges, overlapping_ones_are_the_whole) {
    EXPECT_EQ(selected("bytes=0-9,9-19", 100), "whole");
    EXPECT_EQ(selected("bytes=0-,0-,0-", 100), "whole");
    EXPECT_EQ(selected("bytes=50-59,0-99", 100), "whole");
    EXPECT_EQ(selected("bytes=-10,95-", 100), "whole");
}

TEST(http_byte_ranges, at_most_range_limit_of_them) {
    std::string field = "bytes=0-0";
    for (std::size_t i = 1; i < range_limit; ++i)
        field += "," + std::to_string(2 * i) + "-" + std::to_string(2 * i);
    EXPECT_EQ(select_ranges(field, 100).ranges.size(), range_limit);
    EXPECT_EQ(selected(field + ",90-90", 100), "whole");
    EXPECT_EQ(selected(field + ",200-200", 100), "whole") << "unsatisfiable ones count";
}

TEST(http_byte_ranges, the_field_of_a_response) {
    EXPECT_EQ(content_range({0, 10}, 100), "bytes 0-9/100");
    EXPECT_EQ(content_range_of_none(100), "bytes */100");
}

TEST(http_byte_ranges, random_fields_select_what_there_is) {
    constexpr std::string_view pieces[] = {
        "0", "1", "9", "-", "-", ",", " ", "5", "18446744073709551615"};
    random_generator dice(testing::seed_of_this_run());
    for (int i = 0; i < testing::rounds(100'000); ++i) {
        std::string field = "bytes=";
        for (std::uint64_t left = dice.below(12); left > 0; --left)
            field += pieces[dice.below(std::size(pieces))];
        const std::uint64_t size = dice.below(100);
        const range_selection made = select_ranges(field, size);
        std::uint64_t sum = 0;
        for (const byte_range& each : made.ranges) {
            ASSERT_GT(each.size, 0u) << field;
            ASSERT_LT(each.first, size) << field;
            ASSERT_LE(each.size, size - each.first) << field;
            sum += each.size;
        }
        ASSERT_LE(sum, size) << field;
        ASSERT_LE(made.ranges.size(), range_limit);
        ASSERT_EQ(made.what == range_selection::kind::ranges, !made.ranges.empty());
    }
}

}  // namespace
}  // namespace eddy::http
