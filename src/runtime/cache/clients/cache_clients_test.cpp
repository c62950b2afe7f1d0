// Tests of the cache runtime with clients that act on each other: messages, waits, pauses, and what
// happens when one of them does not read, goes away or is closed.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_clients);

std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::string message(const std::string& channel, const std::string& text) {
    return "*3\r\n" + bulk("message") + bulk(channel) + bulk(text);
}

std::string popped(const std::string& key, const std::string& value) {
    return "*2\r\n" + bulk(key) + bulk(value);
}

/// Says `request` and gets exactly that reply.
task<void> expect(talker& client, std::string request, std::string reply) {
    co_await client.say(request);
    EXPECT_EQ(co_await client.bytes(reply.size()), reply);
    EXPECT_EQ(client.unread, "");
}

/// Gets exactly that, unasked.
task<void> expect(talker& client, std::string text) {
    EXPECT_EQ(co_await client.bytes(text.size()), text);
    EXPECT_EQ(client.unread, "");
}

/// Says what blocks `client`, and sees through `other` that it does.
task<void> block(talker& client, talker& other, std::string request, int blocked = 1) {
    co_await client.say(request);
    for (;;) {
        co_await other.say("INFO clients\r\n");
        const std::string head = co_await other.line();
        const std::string info = co_await other.bytes(std::stoul(head.substr(1)) + 2);
        if (info.find("blocked_clients:" + std::to_string(blocked) + "\r") != std::string::npos)
            co_return;
        co_await loop::current().yield();
    }
}

task<void> subscribe(talker& client, std::string channel) {
    co_await expect(client, "SUBSCRIBE " + channel + "\r\n",
                    "*3\r\n" + bulk("subscribe") + bulk(channel) + ":1\r\n");
}

