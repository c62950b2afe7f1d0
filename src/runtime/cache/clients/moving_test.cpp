// Tests of living clients that move to another instance of the cache: their sessions' state, what
// they have sent, and the clients that stay.
#include "runtime/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(moving_clients);

task<void> expect(talker& client, std::string request, std::string reply) {
    co_await client.say(request);
    EXPECT_EQ(co_await client.bytes(reply.size()), reply);
}

/// Moves the clients of one cache to the other.
task<std::size_t> move(subject& from, subject& to) {
    co_await from->end_accepting();
    std::vector<passed_client> moved = co_await from->hand_over_clients();
    const std::size_t count = moved.size();
    to->take_clients(std::move(moved));
    co_return count;
}

TEST_P(moving_clients, keep_their_state) {
    run([&]() -> task<void> {
        subject before("cache", any_port);
        subject after("cache", any_port);
        co_await before.start();
        co_await after.start();
        talker plain = co_await talker::to(before->local());
        talker named = co_await talker::to(before->local());
        co_await expect(plain, "PING\r\n", "+PONG\r\n");
        co_await expect(named, "SELECT 5\r\n", "+OK\r\n");
        co_await expect(named, "CLIENT SETNAME mover\r\n", "+OK\r\n");
        co_await expect(named, "SET here before\r\n", "+OK\r\n");
        EXPECT_EQ(co_await move(before, after), 2U);
        co_await expect(named, "GET here\r\n", "$-1\r\n");
        co_await expect(named, "SET there after\r\n", "+OK\r\n");
        co_await expect(named, "CLIENT GETNAME\r\n", "$5\r\nmover\r\n");
        co_await expect(plain, "GET there\r\n", "$-1\r\n");
        co_await expect(plain, "SELECT 5\r\n", "+OK\r\n");
        co_await expect(plain, "GET there\r\n", "$5\r\nafter\r\n");
        EXPECT_EQ(before->count().connections_now, 0U);
        EXPECT_EQ(after->count().connections_now, 2U);
        co_await before->stop(duration{});
        co_await after->stop(duration{});
    });
}

TEST_P(moving_clients, take_along_what_they_have_sent) {
    run([&]() -> task<void> {
        subject before("cache", any_port);
        subject after("cache", any_port);
        co_await before.start();
        co_await after.start();
        talker client = co_await talker::to(before->local());
        co_await expect(client, "PING\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nhe", "+PONG\r\n");
        co_await client.say("l");
        EXPECT_EQ(co_await move(before, after), 1U);
        co_await expect(client, "lo\r\nGET a\r\n", "+OK\r\n$5\r\nhello\r\n");
        co_await before->stop(duration{});
        co_await after->stop(duration{});
    });
}

TEST_P(moving_clients, go_on_waiting) {
    run([&]() -> task<void> {
        subject before("cache", any_port);
        subject after("cache", any_port);
        co_await before.start();
        co_await after.start();
        talker waiting = co_await talker::to(before->local());
        talker other = co_await talker::to(after->local());
        co_await expect(waiting, "PING\r\n", "+PONG\r\n");
        co_await waiting.say("BLPOP list 0\r\nPING\r\n");
        while (before->count().messages_in < 2) co_await loop::current().yield();
        EXPECT_EQ(co_await move(before, after), 1U);
        co_await expect(other, "RPUSH list x\r\n", ":1\r\n");
        const std::string reply = "*2\r\n$4\r\nlist\r\n$1\r\nx\r\n+PONG\r\n";
        EXPECT_EQ(co_await waiting.bytes(reply.size()), reply);
        co_await before->stop(duration{});
        co_await after->stop(duration{});
    });
}

