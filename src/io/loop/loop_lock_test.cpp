// Locks on a loop: threads that act for it between its turns.
#include <eddy/io/loop_lock.hpp>

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/frames.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/scope.hpp>

#include "io/counting_resource.hpp"
#include "io/testing.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace eddy::testing {
namespace {

using namespace std::chrono_literals;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(loop_lock_io);

/// Cancels the tasks from another thread, under the lock, and awaits their end.
task<void> cancel_from_elsewhere(lockable_loop& lockable, scope& tasks) {
    std::thread other([&] {
        const loop_lock lock(lockable);
        tasks.cancel();
    });
    co_await tasks.join();
    other.join();
}

TEST_P(loop_lock_io, the_locking_thread_is_the_loop_until_it_unlocks) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        loop* const home = &loop::current();
        event done;
        const executor at_home = executor::current();
        loop* seen = nullptr;
        bool is_still_there = true;
        std::thread other([&] {
            {
                const loop_lock lock(lockable);
                seen = &loop::current();
                done.set();
            }
            is_still_there = at_home.is_current();
        });
        EXPECT_TRUE(co_await done.wait());
        other.join();
        EXPECT_EQ(seen, home);
        EXPECT_FALSE(is_still_there);
    });
}

TEST_P(loop_lock_io, the_locking_thread_leaves_its_frame_memory_behind) {
    run_with_threads([&]() -> task<void> {
        lockable_loop lockable;
        counting_resource memory;
        event done;
        co_await with_scope([&](scope& tasks) -> task<> {
            std::pmr::memory_resource* before = std::pmr::null_memory_resource();
            std::pmr::memory_resource* after = std::pmr::null_memory_resource();
            const auto locking = [&]() -> task<void> {
                {
                    const loop_lock lock(lockable);
                    EXPECT_EQ(frame_memory(), nullptr);
                    tasks.spawn([](std::pmr::memory_resource*& first,
                                   std::pmr::memory_resource*& second, event& over) -> task<> {
                        first = frame_memory();
                        co_await loop::current().yield();
                        second = frame_memory();
                        over.set();
                    }(before, after, done));
                }
                EXPECT_EQ(frame_memory(), &memory);
                co_return;
            };
            std::thread other([&] {
                loop_options options;
                options.kind = GetParam();
                must(loop::create(options))->run(with_frames(memory, locking));
            });
            EXPECT_TRUE(co_await done.wait());
            other.join();
            EXPECT_EQ(before, nullptr);
            EXPECT_EQ(after, nullptr);
        });
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

[[gnu::noinline]] task<void> do_nothing() { co_return; }

TEST_P(loop_lock_io, a_task_begun_under_the_lock_keeps_its_frame_memory) {
    run_with_threads([&]() -> task<void> {
        lockable_loop lockable;
        counting_resource memory;
        event done;
        co_await with_scope([&](scope& tasks) -> task<> {
            const auto body = [&memory, &done]() -> task<void> {
                const std::thread::id begun_on = std::this_thread::get_id();
                EXPECT_EQ(frame_memory(), &memory);
                co_await loop::current().yield();
                EXPECT_NE(std::this_thread::get_id(), begun_on);
                EXPECT_EQ(frame_memory(), &memory) << "that of the thread where it goes on";
                const std::size_t made = memory.made();
                co_await do_nothing();
                EXPECT_EQ(memory.made(), made + 1);
                done.set();
            };
            const auto around = [&]() -> task<void> {
                EXPECT_EQ(frame_memory(), nullptr);
                co_await with_frames(memory, body);
                EXPECT_EQ(frame_memory(), nullptr);
                co_await loop::current().yield();
                EXPECT_EQ(frame_memory(), nullptr);
            };
            std::thread other([&] {
                const loop_lock lock(lockable);
                tasks.spawn(around());
                EXPECT_EQ(frame_memory(), nullptr);
            });
            EXPECT_TRUE(co_await done.wait());
            EXPECT_EQ(frame_memory(), nullptr);
            other.join();
            co_await tasks.join();
        });
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

TEST_P(loop_lock_io, a_lock_on_the_own_thread_and_of_null_does_nothing) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        {
            const loop_lock lock(lockable);
            const loop_lock again(lockable);
        }
        const loop_lock none(nullptr);
        EXPECT_EQ(&loop::current(), &lockable.home());
        co_return;
    });
}

TEST_P(loop_lock_io, changes_by_several_threads_are_whole) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        constexpr int threads = 4;
        constexpr int rounds = 5000;
        // Not atomic: only the lock keeps them apart.
        int count = 0;
        int running = threads;
        event ended;
        std::vector<std::thread> all;
        for (int i = 0; i < threads; ++i) {
            all.emplace_back([&] {
                for (int round = 0; round < rounds; ++round) {
                    const loop_lock lock(lockable);
                    ++count;
                }
                const loop_lock lock(lockable);
                if (--running == 0) ended.set();
            });
        }
        int own = 0;
        while (running > 0) {
            ++count;
            ++own;
            co_await loop::current().yield();
        }
        EXPECT_TRUE(co_await ended.wait());
        for (std::thread& each : all) each.join();
        EXPECT_EQ(count, threads * rounds + own);
    });
}

