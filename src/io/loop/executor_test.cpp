// Executors: work posted from any thread, its fate when the loop ends, and resume_on() under every
// order of ending and cancelling.
#include <eddy/io/executor.hpp>

#include <eddy/base/log.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "io/loop/other_loop.hpp"
#include "io/testing.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(executor_io);

task<void> count(std::atomic<int>& ran) {
    ++ran;
    co_return;
}

/// Ends when it is cancelled. A sleep would not do: an hour passes at once on the simulator.
task<result<>> wait_until_cancelled() {
    event never;
    co_return co_await never.wait();
}

task<void> note_cancelled(std::atomic<int>& cancelled) {
    event never;
    cancelled += error_of(co_await never.wait()) == errc::cancelled;
}

TEST_P(executor_io, knows_its_thread) {
    run_with_threads([]() -> task<> {
        const executor own = executor::current();
        EXPECT_TRUE(own.is_current());
        EXPECT_FALSE(own.closed());
        EXPECT_EQ(own, executor::current());
        other_loop other(GetParam());
        EXPECT_FALSE(other.where().is_current());
        EXPECT_NE(other.where(), own);
        std::atomic<bool> there = false;
        must(other.where().post([&there, where = other.where()] { there = where.is_current(); }));
        other.stop();
        EXPECT_TRUE(there);
        co_return;
    });
}

TEST_P(executor_io, posted_work_runs_in_order_in_the_next_turn) {
    run([this]() -> task<> {
        std::string order;
        const executor own = executor::current();
        must(own.post([&order] { order += 'a'; }));
        must(own.post([](std::string& to) -> task<void> {
            to += 'b';
            co_return;
        }(order)));
        must(own.post([&order] { order += 'c'; }));
        EXPECT_EQ(order, "");
        must(own.dispatch([&order] { order += '1'; }));
        must(own.dispatch([](std::string& to) -> task<void> {
            to += '2';
            co_await loop::current().yield();
            to += 'd';
        }(order)));
        EXPECT_EQ(order, "12");
        while (order.size() < 6) co_await here().yield();
        EXPECT_EQ(order.substr(0, 5), "12abc");
    });
}

TEST_P(executor_io, dispatch_from_elsewhere_posts) {
    run_with_threads([]() -> task<> {
        other_loop other(GetParam());
        std::atomic<int> ran{0};
        std::atomic<bool> there = false;
        must(other.where().dispatch(count(ran)));
        must(other.where().dispatch([&] { there = other.where().is_current(); }));
        other.stop();
        EXPECT_EQ(ran, 1);
        EXPECT_TRUE(there);
        co_return;
    });
}

TEST_P(executor_io, one_that_outlives_its_loop_is_closed) {
    std::atomic<int> ran{0};
    executor left;
    EXPECT_TRUE(left.closed());
    EXPECT_EQ(error_of(left.post(count(ran))), errc::closed);
    run_with_threads([&]() -> task<> {
        {
            other_loop other(GetParam());
            left = other.where();
            EXPECT_FALSE(left.closed());
        }
        EXPECT_TRUE(left.closed());
        EXPECT_FALSE(left.is_current());
        EXPECT_EQ(error_of(left.post(count(ran))), errc::closed);
        EXPECT_EQ(error_of(left.post([&ran] { ++ran; })), errc::closed);
        EXPECT_EQ(error_of(left.dispatch(count(ran))), errc::closed);
        EXPECT_EQ(error_of(co_await resume_on(left, count(ran))), errc::closed);
    });
    EXPECT_EQ(ran, 0);
}

TEST_P(executor_io, work_beyond_the_limit_is_refused) {
    loop_options options;
    options.max_posted = 3;
    make_loop(options);
    run([this]() -> task<> {
        const executor own = executor::current();
        std::atomic<int> ran{0};
        for (int i = 0; i < 3; ++i) must(own.post(count(ran)));
        EXPECT_EQ(error_of(own.post(count(ran))), errc::limit_reached);
        EXPECT_EQ(error_of(own.post([&ran] { ++ran; })), errc::limit_reached);
        while (ran < 3) co_await here().yield();
        must(own.post(count(ran)));
        while (ran < 4) co_await here().yield();
    });
}

