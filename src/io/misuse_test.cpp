// Misuse as docs/lifetimes.md lists it: each case ends the program, with the place, in every build.
#include <eddy/io/channel.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/generator.hpp>
#include <eddy/io/limited_scope.hpp>
#include <eddy/io/line_reader.hpp>
#include <eddy/io/pipe.hpp>
#include <eddy/io/promise.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/when.hpp>

#include "io/testing.hpp"

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

class misuse_death : public on_io_backend {
protected:
    void SetUp() override {
        // Each death is one of a new process, which has a loop of its own; a fork would share ours.
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        on_io_backend::SetUp();
    }

    /// Runs `body(scope&)`, whose locals die before its scope cancels and awaits the children.
    template <class Body>
    void run_in_scope(Body body) {
        run([&body]() -> task<> { co_await with_scope(body); });
    }
};
INSTANTIATE_TEST_SUITE_P(io, misuse_death,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         io_backend_name);

task<> wait_for(event& of) { static_cast<void>(co_await of.wait()); }

// ---- objects that die before their waiters

TEST_P(misuse_death, a_scope_that_is_never_joined) {
    const auto leave = [this] {
        run([]() -> task<> {
            event never;
            scope children;
            children.spawn(wait_for(never));
            co_return;
        });
    };
    EXPECT_DEATH(
        leave(),
        "a scope was destroyed while children of it run.* \\(children_ == 0, .*scope\\.hpp:");
}

TEST_P(misuse_death, a_scope_whose_failure_is_not_observed) {
    const auto leave = [this] {
        run([]() -> task<> {
            scope children;
            children.spawn([]() -> task<> {
                co_await loop::current().yield();
                throw std::runtime_error("unseen");
            }());
            while (children.children() > 0) co_await loop::current().yield();
        });
    };
    EXPECT_DEATH(leave(), "a scope was destroyed with an exception of a child");
}

TEST_P(misuse_death, a_source_that_ends_before_those_who_wait_under_it) {
    const auto leave = [this] {
        event never;
        run_in_scope([&never](scope& children) -> task<> {
            cancel_source stop;
            children.spawn(wait_for(never).under(stop));
            co_return;
        });
    };
    EXPECT_DEATH(leave(), "a cancel_source was destroyed while");
}

TEST_P(misuse_death, an_event_with_waiting_coroutines) {
    const auto leave = [this] {
        run_in_scope([](scope& children) -> task<> {
            event awaited;
            children.spawn(wait_for(awaited));
            co_return;
        });
    };
    EXPECT_DEATH(leave(), "an event was destroyed while a coroutine waits.*event\\.hpp");
}

task<> take(channel<int>& from) { static_cast<void>(co_await from.receive()); }
task<> put(channel<int>& into) { static_cast<void>(co_await into.send(1)); }

TEST_P(misuse_death, a_channel_with_a_receiver_or_a_sender) {
    const auto leave_receiver = [this] {
        run_in_scope([](scope& children) -> task<> {
            channel<int> numbers(1);
            children.spawn(take(numbers));
            co_return;
        });
    };
    const auto leave_sender = [this] {
        run_in_scope([](scope& children) -> task<> {
            channel<int> numbers(1);
            children.spawn(put(numbers));
            children.spawn(put(numbers));  // waits for room
            co_return;
        });
    };
    const char* const said = "a channel was destroyed while a coroutine sends or receives";
    EXPECT_DEATH(leave_receiver(), said);
    EXPECT_DEATH(leave_sender(), said);
}

task<> enter(semaphore& awaited) { static_cast<void>(co_await awaited.acquire()); }
task<> lock(async_mutex& awaited) { static_cast<void>(co_await awaited.lock()); }

TEST_P(misuse_death, a_semaphore_or_mutex_with_waiting_coroutines) {
    const auto leave_semaphore = [this] {
        run_in_scope([](scope& children) -> task<> {
            semaphore awaited(0);
            children.spawn(enter(awaited));
            co_return;
        });
    };
    const auto leave_mutex = [this] {
        run_in_scope([](scope& children) -> task<> {
            async_mutex awaited;
            const permit held = awaited.try_lock();
            // It passes on to the first of them.
            for (int i = 0; i < 2; ++i) children.spawn(lock(awaited));
            co_return;
        });
    };
    const char* const said = "a semaphore or async_mutex was destroyed while a coroutine waits";
    EXPECT_DEATH(leave_semaphore(), said);
    EXPECT_DEATH(leave_mutex(), said);
}

