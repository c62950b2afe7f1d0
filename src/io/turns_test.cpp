// Visits: threads that act for a loop between its turns.
#include <eddy/io/turns.hpp>

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

EDDY_ON_EVERY_KERNEL_BACKEND(turns);

/// Has another thread cancel the tasks within a visit, and sees their end.
task<void> cancel_from_elsewhere(shared_turns& shared, scope& tasks) {
    std::thread other([&] {
        const visit here(shared);
        tasks.cancel();
    });
    co_await tasks.join();
    other.join();
}

TEST_P(turns, a_visitor_is_the_loop_and_a_stranger_again_afterwards) {
    run([&]() -> task<void> {
        shared_turns shared;
        loop* const home = &loop::current();
        event done;
        const executor at_home = executor::current();
        loop* seen = nullptr;
        bool is_still_there = true;
        std::thread other([&] {
            {
                const visit here(shared);
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

TEST_P(turns, a_visitor_does_not_bring_its_frame_memory) {
    run_with_threads([&]() -> task<void> {
        shared_turns shared;
        counting_resource memory;
        event done;
        co_await with_scope([&](scope& tasks) -> task<> {
            std::pmr::memory_resource* before = std::pmr::null_memory_resource();
            std::pmr::memory_resource* after = std::pmr::null_memory_resource();
            const auto visiting = [&]() -> task<void> {
                {
                    const visit here(shared);
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
                must(loop::create(options))->run(with_frames(memory, visiting));
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

TEST_P(turns, a_task_that_a_visitor_begins_keeps_its_frame_memory) {
    run_with_threads([&]() -> task<void> {
        shared_turns shared;
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
                const visit here(shared);
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

TEST_P(turns, on_the_own_thread_and_without_anybody_a_visit_is_nothing) {
    run([&]() -> task<void> {
        shared_turns shared;
        {
            const visit here(shared);
            const visit again(shared);
        }
        const visit nobody(nullptr);
        EXPECT_EQ(&loop::current(), &shared.home());
        co_return;
    });
}

TEST_P(turns, what_threads_change_together_is_whole) {
    run([&]() -> task<void> {
        shared_turns shared;
        constexpr int threads = 4;
        constexpr int rounds = 5000;
        // Not atomic: visits and turns alone keep them apart.
        int count = 0;
        int running = threads;
        event ended;
        std::vector<std::thread> all;
        for (int i = 0; i < threads; ++i) {
            all.emplace_back([&] {
                for (int round = 0; round < rounds; ++round) {
                    const visit here(shared);
                    ++count;
                }
                const visit here(shared);
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

TEST_P(turns, neither_a_busy_loop_nor_busy_visitors_keep_the_others_out) {
    run([&]() -> task<void> {
        shared_turns shared;
        bool ended = false;  // the loop's
        std::thread visitor([&] {
            for (int i = 0; i < 200; ++i) const visit here(shared);
            const visit here(shared);
            ended = true;
        });
        // It never waits for the kernel.
        while (!ended) co_await loop::current().yield();
        visitor.join();

        std::atomic<bool> stop = false;
        std::atomic<int> busy = 3;
        std::vector<std::thread> crowd;
        for (int i = 0; i < 3; ++i) {
            crowd.emplace_back([&] {
                while (!stop) const visit here(shared);
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

TEST_P(turns, a_visitor_cancels_what_is_in_the_kernels_hands) {
    run([&]() -> task<void> {
        shared_turns shared;
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
            co_await cancel_from_elsewhere(shared, tasks);
            EXPECT_EQ(why, errc::cancelled);
        }
    });
}

task<void> wait_for_ever(int fd) {
    EXPECT_EQ(error_of(co_await loop::current().wait_readable(fd)), errc::cancelled);
}

/// Each of `threads` begins `count` waits in a visit and cancels them in another, so many times,
/// while the loop gets few turns.
task<void> begin_and_cancel(shared_turns& shared, int threads, unsigned count, std::size_t rounds) {
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
                    const visit here(shared);
                    for (unsigned n = 0; n < count; ++n) mine.spawn(wait_for_ever(from.get()));
                }
                const visit here(shared);
                EXPECT_EQ(mine.children(), count);
                mine.cancel();
            }
            const visit here(shared);
            if (--running == 0) ended.set();
        });
    }
    must(co_await ended.wait());
    for (std::thread& each : all) each.join();
    for (scope& each : tasks) co_await each.join();
}

TEST_P(turns, visitors_may_begin_and_cancel_more_together_than_the_kernel_takes_at_once) {
    run([]() -> task<void> {
        shared_turns shared;
        // On epoll each wait of these has a descriptor of its own.
        const unsigned count = loop::current().kind() == backend_kind::uring ? 200 : 20;
        co_await begin_and_cancel(shared, 8, count, 10);
    });
}

TEST_P(turns, one_visit_may_begin_as_much_as_its_limit_says) {
    if (GetParam() != backend_kind::uring) GTEST_SKIP() << "epoll has no such limit";
    run([]() -> task<void> {
        shared_turns shared;
        co_await begin_and_cancel(shared, 2, visit::max_requests, 10);
    });
}

TEST_P(turns, a_sleeping_loop_is_woken_for_what_a_visit_has_left) {
    run([&]() -> task<void> {
        shared_turns shared;
        scope tasks;
        std::string log;
        event begun;
        std::optional<std::thread> other;
        // With nothing else to do the loop sleeps for as long as the thread takes to come.
        other.emplace([&] {
            const visit here(shared);
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

TEST_P(turns, a_timer_that_a_visitor_arms_fires_while_the_loop_sleeps) {
    run([&]() -> task<void> {
        shared_turns shared;
        scope tasks;
        event fired;
        time_point armed_at{};
        std::thread other([&] {
            const visit here(shared);
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

TEST_P(turns, the_loop_knows_the_time_after_a_visit_that_asked_for_it) {
    run([&]() -> task<void> {
        shared_turns shared;
        event asked;
        time_point during{};
        std::thread other([&] {
            {
                const visit here(shared);
                during = loop::current().now();
            }
            std::this_thread::sleep_for(5ms);
            const visit here(shared);
            asked.set();
        });
        EXPECT_TRUE(co_await asked.wait());
        EXPECT_GE(loop::current().now() - during, 5ms);
        other.join();
    });
}

TEST_P(turns, a_visitor_cancels_what_waits_for_the_kernel) {
    run([&]() -> task<void> {
        shared_turns shared;
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        stream near = must(co_await loop::current().connect(at.local()));
        stream far = must(co_await at.accept());
        scope tasks;
        std::error_code why;
        tasks.spawn([](stream& from, std::error_code& error) -> task<void> {
            error = error_of(co_await from.read());
        }(near, why));
        co_await cancel_from_elsewhere(shared, tasks);
        EXPECT_EQ(why, errc::cancelled);
    });
}

TEST_P(turns, loops_visit_one_of_them) {
    run([&]() -> task<void> {
        loop_group_options options;
        options.threads = 3;
        options.loop.kind = loop::current().kind();
        auto group = must(loop_group::start(options));
        auto shared = std::make_unique<shared_turns>();
        int count = 0;
        constexpr int rounds = 300;
        const auto visitor = [](shared_turns& to, int& changed) -> task<int> {
            loop* const own = &loop::current();
            int at_home = 0;
            for (int i = 0; i < rounds; ++i) {
                {
                    const visit here(to);
                    ++changed;
                    at_home += &loop::current() == &to.home();
                }
                EXPECT_EQ(&loop::current(), own);
                co_await loop::current().yield();
            }
            co_return at_home;
        };
        scope tasks;
        int visits = 0;
        for (std::size_t i = 0; i < group->size(); ++i) {
            tasks.spawn([](executor there, task<int> work, int& sum) -> task<void> {
                sum += must(co_await resume_on(there, std::move(work)));
            }(group->executor(i), visitor(*shared, count), visits));
        }
        co_await tasks.join();
        EXPECT_EQ(count, 3 * rounds);
        EXPECT_EQ(visits, 3 * rounds);
        group->stop();
        // Shared no more, it is a loop like any other, and may be shared anew.
        shared.reset();
        co_await loop::current().yield();
        shared_turns again;
        const shared_turns twice;
        std::thread one([&] {
            const visit here(again);
            ++count;
        });
        while (count != 3 * rounds + 1) co_await loop::current().yield();
        one.join();
    });
}

TEST_P(turns, shared_visits_take_place_at_the_same_time) {
    run([&]() -> task<void> {
        shared_turns shared;
        loop* const home = &loop::current();
        event done;
        std::atomic<int> inside{0};
        std::atomic<bool> met{false};
        // Where the loop wants its turn between the two, the second waits for it, and so does not
        // come before the first has left: they try again.
        const auto meet = [&] {
            const auto deadline = std::chrono::steady_clock::now() + 10s;
            while (!met && std::chrono::steady_clock::now() < deadline) {
                const shared_visit here(&shared);
                if (++inside == 2) met = true;
                for (int i = 0; i < 50 && !met; ++i) std::this_thread::sleep_for(1ms);
                --inside;
            }
        };
        std::thread other([&] {
            std::thread third(meet);
            meet();
            third.join();
            const visit here(shared);
            done.set();
        });
        EXPECT_TRUE(co_await done.wait());
        other.join();
        EXPECT_TRUE(met);
        // At home it is nothing, as is one to nobody.
        const shared_visit at_home(&shared);
        const shared_visit nowhere(nullptr);
        EXPECT_EQ(&loop::current(), home);
    });
}

/// Is told of turns.
struct counting_listener final : turn_listener {
    void is_alone() noexcept override {
        ++turns;
        if (sharing != 0) ++broken;
    }
    std::atomic<int> sharing{0};
    int turns = 0;
    int broken = 0;
};

TEST_P(turns, nobody_is_alone_beside_a_shared_visit) {
    run([&]() -> task<void> {
        counting_listener told;
        shared_turns shared(&told);
        constexpr int rounds = 500;
        int alone = 0;  // no atomic
        std::atomic<int> broken{0};
        std::atomic<int> left{4};
        std::vector<std::thread> others;
        for (int number = 0; number < 4; ++number) {
            others.emplace_back([&, number] {
                for (int i = 0; i < rounds; ++i) {
                    if (number == 0 || i % 50 == 0) {
                        const visit here(shared);
                        ++alone;
                        broken += told.sharing != 0;
                    } else {
                        const shared_visit here(&shared);
                        ++told.sharing;
                        const int seen = alone;
                        std::this_thread::yield();
                        broken += seen != alone;
                        --told.sharing;
                    }
                }
                --left;
            });
        }
        int turns_here = 0;
        while (left > 0) {
            broken += told.sharing != 0;
            ++alone;
            ++turns_here;
            co_await loop::current().yield();
            EXPECT_TRUE(co_await loop::current().sleep_for(1ms));
        }
        for (std::thread& each : others) each.join();
        EXPECT_EQ(broken, 0);
        EXPECT_EQ(told.broken, 0);
        EXPECT_EQ(alone, rounds + 3 * rounds / 50 + turns_here);
        // Each visit and each turn is told of.
        EXPECT_GE(told.turns, rounds + 3 * rounds / 50 + turns_here / 2);
    });
}

TEST_P(turns, the_loop_has_its_turn_however_many_share_theirs) {
    run([&]() -> task<void> {
        shared_turns shared;
        std::atomic<bool> stops{false};
        std::atomic<int> left{3};
        std::vector<std::thread> others;
        for (int number = 0; number < 3; ++number) {
            others.emplace_back([&] {
                while (!stops) {
                    const shared_visit here(&shared);
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
