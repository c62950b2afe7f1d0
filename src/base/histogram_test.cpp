// The histogram against exact percentiles.
#include <eddy/base/histogram.hpp>

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace eddy {
namespace {

TEST(histogram, is_all_zero_when_empty) {
    const histogram h;
    EXPECT_EQ(h.count(), 0u);
    EXPECT_EQ(h.sum(), 0u);
    EXPECT_EQ(h.min(), 0u);
    EXPECT_EQ(h.max(), 0u);
    EXPECT_EQ(h.mean(), 0.0);
    EXPECT_EQ(h.percentile(50), 0u);
    EXPECT_EQ(h.count_up_to(1000), 0u);
}

TEST(histogram, is_exact_for_small_values) {
    histogram h;
    for (std::uint64_t v = 0; v < 100; ++v) h.record(v);
    EXPECT_EQ(h.percentile(0), 0u);
    EXPECT_EQ(h.percentile(1), 0u);
    EXPECT_EQ(h.percentile(50), 49u);
    EXPECT_EQ(h.percentile(99), 98u);
    EXPECT_EQ(h.percentile(100), 99u);
    EXPECT_EQ(h.count_up_to(9), 10u);
    EXPECT_EQ(h.sum(), 4950u);
    EXPECT_DOUBLE_EQ(h.mean(), 49.5);
}

TEST(histogram, keeps_every_single_value_within_its_error) {
    // Around each power of two, where buckets change width.
    for (unsigned bit = 0; bit < 42; ++bit) {
        for (int delta = -2; delta <= 2; ++delta) {
            const std::uint64_t value =
                (std::uint64_t{1} << bit) + static_cast<std::uint64_t>(std::int64_t{delta});
            if (value > histogram::largest_value) continue;
            histogram h;
            h.record(0);
            h.record(value);
            h.record(value);
            h.record(histogram::largest_value);
            const double got = static_cast<double>(h.percentile(60));
            EXPECT_LE(std::abs(got - static_cast<double>(value)),
                      0.008 * static_cast<double>(value))
                << value;
        }
    }
}

TEST(histogram, agrees_with_a_sorted_list) {
    const std::uint64_t seed = testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    histogram h;
    std::vector<std::uint64_t> values;
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t value = random() >> (22 + random.below(42));
        values.push_back(value);
        h.record(value);
    }
    std::sort(values.begin(), values.end());
    EXPECT_EQ(h.count(), values.size());
    EXPECT_EQ(h.min(), values.front());
    EXPECT_EQ(h.max(), values.back());
    for (const double percent : {0.0, 0.1, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
        const auto rank =
            static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(values.size())));
        const auto exact = static_cast<double>(values[rank == 0 ? 0 : rank - 1]);
        EXPECT_NEAR(static_cast<double>(h.percentile(percent)), exact, 0.008 * exact) << percent;
    }
}

TEST(histogram, takes_values_beyond_its_range) {
    histogram h;
    h.record(histogram::largest_value);
    h.record(histogram::largest_value + 1);
    h.record(~std::uint64_t{0});
    EXPECT_EQ(h.count(), 3u);
    EXPECT_EQ(h.max(), ~std::uint64_t{0});
    EXPECT_EQ(h.percentile(100), ~std::uint64_t{0});
    EXPECT_NEAR(static_cast<double>(h.percentile(50)),
                static_cast<double>(histogram::largest_value), 0.008 * 4.4e12);
    EXPECT_EQ(h.count_up_to(~std::uint64_t{0}), 3u);
}

TEST(histogram, merged_parts_equal_the_whole) {
    random_generator random(7);
    histogram whole, left, right;
    for (int i = 0; i < 5000; ++i) {
        const std::uint64_t value = random.below(50'000'000);
        whole.record(value);
        (i % 3 == 0 ? left : right).record(value);
    }
    left.merge(right);
    left.merge(histogram());
    EXPECT_EQ(left.count(), whole.count());
    EXPECT_EQ(left.sum(), whole.sum());
    EXPECT_EQ(left.min(), whole.min());
    EXPECT_EQ(left.max(), whole.max());
    for (double percent = 0; percent <= 100; percent += 0.5) {
        EXPECT_EQ(left.percentile(percent), whole.percentile(percent));
    }
    left.reset();
    EXPECT_EQ(left.count(), 0u);
    EXPECT_EQ(left.percentile(99), 0u);
}

TEST(histogram, clamps_strange_percentages) {
    histogram h;
    h.record(10);
    h.record(20);
    EXPECT_EQ(h.percentile(-5), 10u);
    EXPECT_EQ(h.percentile(std::nan("")), 10u);
    EXPECT_EQ(h.percentile(1e9), 20u);
}

}  // namespace
}  // namespace eddy