TEST_P(moving_clients, go_on_waiting_for_idle_entries) {
    run([&]() -> task<void> {
        subject before("cache", any_port);
        subject after("cache", any_port);
        co_await before.start();
        co_await after.start();
        talker waiting = co_await talker::to(before->local());
        talker other = co_await talker::to(before->local());
        talker there = co_await talker::to(after->local());
        for (talker* const each : {&other, &there}) {
            co_await expect(*each, "XADD s 1 f v\r\n", "$3\r\n1-0\r\n");
            co_await expect(*each, "XGROUP CREATE s g 0\r\n", "+OK\r\n");
            const std::string entry = "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n";
            co_await expect(*each, "XREADGROUP GROUP g c STREAMS s >\r\n",
                            entry + "*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
        }
        co_await waiting.say("XREADGROUP GROUP g d BLOCK 0 CLAIM 3600000 STREAMS s >\r\nPING\r\n");
        while (before->count().messages_in < 4) co_await loop::current().yield();
        EXPECT_EQ(co_await move(before, after), 2U);
        co_await expect(there, "XGROUP DESTROY s g\r\n", ":1\r\n");
        const std::string reply = "-NOGROUP";
        EXPECT_EQ(co_await waiting.bytes(reply.size()), reply);
        co_await before->stop(duration{});
        co_await after->stop(duration{});
    });
}

TEST_P(moving_clients, keep_their_subscriptions) {
    run([&]() -> task<void> {
        subject before("cache", any_port);
        subject after("cache", any_port);
        co_await before.start();
        co_await after.start();
        talker reader = co_await talker::to(before->local());
        talker writer = co_await talker::to(before->local());
        co_await expect(reader, "SUBSCRIBE c\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
        co_await expect(reader, "PSUBSCRIBE x*\r\n",
                        "*3\r\n$10\r\npsubscribe\r\n$2\r\nx*\r\n:2\r\n");
        co_await expect(writer, "PUBLISH c one\r\n", ":1\r\n");
        EXPECT_EQ(co_await move(before, after), 2U);
        co_await expect(writer, "PUBLISH c two\r\nPUBLISH xy three\r\n", ":1\r\n:1\r\n");
        const std::string messages =
            "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\none\r\n"
            "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\ntwo\r\n"
            "*4\r\n$8\r\npmessage\r\n$2\r\nx*\r\n$2\r\nxy\r\n$5\r\nthree\r\n";
        EXPECT_EQ(co_await reader.bytes(messages.size()), messages);
        co_await expect(reader, "UNSUBSCRIBE c\r\n",
                        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:1\r\n");
        co_await before->stop(duration{});
        co_await after->stop(duration{});
    });
}

TEST_P(moving_clients, reach_subscribers_on_other_threads) {
    run([&]() -> task<void> {
        subject before("cache", any_port);
        subject after("cache", {{"port", 0}, {"threads", 3}});
        co_await before.start();
        co_await after.start();
        std::vector<talker> readers;
        for (int i = 0; i < 30; ++i) {
            readers.push_back(co_await talker::to(before->local()));
            co_await expect(readers.back(), "SUBSCRIBE c\r\n",
                            "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
        }
        talker writer = co_await talker::to(before->local());
        co_await expect(writer, "PING\r\n", "+PONG\r\n");
        // On its way with the client, unless it was executed before.
        co_await writer.say("PUBLISH c one\r\n");
        EXPECT_EQ(co_await move(before, after), 31U);
        EXPECT_EQ(co_await writer.bytes(5), ":30\r\n");
        const std::string message = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\none\r\n";
        for (talker& each : readers) EXPECT_EQ(co_await each.bytes(message.size()), message);
        co_await before->stop(duration{});
        co_await after->stop(duration{});
    });
}

TEST_P(moving_clients, stay_with_state_that_cannot_move) {
    run([&]() -> task<void> {
        subject before("cache", any_port);
        subject after("cache", any_port);
        co_await before.start();
        co_await after.start();
        std::vector<talker> staying;
        for (const char* const each : {"MULTI\r\n", "WATCH k\r\n", "MONITOR\r\n"}) {
            talker client = co_await talker::to(before->local());
            co_await client.say(each);
            EXPECT_NE(co_await client.line(), "");
            staying.push_back(std::move(client));
        }
        EXPECT_EQ(co_await move(before, after), 0U);
        EXPECT_EQ(before->count().connections_now, 3U);
        co_await expect(staying[0], "EXEC\r\n", "*0\r\n");
        co_await before->stop(duration{});
        co_await after->stop(duration{});
    });
}

TEST_P(moving_clients, need_their_user) {
    run([&]() -> task<void> {
        subject before("cache", any_port);
        subject after("cache", any_port);
        co_await before.start();
        co_await after.start();
        talker client = co_await talker::to(before->local());
        co_await expect(client, "ACL SETUSER u on nopass +@all ~*\r\n", "+OK\r\n");
        co_await expect(client, "AUTH u x\r\n", "+OK\r\n");
        EXPECT_EQ(co_await move(before, after), 1U);
        EXPECT_EQ(co_await client.rest(), "");
        co_await before->stop(duration{});
        co_await after->stop(duration{});
    });
}

}  // namespace
}  // namespace eddy::runtime
