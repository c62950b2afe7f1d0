// Tests of clients that write much before they read: pipelines written whole, their cost, and the
// limits at which they are closed or wait.
#include <eddy/base/random.hpp>

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(cache_duplex);

std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

/// A pipeline and the replies to it.
struct conversation {
    std::string requests;
    std::string replies;

    void add(const std::string& request, const std::string& reply) {
        requests += request;
        replies += reply;
    }
    void echo(const std::string& text) { add("*2\r\n$4\r\nECHO\r\n" + bulk(text), bulk(text)); }
};

/// More than the kernel, the replies that may wait, and a turn's input take together.
conversation long_one(std::size_t commands = 40'000) {
    conversation made;
    for (std::size_t i = 0; i < commands; ++i) {
        std::string text = std::to_string(i);
        text.resize(1000, 'x');
        made.echo(text);
    }
    return made;
}

/// Writes it whole, and reads the first reply only then.
task<void> hold(talker& client, conversation all) {
    co_await client.say(all.requests);
    const std::string got = co_await client.bytes(all.replies.size());
    EXPECT_TRUE(got == all.replies);
    EXPECT_EQ(client.unread, "");
}

task<void> expect(talker& client, std::string request, std::string reply) {
    co_await client.say(request);
    EXPECT_EQ(co_await client.bytes(reply.size()), reply);
}

task<std::string> ask_bulk(talker& client, std::string request) {
    co_await client.say(request + "\r\n");
    const std::string head = co_await client.line();
    co_return co_await client.bytes(std::stoul(head.substr(1)) + 2);
}

/// A field of CLIENT LIST for the client of that name; 0 when it is not there.
task<std::size_t> listed(talker& looker, std::string name, std::string field) {
    const std::string all = co_await ask_bulk(looker, "CLIENT LIST");
    const std::size_t at = all.find(" name=" + name + " ");
    if (at == std::string::npos) co_return 0;
    const std::size_t found = all.find(" " + field + "=", at);
    co_return std::stoul(all.substr(found + field.size() + 2));
}

TEST_P(cache_duplex, a_pipeline_that_is_written_whole_is_answered) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        // Twice, and single commands between: it is served as before afterwards.
        for (int i = 0; i < 2; ++i) {
            co_await hold(client, long_one());
            co_await expect(client, "PING\r\n", "+PONG\r\n");
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_duplex, one_of_a_client_that_others_send_to_as_well) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        co_await client.say("HELLO 3\r\nSUBSCRIBE news\r\nPING\r\n");
        while (co_await client.line() != "+PONG\r") {
        }
        co_await hold(client, long_one());
        talker other = co_await talker::to(cache->local());
        co_await expect(other, "PUBLISH news now\r\n", ":1\r\n");
        const std::string message = ">3\r\n" + bulk("message") + bulk("news") + bulk("now");
        EXPECT_EQ(co_await client.bytes(message.size()), message);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_duplex, its_replies_come_to_the_end_of_what_was_written) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        for (const std::string end : {"", "QUIT\r\n"}) {
            talker client = co_await talker::to(cache->local());
            conversation all = long_one();
            if (!end.empty()) all.add(end, "+OK\r\n");
            co_await client.say(all.requests);
            if (end.empty()) must(client.socket.shutdown_write());
            EXPECT_TRUE(co_await client.rest() == all.replies);
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_duplex, others_are_served_while_one_is_executed) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        talker other = co_await talker::to(cache->local());
        conversation all = long_one();
        scope holding(co_await current_source());
        bool is_over = false;
        holding.spawn([](talker& by, conversation what, bool& over) -> task<void> {
            co_await hold(by, std::move(what));
            over = true;
        }(client, std::move(all), is_over));
        int answered = 0;
        while (!is_over) {
            co_await expect(other, "PING\r\n", "+PONG\r\n");
            ++answered;
        }
        // 40 MB are some hundred blocks of commands, and it has its turn between them.
        EXPECT_GT(answered, 10);
        co_await holding.join();
        co_await cache->stop(0s);
    });
}

