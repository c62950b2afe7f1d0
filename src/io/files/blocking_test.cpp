// The blocking pool: results, its two limits, and cancellation of work that waits or runs.
#include <eddy/io/blocking.hpp>

#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <atomic>
#include <csignal>
#include <latch>
#include <limits>
#include <memory>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(blocking_io);

TEST_P(blocking_io, brings_back_what_the_work_returned) {
    run_with_threads([]() -> task<> {
        blocking_pool pool;
        EXPECT_EQ(pool.threads(), 0u) << "threads start with the first work";
        const std::thread::id own = std::this_thread::get_id();
        const auto elsewhere =
            co_await run_blocking(pool, [own] { return std::this_thread::get_id() != own; });
        EXPECT_TRUE(must(elsewhere));
        EXPECT_EQ(pool.threads(), 1u);
        EXPECT_EQ(std::this_thread::get_id(), own);

        int written = 0;
        must(co_await run_blocking(pool, [&written] { written = 7; }));
        EXPECT_EQ(written, 7);

        const auto text =
            co_await run_blocking(pool, [] { return std::make_unique<std::string>("text"); });
        EXPECT_EQ(**text, "text");
    });
}

result<int> refuse() { return fail_errno(ENOSPC); }
result<int> accept() { return 5; }
result<> refuse_without_value() { return fail_errno(EIO); }

TEST_P(blocking_io, a_result_stays_one_result) {
    run_with_threads([]() -> task<> {
        blocking_pool pool;
        const result<int> refused = co_await run_blocking(pool, refuse);
        EXPECT_EQ(error_of(refused), errno_code(ENOSPC));
        const result<int> accepted = co_await run_blocking(pool, accept);
        EXPECT_EQ(must(accepted), 5);
        const result<> nothing = co_await run_blocking(pool, refuse_without_value);
        EXPECT_EQ(error_of(nothing), errno_code(EIO));
    });
}

TEST_P(blocking_io, an_exception_comes_out_of_the_await) {
    run_with_threads([]() -> task<> {
        blocking_pool pool;
        bool caught = false;
        try {
            static_cast<void>(
                co_await run_blocking(pool, []() -> int { throw std::runtime_error("there"); }));
        } catch (const std::runtime_error& failure) {
            caught = std::string(failure.what()) == "there";
        }
        EXPECT_TRUE(caught);
        EXPECT_EQ(must(co_await run_blocking(pool, [] { return 1; })), 1);
    });
}

TEST_P(blocking_io, uses_as_many_threads_as_it_may) {
    run_with_threads([]() -> task<> {
        blocking_pool pool({.max_threads = 3, .max_queue = 100});
        std::latch together(3);
        std::atomic<int> done{0};
        co_await join_scope([&](scope& children) -> task<> {
            for (int i = 0; i < 30; ++i)
                children.spawn([](blocking_pool& in, std::latch& all, std::atomic<int>& count,
                                  bool meet) -> task<> {
                    must(co_await run_blocking(in, [&] {
                        if (meet) all.arrive_and_wait();
                        ++count;
                    }));
                }(pool, together, done, i < 3));
            co_return;
        });
        EXPECT_EQ(done, 30);
        EXPECT_EQ(pool.threads(), 3u);
    });
}

TEST_P(blocking_io, a_queue_may_be_without_limit) {
    run_with_threads([]() -> task<> {
        blocking_pool pool(
            {.max_threads = 2, .max_queue = std::numeric_limits<std::size_t>::max()});
        std::atomic<int> done{0};
        co_await join_scope([&](scope& children) -> task<> {
            for (int i = 0; i < 8; ++i)
                children.spawn([](blocking_pool& in, std::atomic<int>& count) -> task<> {
                    must(co_await run_blocking(in, [&] { ++count; }));
                }(pool, done));
            co_return;
        });
        EXPECT_EQ(done, 8);
    });
}

task<void> hold(blocking_pool& pool, std::binary_semaphore& gate, std::atomic<bool>& runs,
                std::error_code& error) {
    error = error_of(co_await run_blocking(pool, [&] {
        runs = true;
        runs.notify_one();
        gate.acquire();
    }));
}

