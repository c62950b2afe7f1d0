// Tests of the limits of a cache's connections: keepalive, the size of an argument.
#include "runtime/cache/clients/blocking_client.hpp"
#include "runtime/keepalive_probe.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(cache_limits);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(cache_limits_kernel);

task<keepalive> of_a_new_client(const endpoint& where) {
    talker client = co_await talker::to(where);
    co_await client.say("PING\r\n");
    EXPECT_EQ(co_await client.line(), "+PONG\r");
    const auto found = keepalive_between(where.port(), client.socket.local().port());
    EXPECT_TRUE(found.has_value());
    co_return found.value_or(keepalive());
}

TEST_P(cache_limits_kernel, silent_peers_are_asked_by_the_kernel) {
    for (const int threads : {1, 2}) {
        run([&]() -> task<void> {
            subject cache("cache", {{"port", 0}, {"threads", threads}});
            co_await cache.start();
            const endpoint where = cache->local();
            talker client = co_await talker::to(where);
            EXPECT_EQ(co_await of_a_new_client(where), (keepalive{1, 300, 100, 3}));
            for (const std::string bad : {"x", "-1", "2147483648"}) {
                co_await client.say("CONFIG SET tcp-keepalive " + bad + "\r\n");
                EXPECT_THAT(co_await client.line(), HasSubstr("'tcp-keepalive') - argument"));
            }
            co_await client.say("CONFIG SET tcp-keepalive 2\r\n");
            EXPECT_EQ(co_await client.line(), "+OK\r");
            EXPECT_EQ(co_await of_a_new_client(where), (keepalive{1, 2, 1, 3}));
            co_await client.say("CONFIG SET tcp-keepalive 0\r\n");
            EXPECT_EQ(co_await client.line(), "+OK\r");
            EXPECT_EQ((co_await of_a_new_client(where)).on, 0);
            co_await cache->stop(0s);
        });
    }
}

TEST_P(cache_limits_kernel, keepalive_can_be_set_at_the_start) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}, {"config", "tcp-keepalive 60"}});
        co_await cache.start();
        EXPECT_EQ(co_await of_a_new_client(cache->local()), (keepalive{1, 60, 20, 3}));
        co_await cache->stop(0s);
    });
}

constexpr std::string_view too_long = "-ERR Protocol error: invalid bulk length\r\n";

// A SET with a value of so many bytes, without the value.
std::string set_of(std::size_t bytes) {
    return "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + std::to_string(bytes) + "\r\n";
}

TEST_P(cache_limits, an_argument_over_proto_max_bulk_len_ends_its_connection) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        // The new limit holds from the next read on, also for the client that sets it.
        co_await client.say("CONFIG SET proto-max-bulk-len 1mb\r\n");
        EXPECT_EQ(co_await client.line(), "+OK\r");
        const std::string most(1024 * 1024, 'x');
        co_await client.say(set_of(most.size()) + most + "\r\n");
        EXPECT_EQ(co_await client.line(), "+OK\r");
        talker second = co_await talker::to(cache->local());
        co_await second.say(set_of(2 * most.size()));
        EXPECT_EQ(co_await second.rest(), too_long);
        co_await client.say(set_of(most.size() + 1));
        EXPECT_EQ(co_await client.rest(), too_long);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_limits, more_than_512_mebibytes_can_be_announced_once_they_are_allowed) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        constexpr std::size_t much = 1'000'000'000;
        talker client = co_await talker::to(cache->local());
        talker early = co_await talker::to(cache->local());
        co_await early.say(set_of(much));
        EXPECT_EQ(co_await early.rest(), too_long);
        co_await client.say("CONFIG SET proto-max-bulk-len 1gb\r\n");
        EXPECT_EQ(co_await client.line(), "+OK\r");
        {
            talker late = co_await talker::to(cache->local());
            const std::string begun = set_of(much) + "xyz";
            const std::uint64_t before = cache->count().bytes_in;
            co_await late.say(begun);
            co_await until([&] { return cache->count().bytes_in == before + begun.size(); });
            co_await client.say("PING\r\n");
            EXPECT_EQ(co_await client.line(), "+PONG\r");
            EXPECT_EQ(cache->count().errors, 1U);
        }
        // Arguments beyond the parser's limit are still refused.
        talker last = co_await talker::to(cache->local());
        co_await last.say(set_of(1U << 30));
        EXPECT_EQ(co_await last.rest(), "-ERR Protocol error: too big request\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_limits_kernel, other_threads_get_the_limit_of_an_argument) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}, {"threads", 2}, {"config", "proto-max-bulk-len 2mb"}});
        co_await cache.start();
        const endpoint where = cache->local();
        for (int i = 0; i < 2; ++i) {
            talker client = co_await talker::to(where);
            co_await client.say(set_of((2U << 20) + 1));
            EXPECT_EQ(co_await client.rest(), too_long);
        }
        talker client = co_await talker::to(where);
        co_await client.say("CONFIG SET proto-max-bulk-len 1mb\r\n");
        EXPECT_EQ(co_await client.line(), "+OK\r");
        // They get it after that: until then what is within the old limit is awaited.
        bool is_told = false;
        const time_point end = loop::current().now() + 10s;
        while (!is_told && loop::current().now() < end) {
            talker probe = co_await talker::to(where);
            const std::string whole =
                set_of((1U << 20) + 1) + std::string((1U << 20) + 1, 'x') + "\r\n";
            static_cast<void>(co_await probe.socket.write_all(whole));
            is_told = (co_await probe.line()).starts_with('-');
        }
        EXPECT_TRUE(is_told);
        co_await cache->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
