// Deadlines over slow work, and the results when one passes.
#include <eddy/io/timeout.hpp>

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(timeout_io);

task<result<int>> value_after(duration time) {
    const auto slept = co_await loop::current().sleep_for(time);
    if (!slept) co_return fail(slept.error());
    co_return 42;
}

task<result<int>> value_whatever_happens(duration time) {
    static_cast<void>(co_await loop::current().sleep_for(time));
    co_return 42;
}

task<result<>> nothing_after(duration time) { co_return co_await loop::current().sleep_for(time); }

task<result<int>> failing_with(std::error_code error) { co_return fail(error); }

TEST_P(timeout_io, ends_slow_work) {
    run([]() -> task<> {
        const auto value = co_await with_timeout(1ms, value_after(1h));
        EXPECT_EQ(error_of(value), errc::timed_out);
        const auto nothing = co_await with_timeout(1ms, nothing_after(1h));
        EXPECT_EQ(error_of(nothing), errc::timed_out);
    });
}

TEST_P(timeout_io, keeps_a_value_that_came_in_time) {
    run([]() -> task<> {
        const auto value = co_await with_timeout(1h, value_after(1ms));
        EXPECT_EQ(must(value), 42);
        must(co_await with_timeout(1h, nothing_after(1ms)));
    });
}

TEST_P(timeout_io, keeps_a_value_that_came_in_spite_of_the_cancellation) {
    run([]() -> task<> {
        const auto value = co_await with_timeout(1ms, value_whatever_happens(1h));
        EXPECT_EQ(must(value), 42);
    });
}

TEST_P(timeout_io, leaves_other_errors_as_they_are) {
    run([]() -> task<> {
        const auto value = co_await with_timeout(1h, failing_with(errno_code(EPIPE)));
        EXPECT_EQ(error_of(value), errno_code(EPIPE));
        const auto cancelled = co_await with_timeout(1h, failing_with(errc::cancelled));
        EXPECT_EQ(error_of(cancelled), errc::cancelled);
    });
}

TEST_P(timeout_io, a_deadline_in_the_past_ends_work_at_its_first_wait) {
    run([this]() -> task<> {
        const auto value = co_await with_deadline(here().now() - 1h, value_after(1h));
        EXPECT_EQ(error_of(value), errc::timed_out);
    });
}

TEST_P(timeout_io, time_runs_from_when_it_is_awaited) {
    task<result<int>> made_without_a_loop = with_timeout(50ms, value_after(1ms));
    run([&]() -> task<> {
        task<result<int>> made_early = with_timeout(50ms, value_after(1ms));
        must(co_await loop::current().sleep_for(60ms));
        EXPECT_EQ(must(co_await std::move(made_early)), 42);
        EXPECT_EQ(must(co_await std::move(made_without_a_loop)), 42);
    });
}

TEST_P(timeout_io, of_two_the_earlier_counts) {
    run([]() -> task<> {
        const auto outer = co_await with_timeout(1ms, with_timeout(1h, value_after(2h)));
        EXPECT_EQ(error_of(outer), errc::timed_out);
        const auto inner = co_await with_timeout(1h, with_timeout(1ms, value_after(2h)));
        EXPECT_EQ(error_of(inner), errc::timed_out);
    });
}

TEST_P(timeout_io, cancellation_from_above_is_not_a_timeout) {
    run([]() -> task<> {
        std::error_code of_task;
        std::error_code of_operation;
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn([](std::error_code& error) -> task<> {
                error = error_of(co_await with_timeout(1h, value_after(2h)));
            }(of_task));
            children.spawn([](std::error_code& error) -> task<> {
                event never;
                error = error_of(co_await with_timeout(1h, never.wait()));
                // And one that is begun after it.
                EXPECT_EQ(error_of(co_await with_timeout(1h, never.wait())), errc::cancelled);
            }(of_operation));
            co_return;
        });
        EXPECT_EQ(of_task, errc::cancelled);
        EXPECT_EQ(of_operation, errc::cancelled);
    });
}

