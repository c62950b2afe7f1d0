// Frame memory of with_frames(): inheritance by tasks, over every kind of wait, and the return of
// each frame to its origin.
#include <eddy/io/frames.hpp>

#include <eddy/base/frame_pool.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/channel.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/generator.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/strand.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>

#include "io/counting_resource.hpp"
#include "io/loop/other_loop.hpp"
#include "io/testing.hpp"

#include <array>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <memory_resource>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(frames_io);

// Coroutines with counted frames: not inlined, since a compiler may put the frame of a coroutine
// that it sees into the caller's.

[[gnu::noinline]] task<int> leaf() { co_return 1; }

[[gnu::noinline]] task<int> depth(int levels) {
    if (levels == 0) co_return co_await leaf();
    const int below = co_await depth(levels - 1);
    co_return below + 1;
}

[[gnu::noinline]] task<int> leaf_after_a_wait() {
    co_await loop::current().yield();
    co_return co_await leaf();
}

[[gnu::noinline]] task<void> nothing() { co_return; }

[[gnu::noinline]] task<void> note_memory(std::pmr::memory_resource*& seen) {
    seen = frame_memory();
    co_return;
}

TEST_P(frames_io, all_that_a_body_awaits_has_its_frame_from_there) {
    run([]() -> task<> {
        counting_resource memory;
        EXPECT_EQ(frame_memory(), nullptr);
        const int value = co_await with_frames(memory, [] { return depth(10); });
        EXPECT_EQ(value, 11);
        EXPECT_EQ(memory.made(), 12u);
        EXPECT_EQ(memory.outstanding(), 0u);
        co_await with_frames(memory, [&memory]() -> task<void> {
            EXPECT_EQ(frame_memory(), &memory);
            const std::size_t made = memory.made();
            const std::size_t outstanding = memory.outstanding();
            co_await depth(10);
            EXPECT_EQ(memory.made(), made + 12);
            EXPECT_EQ(memory.outstanding(), outstanding);
        });
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

TEST_P(frames_io, nothing_is_inherited_once_the_body_has_ended) {
    run([]() -> task<> {
        counting_resource memory;
        co_await with_frames(memory, leaf_after_a_wait);
        EXPECT_EQ(frame_memory(), nullptr);
        const std::size_t made = memory.made();
        co_await depth(3);
        co_await leaf_after_a_wait();
        EXPECT_EQ(frame_memory(), nullptr);
        EXPECT_EQ(memory.made(), made);
    });
}

TEST_P(frames_io, a_body_is_called_when_it_is_awaited) {
    run([]() -> task<> {
        counting_resource memory;
        int calls = 0;
        auto body = [&calls]() -> task<void> {
            ++calls;
            return nothing();
        };
        {
            [[maybe_unused]] const task<void> dropped = with_frames(memory, body);
        }
        EXPECT_EQ(calls, 0);
        task<void> made = with_frames(memory, body);
        EXPECT_EQ(memory.made(), 0u);
        co_await std::move(made);
        EXPECT_EQ(calls, 1);
        EXPECT_EQ(memory.made(), 1u);
    });
}

TEST_P(frames_io, bodies_may_be_nested) {
    run([]() -> task<> {
        counting_resource outer;
        counting_resource inner;
        // Two frames from `memory`, and none from the other one.
        const auto check = [&](counting_resource& memory) -> task<void> {
            counting_resource& other = &memory == &outer ? inner : outer;
            EXPECT_EQ(frame_memory(), &memory);
            const std::size_t made = memory.made();
            const std::size_t made_elsewhere = other.made();
            co_await leaf_after_a_wait();
            EXPECT_EQ(memory.made(), made + 2);
            EXPECT_EQ(other.made(), made_elsewhere);
            EXPECT_EQ(frame_memory(), &memory);
        };
        co_await with_frames(outer, [&]() -> task<void> {
            co_await check(outer);
            co_await with_frames(inner, [&]() -> task<void> {
                co_await check(inner);
                co_await with_frames(outer, [&] { return check(outer); });
                co_await check(inner);
                co_await with_frames(inner, [&] { return check(inner); });
                co_await check(inner);
            });
            co_await check(outer);
        });
        EXPECT_EQ(frame_memory(), nullptr);
        EXPECT_EQ(outer.outstanding(), 0u);
        EXPECT_EQ(inner.outstanding(), 0u);
    });
}

/// A task that makes `rounds` children, one after the other, with waits of several kinds between.
[[gnu::noinline]] task<void> children_between_waits(std::pmr::memory_resource* own, int rounds,
                                                    connection& link) {
    channel<int> queue(1);
    for (int i = 0; i < rounds; ++i) {
        co_await leaf();
        co_await loop::current().yield();
        EXPECT_EQ(frame_memory(), own);
        must(co_await loop::current().sleep_for(1ms));
        EXPECT_EQ(frame_memory(), own);
        must(co_await link.client.write_all("x"));
        EXPECT_EQ(frame_memory(), own);
        std::array<std::byte, 1> byte;
        must(co_await with_timeout(1h, link.server.read_some(byte)));
        EXPECT_EQ(frame_memory(), own);
        must(co_await queue.send(i));
        must(co_await queue.receive());
        EXPECT_EQ(frame_memory(), own);
        co_await leaf();
    }
}

TEST_P(frames_io, tasks_take_turns_and_each_keeps_its_own) {
    run([this]() -> task<> {
        constexpr int rounds = 20;
        std::array<counting_resource, 3> memories;
        std::vector<connection> links;
        for (int i = 0; i < 4; ++i) links.push_back(co_await connect());
        co_await join_scope([&](scope& children) -> task<> {
            for (std::size_t i = 0; i < memories.size(); ++i)
                children.spawn(with_frames(memories[i], [&memories, &links, i] {
                    return children_between_waits(&memories[i], rounds, links[i]);
                }));
            children.spawn(children_between_waits(nullptr, rounds, links[3]));
            co_return;
        });
        for (const counting_resource& memory : memories) EXPECT_EQ(memory.made(), 1u + 2u * rounds);
    });
}

TEST_P(frames_io, a_scope_inherits_it_from_the_spawning_task) {
    run([]() -> task<> {
        counting_resource memory;
        co_await join_scope([&](scope& outside) -> task<> {
            co_await with_frames(memory, [&]() -> task<void> {
                co_await with_scope([&](scope& inside) -> task<> {
                    std::size_t before = memory.made();
                    inside.spawn(nothing());
                    EXPECT_EQ(memory.made(), before + 2) << "the child, and the root that owns it";
                    EXPECT_EQ(frame_memory(), &memory) << "the child has ended in between";
                    before = memory.made();
                    inside.spawn([](counting_resource& own) -> task<> {
                        co_await leaf_after_a_wait();
                        EXPECT_EQ(frame_memory(), &own);
                    }(memory));
                    EXPECT_EQ(frame_memory(), &memory) << "the child waits";
                    EXPECT_EQ(memory.made(), before + 3);
                    co_await inside.join();
                    EXPECT_EQ(memory.made(), before + 4);
                    EXPECT_EQ(frame_memory(), &memory);
                });
                outside.spawn([](counting_resource& own) -> task<> {
                    for (int i = 0; i < 3; ++i) co_await loop::current().yield();
                    EXPECT_EQ(frame_memory(), &own) << "though the body has ended";
                }(memory));
            });
            EXPECT_EQ(frame_memory(), nullptr);
            EXPECT_EQ(memory.outstanding(), 2u) << "what was spawned into a scope from outside";
        });
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

TEST_P(frames_io, when_all_and_when_any_inherit_it) {
    run([this]() -> task<> {
        counting_resource memory;
        connection link = co_await connect();
        must(co_await link.client.write_all("x"));
        co_await with_frames(memory, [&]() -> task<void> {
            const std::size_t outstanding = memory.outstanding();
            std::pmr::memory_resource* first = nullptr;
            std::pmr::memory_resource* second = nullptr;
            co_await when_all(note_memory(first), note_memory(second));
            EXPECT_EQ(first, &memory);
            EXPECT_EQ(second, &memory);
            EXPECT_EQ(frame_memory(), &memory);
            const auto sum = co_await when_all(leaf_after_a_wait(), leaf_after_a_wait());
            EXPECT_EQ(std::get<0>(sum) + std::get<1>(sum), 2);
            EXPECT_EQ(frame_memory(), &memory);
            event never;
            const auto winner = co_await when_any(leaf_after_a_wait(), never.wait());
            EXPECT_EQ(winner.index(), 0u);
            EXPECT_EQ(frame_memory(), &memory);
            auto received = co_await when_any(link.server.read(), never.wait());
            EXPECT_EQ(must(std::move(std::get<0>(received))).text(), "x");
            EXPECT_EQ(frame_memory(), &memory);
            EXPECT_EQ(memory.outstanding(), outstanding);
            const std::size_t before = memory.made();
            co_await leaf();
            EXPECT_EQ(memory.made(), before + 1);
        });
    });
}

[[gnu::noinline]] task<result<int>> wait_for(event& done) {
    const result<> set = co_await done.wait();
    if (!set) {
        co_await leaf();
        co_return fail(set.error());
    }
    co_return co_await leaf();
}

TEST_P(frames_io, a_deadline_gives_all_of_it_back) {
    run([]() -> task<> {
        counting_resource memory;
        event never;
        const result<int> inside = co_await with_frames(memory, [&]() -> task<result<int>> {
            const std::size_t outstanding = memory.outstanding();
            const std::size_t made = memory.made();
            const result<int> late = co_await with_timeout(1ms, wait_for(never));
            EXPECT_EQ(error_of(late), errc::timed_out);
            EXPECT_GE(memory.made(), made + 2);
            EXPECT_EQ(memory.outstanding(), outstanding);
            EXPECT_EQ(frame_memory(), &memory);
            EXPECT_EQ(error_of(co_await with_timeout(1ms, never.wait())), errc::timed_out);
            EXPECT_EQ(frame_memory(), &memory);
            co_return late;
        });
        EXPECT_EQ(error_of(inside), errc::timed_out);
        EXPECT_EQ(frame_memory(), nullptr);
        // The deadline includes the body, and so ends it, too.
        const std::size_t made = memory.made();
        const result<int> around =
            co_await with_timeout(1ms, with_frames(memory, [&never] { return wait_for(never); }));
        EXPECT_EQ(error_of(around), errc::timed_out);
        EXPECT_EQ(memory.made(), made + 2);
        EXPECT_EQ(memory.outstanding(), 0u);
        EXPECT_EQ(frame_memory(), nullptr);
    });
}

[[gnu::noinline]] async_generator<std::pmr::memory_resource*> inherited() {
    for (;;) {
        co_await leaf_after_a_wait();
        co_yield frame_memory();
    }
}

TEST_P(frames_io, a_generator_inherits_it_from_the_awaiting_task) {
    run([]() -> task<> {
        counting_resource memory;
        counting_resource other;
        auto outside = inherited();
        EXPECT_EQ(*co_await outside.next(), nullptr);
        {
            std::optional<async_generator<std::pmr::memory_resource*>> taken_out;
            co_await with_frames(memory, [&]() -> task<void> {
                std::size_t before = memory.made();
                EXPECT_EQ(*co_await outside.next(), &memory);
                EXPECT_EQ(memory.made(), before + 2);
                EXPECT_EQ(frame_memory(), &memory);
                before = memory.made();
                taken_out.emplace(inherited());
                EXPECT_EQ(memory.made(), before + 1);
                EXPECT_EQ(*co_await taken_out->next(), &memory);
                co_await with_frames(other, [&]() -> task<void> {
                    before = other.made();
                    EXPECT_EQ(*co_await taken_out->next(), &other);
                    EXPECT_EQ(other.made(), before + 2);
                });
                EXPECT_EQ(frame_memory(), &memory);
            });
            EXPECT_EQ(*co_await taken_out->next(), nullptr);
            EXPECT_EQ(memory.outstanding(), 1u) << "its own frame";
        }
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

TEST_P(frames_io, a_frame_goes_back_to_where_it_came_from_wherever_it_ends) {
    run([]() -> task<> {
        counting_resource memory;
        // Made outside and awaited inside.
        task<int> outside = leaf_after_a_wait();
        co_await with_frames(memory, [&]() -> task<void> {
            const std::size_t made = memory.made();
            co_await std::move(outside);
            EXPECT_EQ(memory.made(), made + 1) << "what the task awaited";
        });
        // Made inside and awaited outside, or never.
        task<int> taken_out = leaf_after_a_wait();
        co_await with_frames(memory, [&]() -> task<void> {
            taken_out = leaf_after_a_wait();
            co_return;
        });
        EXPECT_EQ(memory.outstanding(), 1u);
        std::size_t made = memory.made();
        co_await std::move(taken_out);
        EXPECT_EQ(memory.made(), made);
        taken_out = leaf();
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

[[gnu::noinline]] task<int> failing_after_a_wait() {
    co_await leaf_after_a_wait();
    throw std::runtime_error("on purpose");
}

TEST_P(frames_io, an_exception_ends_it_as_well) {
    run([]() -> task<> {
        counting_resource memory;
        counting_resource inner;
        int caught = 0;
        try {
            co_await with_frames(memory, [&]() -> task<int> {
                try {
                    co_await with_frames(inner, failing_after_a_wait);
                } catch (const std::runtime_error&) {
                    ++caught;
                }
                EXPECT_EQ(frame_memory(), &memory);
                try {
                    co_await join_scope([](scope& children) -> task<> {
                        children.spawn([]() -> task<> { co_await failing_after_a_wait(); }());
                        co_return;
                    });
                } catch (const std::runtime_error&) {
                    ++caught;
                }
                EXPECT_EQ(frame_memory(), &memory);
                co_return co_await failing_after_a_wait();
            });
        } catch (const std::runtime_error&) {
            ++caught;
        }
        EXPECT_EQ(frame_memory(), nullptr);
        try {
            // No coroutine: it throws before there is one.
            co_await with_frames(memory,
                                 []() -> task<int> { throw std::runtime_error("at once"); });
        } catch (const std::runtime_error&) {
            ++caught;
        }
        EXPECT_EQ(frame_memory(), nullptr);
        EXPECT_EQ(caught, 4);
        EXPECT_EQ(memory.outstanding(), 0u);
        EXPECT_EQ(inner.outstanding(), 0u);
    });
}

TEST_P(frames_io, want_of_memory_comes_out_of_the_call_that_makes_the_coroutine) {
    run([]() -> task<> {
        counting_resource memory;
        memory.fail_after(0);
        bool refused = false;
        try {
            co_await with_frames(memory, nothing);
        } catch (const std::bad_alloc&) {
            refused = true;
        }
        EXPECT_TRUE(refused) << "the body's own frame";
        EXPECT_EQ(frame_memory(), nullptr);
        memory.recover();
        co_await with_frames(memory, [&]() -> task<void> {
            const std::size_t outstanding = memory.outstanding();
            memory.fail_after(0);
            EXPECT_THROW(static_cast<void>(leaf()), std::bad_alloc);
            EXPECT_EQ(frame_memory(), &memory);
            co_await loop::current().yield();
            // The pool has frames that are not given out here.
            EXPECT_THROW(static_cast<void>(leaf()), std::bad_alloc);
            memory.recover();
            co_await with_scope([&](scope& children) -> task<> {
                memory.fail_after(1);
                EXPECT_THROW(children.spawn(nothing()), std::bad_alloc) << "its root's frame";
                EXPECT_EQ(children.children(), 0u);
                EXPECT_EQ(frame_memory(), &memory);
                memory.fail_after(2);
                // It begins, and fails where it makes a child.
                children.spawn([]() -> task<> {
                    EXPECT_THROW(static_cast<void>(leaf()), std::bad_alloc);
                    co_return;
                }());
                EXPECT_EQ(frame_memory(), &memory);
                memory.recover();
                co_return;
            });
            co_await depth(3);
            EXPECT_EQ(memory.outstanding(), outstanding);
        });
    });
}

TEST_P(frames_io, what_the_loop_calls_between_inherits_nothing) {
    run([]() -> task<> {
        struct watcher final : timer {
            void fire() noexcept override { at_timer = frame_memory(); }
            std::pmr::memory_resource* at_timer = std::pmr::null_memory_resource();
        };
        counting_resource memory;
        watcher armed;
        std::pmr::memory_resource* at_post = std::pmr::null_memory_resource();
        std::pmr::memory_resource* at_posted_task = std::pmr::null_memory_resource();
        std::pmr::memory_resource* at_dispatched = std::pmr::null_memory_resource();
        co_await with_frames(memory, [&]() -> task<void> {
            loop::current().arm(armed, loop::current().now());
            const executor own = executor::current();
            must(own.post([&at_post] { at_post = frame_memory(); }));
            must(own.post(note_memory(at_posted_task)));
            must(own.dispatch(note_memory(at_dispatched)));
            EXPECT_EQ(at_dispatched, nullptr) << "nobody waits for it";
            EXPECT_EQ(frame_memory(), &memory);
            while (at_post || at_posted_task || armed.at_timer)
                must(co_await loop::current().sleep_for(1ms));
            EXPECT_EQ(frame_memory(), &memory);
        });
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

TEST_P(frames_io, large_frames_come_from_there_too) {
    run([]() -> task<> {
        counting_resource memory;
        co_await with_frames(memory, [&memory]() -> task<void> {
            std::array<std::byte, 2 * frame_size_limit> large{};
            co_await leaf_after_a_wait();
            EXPECT_GT(memory.bytes(), large.size());
            EXPECT_EQ(large[0], std::byte());
        });
    });
}

TEST_P(frames_io, a_request_has_an_arena) {
    run([this]() -> task<> {
        connection link = co_await connect();
        std::array<std::byte, 16 * 1024> room;
        for (int request = 0; request < 3; ++request) {
            // There is no other memory behind it.
            std::pmr::monotonic_buffer_resource arena(room.data(), room.size(),
                                                      std::pmr::null_memory_resource());
            must(co_await link.client.write_all("ask"));
            const std::string answer = co_await with_frames(arena, [&]() -> task<std::string> {
                const lease asked = must(co_await link.server.read());
                int sum = 0;
                for (int i = 0; i < 10; ++i) sum += co_await depth(2);
                co_return std::string(asked.text()) + std::to_string(sum);
            });
            EXPECT_EQ(answer, "ask30");
        }
    });
}

// ---- with other threads

[[gnu::noinline]] task<std::thread::id> note_thread(std::pmr::memory_resource*& seen) {
    seen = frame_memory();
    co_await leaf_after_a_wait();
    if (frame_memory() != seen) seen = std::pmr::null_memory_resource();
    co_return std::this_thread::get_id();
}

TEST_P(frames_io, a_task_on_another_loop_has_the_pool_of_that_loop) {
    run_with_threads([]() -> task<> {
        counting_resource memory;
        other_loop other(GetParam());
        strand line(other.where());
        co_await with_frames(memory, [&]() -> task<void> {
            for (const bool in_line : {false, true}) {
                std::pmr::memory_resource* seen = std::pmr::null_memory_resource();
                const std::size_t made = memory.made();
                const std::size_t outstanding = memory.outstanding();
                const std::thread::id there =
                    in_line ? must(co_await line.run(note_thread(seen)))
                            : must(co_await resume_on(other.where(), note_thread(seen)));
                EXPECT_NE(there, std::this_thread::get_id());
                EXPECT_EQ(seen, nullptr);
                EXPECT_EQ(frame_memory(), &memory);
                EXPECT_GT(memory.made(), made) << "the task was made here";
                EXPECT_EQ(memory.outstanding(), outstanding) << "gone before the caller goes on";
                EXPECT_TRUE(memory.threads().contains(there));
            }
        });
        // Posted work has ended when that loop has.
        std::pmr::memory_resource* seen = std::pmr::null_memory_resource();
        co_await with_frames(memory, [&]() -> task<void> {
            must(other.where().post([](std::pmr::memory_resource*& there) -> task<> {
                static_cast<void>(co_await note_thread(there));
            }(seen)));
            co_return;
        });
        other.stop();
        EXPECT_EQ(seen, nullptr);
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

TEST_P(frames_io, a_remote_call_does_not_return_with_a_block_of_that_pool) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "this build takes every frame from malloc";
    run_with_threads([]() -> task<> {
        counting_resource memory;
        other_loop other(GetParam());
        std::pmr::memory_resource* seen = nullptr;
        const auto allocations_there = [&]() -> task<std::uint64_t> {
            co_return must(co_await resume_on(
                other.where(), []() -> task<std::uint64_t> { co_return frame_allocations(); }()));
        };
        std::uint64_t before = 0;
        for (int i = 0; i < 20; ++i) {
            co_await with_frames(memory, [&]() -> task<void> {
                must(co_await resume_on(other.where(), note_thread(seen)));
            });
            const std::uint64_t now = co_await allocations_there();
            if (i == 1) before = now;
            EXPECT_TRUE(i <= 1 || now == before) << "it needs new memory for each";
        }
    });
}

TEST_P(frames_io, blocking_work_is_awaited_under_it) {
    run_with_threads([]() -> task<> {
        counting_resource memory;
        blocking_pool pool;
        co_await with_frames(memory, [&]() -> task<void> {
            std::pmr::memory_resource* const there =
                must(co_await run_blocking(pool, [] { return frame_memory(); }));
            EXPECT_EQ(there, nullptr);
            EXPECT_EQ(frame_memory(), &memory);
        });
    });
}

// ---- awaitables that are not of Eddy's

/// Keeps its awaiter, for any code to resume.
struct baton {
    std::coroutine_handle<> waiter;
    bool ready = false;
    int resumed = 0;

    void resume() { std::exchange(waiter, nullptr).resume(); }
};

struct void_awaiter {
    baton& of;
    explicit void_awaiter(baton& from) : of(from) {}
    void_awaiter(const void_awaiter&) = delete;
    void_awaiter& operator=(const void_awaiter&) = delete;
    bool await_ready() const noexcept { return of.ready; }
    void await_suspend(std::coroutine_handle<> waiter) noexcept { of.waiter = waiter; }
    int& await_resume() noexcept { return of.resumed; }
};

/// Suspends or not, as configured.
struct bool_awaiter {
    baton& of;
    bool suspends = true;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiter) noexcept {
        if (suspends) of.waiter = waiter;
        return suspends;
    }
    void await_resume() const noexcept { ++of.resumed; }
};

/// By way of a member operator, of temporaries alone.
struct by_member {
    baton& of;
    void_awaiter operator co_await() && noexcept { return void_awaiter(of); }
};

/// By way of a function.
struct by_function {
    baton& of;
};
bool_awaiter operator co_await(const by_function& from) noexcept { return {from.of}; }

/// By symmetric transfer, to no coroutine.
struct handle_awaiter {
    baton& of;
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) const noexcept {
        of.waiter = waiter;
        return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
};

/// Passes its wait on to a task, and says so.
struct passing_on {
    using keeps_frame_memory = void;
    task<int> work;
    auto operator co_await() && noexcept { return std::move(work).operator co_await(); }
};

/// A foreign coroutine type, which can only suspend in Eddy's.
struct lazy {
    struct promise_type {
        std::coroutine_handle<> continuation;
        std::pmr::memory_resource* seen = nullptr;
        cancel_source* source() const noexcept { return nullptr; }
        lazy get_return_object() {
            return lazy(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        auto final_suspend() const noexcept {
            struct back {
                bool await_ready() const noexcept { return false; }
                std::coroutine_handle<> await_suspend(
                    std::coroutine_handle<promise_type> done) const noexcept {
                    return done.promise().continuation;
                }
                void await_resume() const noexcept {}
            };
            return back();
        }
        void return_value(std::pmr::memory_resource* memory) noexcept { seen = memory; }
        void unhandled_exception() const noexcept { std::terminate(); }
    };

    explicit lazy(std::coroutine_handle<promise_type> of) noexcept : frame(of) {}
    lazy(const lazy&) = delete;
    lazy& operator=(const lazy&) = delete;
    ~lazy() { frame.destroy(); }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) const noexcept {
        frame.promise().continuation = waiter;
        return frame;
    }
    std::pmr::memory_resource* await_resume() const noexcept { return frame.promise().seen; }

    std::coroutine_handle<promise_type> frame;
};

lazy ask_after_a_wait() {
    co_await loop::current().yield();
    co_return frame_memory();
}
lazy ask_after_a_baton(baton& passed) {
    co_await void_awaiter(passed);
    co_return frame_memory();
}

/// Waits for batons in all ways, and has its own memory after each.
task<void> wait_for_batons(baton& passed, std::pmr::memory_resource* own) {
    const auto check = [own] { EXPECT_EQ(frame_memory(), own); };
    int& resumed = co_await void_awaiter(passed);
    EXPECT_EQ(&resumed, &passed.resumed) << "a reference stays one";
    check();
    co_await bool_awaiter{passed};
    check();
    co_await bool_awaiter{passed, false};
    check();
    void_awaiter named(passed);
    co_await named;
    check();
    co_await by_member{passed};
    check();
    const by_function function{passed};
    co_await function;
    check();
    co_await handle_awaiter{passed};
    check();
    passed.ready = true;
    co_await void_awaiter(passed);
    check();
    co_await leaf();
    check();
    passed.ready = false;
}

constexpr int batons_waited_for = 6;

/// Resumes the waiting coroutine, from outside of all coroutines; what is inherited there after it.
task<std::pmr::memory_resource*> resumed_by_loop(baton& passed) {
    std::pmr::memory_resource* after = std::pmr::null_memory_resource();
    event done;
    must(executor::current().post([&] {
        passed.resume();
        after = frame_memory();
        done.set();
    }));
    must(co_await done.wait());
    co_return after;
}

TEST_P(frames_io, a_foreign_wait_resumed_by_the_loop_keeps_it) {
    run([]() -> task<> {
        counting_resource memory;
        baton passed;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(with_frames(memory, [&] { return wait_for_batons(passed, &memory); }));
            EXPECT_EQ(frame_memory(), nullptr);
            int calls = 0;
            for (; passed.waiter; ++calls) EXPECT_EQ(co_await resumed_by_loop(passed), nullptr);
            EXPECT_EQ(calls, batons_waited_for);
        });
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

TEST_P(frames_io, code_that_resumes_a_foreign_wait_inherits_nothing_from_it) {
    run([]() -> task<> {
        counting_resource memory;
        baton passed;
        event set_later;
        int steps = 0;
        co_await join_scope([&](scope& children) -> task<> {
            co_await with_frames(memory, [&]() -> task<void> {
                children.spawn([](baton& turn, event& later, int& step) -> task<> {
                    co_await void_awaiter(turn);
                    ++step;
                    must(co_await later.wait());
                    co_await handle_awaiter{turn};
                    ++step;
                }(passed, set_later, steps));
                co_return;
            });
            EXPECT_EQ(co_await resumed_by_loop(passed), nullptr) << "it waits for an event";
            EXPECT_EQ(steps, 1);
            set_later.set();
            while (!passed.waiter) co_await loop::current().yield();
            EXPECT_EQ(co_await resumed_by_loop(passed), nullptr) << "it has ended";
            EXPECT_EQ(steps, 2);
        });
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

TEST_P(frames_io, a_foreign_wait_resumed_by_another_task_does_not_take_that_ones) {
    run([]() -> task<> {
        counting_resource memory;
        counting_resource other;
        baton passed;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(with_frames(memory, [&] { return wait_for_batons(passed, &memory); }));
            co_await with_frames(other, [&]() -> task<void> {
                const std::size_t made = other.made();
                while (passed.waiter) {
                    passed.resume();
                    EXPECT_EQ(frame_memory(), nullptr) << "that of neither";
                }
                EXPECT_EQ(other.made(), made);
                co_return;
            });
            EXPECT_EQ(frame_memory(), nullptr);
            // And without one of its own.
            children.spawn(wait_for_batons(passed, nullptr));
            co_await with_frames(other, [&]() -> task<void> {
                const std::size_t made = other.made();
                while (passed.waiter) passed.resume();
                EXPECT_EQ(other.made(), made);
                co_return;
            });
        });
    });
}

TEST_P(frames_io, what_a_foreign_wait_starts_has_the_pool) {
    run([]() -> task<> {
        counting_resource memory;
        baton passed;
        co_await with_frames(memory, [&]() -> task<void> {
            EXPECT_EQ(co_await ask_after_a_wait(), nullptr);
            EXPECT_EQ(frame_memory(), &memory);
            const std::size_t made = memory.made();
            EXPECT_EQ(co_await passing_on{leaf_after_a_wait()}, 1);
            EXPECT_EQ(memory.made(), made + 2) << "unless it says that it does not";
            EXPECT_EQ(frame_memory(), &memory);
            co_await with_scope([&](scope& children) -> task<> {
                children.spawn([](baton& until, counting_resource& own) -> task<> {
                    co_await ask_after_a_baton(until);
                    EXPECT_EQ(frame_memory(), &own);
                    co_await leaf();
                }(passed, memory));
                EXPECT_EQ(frame_memory(), &memory);
                co_await loop::current().yield();
                passed.resume();
            });
        });
        EXPECT_EQ(frame_memory(), nullptr);
        EXPECT_EQ(memory.outstanding(), 0u);
    });
}

TEST(frames, a_thread_without_a_loop_has_the_pool) {
    EXPECT_EQ(frame_memory(), nullptr);
    const task<int> unused = leaf();
    EXPECT_EQ(frame_memory(), nullptr);
}

}  // namespace
}  // namespace eddy::testing
