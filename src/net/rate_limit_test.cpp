// Tokens: bursts, the long run, credit, and odd rates.
#include <eddy/net/rate_limit.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace eddy {
namespace {

using testing::error_of;
using testing::must;
using namespace std::chrono_literals;

constexpr time_point start{1h};

TEST(rate_limiter, allows_a_burst_then_the_rate) {
    rate_limiter limit(100, 10, start);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(limit.try_take(1, start));
    EXPECT_FALSE(limit.try_take(1, start));
    EXPECT_FALSE(limit.try_take(1, start + 9ms));
    EXPECT_TRUE(limit.try_take(1, start + 10ms));
    EXPECT_FALSE(limit.try_take(1, start + 10ms));
    // It never holds more than the burst, however long none was taken.
    EXPECT_FALSE(limit.try_take(11, start + 1h));
    EXPECT_TRUE(limit.try_take(10, start + 1h));
    EXPECT_FALSE(limit.try_take(1, start + 1h));
}

TEST(rate_limiter, gives_credit_in_order) {
    rate_limiter limit(10, 1, start);
    EXPECT_EQ(limit.take_later(1, start), 0ns);
    EXPECT_EQ(limit.take_later(1, start), 100ms);
    EXPECT_EQ(limit.take_later(2, start), 300ms);
    EXPECT_FALSE(limit.try_take(1, start + 300ms));
    EXPECT_TRUE(limit.try_take(1, start + 400ms));
}

TEST(rate_limiter, has_no_limit_at_rate_zero) {
    rate_limiter limit(0, 0, start);
    EXPECT_TRUE(limit.unlimited());
    EXPECT_TRUE(limit.try_take(std::numeric_limits<std::uint64_t>::max(), start));
    EXPECT_EQ(limit.take_later(1'000'000, start), 0ns);
}

TEST(rate_limiter, survives_absurd_numbers) {
    rate_limiter slow(1e-12, 1, start);
    for (int i = 0; i < 100; ++i)
        EXPECT_GE(slow.take_later(std::numeric_limits<std::uint64_t>::max(), start), 0ns);
    rate_limiter fast(1e15, 1e15, start);
    EXPECT_TRUE(fast.try_take(1'000'000, start));
    rate_limiter none(5, 0, start);
    EXPECT_FALSE(none.try_take(1, start + 1h)) << "a burst of nothing";
}

TEST(rate_limiter, makes_a_coroutine_wait) {
    loop_options options;
    options.kind = io_backend_kind::sim;
    auto here = must(loop::create(options));
    const auto body = []() -> task<> {
        rate_limiter limit(1000, 10, loop::current().now());
        const time_point begin = loop::current().now();
        for (int i = 0; i < 110; ++i) must(co_await limit.take(1));
        const duration spent = loop::current().now() - begin;
        EXPECT_GE(spent, 100ms);
        EXPECT_LE(spent, 101ms);

        cancel_source stop;
        stop.request();
        EXPECT_EQ(error_of(co_await limit.take(1000).under(stop)), errc::cancelled);
    };
    here->run(body());
}

TEST(rate_limiter, ends_a_wait_that_is_cancelled_and_keeps_its_tokens) {
    loop_options options;
    options.kind = io_backend_kind::sim;
    auto here = must(loop::create(options));
    const auto body = []() -> task<> {
        const time_point begin = loop::current().now();
        rate_limiter limit(1000, 10, begin);
        EXPECT_EQ(co_await testing::cancelled_during(limit.take(1010)), errc::cancelled);
        EXPECT_LT(loop::current().now() - begin, 1s) << "it ended before its time";
        must(co_await limit.take(1000));
        EXPECT_GE(loop::current().now() - begin, 2s) << "behind the thousand that were given up";
        EXPECT_LT(loop::current().now() - begin, 2s + 1ms);
    };
    here->run(body());
}

}  // namespace
}  // namespace eddy