TEST_P(misuse_death, a_semaphore_or_mutex_whose_place_is_taken) {
    const auto leave_semaphore = [this] {
        run([]() -> task<> {
            permit held;
            semaphore awaited(2);
            held = awaited.try_acquire();
            co_return;
        });
    };
    const auto leave_mutex = [this] {
        run([]() -> task<> {
            permit held;
            async_mutex awaited;
            held = must(co_await awaited.lock());
        });
    };
    const char* const said = "a semaphore or async_mutex was destroyed before one of its permits";
    EXPECT_DEATH(leave_semaphore(), said);
    EXPECT_DEATH(leave_mutex(), said);
}

task<> ask(async_generator<int>& of) { static_cast<void>(co_await of.next()); }
async_generator<int> yield_after(event& of) {
    must(co_await of.wait());
    co_yield 1;
}

TEST_P(misuse_death, a_generator_with_a_waiting_coroutine_or_two_callers) {
    const auto leave = [this] {
        event never;
        run_in_scope([&never](scope& children) -> task<> {
            async_generator<int> numbers = yield_after(never);
            children.spawn(ask(numbers));
            co_return;
        });
    };
    const auto ask_twice = [this] {
        event never;
        run_in_scope([&never](scope& children) -> task<> {
            async_generator<int> numbers = yield_after(never);
            children.spawn(ask(numbers));
            children.spawn(ask(numbers));
            co_return;
        });
    };
    EXPECT_DEATH(leave(), "an async_generator was destroyed while");
    EXPECT_DEATH(ask_twice(), "a second next\\(\\) of one async_generator");
}

task<> read_beginning(file& of) {
    std::array<std::byte, 8> room;
    static_cast<void>(co_await of.read_at(0, room));
}

TEST_P(misuse_death, a_file_that_is_being_read) {
    if (simulated()) GTEST_SKIP() << "there a read is over within its call";
    const auto leave = [this] {
        run_in_scope([](scope& children) -> task<> {
            file opened = must(co_await file::open("/proc/self/exe", O_RDONLY));
            children.spawn(read_beginning(opened));
        });
    };
    EXPECT_DEATH(leave(), "a file was destroyed while");
}

class alarm_clock final : public timer {
    void fire() noexcept override {}
};

TEST_P(misuse_death, a_timer_that_is_armed) {
    const auto leave = [this] {
        run([this]() -> task<> {
            alarm_clock soon;
            here().arm(soon, here().now() + 1h);
            co_return;
        });
    };
    const auto arm_twice = [this] {
        run([this]() -> task<> {
            alarm_clock soon;
            here().arm(soon, here().now() + 1h);
            here().arm(soon, here().now() + 2h);
            co_return;
        });
    };
    EXPECT_DEATH(leave(), "a timer was destroyed while it is armed");
    EXPECT_DEATH(arm_twice(), "arm\\(\\) of a timer that is armed");
}

// ---- two at once where there is room for one

task<> read_from(stream& from) { static_cast<void>(co_await from.read()); }
task<> write_much(stream& to, const_bytes much) { static_cast<void>(co_await to.write_all(much)); }

TEST_P(misuse_death, a_second_read_of_a_stream) {
    const auto read_twice = [this] {
        run([this]() -> task<> {
            connection pair = co_await connect();
            co_await with_scope([&pair](scope& children) -> task<> {
                for (int i = 0; i < 2; ++i) children.spawn(read_from(pair.server));
                co_return;
            });
        });
    };
    EXPECT_DEATH(read_twice(), "a second read of one stream");
}

TEST_P(misuse_death, a_second_write_to_a_stream) {
    const auto write_twice = [this] {
        run([this]() -> task<> {
            connection pair = co_await connect();
            const std::vector<std::byte> much(32 << 20);  // more than a socket takes
            co_await with_scope([&pair, &much](scope& children) -> task<> {
                for (int i = 0; i < 2; ++i) children.spawn(write_much(pair.client, much));
                co_return;
            });
        });
    };
    EXPECT_DEATH(write_twice(), "a second write to one stream");
}

