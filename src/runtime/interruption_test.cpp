// Tests of a wait that ends early and of a coroutine that goes on.
#include "runtime/interruption.hpp"

#include <eddy/io/event.hpp>

#include "runtime/testing.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;

EDDY_ON_EVERY_BACKEND(interruptions);

TEST_P(interruptions, end_a_wait_and_not_its_coroutine) {
    run([&]() -> task<void> {
        interruption stop;
        event never;
        event seen;
        stop.request();  // nothing waits
        scope tasks(co_await current_source());
        tasks.spawn([](interruption& by, event& first, event& last) -> task<void> {
            EXPECT_EQ((co_await by.wait(first.wait())).error(), errc::cancelled);
            last.set();
            // Its own source is not cancelled, and the next wait can be interrupted again.
            EXPECT_EQ((co_await by.wait(first.wait())).error(), errc::cancelled);
            last.set();
            EXPECT_TRUE(co_await by.wait(first.wait()));
        }(stop, never, seen));
        for (int round = 0; round < 2; ++round) {
            stop.request();
            EXPECT_TRUE(co_await seen.wait());
            seen.reset();
        }
        never.set();
        stop.request();  // too late for what has its value
        co_await tasks.join();
    });
}

TEST_P(interruptions, a_cancelled_coroutine_is_cancelled_all_the_same) {
    run([&]() -> task<void> {
        interruption stop;
        event never;
        scope tasks(co_await current_source());
        tasks.spawn([](interruption& by, event& first) -> task<void> {
            EXPECT_EQ((co_await by.wait(first.wait())).error(), errc::cancelled);
            EXPECT_EQ((co_await by.wait(first.wait())).error(), errc::cancelled);
        }(stop, never));
        tasks.cancel();
        stop.request();
        co_await tasks.join();
    });
}

TEST_P(interruptions, lose_no_byte_of_a_stream) {
    run([&]() -> task<void> {
        eddy::testing::connection both = co_await connect();
        interruption stop;
        std::string got;
        scope tasks(co_await current_source());
        constexpr std::size_t all = 20'000;
        tasks.spawn([](interruption& by, stream& from, std::string& to) -> task<void> {
            while (to.size() < all) {
                result<lease> next = co_await by.wait(from.read());
                if (next) to += next->text();
            }
        }(stop, both.server, got));
        std::string sent;
        while (sent.size() < all) {
            const std::string part = std::to_string(sent.size()) + ' ';
            must(co_await both.client.write_all(part));
            sent += part;
            stop.request();
            if (sent.size() % 3 == 0) co_await loop::current().yield();
        }
        co_await tasks.join();
        EXPECT_EQ(got, sent);
    });
}

}  // namespace
}  // namespace eddy::runtime
