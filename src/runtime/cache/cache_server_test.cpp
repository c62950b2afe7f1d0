// Tests of the cache runtime with clients that behave: commands, pipelines, options, start and
// stop.
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

EDDY_ON_EVERY_IO_BACKEND(cache_server);

double extra(subject& cache, std::string_view name) {
    const std::optional<double> found = sample_of(*cache, name);
    if (!found) throw std::runtime_error("no such counter");
    return *found;
}

/// Says `request` and gets a reply of exactly that size.
task<void> expect(talker& client, std::string request, std::string reply) {
    co_await client.say(request);
    EXPECT_EQ(co_await client.bytes(reply.size()), reply);
    EXPECT_EQ(client.unread, "");
}

std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

TEST_P(cache_server, answers_commands_in_both_forms) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        EXPECT_EQ(cache->local().host(), "127.0.0.1");
        talker client = co_await talker::to(cache->local());
        co_await expect(client, "PING\r\n", "+PONG\r\n");
        co_await expect(client, encoded({"SET", "key", "value"}), "+OK\r\n");
        co_await expect(client, encoded({"GET", "key"}), "$5\r\nvalue\r\n");
        co_await expect(client, "get nothing\n", "$-1\r\n");
        const std::string binary("\0\r\n\xff", 4);
        co_await expect(client, encoded({"SET", binary, binary}), "+OK\r\n");
        co_await expect(client, encoded({"GET", binary}), bulk(binary));
        co_await expect(client, "HELLO 3\r\nGET nothing\r\n",
                        (co_await [](talker& c) -> task<std::string> {
                            co_await c.say("HELLO 3\r\n");
                            std::string reply = co_await c.bytes(1);
                            while (!reply.ends_with("modules\r\n*0\r\n"))
                                reply += co_await c.bytes(1);
                            co_return reply;
                        }(client)) +
                            "_\r\n");

        const metrics counted = cache->count();
        EXPECT_EQ(counted.connections_now, 1U);
        EXPECT_EQ(counted.messages_in, 9U);
        EXPECT_EQ(counted.errors, 0U);
        EXPECT_GT(counted.latency->count(), 0U);
        EXPECT_EQ(extra(cache, "keys"), 2);
        EXPECT_EQ(extra(cache, "hits_total"), 2);
        EXPECT_EQ(extra(cache, "misses_total"), 2);
        EXPECT_GT(extra(cache, "used_memory_bytes"), 0);
        co_await cache->stop(0s);
        EXPECT_EQ(cache->count().connections_now, 0U);
        EXPECT_EQ(extra(cache, "keys"), 0);
        EXPECT_EQ(extra(cache, "hits_total"), 2);
    });
}

