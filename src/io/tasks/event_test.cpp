// Events: waiting, passing, cancellation.
#include <eddy/io/event.hpp>

#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <string>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(event_io);

task<void> wait_and_say(event& of, std::string& order, char name) {
    const auto passed = co_await of.wait();
    order += passed ? name : '-';
}

TEST_P(event_io, releases_all_waiters_in_their_order) {
    run([this]() -> task<> {
        event flag;
        std::string order;
        co_await join_scope([&](scope& children) -> task<> {
            for (const char name : {'a', 'b', 'c'}) children.spawn(wait_and_say(flag, order, name));
            co_await here().yield();
            EXPECT_EQ(order, "");
            flag.set();
            EXPECT_EQ(order, "") << "they go on from the loop, not inside set()";
        });
        EXPECT_EQ(spoken(order), "abc");
    });
}

TEST_P(event_io, stays_set_until_reset) {
    run([]() -> task<> {
        event flag;
        flag.set();
        flag.set();
        EXPECT_TRUE(flag.is_set());
        must(co_await flag.wait());
        must(co_await flag.wait());
        flag.reset();
        EXPECT_FALSE(flag.is_set());
        const auto waiting = [](event& of) -> task<result<>> { co_return co_await of.wait(); };
        EXPECT_EQ(error_of(co_await with_timeout(1ms, waiting(flag))), errc::timed_out);
    });
}

TEST_P(event_io, a_reset_does_not_hold_those_already_released) {
    run([this]() -> task<> {
        event flag;
        std::string order;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(wait_and_say(flag, order, 'a'));
            co_await here().yield();
            flag.set();
            flag.reset();
            children.spawn(wait_and_say(flag, order, 'b'));
            for (int i = 0; i < 2; ++i) co_await here().yield();
            EXPECT_EQ(order, "a");
            flag.set();
        });
        EXPECT_EQ(order, "ab");
    });
}

TEST_P(event_io, a_cancelled_wait_leaves_the_others) {
    run([this]() -> task<> {
        event flag;
        std::string order;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(wait_and_say(flag, order, 'a'));
            co_await with_scope([&](scope& cancelled) -> task<> {
                cancelled.spawn(wait_and_say(flag, order, 'x'));
                cancelled.spawn(wait_and_say(flag, order, 'y'));
                co_await here().yield();
            });
            children.spawn(wait_and_say(flag, order, 'b'));
            flag.set();
        });
        EXPECT_EQ(spoken(order), "--ab");
    });
}

}  // namespace
}  // namespace eddy::testing
