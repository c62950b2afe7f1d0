// Tests of CLIENT TRACKING ... REDIRECT over connections: a target that sends nothing gets each
// invalidation at once, whatever it does meanwhile.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(cache_tracking);

std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

/// Invalidation in RESP3.
std::string invalidation(const std::string& key) {
    return ">2\r\n" + bulk("invalidate") + "*1\r\n" + bulk(key);
}

/// Invalidation for a RESP2 subscriber.
std::string message(const std::string& key) {
    return "*3\r\n" + bulk("message") + bulk("__redis__:invalidate") + "*1\r\n" + bulk(key);
}

task<void> expect(talker& client, std::string request, std::string reply) {
    co_await client.say(request);
    EXPECT_EQ(co_await client.bytes(reply.size()), reply);
    EXPECT_EQ(client.unread, "");
}

/// Gets exactly that, and has sent nothing for it.
task<void> expect(talker& client, std::string text) {
    EXPECT_EQ(co_await client.bytes(text.size()), text);
    EXPECT_EQ(client.unread, "");
}

/// Sends the commands and drops the replies.
task<void> after(talker& client, std::string commands) {
    co_await client.say(commands + "\r\nECHO after\r\n");
    while (co_await client.line() != "after\r") {
    }
}

task<std::string> number_of(talker& client) {
    co_await client.say("CLIENT ID\r\n");
    const std::string line = co_await client.line();
    co_return line.substr(1, line.size() - 2);
}

/// A target that speaks RESP3, a source that tracks for it, and a third client.
struct clients {
    static task<clients> of(subject& cache, std::string options = "") {
        clients made;
        made.target = co_await talker::to(cache->local());
        made.source = co_await talker::to(cache->local());
        made.other = co_await talker::to(cache->local());
        co_await after(made.target, "HELLO 3");
        made.id = co_await number_of(made.target);
        co_await made.track(options);
        co_return made;
    }
    task<void> track(std::string options) {
        co_await expect(
            source,
            "CLIENT TRACKING OFF\r\nCLIENT TRACKING ON REDIRECT " + id + " " + options + "\r\n",
            "+OK\r\n+OK\r\n");
    }

    talker target;
    talker source;
    talker other;
    std::string id;
};

TEST_P(cache_tracking, a_silent_target_gets_invalidations_at_once) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        clients c = co_await clients::of(cache);
        co_await expect(c.source, "GET k\r\n", "$-1\r\n");
        co_await expect(c.other, "SET k 1\r\n", "+OK\r\n");
        co_await expect(c.target, invalidation("k"));
        // More than once, and of all keys.
        for (int i = 0; i < 10; ++i) {
            co_await after(c.source, "GET k");
            co_await expect(c.other, "SET k 1\r\n", "+OK\r\n");
            co_await expect(c.target, invalidation("k"));
        }
        co_await after(c.source, "GET k");
        co_await expect(c.other, "FLUSHALL\r\n", "+OK\r\n");
        co_await expect(c.target, ">2\r\n" + bulk("invalidate") + "$-1\r\n");
        // It is a client like any other.
        co_await expect(c.target, "PING\r\n", "+PONG\r\n");
        co_await after(c.source, "GET k");
        co_await expect(c.target, "SET k 2\r\n", "+OK\r\n" + invalidation("k"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_tracking, a_silent_target_stays_when_one_turn_has_several_invalidations_for_it) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        clients c = co_await clients::of(cache);
        const std::string on = "CLIENT TRACKING ON REDIRECT " + c.id;
        const std::string off = "\r\nCLIENT TRACKING OFF\r\n";
        for (int i = 0; i < 3; ++i) {
            std::string toggles;
            for (int n = 0; n <= i; ++n) toggles += on + off;
            co_await after(c.source, toggles);
            co_await expect(c.target, "PING\r\n", "+PONG\r\n");
        }
        // The first makes it a target, the second has an invalidation for it.
        co_await after(c.source, on + " BCAST\r\nSET k 1");
        co_await expect(c.target, invalidation("k"));
        co_await expect(c.target, "PING\r\n", "+PONG\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_tracking, a_silent_target_gets_them_with_each_option) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        clients c = co_await clients::of(cache, "BCAST PREFIX k");
        co_await expect(c.other, "SET k 1\r\n", "+OK\r\n");
        co_await expect(c.target, invalidation("k"));
        co_await c.track("BCAST NOLOOP PREFIX k");
        co_await expect(c.source, "SET k mine\r\n", "+OK\r\n");
        co_await expect(c.other, "SET k2 1\r\n", "+OK\r\n");
        co_await expect(c.target, invalidation("k2"));
        co_await c.track("NOLOOP");
        co_await after(c.source, "GET k\r\nSET k mine\r\nGET k2");
        co_await expect(c.other, "SET k2 1\r\n", "+OK\r\n");
        co_await expect(c.target, invalidation("k2"));
        co_await c.track("OPTIN");
        co_await after(c.source, "GET k\r\nCLIENT CACHING YES\r\nGET k2");
        co_await expect(c.other, "MSET k 1 k2 1\r\n", "+OK\r\n");
        co_await expect(c.target, invalidation("k2"));
        co_await c.track("OPTOUT");
        co_await after(c.source, "CLIENT CACHING NO\r\nGET k\r\nGET k2");
        co_await expect(c.other, "MSET k 1 k2 1\r\n", "+OK\r\n");
        co_await expect(c.target, invalidation("k2"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_tracking, a_silent_target_gets_those_of_expiry_eviction_and_the_tables_limit) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        clients c = co_await clients::of(cache, "BCAST");
        // One for the change and one for its end.
        co_await expect(c.other, "SET k 1 PX 10\r\n", "+OK\r\n");
        co_await expect(c.target, invalidation("k") + invalidation("k"));
        co_await c.track("");
        co_await after(c.other, "SET k 1");
        co_await after(c.source, "GET k");
        co_await after(c.other, "CONFIG SET maxmemory 1 maxmemory-policy allkeys-random");
        co_await expect(c.target, invalidation("k"));
        co_await after(c.other, "CONFIG SET maxmemory 0");
        for (int i = 0; i < 300; ++i) co_await after(c.source, "GET " + std::to_string(i));
        co_await after(c.other, "CONFIG SET tracking-table-max-keys 1");
        for (int told = 0; told < 299;) told += co_await c.target.line() == "invalidate\r" ? 1 : 0;
        co_await cache->stop(0s);
    });
}

