// select(): the first completion decides, and the other operations have no effect.
#include <eddy/io/select.hpp>

#include <eddy/io/channel.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/when.hpp>

#include "io/testing.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(select_io);

task<> send_range(channel<int>& to, int from, int end) {
    for (int i = from; i < end; ++i) {
        must(co_await to.send(i));
        if (i % 3 == 0) co_await loop::current().yield();
    }
}

task<> count_both(channel<int>& a, channel<int>& b, int most, std::vector<int>& seen) {
    for (int i = 0; i < most; ++i) {
        auto got = co_await select(a.receive(), b.receive());
        seen.push_back(got.index() == 0 ? must(std::get<0>(got)) : must(std::get<1>(got)));
    }
}

TEST_P(select_io, of_two_channels_no_value_is_lost) {
    run([]() -> task<> {
        channel<int> a(1), b(1);
        std::vector<int> seen;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(count_both(a, b, 200, seen));
            children.spawn(send_range(a, 0, 100));
            children.spawn(send_range(b, 100, 200));
            co_return;
        });
        std::sort(seen.begin(), seen.end());
        EXPECT_EQ(seen.size(), 200U);
        for (int i = 0; i < 200; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
    });
}

TEST_P(select_io, when_any_of_such_operations_loses_nothing_either) {
    run([]() -> task<> {
        channel<int> a(100), b(100);
        for (int i = 0; i < 100; ++i) {
            must(a.try_send(int{i}));
            must(b.try_send(100 + i));
        }
        std::array<bool, 200> seen{};
        for (int i = 0; i < 200; ++i) {
            auto got = co_await when_any(a.receive(), b.receive());
            const int value = got.index() == 0 ? must(std::get<0>(got)) : must(std::get<1>(got));
            EXPECT_FALSE(std::exchange(seen[static_cast<std::size_t>(value)], true));
        }
    });
}

task<> fill_in_one_turn(channel<int>& a, channel<int>& b) {
    co_await loop::current().yield();
    must(b.try_send(2));
    must(a.try_send(1));
}

TEST_P(select_io, values_of_one_turn_go_to_one_arm_and_to_the_next_select) {
    run([]() -> task<> {
        channel<int> a(1), b(1);
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(fill_in_one_turn(a, b));
            const auto first = co_await select(a.receive(), b.receive());
            EXPECT_EQ(first.index(), 1U);
            EXPECT_EQ(must(std::get<1>(first)), 2);
            EXPECT_EQ(a.size(), 1U);
            const auto second = co_await select(a.receive(), b.receive());
            EXPECT_EQ(second.index(), 0U);
            EXPECT_EQ(must(std::get<0>(second)), 1);
        });
    });
}

TEST_P(select_io, the_first_in_order_is_taken_of_those_that_are_ready) {
    run([this]() -> task<> {
        channel<std::unique_ptr<int>> a(1), b(1);
        must(a.try_send(std::make_unique<int>(1)));
        must(b.try_send(std::make_unique<int>(2)));
        auto first = co_await select(here().sleep_for(1h), a.receive(), b.receive());
        EXPECT_EQ(first.index(), 1U);
        EXPECT_EQ(**std::get<1>(first), 1);
        EXPECT_EQ(b.size(), 1U);
        // A time that has passed counts as ready.
        const auto past = co_await select(here().sleep_for(0ns), b.receive());
        EXPECT_EQ(past.index(), 0U);
        EXPECT_EQ(b.size(), 1U);
    });
}

TEST_P(select_io, a_place_of_a_semaphore_is_not_taken_by_a_loser) {
    run([]() -> task<> {
        semaphore places(1);
        event set;
        set.set();
        const auto first = co_await select(set.wait(), places.acquire());
        EXPECT_EQ(first.index(), 0U);
        EXPECT_EQ(places.available(), 1U);
        {
            auto second = co_await select(places.acquire(), set.wait());
            EXPECT_EQ(second.index(), 0U);
            EXPECT_EQ(places.available(), 0U);
        }
        EXPECT_EQ(places.available(), 1U);
    });
}