TEST_P(loop_lock_io, neither_a_busy_loop_nor_busy_threads_starve_the_others) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        bool ended = false;  // the loop's
        std::thread other([&] {
            for (int i = 0; i < 200; ++i) const loop_lock lock(lockable);
            const loop_lock lock(lockable);
            ended = true;
        });
        // It never waits for the kernel.
        while (!ended) co_await loop::current().yield();
        other.join();

        std::atomic<bool> stop = false;
        std::atomic<int> busy = 3;
        std::vector<std::thread> crowd;
        for (int i = 0; i < 3; ++i) {
            crowd.emplace_back([&] {
                while (!stop) const loop_lock lock(lockable);
                --busy;
            });
        }
        for (int i = 0; i < 50; ++i) EXPECT_TRUE(co_await loop::current().sleep_for(100us));
        stop = true;
        // They may need a turn for it, which they would not get while this one waited for them.
        while (busy > 0) co_await loop::current().yield();
        for (std::thread& each : crowd) each.join();
    });
}

TEST_P(loop_lock_io, cancels_operations_submitted_to_the_kernel) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        int ends[2];
        EDDY_ASSERT(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
        const unique_fd from(ends[0]);
        const unique_fd to(ends[1]);
        for (int round = 0; round < 100; ++round) {
            scope tasks;
            std::error_code why;
            for (int i = 0; i < 5; ++i) {
                tasks.spawn([](int fd, std::error_code& error) -> task<void> {
                    error = error_of(co_await loop::current().wait_readable(fd));
                }(from.get(), why));
            }
            co_await cancel_from_elsewhere(lockable, tasks);
            EXPECT_EQ(why, errc::cancelled);
        }
    });
}

task<void> wait_for_ever(int fd) {
    EXPECT_EQ(error_of(co_await loop::current().wait_readable(fd)), errc::cancelled);
}

/// Each of `threads` begins `count` waits under a lock and cancels them under another, so many
/// times, while the loop gets few turns.
task<void> begin_and_cancel(lockable_loop& lockable, int threads, unsigned count,
                            std::size_t rounds) {
    int ends[2];
    EDDY_ASSERT(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    const unique_fd from(ends[0]);
    const unique_fd to(ends[1]);
    std::deque<scope> tasks(static_cast<std::size_t>(threads) * rounds);
    event ended;
    int running = threads;  // the loop's
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&, i] {
            for (std::size_t round = 0; round < rounds; ++round) {
                scope& mine = tasks[static_cast<std::size_t>(i) * rounds + round];
                {
                    const loop_lock lock(lockable);
                    for (unsigned n = 0; n < count; ++n) mine.spawn(wait_for_ever(from.get()));
                }
                const loop_lock lock(lockable);
                EXPECT_EQ(mine.children(), count);
                mine.cancel();
            }
            const loop_lock lock(lockable);
            if (--running == 0) ended.set();
        });
    }
    must(co_await ended.wait());
    for (std::thread& each : all) each.join();
    for (scope& each : tasks) co_await each.join();
}

