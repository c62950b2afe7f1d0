// when_all and when_any: order, winner, cancellation, exceptions.
#include <eddy/io/when.hpp>

#include <eddy/io/event.hpp>
#include <eddy/io/timeout.hpp>

#include "io/testing.hpp"

#include <memory>
#include <stdexcept>
#include <string>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(when_io);

task<std::string> text_after(duration time, std::string text) {
    static_cast<void>(co_await loop::current().sleep_for(time));
    co_return text;
}

task<std::unique_ptr<int>> owned_after(duration time, int value) {
    static_cast<void>(co_await loop::current().sleep_for(time));
    co_return std::make_unique<int>(value);
}

task<result<>> sleep_of(duration time) { co_return co_await loop::current().sleep_for(time); }

task<void> count_after(duration time, int& count) {
    if (co_await loop::current().sleep_for(time)) ++count;
}

task<void> fail_after(duration time) {
    static_cast<void>(co_await loop::current().sleep_for(time));
    throw std::runtime_error("it failed");
}

TEST_P(when_io, all_yields_every_value_in_order_though_the_last_ends_first) {
    run([]() -> task<> {
        int counted = 0;
        const auto [slow, owned, nothing, slept] =
            co_await when_all(text_after(20ms, "slow"), owned_after(10ms, 7),
                              count_after(5ms, counted), sleep_of(0ms));
        EXPECT_EQ(slow, "slow");
        EXPECT_EQ(*owned, 7);
        EXPECT_EQ(nothing, std::monostate());
        must(slept);
        EXPECT_EQ(counted, 1);
    });
}

TEST_P(when_io, all_run_at_once) {
    run([]() -> task<> {
        // Each would wait for ever if the other began only after it.
        event first;
        event second;
        const auto meet = [](event& mine, event& other) -> task<result<>> {
            mine.set();
            co_return co_await other.wait();
        };
        const auto [one, two] = co_await when_all(meet(first, second), meet(second, first));
        must(one);
        must(two);
    });
}

TEST_P(when_io, all_cancels_the_rest_when_one_throws) {
    run([]() -> task<> {
        int counted = 0;
        std::string failure;
        try {
            co_await when_all(count_after(1h, counted), fail_after(1ms));
        } catch (const std::runtime_error& caught) {
            failure = caught.what();
        }
        EXPECT_EQ(failure, "it failed");
        EXPECT_EQ(counted, 0);
    });
}

TEST_P(when_io, any_yields_the_first_and_cancels_the_others) {
    run([]() -> task<> {
        int counted = 0;
        const auto winner = co_await when_any(count_after(1h, counted), text_after(1ms, "first"),
                                              owned_after(1h, 7));
        EXPECT_EQ(winner.index(), 1u);
        EXPECT_EQ(std::get<1>(winner), "first");
        EXPECT_EQ(counted, 0);
    });
}

TEST_P(when_io, any_of_tasks_that_end_at_once_is_the_first_in_order) {
    run([]() -> task<> {
        const auto at_once = [](int value) -> task<int> { co_return value; };
        const auto winner = co_await when_any(at_once(1), at_once(2), at_once(3));
        EXPECT_EQ(winner.index(), 0u);
        EXPECT_EQ(std::get<0>(winner), 1);
    });
}

TEST_P(when_io, an_error_is_a_value_and_wins_as_well) {
    run([]() -> task<> {
        const auto winner = co_await when_any(sleep_of(1h), with_timeout(1ms, sleep_of(1h)),
                                              text_after(1h, "never"));
        EXPECT_EQ(winner.index(), 1u);
        EXPECT_EQ(error_of(std::get<1>(winner)), errc::timed_out);
    });
}

TEST_P(when_io, operations_need_no_task_of_their_own) {
    run([]() -> task<> {
        event first, never;
        first.set();
        const auto [met, slept, text] = co_await when_all(
            first.wait(), loop::current().sleep_for(5ms), text_after(1ms, "text"));
        must(met);
        must(slept);
        EXPECT_EQ(text, "text");
        const auto winner = co_await when_any(never.wait(), loop::current().sleep_for(2ms));
        EXPECT_EQ(winner.index(), 1U);
        const auto late =
            co_await when_any(with_timeout(1ms, never.wait()), text_after(1h, "never"));
        EXPECT_EQ(error_of(std::get<0>(late)), errc::timed_out);
    });
}