task<void> note(blocking_pool& pool, std::atomic<int>& ran, std::error_code& error) {
    error = error_of(co_await run_blocking(pool, [&] { ++ran; }));
}

TEST_P(blocking_io, work_beyond_the_queue_is_refused) {
    run_with_threads([]() -> task<> {
        blocking_pool pool({.max_threads = 1, .max_queue = 2});
        std::binary_semaphore gate(0);
        std::atomic<bool> runs = false;
        std::atomic<int> ran = 0;
        std::error_code held, errors[3];
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(hold(pool, gate, runs, held));
            for (std::error_code& error : errors) children.spawn(note(pool, ran, error));
            EXPECT_EQ(errors[2], errc::limit_reached) << "it was told at once";
            gate.release();
            co_return;
        });
        EXPECT_FALSE(held);
        EXPECT_FALSE(errors[0]);
        EXPECT_FALSE(errors[1]);
        EXPECT_EQ(ran, 2);
        // The place is free again.
        must(co_await run_blocking(pool, [] {}));
    });
}

TEST_P(blocking_io, a_queue_of_none_still_uses_free_threads) {
    run_with_threads([]() -> task<> {
        blocking_pool pool({.max_threads = 1, .max_queue = 0});
        for (int i = 0; i < 200; ++i) must(co_await run_blocking(pool, [] {}));
    });
}

TEST_P(blocking_io, cancelling_drops_waiting_work_and_awaits_running_work) {
    run_with_threads([]() -> task<> {
        blocking_pool pool({.max_threads = 1, .max_queue = 10});
        std::binary_semaphore gate(0);
        std::atomic<bool> runs = false;
        std::atomic<int> ran = 0;
        std::error_code held = errc::closed;
        std::error_code dropped;
        scope children(co_await current_source());
        children.spawn(hold(pool, gate, runs, held));
        runs.wait(false);
        children.spawn(note(pool, ran, dropped));
        children.cancel();
        for (int i = 0; i < 2; ++i) co_await loop::current().yield();
        EXPECT_EQ(dropped, errc::cancelled);
        EXPECT_EQ(children.children(), 1u) << "what runs may refer to the frame that waits";
        gate.release();
        co_await children.join();
        EXPECT_FALSE(held) << "its result is kept";
        EXPECT_EQ(ran, 0);
    });
}

TEST_P(blocking_io, work_comes_and_goes_from_many_coroutines) {
    run_with_threads([this]() -> task<> {
        blocking_pool pool({.max_threads = 4, .max_queue = 50});
        std::atomic<int> ran = 0;
        int finished = 0;
        int refused = 0;
        int cancelled = 0;
        for (int round = 0; round < 20; ++round) {
            co_await with_scope([&](scope& children) -> task<> {
                for (int i = 0; i < 60; ++i)
                    children.spawn([](blocking_pool& in, std::atomic<int>& count, int& well,
                                      int& full, int& ended) -> task<> {
                        const auto done = co_await run_blocking(in, [&] { ++count; });
                        if (done)
                            ++well;
                        else if (done.error() == errc::limit_reached)
                            ++full;
                        else
                            ended += done.error() == errc::cancelled;
                    }(pool, ran, finished, refused, cancelled));
                for (std::uint64_t i = random().below(5); i > 0; --i) co_await here().yield();
            });
        }
        EXPECT_EQ(finished + refused + cancelled, 20 * 60);
        EXPECT_EQ(ran, finished);
    });
}

TEST_P(blocking_io, its_threads_take_no_signals) {
    run_with_threads([]() -> task<> {
        blocking_pool pool;
        const auto blocked = co_await run_blocking(pool, [] {
            sigset_t mask;
            pthread_sigmask(SIG_BLOCK, nullptr, &mask);
            return sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGHUP) == 1;
        });
        EXPECT_TRUE(must(blocked));
        sigset_t own;
        pthread_sigmask(SIG_BLOCK, nullptr, &own);
        EXPECT_EQ(sigismember(&own, SIGTERM), 0) << "the caller's mask is as it was";
    });
}

}  // namespace
}  // namespace eddy::testing