TEST_P(loop_lock_io, threads_begin_and_cancel_more_together_than_the_kernel_takes_at_once) {
    run([]() -> task<void> {
        lockable_loop lockable;
        // On epoll each wait of these has a descriptor of its own.
        const unsigned count = loop::current().kind() == io_backend_kind::uring ? 200 : 20;
        co_await begin_and_cancel(lockable, 8, count, 10);
    });
}

TEST_P(loop_lock_io, one_lock_begins_as_many_requests_as_its_limit) {
    if (GetParam() != io_backend_kind::uring) GTEST_SKIP() << "epoll has no such limit";
    run([]() -> task<void> {
        lockable_loop lockable;
        co_await begin_and_cancel(lockable, 2, loop_lock::max_requests, 10);
    });
}

TEST_P(loop_lock_io, a_sleeping_loop_is_woken_for_work_begun_under_the_lock) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        scope tasks;
        std::string log;
        event begun;
        std::optional<std::thread> other;
        // With nothing else to do the loop sleeps for as long as the thread takes to come.
        other.emplace([&] {
            const loop_lock lock(lockable);
            tasks.spawn([](std::string& to, event& tell) -> task<void> {
                to += "begun ";
                co_await loop::current().yield();
                to += "on ";
                tell.set();
            }(log, begun));
        });
        EXPECT_TRUE(co_await begun.wait());
        other->join();
        co_await tasks.join();
        EXPECT_EQ(log, "begun on ");
    });
}

TEST_P(loop_lock_io, a_timer_armed_under_the_lock_fires_while_the_loop_sleeps) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        scope tasks;
        event fired;
        time_point armed_at{};
        std::thread other([&] {
            const loop_lock lock(lockable);
            armed_at = loop::current().now();
            tasks.spawn([](event& tell) -> task<void> {
                EXPECT_TRUE(co_await loop::current().sleep_for(20ms));
                tell.set();
            }(fired));
        });
        EXPECT_TRUE(co_await fired.wait());
        EXPECT_GE(loop::current().now() - armed_at, 20ms);
        other.join();
        co_await tasks.join();
    });
}

TEST_P(loop_lock_io, the_loop_reads_the_clock_after_a_lock_that_read_it) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        event asked;
        time_point during{};
        std::thread other([&] {
            {
                const loop_lock lock(lockable);
                during = loop::current().now();
            }
            std::this_thread::sleep_for(5ms);
            const loop_lock lock(lockable);
            asked.set();
        });
        EXPECT_TRUE(co_await asked.wait());
        EXPECT_GE(loop::current().now() - during, 5ms);
        other.join();
    });
}

TEST_P(loop_lock_io, cancels_operations_that_wait_for_the_kernel) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        stream near = must(co_await loop::current().connect(at.local()));
        stream far = must(co_await at.accept());
        scope tasks;
        std::error_code why;
        tasks.spawn([](stream& from, std::error_code& error) -> task<void> {
            error = error_of(co_await from.read());
        }(near, why));
        co_await cancel_from_elsewhere(lockable, tasks);
        EXPECT_EQ(why, errc::cancelled);
    });
}

TEST_P(loop_lock_io, several_loops_lock_one_of_them) {
    run([&]() -> task<void> {
        loop_group_options options;
        options.threads = 3;
        options.loop.kind = loop::current().kind();
        auto group = must(loop_group::start(options));
        auto lockable = std::make_unique<lockable_loop>();
        int count = 0;
        constexpr int rounds = 300;
        const auto changer = [](lockable_loop& to, int& changed) -> task<int> {
            loop* const own = &loop::current();
            int at_home = 0;
            for (int i = 0; i < rounds; ++i) {
                {
                    const loop_lock lock(to);
                    ++changed;
                    at_home += &loop::current() == &to.home();
                }
                EXPECT_EQ(&loop::current(), own);
                co_await loop::current().yield();
            }
            co_return at_home;
        };
        scope tasks;
        int at_home = 0;
        for (std::size_t i = 0; i < group->size(); ++i) {
            tasks.spawn([](executor there, task<int> work, int& sum) -> task<void> {
                sum += must(co_await resume_on(there, std::move(work)));
            }(group->executor(i), changer(*lockable, count), at_home));
        }
        co_await tasks.join();
        EXPECT_EQ(count, 3 * rounds);
        EXPECT_EQ(at_home, 3 * rounds);
        group->stop();
        // No longer lockable, it is a loop like any other, and may become lockable again.
        lockable.reset();
        co_await loop::current().yield();
        lockable_loop again;
        const lockable_loop twice;
        std::thread one([&] {
            const loop_lock lock(again);
            ++count;
        });
        while (count != 3 * rounds + 1) co_await loop::current().yield();
        one.join();
    });
}