task<> request_after(cancel_source& source, duration time) {
    static_cast<void>(co_await loop::current().sleep_for(time));
    source.request();
}

TEST_P(when_io, a_tasks_own_source_cancels_it_and_so_does_a_winner) {
    run([]() -> task<> {
        cancel_source own;
        const auto lost = co_await when_any(sleep_of(1h).under(own), text_after(1ms, "first"));
        EXPECT_EQ(lost.index(), 1U);
        EXPECT_FALSE(own.requested());
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(request_after(own, 1ms));
            const auto won = co_await when_any(sleep_of(1h).under(own), sleep_of(1h));
            EXPECT_EQ(won.index(), 0U);
            EXPECT_EQ(error_of(std::get<0>(won)), errc::cancelled);
        });
    });
}

TEST_P(when_io, an_exception_cancels_a_task_under_its_own_source) {
    run([]() -> task<> {
        cancel_source own;
        int counted = 0;
        std::string failure;
        try {
            co_await when_all(count_after(1h, counted).under(own), fail_after(1ms));
        } catch (const std::runtime_error& caught) {
            failure = caught.what();
        }
        EXPECT_EQ(failure, "it failed");
        EXPECT_EQ(counted, 0);
        EXPECT_FALSE(own.requested());
    });
}

TEST_P(when_io, a_farewell_beside_others_runs_in_a_cancelled_task) {
    run([]() -> task<> {
        cancel_source gone;
        gone.request();
        co_await []() -> task<> {
            cancel_source own;
            const auto [said, other] = co_await when_all(sleep_of(1ms).under(own), sleep_of(1h));
            must(said);
            EXPECT_EQ(error_of(other), errc::cancelled);
        }()
                             .under(gone);
    });
}

template <class... T>
std::vector<std::common_type_t<T...>> list_of(T... work) {
    std::vector<std::common_type_t<T...>> all;
    (all.push_back(std::move(work)), ...);
    return all;
}

TEST_P(when_io, all_of_a_vector_yields_a_vector_in_its_order) {
    run([]() -> task<> {
        const auto texts = co_await when_all(
            list_of(text_after(9ms, "a"), text_after(1ms, "b"), text_after(5ms, "c")));
        EXPECT_EQ(texts, (std::vector<std::string>{"a", "b", "c"}));
        int counted = 0;
        EXPECT_EQ((co_await when_all(list_of(count_after(1ms, counted), count_after(2ms, counted))))
                      .size(),
                  2U);
        EXPECT_EQ(counted, 2);
        EXPECT_TRUE((co_await when_all(std::vector<task<int>>())).empty());
    });
}

TEST_P(when_io, all_of_a_vector_ends_with_an_exception) {
    run([]() -> task<> {
        int counted = 0;
        std::string failure;
        try {
            co_await when_all(list_of(count_after(1h, counted), fail_after(1ms)));
        } catch (const std::runtime_error& caught) {
            failure = caught.what();
        }
        EXPECT_EQ(failure, "it failed");
        EXPECT_EQ(counted, 0);
    });
}

TEST_P(when_io, any_of_a_vector_says_which_was_first) {
    run([]() -> task<> {
        auto first =
            co_await when_any(list_of(owned_after(1h, 1), owned_after(1ms, 2), owned_after(1h, 3)));
        EXPECT_EQ(first.index, 1U);
        EXPECT_EQ(*first.value, 2);
        int counted = 0;
        const auto nothing =
            co_await when_any(list_of(count_after(1h, counted), count_after(1ms, counted)));
        EXPECT_EQ(nothing.index, 1U);
        EXPECT_EQ(counted, 1);
    });
}

TEST_P(when_io, a_cancellation_from_outside_reaches_them_all) {
    run([]() -> task<> {
        cancel_source stop;
        const auto both = [](cancel_source& source) -> task<void> {
            source.request();
            const auto [one, two] = co_await when_all(sleep_of(1h), sleep_of(1h));
            EXPECT_EQ(error_of(one), errc::cancelled);
            EXPECT_EQ(error_of(two), errc::cancelled);
        };
        co_await both(stop).under(stop);
    });
}

}  // namespace
}  // namespace eddy::testing
