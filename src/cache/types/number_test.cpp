// Tests of numbers in text.
#include "cache/types/number.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace eddy::cache {
namespace {

std::string written(long double value) {
    char text[max_float_text];
    return {text, write_float(text, value)};
}

TEST(number, integers_have_one_writing) {
    EXPECT_EQ(parse_integer("0"), 0);
    EXPECT_EQ(parse_integer("-1"), -1);
    EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
    EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
    for (const char* const bad :
         {"", "-", "+1", " 1", "1 ", "01", "-0", "00", "1.0", "1e3", "0x1", "9223372036854775808",
          "-9223372036854775809", "111111111111111111111", "a", "--1"}) {
        EXPECT_FALSE(parse_integer(bad)) << bad;
    }
    EXPECT_FALSE(parse_integer(std::string("1\0", 2)));
}

TEST(number, integers_are_written_and_read_back) {
    for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-7}, INT64_MAX, INT64_MIN}) {
        char text[max_integer_text];
        EXPECT_EQ(parse_integer({text, write_integer(text, value)}), value);
    }
}

TEST(number, floats_are_read_whole_or_not_at_all) {
    EXPECT_EQ(parse_float("1.5"), 1.5L);
    EXPECT_EQ(parse_float("5."), 5.0L);
    EXPECT_EQ(parse_float("3e2"), 300.0L);
    EXPECT_TRUE(std::isinf(*parse_float("inf")));
    for (const char* const bad : {"", " 1", "1 ", "abc", "1x", "nan", "1e99999"}) {
        EXPECT_FALSE(parse_float(bad)) << bad;
    }
    EXPECT_FALSE(parse_float(std::string("1\0", 2)));
    EXPECT_FALSE(parse_float(std::string(max_float_text, '1')));
}

TEST(number, floats_are_written_without_exponent_and_zeros) {
    EXPECT_EQ(written(3.0L), "3");
    EXPECT_EQ(written(-0.5L), "-0.5");
    EXPECT_EQ(written(-0.0L), "0");
    EXPECT_EQ(written(1e20L), "100000000000000000000");
    EXPECT_EQ(written(100.0L), "100");
    EXPECT_LT(written(1e4931L).size(), max_float_text);
}

}  // namespace
}  // namespace eddy::cache