TEST_P(executor_io, the_end_of_a_run_cancels_and_awaits_what_was_posted) {
    std::atomic<int> cancelled{0};
    run([&, this]() -> task<> {
        for (int i = 0; i < 5; ++i) must(executor::current().post(note_cancelled(cancelled)));
        co_await here().yield();
        co_await here().yield();
    });
    EXPECT_EQ(cancelled, 5);
    // The loop may run again, and posting works as before.
    run([this]() -> task<> {
        std::atomic<int> ran{0};
        must(executor::current().post(count(ran)));
        while (ran == 0) co_await here().yield();
    });
}

TEST_P(executor_io, what_was_accepted_runs_even_at_the_end_of_its_loop) {
    std::atomic<int> cancelled{0};
    std::atomic<int> ran{0};
    const executor own = executor::current();
    must(own.post(note_cancelled(cancelled)));
    must(own.dispatch(count(ran)));  // the loop does not run: it is posted
    EXPECT_EQ(ran, 0);
    std::thread([&] { must(own.post(note_cancelled(cancelled))); }).join();
    make_loop({});
    EXPECT_EQ(cancelled, 2);
    EXPECT_EQ(ran, 1);
    EXPECT_TRUE(own.closed());
    EXPECT_NE(own, executor::current());
}

TEST_P(executor_io, failures_are_logged_and_end_nothing_else) {
    std::mutex mutex;
    std::string logged;
    set_log_sink([&](log_level, std::string_view line) {
        const std::lock_guard lock(mutex);
        logged += line;
    });
    run([this]() -> task<> {
        const executor own = executor::current();
        std::atomic<int> ran{0};
        must(own.post([] { throw std::runtime_error("from a callable"); }));
        must(own.post([]() -> task<void> {
            co_await loop::current().yield();
            throw std::runtime_error("from a task");
        }()));
        must(own.dispatch([] { throw std::runtime_error("at once"); }));
        must(own.post([&ran] { ++ran; }));
        while (ran == 0) co_await here().yield();
        co_await here().yield();
        co_await here().yield();
    });
    set_log_sink({});
    for (const char* text : {"from a callable", "from a task", "at once"})
        EXPECT_NE(logged.find(text), std::string::npos) << text;
}

// ---- wake-ups

/// The counter of the one eventfd that is open beside those in `before`: it grows by one with each
/// write, and it is unread while the loop has not run. See proc_pid_fdinfo(5).
std::vector<std::string> eventfds() {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const auto what = std::filesystem::read_symlink(entry.path(), gone);
        if (!gone && what == "anon_inode:[eventfd]") found.push_back(entry.path().filename());
    }
    return found;
}

long long counter_of(const std::string& descriptor) {
    std::ifstream info("/proc/self/fdinfo/" + descriptor);
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("eventfd-count:")) return std::stoll(line.substr(14), nullptr, 16);
    return -1;
}

TEST_P(executor_io, wake_ups_of_many_posts_are_one_write) {
    if (simulated()) GTEST_SKIP() << "the simulator has no descriptor to be woken by";
    constexpr int threads = 4;
    constexpr int each = 250;
    // Descriptors of other threads of this process would be counted in.
    const std::vector<std::string> open = eventfds();
    ASSERT_EQ(open.size(), 1u);
    const long long before = counter_of(open[0]);
    if (before < 0) GTEST_SKIP() << "this kernel does not tell the counter";
    std::atomic<int> ran{0};
    const executor own = executor::current();
    std::vector<std::thread> posters;
    for (int t = 0; t < threads; ++t)
        posters.emplace_back([&] {
            for (int i = 0; i < each; ++i) must(own.post([&ran] { ++ran; }));
        });
    for (std::thread& poster : posters) poster.join();
    EXPECT_EQ(counter_of(open[0]) - before, 1);
    run_with_threads([&, this]() -> task<> {
        while (ran < threads * each) co_await here().yield();
    });
    EXPECT_EQ(ran, threads * each);
}

// ---- resume_on

task<int> add_there(int a, int b, executor expected) {
    EXPECT_TRUE(expected.is_current());
    co_await loop::current().yield();
    EXPECT_TRUE(expected.is_current());
    co_return a + b;
}
task<result<std::string>> refuse_there() {
    co_await loop::current().yield();
    co_return fail_errno(ENOSPC);
}
task<int> throw_there() {
    co_await loop::current().yield();
    throw std::runtime_error("over there");
}
task<std::unique_ptr<int>> make_there() { co_return std::make_unique<int>(7); }

