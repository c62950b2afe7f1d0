// Tests of the cache runtime with scripts that take too long.
#include "base/files/temporary_folder.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_scripts);

/// Until others get BUSY.
task<void> wait_until_busy(talker& other) {
    for (;;) {
        const std::string reply = co_await ask(other, "EXISTS x");
        if (reply.starts_with("-BUSY")) co_return;
        co_await loop::current().yield();
    }
}

TEST_P(cache_scripts, an_endless_script_keeps_no_client_waiting_and_is_killed) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(b, "CONFIG SET busy-reply-threshold 1"), "+OK");
        co_await a.say("EVAL \"while true do end\" 0\r\nPING\r\n");
        co_await wait_until_busy(b);
        EXPECT_EQ(co_await ask(b, "SCRIPT KILL"), "+OK");
        EXPECT_THAT(co_await a.line(), StartsWith("-ERR Script killed by user"));
        EXPECT_EQ(co_await a.line(), "+PONG\r");
        EXPECT_EQ(co_await ask(b, "EXISTS x"), ":0");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_scripts, a_script_that_writes_goes_on_when_its_client_leaves) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker b = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(b, "CONFIG SET busy-reply-threshold 1"), "+OK");
        {
            talker a = co_await talker::to(cache->local());
            co_await a.say(
                "EVAL \"redis.call('SET','x',1) for i=1,2e7 do math.abs(i) end "
                "redis.call('SET','x',2)\" 0\r\n");
            co_await wait_until_busy(b);
        }
        std::string reply;
        while (true) {
            reply = co_await ask(b, "INCR x");
            if (!reply.starts_with("-BUSY")) break;
            co_await loop::current().yield();
        }
        EXPECT_EQ(reply, ":3");
        co_await until([&] { return cache->count().connections_now == 1; });
        co_await cache->stop(0s);
    });
}

TEST_P(cache_scripts, a_stop_ends_an_endless_script) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(b, "CONFIG SET busy-reply-threshold 1"), "+OK");
        co_await a.say("EVAL \"redis.call('SET','x',1) while true do end\" 0\r\n");
        co_await wait_until_busy(b);
        EXPECT_THAT(co_await ask(b, "SCRIPT KILL"), StartsWith("-UNKILLABLE"));
        co_await cache->stop(0s);
    });
}

// Longer than anybody waits, and the largest there is: milliseconds times a million do not fit.
constexpr const char* endless_thresholds[] = {"0", "9223372036854", "9223372036855",
                                              "9223372036854775807"};

// Writes, so that it cannot be killed, and comes to its end after a while.
constexpr std::string_view long_script =
    "EVAL \"redis.call('SET','x',1) for i=1,2e7 do math.abs(i) end redis.call('SET','x',2) "
    "return 'done'\" 0\r\n";

/// Until that script, or another one that writes, is under way.
task<void> wait_until_it_runs(talker& other) {
    for (;;) {
        const std::string reply = co_await ask(other, "SCRIPT KILL");
        if (reply.starts_with("-UNKILLABLE")) co_return;
        co_await loop::current().yield();
    }
}

TEST_P(cache_scripts, one_below_the_threshold_keeps_no_other_runtime_waiting) {
    for (const char* const threshold : endless_thresholds) {
        run([&]() -> task<void> {
            subject cache("cache", any_port);
            subject neighbour("cache", any_port, "neighbour");
            co_await cache.start();
            co_await neighbour.start();
            talker a = co_await talker::to(cache->local());
            talker b = co_await talker::to(cache->local());
            talker c = co_await talker::to(cache->local());
            talker n = co_await talker::to(neighbour->local());
            const std::string set = std::string("CONFIG SET busy-reply-threshold ") + threshold;
            EXPECT_EQ(co_await ask(c, set), "+OK");
            co_await a.say("EVAL \"redis.call('SET','x',1) while true do end\" 0\r\nPING\r\n");
            co_await wait_until_it_runs(c);
            co_await b.say("GET x\r\n");
            for (int i = 0; i < 20; ++i) {
                EXPECT_EQ(co_await ask(n, "INCR x"), ":" + std::to_string(i + 1));
            }
            EXPECT_EQ(b.unread, "");
            co_await cache->stop(0s);
            co_await neighbour->stop(0s);
        });
    }
}

