// Tests of sizes and durations as people write them.
#include "runtime/options/units.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace eddy::runtime {
namespace {

struct written_number {
    std::string_view text;
    std::int64_t number;
};

TEST(units, sizes_are_powers_of_1024) {
    constexpr written_number cases[] = {
        {"0", 0},          {"4096", 4096},          {"4096b", 4096},
        {"64k", 65536},    {"64K", 65536},          {"64kb", 65536},
        {"64KiB", 65536},  {"64 KiB", 65536},       {"10M", 10 << 20},
        {"1GiB", 1 << 30}, {"1.5g", 3LL << 29},     {"2T", 2LL << 40},
        {"0.5k", 512},     {"1.0000000001k", 1024}, {"9223372036854775807", INT64_MAX},
    };
    for (const auto& [text, number] : cases) {
        const auto parsed = parse_size(text);
        ASSERT_TRUE(parsed) << text;
        EXPECT_EQ(*parsed, number) << text;
    }
}

TEST(units, what_is_no_size_is_refused) {
    for (const std::string_view text : {"", "k", "-1", "+1", "1x", "1kk", "1.k", ".5k", "1e3",
                                        "0x10", "1  k", " 1", "1 ", "1,5k", "4096B/s"})
        EXPECT_EQ(parse_size(text).error(), errc::malformed) << text;
    for (const std::string_view text :
         {"9223372036854775808", "8388608T", "99999999999999999999999999",
          "184467440737095516160000000000000000000000k"})
        EXPECT_EQ(parse_size(text).error(), errc::limit_reached) << text;
}

TEST(units, durations_are_seconds_without_a_unit) {
    constexpr std::int64_t second = 1'000'000'000;
    constexpr written_number cases[] = {
        {"0", 0},
        {"30", 30 * second},
        {"1.5", 3 * second / 2},
        {"1.5s", 3 * second / 2},
        {"100ms", second / 10},
        {"0.25ms", 250'000},
        {"7us", 7'000},
        {"3ns", 3},
        {"5m", 300 * second},
        {"5min", 300 * second},
        {"2H", 7200 * second},
        {"1d", 86400 * second},
    };
    for (const auto& [text, number] : cases) {
        const auto parsed = parse_duration(text);
        ASSERT_TRUE(parsed) << text;
        EXPECT_EQ(*parsed, number) << text;
    }
    for (const std::string_view text : {"", "s", "-1s", "1 parsec", "1m30s"})
        EXPECT_EQ(parse_duration(text).error(), errc::malformed) << text;
    EXPECT_EQ(parse_duration("106752d").error(), errc::limit_reached);
    EXPECT_TRUE(parse_duration("106751d"));
}

TEST(units, integers_are_digits_alone) {
    EXPECT_EQ(parse_integer("0").value(), 0);
    EXPECT_EQ(parse_integer("-12").value(), -12);
    EXPECT_EQ(parse_integer("9223372036854775807").value(), INT64_MAX);
    for (const std::string_view text : {"", "-", "1.0", "1k", " 1", "1 ", "+1", "0x1"})
        EXPECT_EQ(parse_integer(text).error(), errc::malformed) << text;
    EXPECT_EQ(parse_integer("9223372036854775808").error(), errc::limit_reached);
}

TEST(units, numbers_are_written_in_the_largest_unit_that_is_exact) {
    EXPECT_EQ(format_size(0), "0B");
    EXPECT_EQ(format_size(1000), "1000B");
    EXPECT_EQ(format_size(65536), "64KiB");
    EXPECT_EQ(format_size(1 << 30), "1GiB");
    EXPECT_EQ(format_size(3LL << 29), "1536MiB");
    EXPECT_EQ(format_duration(0), "0s");
    EXPECT_EQ(format_duration(1'500'000'000), "1500ms");
    EXPECT_EQ(format_duration(90'000'000'000), "90s");
    EXPECT_EQ(format_duration(120'000'000'000), "2m");
    EXPECT_EQ(format_duration(86'400'000'000'000), "24h");
    EXPECT_EQ(format_duration(1), "1ns");
}

TEST(units, what_is_written_is_read_back) {
    for (const std::int64_t number :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{1023}, std::int64_t{1} << 20,
          std::int64_t{999'999'999}, INT64_MAX}) {
        EXPECT_EQ(parse_size(format_size(number)).value(), number);
        EXPECT_EQ(parse_duration(format_duration(number)).value(), number);
    }
}

}  // namespace
}  // namespace eddy::runtime