TEST_P(loop_lock_io, shared_locks_are_held_at_the_same_time) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        loop* const home = &loop::current();
        event done;
        std::atomic<int> inside{0};
        std::atomic<bool> met{false};
        // Where the loop waits for its turn between the two, the second waits for it until the
        // first has unlocked: they try again.
        const auto meet = [&] {
            const auto deadline = std::chrono::steady_clock::now() + 10s;
            while (!met && std::chrono::steady_clock::now() < deadline) {
                const shared_loop_lock lock(&lockable);
                if (++inside == 2) met = true;
                for (int i = 0; i < 50 && !met; ++i) std::this_thread::sleep_for(1ms);
                --inside;
            }
        };
        std::thread other([&] {
            std::thread third(meet);
            meet();
            third.join();
            const loop_lock lock(lockable);
            done.set();
        });
        EXPECT_TRUE(co_await done.wait());
        other.join();
        EXPECT_TRUE(met);
        // On its own thread it does nothing, nor does one of null.
        const shared_loop_lock own(&lockable);
        const shared_loop_lock none(nullptr);
        EXPECT_EQ(&loop::current(), home);
    });
}

/// Counts exclusive sections.
struct counting_observer final : loop_lock_observer {
    void became_exclusive() noexcept override {
        ++sections;
        if (sharing != 0) ++broken;
    }
    std::atomic<int> sharing{0};
    int sections = 0;
    int broken = 0;
};

TEST_P(loop_lock_io, exclusive_and_shared_locks_exclude_each_other) {
    run([&]() -> task<void> {
        counting_observer observer;
        lockable_loop lockable(&observer);
        constexpr int rounds = 500;
        int exclusive = 0;  // no atomic
        std::atomic<int> broken{0};
        std::atomic<int> left{4};
        std::vector<std::thread> others;
        for (int number = 0; number < 4; ++number) {
            others.emplace_back([&, number] {
                for (int i = 0; i < rounds; ++i) {
                    if (number == 0 || i % 50 == 0) {
                        const loop_lock lock(lockable);
                        ++exclusive;
                        broken += observer.sharing != 0;
                    } else {
                        const shared_loop_lock lock(&lockable);
                        ++observer.sharing;
                        const int seen = exclusive;
                        std::this_thread::yield();
                        broken += seen != exclusive;
                        --observer.sharing;
                    }
                }
                --left;
            });
        }
        int turns_here = 0;
        while (left > 0) {
            broken += observer.sharing != 0;
            ++exclusive;
            ++turns_here;
            co_await loop::current().yield();
            EXPECT_TRUE(co_await loop::current().sleep_for(1ms));
        }
        for (std::thread& each : others) each.join();
        EXPECT_EQ(broken, 0);
        EXPECT_EQ(observer.broken, 0);
        EXPECT_EQ(exclusive, rounds + 3 * rounds / 50 + turns_here);
        // Each lock and each turn is observed.
        EXPECT_GE(observer.sections, rounds + 3 * rounds / 50 + turns_here / 2);
    });
}

TEST_P(loop_lock_io, the_loop_has_its_turn_however_many_locks_are_shared) {
    run([&]() -> task<void> {
        lockable_loop lockable;
        std::atomic<bool> stops{false};
        std::atomic<int> left{3};
        std::vector<std::thread> others;
        for (int number = 0; number < 3; ++number) {
            others.emplace_back([&] {
                while (!stops) {
                    const shared_loop_lock lock(&lockable);
                    std::this_thread::sleep_for(1ms);
                }
                --left;
            });
        }
        for (int i = 0; i < 50; ++i) EXPECT_TRUE(co_await loop::current().sleep_for(1ms));
        stops = true;
        while (left > 0) EXPECT_TRUE(co_await loop::current().sleep_for(1ms));
        for (std::thread& each : others) each.join();
    });
}

}  // namespace
}  // namespace eddy::testing