task<> accept_from(listener& from) { static_cast<void>(co_await from.accept()); }

TEST_P(misuse_death, a_second_accept_of_a_listener) {
    const auto accept_twice = [this] {
        run([this]() -> task<> {
            listener accepting = must(here().listen(loopback()));
            co_await with_scope([&accepting](scope& children) -> task<> {
                for (int i = 0; i < 2; ++i) children.spawn(accept_from(accepting));
                co_return;
            });
        });
    };
    EXPECT_DEATH(accept_twice(), "a second accept of one listener");
}

task<> receive_from(datagram& socket) { static_cast<void>(co_await socket.receive()); }

TEST_P(misuse_death, a_second_receive_of_a_datagram_socket) {
    const auto receive_twice = [this] {
        run([this]() -> task<> {
            datagram socket = must(here().bind_datagram(loopback()));
            co_await with_scope([&socket](scope& children) -> task<> {
                for (int i = 0; i < 2; ++i) children.spawn(receive_from(socket));
                co_return;
            });
        });
    };
    EXPECT_DEATH(receive_twice(), "a second receive of one datagram socket");
}

TEST_P(misuse_death, a_read_into_nothing) {
    const auto read_nothing = [this] {
        run([this]() -> task<> {
            connection pair = co_await connect();
            static_cast<void>(co_await pair.server.read_some(mutable_bytes()));
        });
    };
    EXPECT_DEATH(read_nothing(), "read_some\\(\\) into an empty span");
}

// ---- loops

TEST_P(misuse_death, a_loop_that_ends_before_its_leases) {
    const auto keep_bytes = [this] {
        lease kept;
        run([&]() -> task<> {
            connection pair = co_await connect();
            must(co_await pair.client.write_all("x"));
            kept = must(co_await pair.server.read());
        });
        make_loop({});
    };
    const auto keep_message = [this] {
        datagram_message kept;
        run([&]() -> task<> {
            datagram socket = must(here().bind_datagram(loopback()));
            must(socket.send_to(as_bytes("x"), socket.local()));
            kept = must(co_await socket.receive());
        });
        make_loop({});
    };
    const char* const said = "a lease outlived its loop";
    EXPECT_DEATH(keep_bytes(), said);
    EXPECT_DEATH(keep_message(), said);
}

TEST_P(misuse_death, a_loop_that_ends_before_its_handles) {
    const auto end_before = [this](auto& kept, auto body) {
        run([&]() -> task<> { kept = co_await body(); });
        make_loop({});
    };
    const auto keep_stream = [&] {
        stream kept;
        end_before(kept, [this]() -> task<stream> {
            connection pair = co_await connect();
            co_return std::move(pair.client);
        });
    };
    const auto keep_pipe = [&] {
        stream kept;
        end_before(kept, []() -> task<stream> {
            pipe_ends ends = must(make_pipe());
            co_return std::move(ends.reader);
        });
    };
    const auto keep_listener = [&] {
        listener kept;
        end_before(kept, [this]() -> task<listener> { co_return must(here().listen(loopback())); });
    };
    const auto keep_datagram = [&] {
        datagram kept;
        end_before(
            kept, [this]() -> task<datagram> { co_return must(here().bind_datagram(loopback())); });
    };
    const char* const said = "a stream, listener or datagram socket outlived its loop";
    EXPECT_DEATH(keep_stream(), said);
    EXPECT_DEATH(keep_pipe(), said);
    EXPECT_DEATH(keep_listener(), said);
    EXPECT_DEATH(keep_datagram(), said);
}

TEST_P(misuse_death, a_second_loop_of_a_thread) {
    const auto make_another = [] {
        loop_options options;
        options.kind = GetParam();
        static_cast<void>(loop::create(options));
    };
    EXPECT_DEATH(make_another(), "a second loop on one thread");
}

TEST_P(misuse_death, no_loop_on_a_thread) {
    const auto ask_without = [this] {
        end_loop();
        static_cast<void>(loop::current());
    };
    EXPECT_DEATH(ask_without(), "assertion failed: no loop on this thread");
}

// ---- tasks

task<int> one() { co_return 1; }