TEST_P(executor_io, resume_on_brings_back_the_value_and_the_thread) {
    run_with_threads([]() -> task<> {
        other_loop other(GetParam());
        const executor there = other.where();
        const auto own = std::this_thread::get_id();
        const result<int> sum = co_await resume_on(there, add_there(2, 3, there));
        EXPECT_EQ(must(sum), 5);
        EXPECT_EQ(std::this_thread::get_id(), own);
        const result<std::string> refused = co_await resume_on(there, refuse_there());
        EXPECT_EQ(error_of(refused), errno_code(ENOSPC));
        result<std::unique_ptr<int>> made = co_await resume_on(there, make_there());
        EXPECT_EQ(*must(std::move(made)), 7);
        std::atomic<int> ran{0};
        const result<> nothing = co_await resume_on(there, count(ran));
        EXPECT_TRUE(nothing);
        EXPECT_EQ(ran, 1);
        bool caught = false;
        try {
            static_cast<void>(co_await resume_on(there, throw_there()));
        } catch (const std::runtime_error& failure) {
            caught = std::string(failure.what()) == "over there";
        }
        EXPECT_TRUE(caught);
        EXPECT_EQ(std::this_thread::get_id(), own);
    });
}

TEST_P(executor_io, resume_on_the_own_loop_works_too) {
    run([]() -> task<> {
        const executor own = executor::current();
        EXPECT_EQ(must(co_await resume_on(own, add_there(2, 3, own))), 5);
    });
}

task<int> there_and_back(int depth, executor from, executor to) {
    if (depth == 0) co_return 0;
    const result<int> below = co_await resume_on(to, there_and_back(depth - 1, to, from));
    EXPECT_TRUE(from.is_current());
    co_return must(below) + 1;
}

TEST_P(executor_io, resume_on_nests_back_and_forth) {
    run_with_threads([]() -> task<> {
        other_loop other(GetParam());
        EXPECT_EQ(co_await there_and_back(50, executor::current(), other.where()), 50);
    });
}

struct destroyed_on {
    explicit destroyed_on(std::thread::id& to) : where(&to) {}
    destroyed_on(destroyed_on&& other) noexcept : where(std::exchange(other.where, nullptr)) {}
    destroyed_on& operator=(destroyed_on&&) = delete;
    ~destroyed_on() {
        if (where) *where = std::this_thread::get_id();
    }
    std::thread::id* where;
};

task<std::thread::id> hold_there(destroyed_on) { co_return std::this_thread::get_id(); }

TEST_P(executor_io, the_works_frame_ends_over_there_before_the_caller_goes_on) {
    run_with_threads([]() -> task<> {
        other_loop other(GetParam());
        std::thread::id ended;
        const result<std::thread::id> ran =
            co_await resume_on(other.where(), hold_there(destroyed_on(ended)));
        EXPECT_EQ(ended, must(ran));
    });
}

/// A caller of work over there that ends only when it is cancelled.
struct asking {
    std::atomic<int> begun{0};
    std::error_code error;
    bool done = false;
};

task<void> ask(executor there, asking& state) {
    state.error = error_of(co_await resume_on(there, [](std::atomic<int>& begun) -> task<result<>> {
        ++begun;
        co_return co_await wait_until_cancelled();
    }(state.begun)));
    state.done = true;
}

/// Calls `end` with the callers' scope once the work over there has begun, and awaits the caller.
template <class End>
task<void> end_while_it_runs(executor there, asking& state, End end) {
    scope children(co_await current_source());
    children.spawn(ask(there, state));
    while (state.begun == 0) co_await loop::current().yield();
    EXPECT_FALSE(state.done);
    end(children);
    co_await children.join();
    EXPECT_TRUE(state.done);
    EXPECT_EQ(state.error, errc::cancelled);
}

TEST_P(executor_io, cancelling_the_caller_cancels_the_work_there) {
    run_with_threads([]() -> task<> {
        other_loop other(GetParam());
        asking state;
        co_await end_while_it_runs(other.where(), state, [&state](scope& children) {
            children.cancel();
            EXPECT_FALSE(state.done) << "not inside the cancellation";
        });
        // A caller that is cancelled already does not even begin.
        asking late;
        cancel_source cancelled;
        cancelled.request();
        co_await ask(other.where(), late).under(cancelled);
        EXPECT_EQ(late.error, errc::cancelled);
        EXPECT_EQ(late.begun, 0);
    });
}

task<result<>> wait_begun(std::atomic<int>& begun) {
    ++begun;
    event never;
    co_return co_await never.wait();
}

task<> request_once_begun(const std::atomic<int>& begun, cancel_source& source) {
    while (begun == 0) co_await loop::current().yield();
    source.request();
}