TEST_P(cache_clients, messages_reach_an_idle_subscriber_in_order) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        co_await subscribe(a, "c");
        for (int i = 0; i < 3; ++i) {
            const std::string text = std::to_string(i);
            co_await expect(b, "PUBLISH c " + text + "\r\n", ":1\r\n");
            co_await expect(a, message("c", text));
        }
        // Many at once, and replies in between.
        std::string requests;
        std::string replies;
        std::string messages;
        for (int i = 0; i < 1000; ++i) {
            requests += "PUBLISH c " + std::to_string(i) + "\r\n";
            replies += ":1\r\n";
            messages += message("c", std::to_string(i));
        }
        co_await b.say(requests);
        co_await expect(b, replies);
        co_await expect(a, messages);
        co_await expect(a, "PING\r\n", "*2\r\n" + bulk("pong") + bulk(""));
        co_await expect(a, "UNSUBSCRIBE\r\n",
                        "*3\r\n" + bulk("unsubscribe") + bulk("c") + ":0\r\n");
        // A client like any other again.
        co_await expect(a, "SET x 1\r\nGET x\r\n", "+OK\r\n" + bulk("1"));
        co_await expect(b, "PUBLISH c x\r\n", ":0\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, a_publisher_is_answered_before_most_of_its_many_subscribers) {
    run([&]() -> task<void> {
        subject cache("cache", with({{"threads", 1}}));
        co_await cache.start();
        constexpr std::size_t many = 400;
        constexpr int rounds = 3;
        std::vector<talker> all;
        for (std::size_t i = 0; i < many; ++i) {
            all.push_back(co_await talker::to(cache->local()));
            co_await subscribe(all.back(), "c");
        }
        talker publisher = co_await talker::to(cache->local());
        talker other = co_await talker::to(cache->local());
        for (int round = 0; round < rounds; ++round) {
            const std::uint64_t before = cache->count().bytes_out.value();
            co_await publisher.say("PUBLISH c 1\r\nPUBLISH c 2\r\n");
            EXPECT_EQ(co_await publisher.line(), ":400\r");
            EXPECT_EQ(co_await publisher.line(), ":400\r");
            const std::string messages = message("c", "1") + message("c", "2");
            EXPECT_LT(cache->count().bytes_out.value() - before, messages.size() * many);
            // Others are served, and its next command comes when all have been sent.
            co_await expect(other, "PING\r\n", "+PONG\r\n");
            co_await expect(publisher, "PUBLISH c 3\r\n", ":400\r\n");
            EXPECT_GE(cache->count().bytes_out.value() - before, messages.size() * many);
            for (talker& each : all) co_await expect(each, messages + message("c", "3"));
        }
        // Some have gone before their turn comes.
        co_await publisher.say("PUBLISH c 4\r\nCLIENT KILL TYPE pubsub\r\n");
        EXPECT_EQ(co_await publisher.line(), ":400\r");
        EXPECT_EQ(co_await publisher.line(), ":400\r");
        co_await until([&] { return cache->count().connections_now == 2; });
        co_await expect(publisher, "PUBLISH c 5\r\n", ":0\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, a_subscriber_that_does_not_read_is_closed_and_no_other_client_waits) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker lagging = co_await talker::to(cache->local());
        talker good = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        co_await expect(b, "CONFIG SET client-output-buffer-limit \"pubsub 4mb 0 0\"\r\n",
                        "+OK\r\n");
        co_await subscribe(lagging, "c");
        co_await subscribe(good, "c");
        const std::string text(100'000, 'x');
        int sent = 0;
        while (cache->count().connections_now == 3) {
            co_await b.say("*3\r\n" + bulk("PUBLISH") + bulk("c") + bulk(text));
            EXPECT_THAT(co_await b.line(), StartsWith(":"));
            co_await expect(good, message("c", text));
            ++sent;
        }
        EXPECT_GT(sent, 40);
        EXPECT_LT(sent, 1000);  // the kernel holds some megabytes, too
        co_await expect(b, "PUBLISH c x\r\n", ":1\r\n");
        co_await expect(good, message("c", "x"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, a_blocked_client_is_served_and_goes_on_with_what_it_sent) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        co_await block(a, b, "SET before 1\r\nBLPOP l 0\r\nSET x 1\r\nGET x\r\nBLPOP m 0\r\nPI");
        co_await expect(a, "+OK\r\n");
        co_await expect(b, "EXISTS x\r\n", ":0\r\n");
        co_await expect(b, "RPUSH l v\r\n", ":1\r\n");
        co_await expect(a, popped("l", "v") + "+OK\r\n" + bulk("1"));
        co_await a.say("NG\r\n");
        co_await expect(b, "RPUSH m w\r\n", ":1\r\n");
        co_await expect(a, popped("m", "w") + "+PONG\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, many_waiting_clients_are_served_in_the_order_of_arrival) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker b = co_await talker::to(cache->local());
        constexpr int count = 50;
        std::vector<talker> waiting;
        for (int i = 0; i < count; ++i) {
            waiting.push_back(co_await talker::to(cache->local()));
            co_await block(waiting.back(), b, "BLPOP l 0\r\n", i + 1);
        }
        std::string request = "RPUSH l";
        for (int i = 0; i < count; ++i) request += " " + std::to_string(i);
        co_await expect(b, request + "\r\n", ":50\r\n");
        for (int i = 0; i < count; ++i) {
            talker& each = waiting[static_cast<std::size_t>(i)];
            co_await expect(each, popped("l", std::to_string(i)));
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, a_wait_ends_at_its_time_and_not_before) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        const time_point begin = here().now();
        co_await expect(a, "BLPOP l 0.05\r\n", "*-1\r\n");
        EXPECT_GE(here().now() - begin, 49ms);
        co_await expect(a, "BLMOVE l m LEFT LEFT 0.01\r\nPING\r\n", "*-1\r\n+PONG\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, a_client_that_goes_while_it_waits_takes_nothing_with_it) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker b = co_await talker::to(cache->local());
        {
            talker gone = co_await talker::to(cache->local());
            co_await block(gone, b, "BLPOP l 0\r\nSET x 1\r\n");
        }
        co_await until([&] { return cache->count().connections_now == 1; });
        co_await expect(b, "RPUSH l v\r\nLLEN l\r\nEXISTS x\r\n", ":1\r\n:1\r\n:0\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, input_behind_a_wait_is_kept_up_to_a_limit_and_loses_nothing) {
    run([&]() -> task<void> {
        subject cache("cache", with({{"config", "client-query-buffer-limit 1mb"}}));
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        co_await block(a, b, "BLPOP l 0\r\n");
        std::string requests;
        std::string replies;
        const std::string value(10'000, 'v');
        constexpr int count = 2000;  // 20 MB, more than the cache and the kernel take
        for (int i = 0; i < count; ++i) {
            requests += "SET k" + std::to_string(i) + " " + value + "\r\n";
            replies += "+OK\r\n";
        }
        scope saying(co_await current_source());
        saying.spawn(a.say(requests));
        co_await until([&] { return cache->count().bytes_in > (1U << 20); });
        for (int i = 0; i < 50; ++i) co_await loop::current().yield();
        EXPECT_LT(cache->count().bytes_in, 4U << 20);
        co_await expect(b, "RPUSH l v\r\n", ":1\r\n");
        co_await expect(a, popped("l", "v") + replies);
        co_await saying.join();
        co_await expect(b, "DBSIZE\r\n", ":2000\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, client_unblock_and_kill_reach_waiting_and_idle_clients) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        co_await a.say("CLIENT ID\r\n");
        const std::string id = (co_await a.line()).substr(1);
        const std::string number = id.substr(0, id.size() - 1);
        co_await block(a, b, "BLPOP l 0\r\n");
        co_await expect(b, "CLIENT UNBLOCK " + number + " ERROR\r\n", ":1\r\n");
        co_await expect(a, "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
        co_await block(a, b, "BLPOP l 0\r\n");
        co_await expect(b, "CLIENT KILL ID " + number + "\r\n", ":1\r\n");
        EXPECT_EQ(co_await a.rest(), "");

        talker idle = co_await talker::to(cache->local());
        talker subscriber = co_await talker::to(cache->local());
        co_await expect(idle, "PING\r\n", "+PONG\r\n");
        co_await subscribe(subscriber, "c");
        co_await expect(b, "CLIENT KILL TYPE pubsub\r\n", ":1\r\n");
        EXPECT_EQ(co_await subscriber.rest(), "");
        co_await expect(b, "CLIENT KILL TYPE normal\r\n", ":1\r\n");
        EXPECT_EQ(co_await idle.rest(), "");
        // Itself: the reply is sent before.
        co_await b.say("CLIENT KILL TYPE normal SKIPME no\r\nSET x 1\r\n");
        EXPECT_EQ(co_await b.rest(), ":1\r\n");
        co_await until([&] { return cache->count().connections_now == 0; });
        co_await cache->stop(0s);
    });
}

task<std::string> number_of(talker& client) {
    co_await client.say("CLIENT ID\r\n");
    const std::string id = co_await client.line();
    co_return id.substr(1, id.size() - 2);
}

TEST_P(cache_clients, what_is_pushed_behind_a_kill_in_a_pipeline_stays) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker b = co_await talker::to(cache->local());
        std::vector<talker> waiting;
        std::string kills;
        std::string pushes;
        std::string replies;
        constexpr int count = 20;
        for (int i = 0; i < count; ++i) {
            waiting.push_back(co_await talker::to(cache->local()));
            kills += "CLIENT KILL ID " + co_await number_of(waiting.back()) + "\r\n";
            pushes += "RPUSH l " + std::to_string(i) + "\r\n";
            co_await block(waiting.back(), b, "BLPOP l 0\r\n", i + 1);
        }
        for (int i = 0; i < count; ++i) replies += ":1\r\n";
        for (int i = 0; i < count; ++i) replies += ":" + std::to_string(i + 1) + "\r\n";
        co_await expect(b, kills + pushes + "LLEN l\r\n", replies + ":20\r\n");
        for (talker& each : waiting) EXPECT_EQ(co_await each.rest(), "");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, what_is_pushed_behind_the_end_of_a_connection_stays) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker b = co_await talker::to(cache->local());
        for (const bool is_half : {false, true}) {
            talker a = co_await talker::to(cache->local());
            co_await block(a, b, "BLPOP l 0\r\n");
            if (is_half)
                must(a.socket.shutdown_write());
            else
                a.socket.close();
            co_await until([&] { return cache->count().connections_now == 1; });
            co_await expect(b, "RPUSH l 1\r\nLLEN l\r\nDEL l\r\n", ":1\r\n:1\r\n:1\r\n");
        }
        co_await cache->stop(0s);
    });
}

// A peer that ends its side and takes no replies keeps its connection until these are sent.
TEST_P(cache_clients, a_subscriber_that_has_ended_counts_no_more_while_its_replies_wait) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        // More than sockets take.
        const std::string value(32 << 20, 'v');
        co_await expect(b, encoded({"SET", "k", value}), "+OK\r\n");
        co_await a.say("HELLO 3\r\nSUBSCRIBE c\r\nGET k\r\n");
        for (;;) {
            co_await b.say("PUBSUB NUMSUB c\r\n");
            const std::string reply = co_await b.bytes(15);
            if (reply.ends_with(":1\r\n")) break;
            co_await loop::current().yield();
        }
        must(a.socket.shutdown_write());
        for (;;) {
            co_await b.say("PUBLISH c 1\r\n");
            if (co_await b.line() == ":0\r") break;
            co_await loop::current().yield();
        }
        EXPECT_EQ(cache->count().connections_now, 2U);
        EXPECT_THAT(co_await a.rest(), HasSubstr(value));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, a_pause_holds_clients_up_until_it_ends) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        co_await expect(b, "CLIENT PAUSE 100000 WRITE\r\n", "+OK\r\n");
        co_await a.say("GET x\r\nSET x 1\r\nGET x\r\n");
        co_await expect(a, "$-1\r\n");
        co_await expect(b, "GET x\r\nCLIENT UNPAUSE\r\n", "$-1\r\n+OK\r\n");
        co_await expect(a, "+OK\r\n" + bulk("1"));
        const time_point begin = here().now();
        co_await expect(b, "CLIENT PAUSE 30\r\n", "+OK\r\n");
        co_await expect(a, "PING\r\n", "+PONG\r\n");
        EXPECT_GE(here().now() - begin, 29ms);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, monitor_sees_commands_as_they_run) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker a = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        co_await expect(a, "MONITOR\r\n", "+OK\r\n");
        co_await expect(b, "SET k v\r\n", "+OK\r\n");
        EXPECT_THAT(co_await a.line(), HasSubstr("\"SET\" \"k\" \"v\""));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, clients_that_wait_for_others_are_never_idle) {
    if (!simulated()) GTEST_SKIP() << "needs a clock that nothing else disturbs";
    run([&]() -> task<void> {
        subject cache("cache", with({{"idle_timeout", "100ms"}}));
        co_await cache.start();
        talker subscriber = co_await talker::to(cache->local());
        talker waiting = co_await talker::to(cache->local());
        talker idle = co_await talker::to(cache->local());
        co_await subscribe(subscriber, "c");
        co_await waiting.say("BLPOP l 0\r\n");
        EXPECT_EQ(co_await idle.rest(), "");
        must(co_await here().sleep_for(1s));
        talker b = co_await talker::to(cache->local());
        co_await expect(b, "PUBLISH c x\r\nRPUSH l v\r\n", ":1\r\n:1\r\n");
        co_await expect(subscriber, message("c", "x"));
        co_await expect(waiting, popped("l", "v"));
        // Once they wait no more, they are idle like others.
        co_await subscriber.say("RESET\r\n");
        EXPECT_EQ(co_await subscriber.rest(), "+RESET\r\n");
        EXPECT_EQ(co_await waiting.rest(), "");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_clients, stopping_closes_waiting_clients_at_once) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker subscriber = co_await talker::to(cache->local());
        talker waiting = co_await talker::to(cache->local());
        talker b = co_await talker::to(cache->local());
        co_await subscribe(subscriber, "c");
        co_await block(waiting, b, "BLPOP l 0\r\nSET x 1\r\n");
        scope stopping(co_await current_source());
        stopping.spawn(cache->stop(100000s));
        EXPECT_EQ(co_await subscriber.rest(), "");
        EXPECT_EQ(co_await waiting.rest(), "");
        co_await stopping.join();
    });
}

/// Blocks, pops, publishes and subscribes; goes away in the middle of it.
task<void> come_and_go(endpoint where, int number, int& done) {
    talker client = co_await talker::to(where);
    const std::string own = std::to_string(number % 5);
    switch (number % 4) {
        case 0: co_await client.say("SUBSCRIBE c" + own + "\r\n"); break;
        case 1: co_await client.say("BLPOP l" + own + " 0\r\nPING\r\n"); break;
        case 2:
            co_await client.say("RPUSH l" + own + " a\r\nPUBLISH c" + own + " hello\r\n");
            break;
        default:
            co_await client.say("MULTI\r\nRPUSH l" + own + " a b\r\nPUBLISH c" + own +
                                " x\r\nEXEC\r\n");
            break;
    }
    for (int i = 0; i < number % 7; ++i) co_await loop::current().yield();
    if (number % 3 == 0) (void)co_await client.line();
    ++done;
}

TEST_P(cache_clients, clients_that_come_and_go_at_any_time_leave_nothing) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        constexpr int clients = 600;
        int done = 0;
        scope all(co_await current_source());
        // One that pushes in the end, so that no client waits for ever.
        talker last = co_await talker::to(cache->local());
        for (int i = 0; i < clients; ++i) {
            all.spawn(come_and_go(cache->local(), i, done));
            if (i % 50 == 49)
                co_await until([&] {
                    return cache->count().connections_total > static_cast<std::uint64_t>(i);
                });
        }
        while (all.children() > 0) {
            for (int i = 0; i < 5; ++i) {
                co_await last.say("RPUSH l" + std::to_string(i) + " z\r\n");
                EXPECT_THAT(co_await last.line(), StartsWith(":"));
            }
        }
        co_await all.join();
        EXPECT_EQ(done, clients);
        co_await until([&] { return cache->count().connections_now == 1; });
        co_await expect(last, "PUBSUB CHANNELS\r\n", "*0\r\n");
        co_await cache->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