TEST_P(cache_scripts, below_the_threshold_its_own_clients_wait_and_see_it_whole) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        talker c = co_await talker::to(cache->local());
        talker d = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(d, "CONFIG SET busy-reply-threshold 9223372036854775807"), "+OK");
        EXPECT_EQ(co_await ask(d, "MULTI"), "+OK");
        co_await a.say(std::string(long_script) + "GET x\r\n");
        co_await wait_until_it_runs(c);
        co_await b.say("GET x\r\nPING\r\n");
        co_await c.say("EVAL \"return redis.call('INCRBY', 'x', 10)\" 0\r\n");
        co_await d.say("INCRBY x 100\r\nEXEC\r\n");
        EXPECT_EQ(co_await a.line(), "$4\r");
        EXPECT_EQ(co_await a.line(), "done\r");
        // Its own next command, or one that waited, may be the first of them.
        EXPECT_THAT(co_await a.line(), StartsWith("$"));
        EXPECT_THAT(co_await a.line(), ::testing::AnyOf("2\r", "12\r", "102\r", "112\r"));
        EXPECT_THAT(co_await b.line(), StartsWith("$"));
        EXPECT_NE(co_await b.line(), "1\r");
        EXPECT_EQ(co_await b.line(), "+PONG\r");
        EXPECT_THAT(co_await c.line(), ::testing::AnyOf(":12\r", ":112\r"));
        EXPECT_EQ(co_await d.line(), "+QUEUED\r");
        EXPECT_EQ(co_await d.line(), "*1\r");
        EXPECT_THAT(co_await d.line(), ::testing::AnyOf(":102\r", ":112\r"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_scripts, a_client_that_waits_for_one_gets_busy_at_the_threshold) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        talker c = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(c, "CONFIG SET busy-reply-threshold 200"), "+OK");
        co_await a.say("EVAL \"redis.call('SET','x',1) while true do end\" 0\r\n");
        co_await wait_until_it_runs(c);
        EXPECT_THAT(co_await ask(b, "GET x"), StartsWith("-BUSY Redis is busy"));
        EXPECT_THAT(co_await ask(b, "GET x"), StartsWith("-BUSY Redis is busy"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_scripts, a_transaction_of_scripts_keeps_no_other_runtime_waiting) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        subject neighbour("cache", any_port, "neighbour");
        co_await cache.start();
        co_await neighbour.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        talker n = co_await talker::to(neighbour->local());
        EXPECT_EQ(co_await ask(b, "CONFIG SET busy-reply-threshold 9223372036854"), "+OK");
        co_await a.say("MULTI\r\n" + std::string(long_script) + "INCR x\r\n" +
                       std::string(long_script) + "INCR x\r\nEXEC\r\n");
        co_await wait_until_it_runs(b);
        co_await b.say("GET x\r\n");
        EXPECT_EQ(co_await ask(n, "PING"), "+PONG");
        EXPECT_EQ(co_await b.line(), "$1\r");
        EXPECT_EQ(co_await b.line(), "3\r");
        EXPECT_EQ(co_await a.line(), "+OK\r");
        for (int i = 0; i < 4; ++i) EXPECT_EQ(co_await a.line(), "+QUEUED\r");
        EXPECT_EQ(co_await a.line(), "*4\r");
        co_await cache->stop(0s);
        co_await neighbour->stop(0s);
    });
}

TEST_P(cache_scripts, a_client_that_waits_for_one_may_go_and_the_script_too) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(c, "CONFIG SET busy-reply-threshold 0"), "+OK");
        {
            talker a = co_await talker::to(cache->local());
            talker b = co_await talker::to(cache->local());
            co_await a.say(std::string(long_script));
            co_await wait_until_it_runs(c);
            co_await b.say("GET x\r\n");
        }
        EXPECT_EQ(co_await ask(c, "INCR x"), ":3");
        co_await until([&] { return cache->count().connections_now == 1; });
        co_await cache->stop(0s);
    });
}