TEST_P(cache_duplex, any_commands_keep_their_order) {
    run([&]() -> task<void> {
        subject cache("cache", with({{"config", "client-query-buffer-limit 40mb"}}));
        co_await cache.start();
        for (int round = 0; round < 3; ++round) {
            talker client = co_await talker::to(cache->local());
            co_await expect(client, "FLUSHALL\r\n", "+OK\r\n");
            conversation all;
            int number = 0;
            int pushed = 0;
            while (all.requests.size() < (30U << 20)) {
                std::string text(random().below(random().chance(0.02) ? 200'000 : 2'000), 'x');
                switch (random().below(6)) {
                    case 0: all.echo(text); break;
                    case 1:
                        all.add("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n" + bulk(text), "+OK\r\n");
                        all.add("GET k\r\n", bulk(text));
                        break;
                    case 2: all.add("INCR n\r\n", ":" + std::to_string(++number) + "\r\n"); break;
                    case 3:
                        all.add("MULTI\r\nINCR n\r\n*2\r\n$4\r\nECHO\r\n" + bulk(text) + "EXEC\r\n",
                                "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:" + std::to_string(++number) +
                                    "\r\n" + bulk(text));
                        break;
                    case 4:
                        // From here on others may send to it.
                        all.add("RPUSH l " + std::to_string(pushed) + "\r\nBLPOP l 0\r\n",
                                ":1\r\n*2\r\n" + bulk("l") + bulk(std::to_string(pushed)));
                        ++pushed;
                        break;
                    default:
                        all.add("NOSUCH\r\n",
                                "-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
                }
            }
            co_await hold(client, std::move(all));
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_duplex, a_full_query_buffer_closes_a_client_that_takes_no_reply) {
    run([&]() -> task<void> {
        constexpr std::size_t limit = 1U << 20;
        subject cache("cache", any_port);
        co_await cache.start();
        talker looker = co_await talker::to(cache->local());
        // For the clients that are there already, too.
        talker client = co_await talker::to(cache->local());
        co_await expect(client, "CLIENT SETNAME it\r\n", "+OK\r\n");
        co_await expect(looker, "CONFIG SET client-query-buffer-limit 1mb\r\n", "+OK\r\n");
        EXPECT_THAT(co_await ask_bulk(looker, "INFO stats"),
                    HasSubstr("client_query_buffer_limit_disconnections:0\r\n"));
        std::size_t most = 0;
        std::size_t whole = 0;
        const conversation all = long_one();
        scope saying(co_await current_source());
        saying.spawn([](talker& by, const std::string& text) -> task<void> {
            static_cast<void>(co_await by.socket.write_all(text));
        }(client, all.requests));
        // The replies that wait come on top.
        while (whole < limit + (8U << 20) || most < limit) {
            most = std::max(most, co_await listed(looker, "it", "qbuf"));
            whole = std::max(whole, co_await listed(looker, "it", "tot-mem"));
            if (!co_await here().sleep_for(1ms)) co_return;
        }
        EXPECT_LT(most, limit + (256U << 10));
        EXPECT_GE(most, limit);
        EXPECT_LT(whole, limit + (10U << 20));
        co_await until([&] { return cache->count().connections_now == 1; });
        co_await saying.join();
        EXPECT_TRUE(cache.events.has("over client-query-buffer-limit"));
        EXPECT_THAT(co_await ask_bulk(looker, "INFO stats"),
                    HasSubstr("client_query_buffer_limit_disconnections:1\r\n"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_duplex, a_full_query_buffer_waits_for_a_client_that_reads_slowly) {
    if (!simulated()) GTEST_SKIP() << "needs a clock that nothing else disturbs";
    run([&]() -> task<void> {
        subject cache("cache", with({{"config", "client-query-buffer-limit 1mb"}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        const conversation all = long_one(16'000);
        scope saying(co_await current_source());
        saying.spawn(client.say(all.requests));
        std::string got;
        while (got.size() < all.replies.size()) {
            must(co_await here().sleep_for(100ms));
            got += co_await client.bytes(
                std::min<std::size_t>(all.replies.size() - got.size(), 100'000));
        }
        EXPECT_TRUE(got == all.replies);
        co_await saying.join();
        co_await cache->stop(0s);
    });
}

TEST_P(cache_duplex, one_that_writes_on_for_long_is_not_stuck) {
    if (!simulated()) GTEST_SKIP() << "needs a clock that nothing else disturbs";
    run([&]() -> task<void> {
        subject cache("cache", with({{"write_timeout", "300ms"}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        conversation all = long_one(2'000);
        co_await client.say(all.requests);
        for (int i = 0; i < 50; ++i) {
            must(co_await here().sleep_for(100ms));
            conversation more;
            more.echo(std::to_string(i));
            co_await client.say(more.requests);
            all.replies += more.replies;
        }
        EXPECT_TRUE(co_await client.bytes(all.replies.size()) == all.replies);
        // Neither reading nor writing, it is.
        conversation last = long_one(2'000);
        co_await client.say(last.requests);
        co_await until([&] { return cache->count().connections_now == 0; });
        co_await cache->stop(0s);
    });
}

TEST_P(cache_duplex, the_limit_of_all_clients_memory_counts_what_waits) {
    run([&]() -> task<void> {
        subject cache("cache", with({{"maxmemory_clients", "4mb"}}));
        co_await cache.start();
        talker looker = co_await talker::to(cache->local());
        talker client = co_await talker::to(cache->local());
        const conversation all = long_one();
        EXPECT_FALSE(co_await client.socket.write_all(all.requests));
        EXPECT_THAT(co_await ask_bulk(looker, "INFO stats"), HasSubstr("evicted_clients:1\r\n"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_duplex, a_stop_comes_to_its_end_beside_one_that_takes_no_reply) {
    run([&]() -> task<void> {
        subject cache("cache", any_port);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        const conversation all = long_one(20'000);
        scope saying(co_await current_source());
        saying.spawn([](talker& by, const std::string& text) -> task<void> {
            static_cast<void>(co_await by.socket.write_all(text));
        }(client, all.requests));
        co_await until([&] { return cache->count().bytes_in > (9U << 20); });
        co_await cache->stop(0s);
        client.socket.close();
        co_await saying.join();
        EXPECT_EQ(cache->count().connections_now, 0U);
    });
}

}  // namespace
}  // namespace eddy::runtime
