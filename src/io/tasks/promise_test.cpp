// Promises and futures: values from the same loop and from other threads, dropped promises, and
// waits that are cancelled.
#include <eddy/io/promise.hpp>

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/select.hpp>

#include "io/testing.hpp"

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(promise_io);

task<> wait_for(future<int> of, result<int>& got) { got = co_await of.wait(); }

TEST_P(promise_io, a_value_that_is_there_before_the_wait) {
    run([]() -> task<> {
        promise<int> answer;
        const future<int> later = answer.get_future();
        answer.set(42);
        EXPECT_EQ(must(co_await later.wait()), 42);
    });
}

TEST_P(promise_io, a_value_that_comes_while_a_coroutine_waits) {
    run([]() -> task<> {
        promise<int> answer;
        result<int> got;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(wait_for(answer.get_future(), got));
            co_await loop::current().yield();
            EXPECT_EQ(children.children(), 1U);
            answer.set(42);
            EXPECT_EQ(children.children(), 1U) << "it goes on in a later turn, not in set()";
        });
        EXPECT_EQ(must(got), 42);
    });
}

TEST_P(promise_io, errors_and_values_of_other_types) {
    run([]() -> task<> {
        promise<int> refused;
        const future<int> refusal = refused.get_future();
        refused.set(fail(errno_code(ECONNREFUSED)));
        EXPECT_EQ(error_of(co_await refusal.wait()), errno_code(ECONNREFUSED));

        promise<std::unique_ptr<std::string>> text;
        const future<std::unique_ptr<std::string>> written = text.get_future();
        text.set(std::make_unique<std::string>("moved"));
        EXPECT_EQ(*must(co_await written.wait()), "moved");

        promise<> done;
        const future<> end = done.get_future();
        done.set();
        EXPECT_TRUE(co_await end.wait());
    });
}

TEST_P(promise_io, a_dropped_promise_is_an_error) {
    run([]() -> task<> {
        std::optional<promise<int>> dropped(std::in_place);
        const future<int> of_dropped = dropped->get_future();
        dropped.reset();
        EXPECT_EQ(error_of(co_await of_dropped.wait()), errc::closed);

        promise<int> replaced;
        result<int> got;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(wait_for(replaced.get_future(), got));
            co_await loop::current().yield();
            replaced = promise<int>();
        });
        EXPECT_EQ(error_of(got), errc::closed);
    });
}

TEST_P(promise_io, a_moved_promise_keeps_its_future) {
    run([]() -> task<> {
        promise<int> first;
        const future<int> later = first.get_future();
        promise<int> second = std::move(first);
        second.set(1);
        EXPECT_EQ(must(co_await later.wait()), 1);
    });
}

TEST_P(promise_io, values_and_drops_of_other_threads) {
    run_with_threads([]() -> task<> {
        for (int round = 0; round < 200; ++round) {
            promise<int> answer;
            const future<int> later = answer.get_future();
            std::thread other(
                [round](promise<int> to) {
                    if (round % 3 > 0) to.set(int{round});
                },
                std::move(answer));
            if (round % 2 == 0) other.join();
            const result<int> got = co_await later.wait();
            if (other.joinable()) other.join();
            if (round % 3 > 0)
                EXPECT_EQ(must(got), round);
            else
                EXPECT_EQ(error_of(got), errc::closed);
        }
    });
}

TEST_P(promise_io, a_cancelled_wait_leaves_the_value_to_the_next) {
    run([]() -> task<> {
        promise<int> answer;
        const future<int> later = answer.get_future();
        EXPECT_EQ(error_of(co_await with_timeout(1ms, later.wait())), errc::timed_out);
        answer.set(42);
        EXPECT_EQ(must(co_await later.wait()), 42);
    });
}

TEST_P(promise_io, a_value_on_its_way_when_the_wait_is_cancelled) {
    std::optional<future<int>> unread;
    run_with_threads([&]() -> task<> {
        promise<int> answer;
        unread.emplace(answer.get_future());
        cancel_source stop;
        std::error_code error;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(
                [](const future<int>& of, std::error_code& seen)
                    -> task<> { seen = error_of(co_await of.wait()); }(*unread, error).under(stop));
            co_await loop::current().yield();
            std::thread([](promise<int> to) { to.set(42); }, std::move(answer)).join();
            stop.request();
        });
        EXPECT_EQ(error, errc::cancelled);
    });
    make_loop({});  // the old one ends
    run([&]() -> task<> { EXPECT_EQ(must(co_await unread->wait()), 42); });
}

TEST_P(promise_io, cancellations_that_race_with_a_value_lose_none) {
    run_with_threads([this]() -> task<> {
        for (int round = 0; round < 300; ++round) {
            promise<int> answer;
            const future<int> later = answer.get_future();
            std::thread other([](promise<int> to) { to.set(7); }, std::move(answer));
            const duration time = std::chrono::microseconds(random().below(100));
            result<int> got = co_await with_timeout(time, later.wait());
            if (!got) {
                EXPECT_EQ(got.error(), errc::timed_out);
                got = co_await later.wait();
            }
            other.join();
            EXPECT_EQ(must(got), 7);
        }
    });
}

TEST_P(promise_io, select_leaves_the_loser_its_value) {
    run([]() -> task<> {
        promise<int> one, two;
        const future<int> first = one.get_future();
        const future<int> second = two.get_future();
        two.set(2);
        auto got = co_await select(first.wait(), second.wait());
        EXPECT_EQ(got.index(), 1U);
        EXPECT_EQ(must(std::get<1>(got)), 2);
        one.set(1);
        EXPECT_EQ(must(co_await first.wait()), 1);
    });
}

TEST_P(promise_io, a_future_may_be_destroyed_while_its_wait_goes_on) {
    run([]() -> task<> {
        promise<int> answer;
        auto later = std::make_unique<future<int>>(answer.get_future());
        result<int> got;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](future<int>& of, result<int>& into) -> task<> {
                into = co_await of.wait();
            }(*later, got));
            co_await loop::current().yield();
            later.reset();
            answer.set(42);
        });
        EXPECT_EQ(must(got), 42);
    });
}

TEST_P(promise_io, a_value_that_nothing_waits_for_is_dropped) {
    const auto value = std::make_shared<int>(1);
    {
        promise<std::shared_ptr<int>> answer;
        static_cast<void>(answer.get_future());
        answer.set(value);
    }
    EXPECT_EQ(value.use_count(), 1);
}

}  // namespace
}  // namespace eddy::testing