// Its replies are on their way, and it takes none of them.
TEST_P(cache_scripts, one_goes_on_when_its_client_fails_before_it_has_its_earlier_replies) {
    for (const bool is_stuck : {false, true}) {
        run([&]() -> task<void> {
            subject cache("cache", with({{"write_timeout", "60s"}}));
            co_await cache.start();
            talker c = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(c, "CONFIG SET busy-reply-threshold 0"), "+OK");
            co_await c.say(encoded({"SET", "big", std::string(7 << 20, 'v')}));
            EXPECT_EQ(co_await c.line(), "+OK\r");
            auto a = std::make_unique<talker>(co_await talker::to(cache->local()));
            // Less than what pauses the execution of its commands.
            co_await a->say("GET big\r\n" + std::string(long_script));
            co_await wait_until_it_runs(c);
            if (is_stuck)
                must_do(cache->apply(cache.parse(with({{"write_timeout", "20ms"}}))));
            else
                a.reset();
            EXPECT_EQ(co_await ask(c, "INCR x"), ":3");
            a.reset();
            co_await until([&] { return cache->count().connections_now == 1; });
            co_await cache->stop(0s);
        });
    }
}

TEST_P(cache_scripts, a_stop_in_the_middle_of_one_stores_nothing_of_it) {
    for (const bool appends : {false, true}) {
        for (const bool is_transaction : {false, true}) {
            run([&]() -> task<void> {
                const temporary_folder folder;
                const json options = {
                    {"port", 0}, {"dir", folder.path()}, {"appendonly", appends ? "yes" : "no"}};
                subject cache("cache", options);
                co_await cache.start();
                {
                    talker c = co_await talker::to(cache->local());
                    EXPECT_EQ(co_await ask(c, "SET before 1"), "+OK");
                }
                co_await cache->stop(1s);
                co_await cache.start();
                {
                    talker a = co_await talker::to(cache->local());
                    talker c = co_await talker::to(cache->local());
                    EXPECT_EQ(co_await ask(c, "CONFIG SET busy-reply-threshold 1"), "+OK");
                    EXPECT_EQ(co_await ask(c, "SET whole 1"), "+OK");
                    constexpr std::string_view endless =
                        "EVAL \"redis.call('SET','x',1) while true do end\" 0\r\n";
                    co_await a.say(is_transaction ? "MULTI\r\nSET y 1\r\n" + std::string(endless) +
                                                        "SET z 1\r\nEXEC\r\n"
                                                  : std::string(endless));
                    co_await wait_until_it_runs(c);
                    const auto refused = co_await cache->prepare_stop(0s);
                    EXPECT_FALSE(refused.has_value());
                    if (!refused)
                        EXPECT_THAT(refused.error().message, HasSubstr("; wait for its end"));
                    co_await cache->stop(0s);
                }
                if (appends)
                    EXPECT_EQ(cache->lost(), "");
                else
                    EXPECT_THAT(cache->lost(), HasSubstr("a script was cut off"));
                co_await cache.start();
                {
                    talker c = co_await talker::to(cache->local());
                    EXPECT_EQ(co_await ask(c, "EXISTS x y z"), ":0");
                    EXPECT_EQ(co_await ask(c, "EXISTS before whole"), appends ? ":2" : ":1");
                }
                co_await cache->stop(1s);
            });
        }
    }
}

TEST_P(cache_scripts, a_stop_waits_for_one_that_has_written) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options = {{"port", 0}, {"dir", folder.path()}, {"appendonly", "yes"}};
        subject cache("cache", options);
        co_await cache.start();
        {
            talker a = co_await talker::to(cache->local());
            talker c = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(c, "CONFIG SET busy-reply-threshold 0"), "+OK");
            co_await a.say(std::string(long_script));
            co_await wait_until_it_runs(c);
            const auto ready = co_await cache->prepare_stop(60s);
            EXPECT_TRUE(ready.has_value());
            EXPECT_EQ(co_await a.line(), "$4\r");
            co_await cache->stop(0s);
        }
        EXPECT_EQ(cache->lost(), "");
        co_await cache.start();
        {
            talker c = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(c, "INCR x"), ":3");
        }
        co_await cache->stop(1s);
    });
}

}  // namespace
}  // namespace eddy::runtime