TEST_P(executor_io, the_works_own_source_cancels_it_there) {
    run_with_threads([]() -> task<> {
        other_loop other(GetParam());
        std::atomic<int> begun = 0;
        cancel_source own;
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(request_once_begun(begun, own));
            const auto ended = co_await resume_on(other.where(), wait_begun(begun).under(own));
            EXPECT_EQ(error_of(ended), errc::cancelled);
        });
        EXPECT_EQ(begun, 1);
        // One that is cancelled already does not even begin.
        const auto late = co_await resume_on(other.where(), wait_begun(begun).under(own));
        EXPECT_EQ(error_of(late), errc::cancelled);
        EXPECT_EQ(begun, 1);
    });
}

TEST_P(executor_io, a_deadline_and_the_works_own_source_both_end_a_remote_call) {
    run_with_threads([]() -> task<> {
        other_loop other(GetParam());
        std::atomic<int> begun = 0;
        cancel_source own;
        const auto late =
            co_await with_timeout(1ms, resume_on(other.where(), wait_begun(begun).under(own)));
        EXPECT_EQ(error_of(late), errc::timed_out);
        begun = 0;
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(request_once_begun(begun, own));
            const auto ended =
                co_await with_timeout(1h, resume_on(other.where(), wait_begun(begun).under(own)));
            // Time passes at once on the simulator, where the deadline may be first.
            if (GetParam() != io_backend_kind::sim) EXPECT_EQ(error_of(ended), errc::cancelled);
        });
    });
}

TEST_P(executor_io, the_end_of_the_other_loop_cancels_the_work_there) {
    run_with_threads([]() -> task<> {
        other_loop other(GetParam());
        asking state;
        co_await end_while_it_runs(other.where(), state, [&other](scope&) { other.stop(); });
    });
}

/// The caller's frame: the work over there writes to it until it ends.
task<void> race(executor there, std::uint64_t turns, std::atomic<int>& inside, int& outcomes) {
    int local = 0;
    const result<int> done = co_await resume_on(
        there, [](int& callers, std::uint64_t wait, std::atomic<int>& count) -> task<int> {
            ++count;
            for (std::uint64_t i = 0; i < wait; ++i) {
                ++callers;
                co_await loop::current().yield();
            }
            event never;
            if (wait == 3) static_cast<void>(co_await never.wait());
            ++callers;
            --count;
            co_return 1;
        }(local, turns, inside));
    if (done) EXPECT_EQ(local, static_cast<int>(turns) + 1);
    ++outcomes;
}

TEST_P(executor_io, ending_cancelling_and_stopping_race_in_every_order) {
    static constexpr int rounds = 40;
    static constexpr int callers = 20;
    run_with_threads([this]() -> task<> {
        for (int round = 0; round < rounds; ++round) {
            other_loop other(GetParam());
            std::atomic<int> inside{0};
            int outcomes = 0;
            scope children(co_await current_source());
            for (int i = 0; i < callers; ++i)
                children.spawn(race(other.where(), random().below(4), inside, outcomes));
            for (std::uint64_t i = random().below(8); i > 0; --i) co_await here().yield();
            const std::uint64_t order = random().below(3);
            // Another thread stops the loop while this one cancels.
            std::thread stopper([&] {
                if (order < 2) other.stop();
            });
            if (order > 0) children.cancel();
            co_await children.join();
            stopper.join();
            EXPECT_EQ(outcomes, callers);
            EXPECT_EQ(inside, 0) << "nobody went on before the work had ended";
        }
    });
}

TEST_P(executor_io, two_loops_ask_each_other_under_cancellation) {
    run_with_threads([this]() -> task<> {
        other_loop other(GetParam());
        const executor own = executor::current();
        for (int round = 0; round < 100; ++round) {
            co_await with_scope([&](scope& children) -> task<> {
                for (int i = 0; i < 10; ++i)
                    children.spawn([](executor mine, executor theirs) -> task<> {
                        static_cast<void>(co_await resume_on(
                            theirs, [](executor from, executor to) -> task<result<>> {
                                co_return co_await resume_on(to,
                                                             [](executor back) -> task<result<>> {
                                                                 co_await loop::current().yield();
                                                                 EXPECT_TRUE(back.is_current());
                                                                 co_return result<>();
                                                             }(to));
                            }(theirs, mine)));
                    }(own, other.where()));
                for (std::uint64_t i = random().below(6); i > 0; --i) co_await here().yield();
            });
        }
    });
}

}  // namespace
}  // namespace eddy::testing