TEST_P(cache_tracking, a_target_that_subscribes_gets_messages_and_pushes_once_it_speaks_resp3) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        talker target = co_await talker::to(cache->local());
        talker silent = co_await talker::to(cache->local());
        talker source = co_await talker::to(cache->local());
        talker other = co_await talker::to(cache->local());
        const std::string id = co_await number_of(target);
        co_await expect(target, "SUBSCRIBE __redis__:invalidate\r\n",
                        "*3\r\n" + bulk("subscribe") + bulk("__redis__:invalidate") + ":1\r\n");
        co_await after(source, "CLIENT TRACKING ON REDIRECT " + id + "\r\nGET k");
        co_await expect(other, "SET k 1\r\n", "+OK\r\n");
        co_await expect(target, message("k"));
        // The redirection stays when the target begins to speak RESP3.
        co_await after(source, "CLIENT TRACKING ON REDIRECT " + co_await number_of(silent));
        co_await after(silent, "HELLO 3");
        co_await after(source, "GET k");
        co_await expect(other, "SET k 1\r\n", "+OK\r\n");
        co_await expect(silent, invalidation("k"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_tracking, a_source_is_notified_that_its_target_is_gone) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        clients c = co_await clients::of(cache);
        co_await after(c.source, "HELLO 3\r\nGET k");
        c.target = talker();
        co_await until([&] { return cache->count().connections_now == 2; });
        co_await expect(c.other, "SET k 1\r\n", "+OK\r\n");
        co_await expect(c.source, ">2\r\n" + bulk("tracking-redir-broken") + ":" + c.id + "\r\n");
        co_await c.source.say("CLIENT TRACKINGINFO\r\nECHO end\r\n");
        std::string told;
        for (std::string line; line != "end\r"; told += line) line = co_await c.source.line();
        EXPECT_THAT(told, HasSubstr("broken_redirect"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_tracking, a_target_gets_them_in_the_middle_of_its_own_commands) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        // Between two bytes of a command, of a large argument, and behind one.
        const std::string value(3U << 20, 'v');
        const std::string set = "*3\r\n" + bulk("SET") + bulk("large") + bulk(value);
        for (const std::size_t at : {std::size_t{1}, std::size_t{25}, std::size_t{100},
                                     std::size_t{1} << 20, set.size() - 1}) {
            clients c = co_await clients::of(cache);
            const std::uint64_t before = cache->count().bytes_in;
            co_await c.target.say(set.substr(0, at));
            co_await until([&] { return cache->count().bytes_in == before + at; });
            for (int i = 0; i < 3; ++i) {
                co_await after(c.source, "GET k");
                co_await expect(c.other, "SET k 1\r\n", "+OK\r\n");
                co_await expect(c.target, invalidation("k"));
            }
            co_await expect(c.target, set.substr(at), "+OK\r\n");
            co_await expect(c.target, "STRLEN large\r\n", ":3145728\r\n");
            co_await after(c.source, "GET k");
            co_await expect(c.other, "SET k 1\r\n", "+OK\r\n");
            co_await expect(c.target, invalidation("k"));
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_tracking, no_input_of_a_target_is_lost_when_output_interrupts_its_read) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        // The target's command arrives together with its first invalidation.
        for (int round = 0; round < 100; ++round) {
            clients c = co_await clients::of(cache);
            co_await after(c.source, "GET k");
            co_await c.other.say("SET k 1\r\n");
            for (int i = 0; i < round % 5; ++i) co_await loop::current().yield();
            co_await c.target.say("ECHO mark\r\n");
            const std::string push = invalidation("k");
            const std::string echo = bulk("mark");
            const std::string got = co_await c.target.bytes(push.size() + echo.size());
            EXPECT_TRUE(got == push + echo || got == echo + push) << got;
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_tracking, a_target_is_never_idle_while_there_is_a_redirection) {
    if (!simulated()) GTEST_SKIP() << "needs a clock that nothing else disturbs";
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}, {"idle_timeout", "100ms"}});
        co_await cache.start();
        clients c = co_await clients::of(cache);
        talker idle = co_await talker::to(cache->local());
        EXPECT_EQ(co_await idle.rest(), "");
        must(co_await here().sleep_for(1s));
        co_await after(c.source, "GET k");
        talker other = co_await talker::to(cache->local());
        co_await expect(other, "SET k 1\r\n", "+OK\r\n");
        co_await expect(c.target, invalidation("k"));
        co_await after(c.source, "CLIENT TRACKING OFF");
        EXPECT_EQ(co_await c.target.rest(), "");
        co_await cache->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
