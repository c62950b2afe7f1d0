// Timers: order, number, disarming, clocks.
#include <eddy/io/timer.hpp>

#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(timer_io);

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

/// Arms itself again for now, for ever.
struct restless_timer final : timer {
    void fire() noexcept override {
        ++fired;
        loop::current().arm(*this, loop::current().now());
    }
    std::uint64_t fired = 0;
};

TEST_P(timer_io, one_that_is_always_due_leaves_the_others_their_turn) {
    run([this]() -> task<> {
        restless_timer greedy;
        here().arm(greedy, here().now());
        for (int turn = 0; turn < 100; ++turn) co_await here().yield();
        EXPECT_GT(greedy.fired, 0U);
        here().disarm(greedy);
    });
}

TEST_P(timer_io, of_the_same_deadline_fire_in_the_order_of_arming) {
    run([this]() -> task<> {
        std::vector<recording_timer*> fired;
        std::vector<std::unique_ptr<recording_timer>> all;
        const time_point when = here().now() + 2ms;
        for (int i = 0; i < 100; ++i) {
            all.push_back(std::make_unique<recording_timer>(fired));
            here().arm(*all.back(), when);
            if (i % 10 == 0) must(co_await here().sleep_for(10us));
        }
        must(co_await here().sleep_until(when + 1us));
        EXPECT_EQ(fired.size(), all.size());
        for (std::size_t i = 0; i < fired.size(); ++i) EXPECT_EQ(fired[i], all[i].get());
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

/// The wheel alone, beside a list that is searched from one end to the other.
class timer_wheel_test : public ::testing::Test {
protected:
    struct node final : timer {
        node(timer_wheel& of, std::vector<node*>& fired) : wheel(of), log(fired) {}
        void fire() noexcept override { log.push_back(this); }
        timer_wheel& wheel;
        std::vector<node*>& log;
        time_point due{};
        bool waits = false;
    };
    ~timer_wheel_test() override {
        for (const auto& each : nodes)
            if (each->armed()) wheel.remove(*each);
    }

    /// A node is armed through a loop only; a wheel without one takes the deadline from here.
    void arm(node& one, time_point when) {
        one.due = when;
        one.waits = true;
        wheel.insert(one, when);
    }

    timer_wheel wheel;
    std::vector<node*> fired;
    std::vector<std::unique_ptr<node>> nodes;
};

TEST_F(timer_wheel_test, agrees_with_a_list_however_far_the_deadlines_and_the_steps) {
    const std::uint64_t seed = seed_of_this_run();
    random_generator random(seed);
    for (int i = 0; i < 200; ++i) nodes.push_back(std::make_unique<node>(wheel, fired));
    time_point now{};
    const auto some_time = [&] {  // any number of digits
        return duration(static_cast<duration::rep>(random() >> 1 >> random.below(62)));
    };
    for (int step = 0; step < 200'000; ++step) {
        node& one = *nodes[random.below(nodes.size())];
        if (one.waits) {
            wheel.remove(one);
            one.waits = false;
        } else {
            const duration away = some_time();
            arm(one, away > time_point::max() - now ? time_point::max() : now + away);
        }
        if (random.below(4) != 0) continue;

        time_point earliest = time_point::max();
        for (const auto& each : nodes)
            if (each->waits) earliest = std::min(earliest, each->due);
        ASSERT_LE(wheel.next(), earliest) << "step " << step;
        const duration away = some_time() / (1 + random.below(1'000'000));
        now = away > time_point::max() - now ? now : now + away;
        std::size_t due = 0;
        for (const auto& each : nodes) due += each->waits && each->due <= now ? 1U : 0U;
        fired.clear();
        const std::size_t most = 1 + random.below(300);
        int calls = 0;
        do {
            wheel.fire_due(now, most);
            ASSERT_LE(++calls, 10'000);
        } while (wheel.next() <= now);
        ASSERT_EQ(fired.size(), due) << "step " << step;
        for (std::size_t i = 0; i < fired.size(); ++i) {
            ASSERT_LE(fired[i]->due, now);
            if (i > 0) ASSERT_LE(fired[i - 1]->due, fired[i]->due) << "step " << step;
            fired[i]->waits = false;
        }
    }
}

TEST_F(timer_wheel_test, does_a_bounded_amount_of_work_at_once) {
    const time_point when = time_point() + 1h;
    for (int i = 0; i < 10'000; ++i) {
        nodes.push_back(std::make_unique<node>(wheel, fired));
        arm(*nodes.back(), when);
    }
    wheel.fire_due(time_point() + 59min, 100);
    EXPECT_TRUE(fired.empty());
    std::size_t calls = 0;
    while (fired.size() < nodes.size()) {
        const std::size_t before = fired.size();
        wheel.fire_due(when, 100);
        EXPECT_LE(fired.size() - before, 100U);
        ASSERT_LE(++calls, 1200U) << "a timer moves once a level at most";
    }
    EXPECT_EQ(wheel.next(), time_point::max());
    EXPECT_TRUE(wheel.empty());
}

}  // namespace
}  // namespace eddy::testing