/// Ends well after it was cancelled: what it has to put in order takes so long.
task<result<int>> slow_to_end(duration time) {
    const auto slept = co_await loop::current().sleep_for(1h);
    cancel_source undisturbed;
    must(co_await nothing_after(time).under(undisturbed));
    co_return fail(slept.error());
}

task<> request_after(cancel_source& source, duration time) {
    static_cast<void>(co_await loop::current().sleep_for(time));
    source.request();
}

TEST_P(timeout_io, the_works_own_source_ends_it_before_the_deadline) {
    run([]() -> task<> {
        cancel_source own;
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(request_after(own, 1ms));
            const auto value = co_await with_timeout(1h, value_after(1h).under(own));
            EXPECT_EQ(error_of(value), errc::cancelled);
        });
        const time_point when = loop::current().now() + 1h;
        const auto again = co_await with_deadline(when, value_after(1h).under(own));
        EXPECT_EQ(error_of(again), errc::cancelled);
    });
}

TEST_P(timeout_io, each_of_two_deadlines_and_the_own_source_end_work) {
    run([]() -> task<> {
        cancel_source own;
        const auto outer = co_await with_timeout(1ms, with_timeout(1h, value_after(1h).under(own)));
        EXPECT_EQ(error_of(outer), errc::timed_out);
        const auto inner = co_await with_timeout(1h, with_timeout(1ms, value_after(1h).under(own)));
        EXPECT_EQ(error_of(inner), errc::timed_out);
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(request_after(own, 1ms));
            const auto both =
                co_await with_timeout(1h, with_timeout(1h, value_after(1h).under(own)));
            EXPECT_EQ(error_of(both), errc::cancelled);
        });
    });
}

TEST_P(timeout_io, a_farewell_runs_in_a_cancelled_task_and_has_its_deadline) {
    run([]() -> task<> {
        cancel_source gone;
        gone.request();
        co_await []() -> task<> {
            EXPECT_EQ(error_of(co_await value_after(1ms)), errc::cancelled);
            cancel_source own;
            EXPECT_EQ(must(co_await with_timeout(1h, value_after(1ms).under(own))), 42);
            const auto late = co_await with_timeout(1ms, value_after(1h).under(own));
            EXPECT_EQ(error_of(late), errc::timed_out);
        }()
                             .under(gone);
    });
}

TEST_P(timeout_io, a_deadline_that_passes_after_a_cancellation_is_none) {
    run([]() -> task<> {
        EXPECT_EQ(co_await cancelled_during(with_timeout(100ms, slow_to_end(150ms))),
                  errc::cancelled);
        // Nor where the deadline's own source is requested by hand.
        deadline_source limit(nullptr, loop::current().now() + 1ms);
        limit.source().request();
        must(co_await loop::current().sleep_for(5ms));
        EXPECT_FALSE(limit.expired());
    });
}

TEST_P(timeout_io, bounds_a_read) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        std::byte byte[1];
        const auto read = co_await with_timeout(1ms, pair.server.read_some(byte));
        EXPECT_EQ(error_of(read), errc::timed_out);
        must(co_await pair.client.write_all("x"));
        EXPECT_EQ(must(co_await with_timeout(1h, pair.server.read_some(byte))), 1u);
    });
}

TEST_P(timeout_io, bounds_an_operation_without_a_task) {
    run([this]() -> task<> {
        event flag;
        EXPECT_EQ(error_of(co_await with_timeout(1ms, flag.wait())), errc::timed_out);
        EXPECT_EQ(error_of(co_await with_deadline(here().now(), flag.wait())), errc::timed_out);
        must(co_await with_timeout(duration::max(), here().sleep_for(1ms)));
        flag.set();
        must(co_await with_timeout(1h, flag.wait()));
    });
}

}  // namespace
}  // namespace eddy::testing
