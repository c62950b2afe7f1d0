// Tasks: chains, values, exceptions, cancellation.
#include <eddy/io/task.hpp>

#include "io/testing.hpp"

#include <pthread.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(task_io);

task<int> depth(int levels) {
    if (levels == 0) co_return 0;
    const int below = co_await depth(levels - 1);
    co_return below + 1;
}

task<int> ready(int value) { co_return value; }

task<std::unique_ptr<std::string>> make_text(std::string text) {
    co_return std::make_unique<std::string>(std::move(text));
}

task<int> failing() {
    throw std::runtime_error("on purpose");
    co_return 0;
}

task<int> failing_after_a_wait() {
    co_await loop::current().yield();
    co_return co_await failing();
}

task<void> count(int& calls) {
    ++calls;
    co_return;
}

struct chain_run {
    io_backend_kind kind;
    std::uint64_t seed;
    int depth_seen = 0;
    int sum = 0;
};

task<void> run_chains(chain_run& seen) {
    seen.depth_seen = co_await depth(100'000);
    for (int i = 0; i < 100'000; ++i) seen.sum += co_await ready(1);
}

TEST_P(task_io, chains_of_100k_awaits_use_no_stack) {
    // On a stack that has no room for one frame a level.
    chain_run seen{GetParam(), seed_of_this_run()};
    const auto body = [](void* argument) -> void* {
        auto& run = *static_cast<chain_run*>(argument);
        loop_options options;
        options.kind = run.kind;
        auto made = loop::create(options);
        if (made) (*made)->run(run_chains(run));
        return nullptr;
    };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 * 1024), 0);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, body, &seen), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(seen.depth_seen, 100'000);
    EXPECT_EQ(seen.sum, 100'000);
}

TEST_P(task_io, yields_move_only_values) {
    run([]() -> task<> {
        const std::unique_ptr<std::string> text = co_await make_text("value");
        EXPECT_EQ(*text, "value");
    });
    EXPECT_EQ(*here().run(make_text("root")), "root");
    EXPECT_EQ(here().run(ready(7)), 7);
}

TEST_P(task_io, exceptions_come_out_of_await_and_run) {
    run([]() -> task<> {
        bool caught = false;
        try {
            co_await failing_after_a_wait();
        } catch (const std::runtime_error& failure) {
            caught = std::string(failure.what()) == "on purpose";
        }
        EXPECT_TRUE(caught);
    });
    EXPECT_THROW(here().run(failing()), std::runtime_error);
    EXPECT_THROW(here().run(failing_after_a_wait()), std::runtime_error);
    EXPECT_EQ(here().run(ready(1)), 1) << "the loop is as good as before";
}

TEST_P(task_io, a_task_that_is_not_awaited_never_runs) {
    int calls = 0;
    {
        [[maybe_unused]] const task<void> dropped = count(calls);
    }
    EXPECT_EQ(calls, 0);
    task<void> first = count(calls);
    first = count(calls);
    here().run(std::move(first));
    EXPECT_EQ(calls, 1);
}

task<cancel_source*> innermost_source() { co_return co_await current_source(); }
task<cancel_source*> middle() { co_return co_await innermost_source(); }

TEST_P(task_io, runs_under_its_awaiters_source_unless_given_another) {
    run([]() -> task<> {
        cancel_source* const own = co_await current_source();
        EXPECT_EQ(co_await middle(), own);
        cancel_source other;
        EXPECT_EQ(co_await middle().under(other), &other);
        EXPECT_EQ(co_await middle(), own);
    });
}

}  // namespace
}  // namespace eddy::testing