TEST_P(cache_server, a_pipeline_of_any_length_is_answered_in_order) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        for (const int commands : {1, 2, 127, 128, 129, 1000, 20'000}) {
            std::string requests;
            std::string replies;
            for (int i = 0; i < commands; ++i) {
                const std::string text = "value " + std::to_string(i) +
                                         std::string(static_cast<std::size_t>(i % 50), '.');
                requests += encoded({"ECHO", text});
                replies += bulk(text);
            }
            struct writing {
                static task<void> all(talker& to, std::string text) { co_await to.say(text); }
            };
            scope tasks(co_await current_source());
            tasks.spawn(writing::all(client, requests));
            EXPECT_EQ(co_await client.bytes(replies.size()), replies);
            co_await tasks.join();
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_server, replies_far_larger_than_any_buffer_stay_in_order) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        const std::string large(300'000, 'L');
        co_await expect(client, encoded({"SET", "large", large}), "+OK\r\n");
        // Each batch stops several times for its replies, between commands that change things, and
        // the last command comes later.
        std::string requests;
        for (int i = 0; i < 200; ++i) {
            requests += encoded({"INCR", "counter"});
            requests += encoded({"GET", "large"});
            if (i % 7 == 0) requests += "ECHO inline" + std::to_string(i) + "\r\n";
        }
        co_await client.say(requests + "ECHO la");
        for (int i = 0; i < 200; ++i) {
            const std::string count = ":" + std::to_string(i + 1) + "\r\n";
            EXPECT_EQ(co_await client.bytes(count.size()), count);
            EXPECT_EQ(co_await client.bytes(bulk(large).size()), bulk(large));
            if (i % 7 == 0) {
                const std::string echoed = bulk("inline" + std::to_string(i));
                EXPECT_EQ(co_await client.bytes(echoed.size()), echoed);
            }
        }
        co_await expect(client, "st\r\n", bulk("last"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_server, a_large_value_arrives_whole) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        std::string value(20 << 20, 'v');
        for (std::size_t i = 0; i < value.size(); i += 997) value[i] = static_cast<char>(i);
        co_await client.say("PING\r\n" + encoded({"SET", "k", value}) + encoded({"GET", "k"}));
        EXPECT_EQ(co_await client.bytes(12), "+PONG\r\n+OK\r\n");
        EXPECT_TRUE(co_await client.bytes(bulk(value).size()) == bulk(value));
        co_await expect(client, "PING\r\n", "+PONG\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_server, quit_answers_what_came_before_and_nothing_after) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        co_await client.say("SET a 1\r\nQUIT\r\nSET a 2\r\n");
        EXPECT_EQ(co_await client.rest(), "+OK\r\n+OK\r\n");
        talker other = co_await talker::to(cache->local());
        co_await expect(other, "GET a\r\n", bulk("1"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_server, connections_over_the_limit_get_rediss_error) {
    run([&]() -> task<void> {
        subject cache("cache", with({{"max_connections", 1}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        co_await expect(client, "PING\r\n", "+PONG\r\n");
        talker late = co_await talker::to(cache->local());
        EXPECT_EQ(co_await late.rest(), "-ERR max number of clients reached\r\n");
        EXPECT_EQ(cache->count().connections_refused, 1U);
        must_do(cache->apply(cache.parse(with({{"max_connections", 2}}))));
        talker now = co_await talker::to(cache->local());
        co_await expect(now, "PING\r\n", "+PONG\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_server, readonly_refuses_what_writes) {
    run([&]() -> task<void> {
        subject cache("cache", with({{"mode", "readonly"}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        co_await client.say("SET a 1\r\nGET a\r\n");
        EXPECT_THAT(co_await client.line(), StartsWith("-READONLY"));
        EXPECT_EQ(co_await client.line(), "$-1\r");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_server, memory_is_limited_by_refusing_or_by_evicting) {
    run([&]() -> task<void> {
        for (const bool evict : {false, true}) {
            json options = with({{"maxmemory", "2M"}});
            if (evict) options["eviction"] = "allkeys-lru";
            subject cache("cache", options);
            co_await cache.start();
            talker client = co_await talker::to(cache->local());
            const std::string value(1000, 'x');
            int refused = 0;
            for (int i = 0; i < 4000; ++i) {
                co_await client.say(encoded({"SET", "key" + std::to_string(i), value}));
                const std::string reply = co_await client.line();
                if (reply.starts_with("-OOM"))
                    ++refused;
                else
                    EXPECT_EQ(reply, "+OK\r");
            }
            if (evict) {
                EXPECT_EQ(refused, 0);
                EXPECT_GT(extra(cache, "evicted_keys_total"), 1000);
            } else {
                EXPECT_GT(refused, 1000);
                EXPECT_EQ(extra(cache, "evicted_keys_total"), 0);
            }
            EXPECT_LT(extra(cache, "used_memory_bytes"), 3 << 20);
            EXPECT_EQ(extra(cache, "maxmemory_bytes"), 2 << 20);
            co_await cache->stop(0s);
        }
    });
}

TEST_P(cache_server, keys_expire_without_being_read) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        std::string requests = "SET stays 1\r\n";
        for (int i = 0; i < 500; ++i) requests += "SET k" + std::to_string(i) + " v PX 30\r\n";
        co_await client.say(requests);
        for (int i = 0; i < 501; ++i) EXPECT_EQ(co_await client.line(), "+OK\r");
        co_await until([&] { return extra(cache, "keys") == 1; });
        EXPECT_EQ(extra(cache, "expired_keys_total"), 500);
        co_await expect(client, "GET stays\r\n", bulk("1"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_server, idle_clients_are_closed_and_waiting_ones_are_not) {
    run([&]() -> task<void> {
        // A busy machine may be slower than a short limit.
        subject cache("cache", with({{"idle_timeout", simulated() ? "200ms" : "2s"}}));
        co_await cache.start();
        talker idle = co_await talker::to(cache->local());
        talker half = co_await talker::to(cache->local());
        co_await half.say("*2\r\n$3\r\nGET");
        talker busy = co_await talker::to(cache->local());
        const time_point before = here().now();
        while (cache->count().connections_now == 3 || here().now() - before < 300ms) {
            co_await expect(busy, "PING\r\n", "+PONG\r\n");
            static_cast<void>(co_await here().sleep_for(10ms));
        }
        EXPECT_GE(here().now() - before, 200ms);
        EXPECT_EQ(co_await idle.rest(), "");
        EXPECT_EQ(co_await half.rest(), "");
        co_await expect(busy, "PING\r\n", "+PONG\r\n");
        EXPECT_EQ(cache->count().connections_now, 1U);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_server, stopping_closes_idle_clients_and_finishes_the_others) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker idle = co_await talker::to(cache->local());
        co_await expect(idle, "PING\r\n", "+PONG\r\n");
        talker client = co_await talker::to(cache->local());
        const std::string value(1 << 20, 'v');
        co_await expect(client, encoded({"SET", "k", value}), "+OK\r\n");
        std::string requests;
        for (int i = 0; i < 20; ++i) requests += "GET k\r\n";
        co_await client.say(requests);
        co_await until([&] { return cache->count().bytes_in >= value.size() + requests.size(); });

        scope stopping(co_await current_source());
        stopping.spawn(cache->stop(30s));
        EXPECT_EQ(co_await idle.rest(), "");
        EXPECT_EQ((co_await client.rest()).size(), 20 * bulk(value).size());
        co_await stopping.join();
        EXPECT_EQ(cache->local().family(), AF_UNSPEC);
        EXPECT_EQ(cache->count().connections_now, 0U);

        // It starts again, empty.
        co_await cache.start();
        talker again = co_await talker::to(cache->local());
        co_await expect(again, "GET k\r\n", "$-1\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_server, a_message_cannot_be_sent_to_it) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        const auto refused = co_await cache->send("hello");
        EXPECT_EQ(refused.error().status, 400);
        EXPECT_THAT(refused.error().message, HasSubstr("use: eddy db "));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_server, the_second_on_a_port_names_the_first_in_its_error) {
    run([&]() -> task<void> {
        const neighbours all;
        subject first("cache", any_port, "first", all);
        co_await first.start();
        json same = {{"port", first->local().port()}};
        subject second("cache", same, "second", all);
        EXPECT_THAT(co_await second.failure_to_start(),
                    HasSubstr("the runtime first serves on TCP port"));
        same["bind"] = "*";
        subject third("server", same, "third", all);
        EXPECT_THAT(co_await third.failure_to_start(),
                    HasSubstr("the runtime first serves on TCP port"));
        co_await first->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
