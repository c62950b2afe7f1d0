// Timers: their order, their number, disarming, and the clocks that they follow.
#include <eddy/io/timer.hpp>

#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <memory>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_BACKEND(timer_io);

/// Writes down when it fires, and disarms `victim` if it has one.
struct recording_timer final : timer {
    explicit recording_timer(std::vector<recording_timer*>& fired) : log(fired) {}
    void fire() noexcept override {
        log.push_back(this);
        if (victim) loop::current().disarm(*victim);
    }
    std::vector<recording_timer*>& log;
    timer* victim = nullptr;
    bool expected = false;
};

TEST_P(timer_io, fire_in_order_whatever_was_armed_and_disarmed_before) {
    run([this]() -> task<> {
        std::vector<recording_timer*> fired;
        std::vector<std::unique_ptr<recording_timer>> all;
        for (int i = 0; i < 300; ++i) all.push_back(std::make_unique<recording_timer>(fired));
        for (int round = 0; round < 50; ++round) {
            fired.clear();
            const time_point base = here().now();
            std::size_t expected = 0;
            for (int step = 0; step < 2000; ++step) {
                recording_timer& picked = *all[random().below(all.size())];
                if (picked.armed()) {
                    here().disarm(picked);
                    --expected;
                } else {
                    // Few different moments, so that many deadlines are equal.
                    here().arm(picked, base + 1us * random().below(100));
                    ++expected;
                }
            }
            must(co_await here().sleep_until(base + 100us));
            EXPECT_EQ(fired.size(), expected);
            for (std::size_t i = 1; i < fired.size(); ++i)
                EXPECT_LE(fired[i - 1]->when(), fired[i]->when());
            for (const auto& each : all) EXPECT_FALSE(each->armed());
        }
    });
}

TEST_P(timer_io, one_that_fires_may_disarm_another_that_is_due) {
    run([this]() -> task<> {
        std::vector<recording_timer*> fired;
        recording_timer first(fired), second(fired), third(fired);
        const time_point base = here().now();
        here().arm(second, base + 2us);
        here().arm(first, base + 1us);
        here().arm(third, base + 3us);
        first.victim = &second;
        must(co_await here().sleep_until(base + 10us));
        EXPECT_EQ(fired, (std::vector<recording_timer*>{&first, &third}));
        EXPECT_FALSE(second.armed());
    });
}

task<void> sleep_and_check(loop& here, time_point until, int& done) {
    const auto slept = co_await here.sleep_until(until);
    EXPECT_TRUE(slept);
    EXPECT_GE(here.now(), until);
    ++done;
}

TEST_P(timer_io, a_hundred_thousand_sleep_at_once) {
    run([this]() -> task<> {
        int done = 0;
        const time_point base = here().now();
        co_await join_scope([&](scope& children) -> task<> {
            for (int i = 0; i < 100'000; ++i)
                children.spawn(sleep_and_check(here(), base + 1us * random().below(50'000), done));
            co_return;
        });
        EXPECT_EQ(done, 100'000);
    });
}

TEST_P(timer_io, a_hundred_thousand_are_cancelled_at_once) {
    run([this]() -> task<> {
        int done = 0;
        co_await with_scope([&](scope& children) -> task<> {
            for (int i = 0; i < 100'000; ++i)
                children.spawn([](loop& where, int& ended) -> task<> {
                    const auto slept = co_await where.sleep_for(1h);
                    ended += error_of(slept) == errc::cancelled;
                }(here(), done));
            co_return;
        });
        EXPECT_EQ(done, 100'000);
    });
}

TEST_P(timer_io, a_moment_in_the_past_is_over_in_the_next_turn) {
    run([this]() -> task<> {
        must(co_await here().sleep_until(here().now() - 1h));
        must(co_await here().sleep_for(0ns));
        must(co_await here().sleep_for(-5s));
    });
}

TEST_P(timer_io, never_wake_early) {
    run([this]() -> task<> {
        for (const duration time : {1ns, 999ns, 50'000ns, 999'999ns, 1'000'001ns}) {
            const time_point until = here().now() + time;
            must(co_await here().sleep_until(until));
            EXPECT_GE(here().now(), until);
        }
    });
}

TEST_P(timer_io, virtual_time_costs_nothing_and_is_exact) {
    if (!simulated()) GTEST_SKIP() << "only the simulator's clock is virtual";
    run_with_threads([this]() -> task<> {
        const time_point begin = here().now();
        for (int i = 0; i < 1000; ++i) must(co_await here().sleep_for(24h));
        EXPECT_EQ(here().now() - begin, 24h * 1000);
    });
}

}  // namespace
}  // namespace eddy::testing
