// Channels: order, the limit, closing, and cancelled waits on both sides.
#include <eddy/io/channel.hpp>

#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(channel_io);

task<void> produce(channel<int>& to, int from, int count, int& sent) {
    for (int i = from; i < from + count; ++i) {
        must(co_await to.send(i));
        ++sent;
    }
}

TEST_P(channel_io, keeps_the_order_and_never_holds_more_than_its_limit) {
    run([this]() -> task<> {
        for (const std::size_t limit : {1u, 2u, 7u, 1000u}) {
            channel<int> numbers(limit);
            EXPECT_EQ(numbers.limit(), limit);
            int sent = 0;
            int received = 0;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(produce(numbers, 0, 500, sent));
                while (received < 500) {
                    EXPECT_LE(numbers.size(), limit);
                    EXPECT_LE(sent - received, static_cast<int>(limit) + 1);
                    if (random().chance(0.3)) co_await here().yield();
                    EXPECT_EQ(must(co_await numbers.receive()), received);
                    ++received;
                }
            });
            EXPECT_EQ(numbers.size(), 0u);
        }
    });
}

TEST_P(channel_io, a_full_one_holds_its_senders) {
    run([this]() -> task<> {
        channel<int> numbers(3);
        int sent = 0;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(produce(numbers, 0, 5, sent));
            for (int i = 0; i < 5; ++i) co_await here().yield();
            EXPECT_EQ(sent, 3);
            EXPECT_EQ(numbers.size(), 3u);
            int more = 9;
            EXPECT_EQ(error_of(numbers.try_send(std::move(more))), errc::limit_reached);
            EXPECT_EQ(must(co_await numbers.receive()), 0);
            for (int i = 0; i < 2; ++i) co_await here().yield();
            EXPECT_EQ(sent, 4);
            for (int i = 1; i < 5; ++i) EXPECT_EQ(must(co_await numbers.receive()), i);
        });
        must(numbers.try_send(7));
        EXPECT_EQ(must(co_await numbers.receive()), 7);
    });
}

TEST_P(channel_io, many_senders_and_receivers_exchange_every_value_once) {
    run([]() -> task<> {
        channel<int> numbers(4);
        std::vector<int> seen;
        co_await join_scope([&](scope& all) -> task<> {
            for (int i = 0; i < 10; ++i)
                all.spawn([](channel<int>& from, std::vector<int>& into) -> task<> {
                    for (;;) {
                        const auto value = co_await from.receive();
                        if (!value) {
                            EXPECT_EQ(value.error(), errc::closed);
                            break;
                        }
                        into.push_back(*value);
                    }
                }(numbers, seen));
            int sent = 0;
            co_await join_scope([&](scope& senders) -> task<> {
                for (int i = 0; i < 10; ++i) senders.spawn(produce(numbers, i * 100, 100, sent));
                co_return;
            });
            numbers.close();
        });
        std::sort(seen.begin(), seen.end());
        std::vector<int> expected(1000);
        std::iota(expected.begin(), expected.end(), 0);
        EXPECT_EQ(seen, expected);
    });
}

TEST_P(channel_io, moves_what_cannot_be_copied) {
    run([]() -> task<> {
        channel<std::unique_ptr<std::string>> texts(1);
        must(co_await texts.send(std::make_unique<std::string>("moved")));
        auto refused = std::make_unique<std::string>("kept by the caller");
        EXPECT_EQ(error_of(texts.try_send(std::move(refused))), errc::limit_reached);
        EXPECT_EQ(*refused, "kept by the caller");
        EXPECT_EQ(*must(co_await texts.receive()), "moved");
    });
}

TEST_P(channel_io, closing_ends_waits_and_keeps_what_is_inside) {
    run([this]() -> task<> {
        channel<int> numbers(2);
        must(numbers.try_send(1));
        must(numbers.try_send(2));
        std::error_code sender;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](channel<int>& to, std::error_code& seen) -> task<> {
                seen = error_of(co_await to.send(3));
            }(numbers, sender));
            co_await here().yield();
            numbers.close();
        });
        EXPECT_EQ(sender, errc::closed);
        EXPECT_TRUE(numbers.closed());
        EXPECT_EQ(error_of(co_await numbers.send(4)), errc::closed);
        EXPECT_EQ(error_of(numbers.try_send(5)), errc::closed);
        EXPECT_EQ(must(co_await numbers.receive()), 1);
        EXPECT_EQ(must(co_await numbers.receive()), 2);
        EXPECT_EQ(error_of(co_await numbers.receive()), errc::closed);
    });
}

TEST_P(channel_io, closing_ends_waiting_receivers) {
    run([this]() -> task<> {
        channel<int> numbers(2);
        std::error_code receiver;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](channel<int>& from, std::error_code& seen) -> task<> {
                seen = error_of(co_await from.receive());
            }(numbers, receiver));
            co_await here().yield();
            numbers.close();
        });
        EXPECT_EQ(receiver, errc::closed);
    });
}

task<result<int>> receive_one(channel<int>& from) { co_return co_await from.receive(); }
task<result<>> send_one(channel<int>& to, int value) { co_return co_await to.send(value); }

TEST_P(channel_io, cancelled_waits_take_and_leave_nothing) {
    run([]() -> task<> {
        channel<int> numbers(1);
        EXPECT_EQ(error_of(co_await with_timeout(1ms, receive_one(numbers))), errc::timed_out);
        must(co_await with_timeout(1ms, send_one(numbers, 1)));
        EXPECT_EQ(error_of(co_await with_timeout(1ms, send_one(numbers, 2))), errc::timed_out);
        EXPECT_EQ(must(co_await numbers.receive()), 1);
        EXPECT_EQ(numbers.size(), 0u);
        EXPECT_EQ(error_of(co_await with_timeout(1ms, receive_one(numbers))), errc::timed_out);
    });
}

TEST_P(channel_io, cancelled_receivers_lose_no_value) {
    run([this]() -> task<> {
        channel<int> numbers(1);
        int sent = 0;
        int received = 0;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(
                [](loop& where, channel<int>& to, int& count, std::uint64_t seed) -> task<> {
                    random_generator dice(seed);
                    for (; count < 1000; ++count) {
                        must(co_await where.sleep_for(1us * dice.below(20)));
                        must(co_await to.send(count));
                    }
                }(here(), numbers, sent, random()()));
            while (received < 1000) {
                const auto value =
                    co_await with_timeout(1us * random().below(20), receive_one(numbers));
                if (!value) continue;
                EXPECT_EQ(*value, received);
                ++received;
            }
        });
    });
}

}  // namespace
}  // namespace eddy::testing