TEST_P(select_io, a_value_is_sent_to_one_channel_only) {
    run([]() -> task<> {
        channel<std::string> full(1), free(1);
        must(full.try_send("old"));
        const auto sent = co_await select(full.send("new"), free.send("new"));
        EXPECT_EQ(sent.index(), 1U);
        EXPECT_EQ(must(full.try_receive()), "old");
        EXPECT_EQ(error_of(full.try_receive()), std::errc::resource_unavailable_try_again);
        EXPECT_EQ(must(free.try_receive()), "new");
    });
}

TEST_P(select_io, a_send_to_the_own_receive_loses_nothing) {
    run([]() -> task<> {
        channel<int> numbers(1);
        auto got = co_await select(numbers.receive(), numbers.send(7));
        EXPECT_EQ(got.index(), 0U);
        EXPECT_EQ(must(std::get<0>(got)), 7);
        EXPECT_EQ(numbers.size(), 0U);
    });
}

TEST_P(select_io, received_bytes_stay_for_the_next_read) {
    run([this]() -> task<> {
        connection one = co_await connect();
        connection two = co_await connect();
        std::string from_one, from_two;
        for (int i = 0; i < 40; ++i) {
            must(co_await one.client.write_all("a"));
            must(co_await two.client.write_all("b"));
            std::array<std::byte, 1> byte;
            auto got = co_await select(one.server.read(), two.server.read_some(byte));
            if (got.index() == 0)
                from_one += must(std::move(std::get<0>(got))).text();
            else
                from_two.append(must(std::get<1>(got)), 'b');
        }
        while (from_one.size() < 40) from_one += must(co_await one.server.read()).text();
        while (from_two.size() < 40) from_two += must(co_await two.server.read()).text();
        EXPECT_EQ(from_one, std::string(40, 'a'));
        EXPECT_EQ(from_two, std::string(40, 'b'));
    });
}

TEST_P(select_io, a_connection_stays_for_the_next_accept) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        event set;
        set.set();
        const stream client = must(co_await here().connect(accepting.local()));
        const auto first = co_await select(set.wait(), accepting.accept());
        EXPECT_EQ(first.index(), 0U);
        auto second = co_await select(accepting.accept(), here().sleep_for(1h));
        EXPECT_EQ(second.index(), 0U);
        EXPECT_TRUE(std::get<0>(second));
    });
}

TEST_P(select_io, a_cancellation_takes_no_value) {
    run([]() -> task<> {
        channel<int> a(1), b(1);
        cancel_source stop;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](channel<int>& one, channel<int>& other) -> task<> {
                for (int i = 0; i < 2; ++i) {  // while it waits, and before it begins
                    const auto got = co_await select(one.receive(), other.receive());
                    EXPECT_EQ(got.index(), 0U);
                    EXPECT_EQ(error_of(std::get<0>(got)), errc::cancelled);
                }
            }(a, b)
                                                                             .under(stop));
            stop.request();
            must(a.try_send(1));
            must(b.try_send(2));
            co_return;
        });
        EXPECT_EQ(a.size(), 1U);
        EXPECT_EQ(b.size(), 1U);
    });
}

TEST_P(select_io, a_channel_that_closes_is_a_result) {
    run([]() -> task<> {
        channel<int> a(1), b(1);
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](channel<int>& closing) -> task<> {
                co_await loop::current().yield();
                closing.close();
            }(b));
            const auto got = co_await select(a.receive(), b.receive());
            EXPECT_EQ(got.index(), 1U);
            EXPECT_EQ(error_of(std::get<1>(got)), errc::closed);
        });
    });
}

TEST_P(select_io, is_an_operation_among_tasks) {
    run([this]() -> task<> {
        channel<int> a(1);
        event never;
        must(a.try_send(5));
        auto [first, slept] =
            co_await when_all(select(never.wait(), a.receive()), here().sleep_for(1ms));
        EXPECT_EQ(must(std::get<1>(first)), 5);
        must(slept);
    });
}

}  // namespace
}  // namespace eddy::testing
