// Tests of the cache runtime with clients that misbehave, and without enough buffers.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_faults);

/// Bytes of this process in memory.
std::size_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t total = 0;
    std::size_t resident = 0;
    statm >> total >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_P(cache_faults, a_split_at_any_byte_changes_nothing) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        // A value with a line end and a NUL in it.
        const std::string set("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$8\r\nval\r\nue\0\r\n", 36);
        const std::string all = set + "\r\nPING\r\n*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n" +
                                "ECHO \"a b\"\r\n*0\r\n*1\r\n$4\r\nPING\r\n";
        const std::string replies =
            std::string("+OK\r\n+PONG\r\n$8\r\nval\r\nue\0\r\n", 26) + "$3\r\na b\r\n+PONG\r\n";
        std::uint64_t seen = 0;
        const auto arrived = [&] { return cache->count().bytes_in >= seen; };
        for (std::size_t at = 1; at < all.size(); ++at) {
            talker client = co_await talker::to(cache->local());
            co_await client.say(all.substr(0, at));
            seen += at;
            co_await until(arrived);
            co_await client.say(all.substr(at));
            seen += all.size() - at;
            EXPECT_EQ(co_await client.bytes(replies.size()), replies) << "split at " << at;
        }
        // And at every byte at once.
        talker client = co_await talker::to(cache->local());
        for (const char byte : all) {
            co_await client.say(std::string(1, byte));
            ++seen;
            co_await until(arrived);
        }
        EXPECT_EQ(co_await client.bytes(replies.size()), replies);
        EXPECT_EQ(cache->count().errors, 0U);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_faults, what_breaks_the_protocol_is_answered_in_order_and_closed) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        const std::vector<std::string> broken = {
            "*x\r\n",
            "*1048577\r\n",
            "*99999999999999999999\r\n",
            "*2\r\n+GET\r\n",
            "*1\r\n$-1\r\n",
            "*1\r\n$536870913\r\n",
            "*1\r\n$4x\r\n",
            "ECHO \"open\r\n",
            std::string(70'000, 'x'),
            "*" + std::string(70'000, '1'),
        };
        std::uint64_t errors = 0;
        for (const std::string& bytes : broken) {
            talker client = co_await talker::to(cache->local());
            // Before the fault there are good commands, whose replies come first; behind it one
            // that must not be executed.
            (void)co_await client.socket.write_all(std::string_view(
                "PING\r\nECHO first\r\n" + bytes + "\r\n*1\r\n$8\r\nFLUSHALL\r\n"));
            const std::string got = co_await client.rest();
            EXPECT_THAT(got, StartsWith("+PONG\r\n$5\r\nfirst\r\n-ERR Protocol error")) << bytes;
            EXPECT_EQ(got.find("+OK"), std::string::npos);
            ++errors;
        }
        co_await until([&] { return cache->count().connections_now == 0; });
        EXPECT_EQ(cache->count().errors, errors);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_faults, a_command_that_fails_does_not_break_the_pipeline) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        co_await client.say(
            "SET s text\r\nNOSUCH\r\nLPUSH s x\r\nGET\r\nINCR s\r\nGET s\r\nPING\r\n");
        EXPECT_EQ(co_await client.line(), "+OK\r");
        EXPECT_THAT(co_await client.line(), StartsWith("-ERR unknown command"));
        EXPECT_THAT(co_await client.line(), StartsWith("-WRONGTYPE"));
        EXPECT_THAT(co_await client.line(), StartsWith("-ERR wrong number of arguments"));
        EXPECT_THAT(co_await client.line(), StartsWith("-ERR value is not an integer"));
        EXPECT_EQ(co_await client.line(), "$4\r");
        EXPECT_EQ(co_await client.line(), "text\r");
        EXPECT_EQ(co_await client.line(), "+PONG\r");
        EXPECT_EQ(cache->count().errors, 4U);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_faults, a_client_that_never_reads_costs_little_and_is_closed) {
    run([&]() -> task<void> {
        subject cache("cache", with({{"write_timeout", "300ms"}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        const std::string value(1 << 20, 'v');
        co_await client.say("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n" + value + "\r\n");
        EXPECT_EQ(co_await client.line(), "+OK\r");

        const std::size_t before = resident_bytes();
        const time_point asked = here().now();
        std::string requests;
        for (int i = 0; i < 4000; ++i) requests += "GET k\r\n";  // 4 GB of replies
        co_await client.say(requests);
        co_await until([&] { return cache->count().connections_now == 0; });
        EXPECT_GE(here().now() - asked, 300ms);
        EXPECT_LT(resident_bytes(), before + (64U << 20));

        talker other = co_await talker::to(cache->local());
        co_await other.say("PING\r\n");
        EXPECT_EQ(co_await other.line(), "+PONG\r");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_faults, a_slow_client_that_makes_progress_is_not_closed) {
    if (!simulated()) GTEST_SKIP() << "needs a clock that nothing else disturbs";
    run([&]() -> task<void> {
        subject cache("cache", with({{"write_timeout", "500ms"}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        const std::string value(1 << 20, 'v');
        co_await client.say("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n" + value + "\r\n");
        EXPECT_EQ(co_await client.line(), "+OK\r");
        std::string requests;
        for (int i = 0; i < 30; ++i) requests += "GET k\r\n";
        co_await client.say(requests);
        for (int i = 0; i < 30; ++i) {
            must(co_await here().sleep_for(50ms));
            EXPECT_EQ((co_await client.bytes(value.size() + 12)).size(), value.size() + 12);
        }
        EXPECT_EQ(cache->count().connections_now, 1U);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_faults, a_reply_over_the_queue_limit_closes_its_client_alone) {
    run([&]() -> task<void> {
        subject cache("cache", with({{"max_queue", "64k"}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        // The largest reply that fits: its frame has ten bytes.
        const std::string fits(64 * 1024 - 10, 'x');
        co_await client.say("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + std::to_string(fits.size()) +
                            "\r\n" + fits + "\r\nGET k\r\nGET k\r\n");
        EXPECT_EQ(co_await client.line(), "+OK\r");
        for (int i = 0; i < 2; ++i)
            EXPECT_EQ((co_await client.bytes(64 * 1024)).size(), 64U * 1024);
        // Twice as much does not.
        co_await client.say("*3\r\n$6\r\nAPPEND\r\n$1\r\nk\r\n$65536\r\n" +
                            std::string(65536, 'x') + "\r\n");
        EXPECT_EQ(co_await client.line(), ":" + std::to_string(fits.size() + 65536) + "\r");
        talker other = co_await talker::to(cache->local());
        co_await client.say("GET k\r\n");
        EXPECT_EQ(co_await client.rest(), "");
        EXPECT_TRUE(cache.events.has("over --max-queue"));
        co_await other.say("PING\r\n");
        EXPECT_EQ(co_await other.line(), "+PONG\r");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_faults, a_thousand_clients_that_come_and_vanish_leave_nothing) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        constexpr std::uint64_t clients = 1000;
        for (std::uint64_t i = 0; i < clients; ++i) {
            talker t = co_await talker::to(cache->local());
            if (i % 4 == 1) co_await t.say("PING\r\n");
            if (i % 4 == 2) co_await t.say("*2\r\n$3\r\nGET\r\n$1000\r\nunfinished");
            if (i % 4 == 3) co_await t.say("*x\r\n");
        }
        co_await until([&] {
            const metrics c = cache->count();
            return c.connections_total == clients && c.connections_now == 0;
        });
        co_await cache->stop(0s);
        EXPECT_EQ(cache->count().connections_now, 0U);
    });
}

/// One of many clients: sets, and reads back, what only it knows, in pieces that a read may split.
task<void> keep_own_secret(endpoint where, int number, int rounds, int& wrong, int& done) {
    talker client = co_await talker::to(where);
    const std::string key = "key:" + std::to_string(number);
    for (int round = 0; round < rounds; ++round) {
        const std::string mark = std::to_string(number) + "/" + std::to_string(round) + ";";
        std::string secret;
        while (secret.size() < 600) secret += mark;
        const std::string size = std::to_string(secret.size());
        const std::string request = "*3\r\n$3\r\nSET\r\n$" + std::to_string(key.size()) + "\r\n" +
                                    key + "\r\n$" + size + "\r\n" + secret + "\r\nGET " + key +
                                    "\r\n";
        const std::size_t cut = request.size() * static_cast<std::size_t>(round + 1) /
                                static_cast<std::size_t>(rounds + 1);
        co_await client.say(request.substr(0, cut));
        co_await loop::current().yield();
        co_await client.say(request.substr(cut));
        const std::string expected = "+OK\r\n$" + size + "\r\n" + secret + "\r\n";
        if (co_await client.bytes(expected.size()) != expected) ++wrong;
    }
    ++done;
}

TEST_P(cache_faults, with_too_few_buffers_no_client_sees_anothers_bytes) {
    loop_options few;
    few.buffer_count = 16;
    few.buffer_size = 512;
    few.sim.no_buffers = 0.2;
    few.sim.short_read = 0.2;
    make_loop(few);
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        const int clients = simulated() ? 1000 : 5000;
        constexpr int rounds = 2;
        int wrong = 0;
        int done = 0;
        scope all(co_await current_source());
        for (int i = 0; i < clients; ++i) {
            all.spawn(keep_own_secret(cache->local(), i, rounds, wrong, done));
            // Not all at once into the listener's backlog.
            if (i % 500 == 499)
                co_await until([&] {
                    return cache->count().connections_total > static_cast<std::uint64_t>(i);
                });
        }
        co_await all.join();
        EXPECT_EQ(done, clients);
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(cache->count().messages_in, static_cast<std::uint64_t>(2 * rounds * clients));
        co_await cache->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