TEST_P(misuse_death, a_task_that_is_awaited_twice) {
    const auto await_twice = [this] {
        run([]() -> task<> {
            task<int> once = one();
            static_cast<void>(co_await std::move(once));
            static_cast<void>(co_await std::move(once));  // NOLINT(bugprone-use-after-move)
        });
    };
    EXPECT_DEATH(await_twice(), "assertion failed: a task was awaited twice");
}

TEST_P(misuse_death, a_task_that_was_moved_from) {
    const auto await_moved = [this] {
        run([]() -> task<> {
            task<int> from = one();
            const task<int> to = std::move(from);
            static_cast<void>(co_await std::move(from));  // NOLINT(bugprone-use-after-move)
        });
    };
    const auto spawn_moved = [this] {
        run_in_scope([](scope& children) -> task<> {
            event never;
            task<> from = wait_for(never);
            const task<> to = std::move(from);
            children.spawn(std::move(from));  // NOLINT(bugprone-use-after-move)
            co_return;
        });
    };
    EXPECT_DEATH(await_moved(), "assertion failed: co_await of a task that was moved from");
    EXPECT_DEATH(spawn_moved(), "assertion failed: co_await of a task that was moved from");
}

task<> await_kept(std::optional<task<>>& kept) { co_await std::move(*kept); }

TEST_P(misuse_death, a_task_that_is_destroyed_while_it_waits) {
    const auto destroy = [this] {
        event never;
        run_in_scope([&never](scope& children) -> task<> {
            std::optional<task<>> kept = wait_for(never);
            children.spawn(await_kept(kept));
            kept.reset();
            co_return;
        });
    };
    EXPECT_DEATH(destroy(), "destroyed while it is in .*, or the frame of a coroutine that waits");
}

TEST_P(misuse_death, any_of_no_task) {
    const auto await_none = [this] {
        run([]() -> task<> { static_cast<void>(co_await when_any(std::vector<task<int>>())); });
    };
    EXPECT_DEATH(await_none(), "assertion failed: when_any\\(\\) of no task");
}

// ---- promises, and limits of nothing

task<> wait_for_value(const future<int>& of) { static_cast<void>(co_await of.wait()); }

TEST_P(misuse_death, a_future_that_is_awaited_twice_or_without_a_promise) {
    const auto wait_at_once = [this] {
        promise<int> answer;
        const future<int> later = answer.get_future();
        run_in_scope([&later](scope& children) -> task<> {
            for (int i = 0; i < 2; ++i) children.spawn(wait_for_value(later));
            co_return;
        });
    };
    const auto wait_again = [this] {
        run([]() -> task<> {
            promise<int> answer;
            const future<int> later = answer.get_future();
            answer.set(1);
            for (int i = 0; i < 2; ++i) static_cast<void>(co_await later.wait());
        });
    };
    const auto wait_without = [this] {
        run([]() -> task<> { co_await wait_for_value(future<int>()); });
    };
    EXPECT_DEATH(wait_at_once(), "a second wait\\(\\) of one future");
    EXPECT_DEATH(wait_again(), "a second wait\\(\\) of a future: its value was taken");
    EXPECT_DEATH(wait_without(), "a future without a promise");
}

TEST_P(misuse_death, a_promise_that_is_set_twice_or_has_two_futures) {
    const auto set_twice = [] {
        promise<int> answer;
        for (int i = 0; i < 2; ++i) answer.set(1);
    };
    const auto ask_twice = [] {
        promise<int> answer;
        for (int i = 0; i < 2; ++i) static_cast<void>(answer.get_future());
    };
    EXPECT_DEATH(set_twice(), "a second set\\(\\) of a promise");
    EXPECT_DEATH(ask_twice(), "a second get_future\\(\\) of one promise");
}

TEST_P(misuse_death, limits_and_delimiters_of_nothing) {
    const auto limit_to_none = [this] {
        run([]() -> task<> {
            co_await join_scope(0, [](limited_scope&) -> task<> { co_return; });
        });
    };
    const auto delimit_by_nothing = [this] {
        run([]() -> task<> {
            stream none;
            std::string kept;
            static_cast<void>(co_await read_until(none, kept, ""));
        });
    };
    EXPECT_DEATH(limit_to_none(), "a limited_scope of no child");
    EXPECT_DEATH(delimit_by_nothing(), "read_until\\(\\) an empty delimiter");
}

}  // namespace
}  // namespace eddy::testing
