// Tests of the cache runtime with scripts that take too long.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_BACKEND(cache_scripts);

const json any_port = {{"port", 0}};

task<std::string> ask(talker& client, std::string request) {
    co_await client.say(request);
    co_return co_await client.line();
}

/// Until others are told BUSY.
task<void> wait_until_busy(talker& other) {
    for (;;) {
        const std::string reply = co_await ask(other, "EXISTS x\r\n");
        if (reply.starts_with("-BUSY")) co_return;
        co_await loop::current().yield();
    }
}

TEST_P(cache_scripts, an_endless_script_keeps_nobody_waiting_and_is_killed) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(b, "CONFIG SET busy-reply-threshold 1\r\n"), "+OK\r");
        co_await a.say("EVAL \"while true do end\" 0\r\nPING\r\n");
        co_await wait_until_busy(b);
        EXPECT_EQ(co_await ask(b, "SCRIPT KILL\r\n"), "+OK\r");
        EXPECT_THAT(co_await a.line(), StartsWith("-ERR Script killed by user"));
        EXPECT_EQ(co_await a.line(), "+PONG\r");
        EXPECT_EQ(co_await ask(b, "EXISTS x\r\n"), ":0\r");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_scripts, a_script_that_writes_goes_on_when_its_client_leaves) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker b = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(b, "CONFIG SET busy-reply-threshold 1\r\n"), "+OK\r");
        {
            talker a = co_await talker::to(cache->local());
            co_await a.say(
                "EVAL \"redis.call('SET','x',1) for i=1,2e7 do math.abs(i) end "
                "redis.call('SET','x',2)\" 0\r\n");
            co_await wait_until_busy(b);
        }
        std::string reply;
        while (true) {
            reply = co_await ask(b, "INCR x\r\n");
            if (!reply.starts_with("-BUSY")) break;
            co_await loop::current().yield();
        }
        EXPECT_EQ(reply, ":3\r");
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
        EXPECT_EQ(co_await ask(b, "CONFIG SET busy-reply-threshold 1\r\n"), "+OK\r");
        co_await a.say("EVAL \"redis.call('SET','x',1) while true do end\" 0\r\n");
        co_await wait_until_busy(b);
        EXPECT_THAT(co_await ask(b, "SCRIPT KILL\r\n"), StartsWith("-UNKILLABLE"));
        co_await cache->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
