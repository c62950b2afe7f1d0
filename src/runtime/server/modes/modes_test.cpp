// Tests of a server's modes with clients: the master, and commands to a cache.
#include "runtime/server/modes/cache_link.hpp"
#include "runtime/server/modes/claim.hpp"
#include "runtime/server/options.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(server_modes);

const json of_master = with({{"mode", "master"}, {"master_password", "sesame"}});

json forwarding(json others = json::object()) {
    others.update({{"master_forward", true}});
    return with(others, of_master);
}

task<talker> join(subject& server) {
    const std::uint64_t before = server->count().connections_now;
    talker made = co_await talker::to(server->local());
    co_await until([&] { return server->count().connections_now > before; });
    co_return made;
}

task<void> become_master(talker& by) {
    co_await by.say("master sesame\n");
    EXPECT_EQ(co_await by.line(), "master: ok");
}

TEST_P(server_modes, the_masters_messages_reach_all_and_those_of_others_none) {
    run([&]() -> task<void> {
        subject server("server", of_master);
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        talker c = co_await join(server);
        co_await b.say("too early\n");
        co_await become_master(a);
        EXPECT_EQ(sample_of(*server, "master"), 1.0);
        co_await b.say("lost\n");
        co_await until([&] { return server->count().messages_in == 3; });
        co_await a.say("one\ntwo\n");
        for (talker* const each : {&b, &c}) {
            EXPECT_EQ(co_await each->line(), "one");
            EXPECT_EQ(co_await each->line(), "two");
        }
        EXPECT_EQ(must_do(co_await server->send("news")), 3U);
        for (talker* const each : {&a, &b, &c}) EXPECT_EQ(co_await each->line(), "news");
        co_await server->stop(0s);
        EXPECT_EQ(sample_of(*server, "master"), 0.0);
        EXPECT_EQ(sample_of(*server, "master_claims_total"), 1.0);
    });
}

TEST_P(server_modes, the_master_gets_the_others_messages_with_their_numbers) {
    run([&]() -> task<void> {
        subject server("server", forwarding());
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        talker c = co_await join(server);
        co_await become_master(b);
        co_await a.say("hello\n\n");
        EXPECT_EQ(co_await b.line(), "[1] hello");
        EXPECT_EQ(co_await b.line(), "[1] ");
        co_await c.say("hi");
        must(c.socket.shutdown_write());
        EXPECT_EQ(co_await b.line(), "[3] hi");
        co_await b.say("to all\n");
        EXPECT_EQ(co_await a.line(), "to all");
        co_await server->stop(1s);
        EXPECT_EQ(co_await a.rest(), "");
        EXPECT_EQ(co_await b.rest(), "");
    });
}

TEST_P(server_modes, lines_that_are_forwarded_come_whole_and_in_order) {
    run([&]() -> task<void> {
        constexpr int lines = 5000;
        subject server(
            "server",
            forwarding({{"max_queue", "64k"}, {"max_line", "8k"}, {"slow_reader", "wait"}}));
        co_await server.start();
        talker master = co_await join(server);
        talker other = co_await join(server);
        co_await become_master(master);
        co_await with_scope([&](scope& sending) -> task<void> {
            sending.spawn([](talker& by) -> task<void> {
                std::string all;
                for (int i = 0; i < lines; ++i) all += std::to_string(i % 10) + "\n";
                all += std::string(8000, 'x') + "\n";
                co_await by.say(std::move(all));
            }(other));
            for (int i = 0; i < lines; ++i)
                EXPECT_EQ(co_await master.line(), "[2] " + std::to_string(i % 10));
            EXPECT_EQ(co_await master.line(), "[2] " + std::string(8000, 'x'));
        });
        EXPECT_EQ(server->count().dropped, 0U);
        co_await server->stop(0s);
    });
}

TEST_P(server_modes, when_the_master_leaves_another_client_may_claim) {
    run([&]() -> task<void> {
        subject server("server", of_master);
        co_await server.start();
        talker b = co_await join(server);
        {
            talker a = co_await join(server);
            co_await become_master(a);
            co_await b.say("master sesame\n");
            EXPECT_THAT(co_await b.line(), StartsWith("master: denied: there is a master"));
        }
        co_await until([&] { return sample_of(*server, "master") == 0.0; });
        EXPECT_TRUE(server.events.has("client 2, the master, left"));
        co_await become_master(b);
        EXPECT_EQ(sample_of(*server, "master_claims_total"), 2.0);
        EXPECT_EQ(sample_of(*server, "master_claims_refused_total"), 1.0);
        co_await server->stop(0s);
    });
}

TEST_P(server_modes, wrong_passwords_are_refused_and_then_all_from_the_address) {
    run([&]() -> task<void> {
        subject server("server", of_master);
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        for (unsigned i = 0; i < server::max_wrong_passwords; ++i) {
            co_await a.say("master guess\n");
            EXPECT_EQ(co_await a.line(), "master: denied");
        }
        co_await b.say("master sesame\n");
        EXPECT_THAT(co_await b.line(), HasSubstr("too many wrong passwords"));
        EXPECT_TRUE(server.events.has("gave a wrong password of the master"));
        EXPECT_TRUE(server.events.has("5 wrong passwords within a minute"));
        EXPECT_EQ(sample_of(*server, "master"), 0.0);
        EXPECT_EQ(sample_of(*server, "master_claims_refused_total"), 6.0);
        co_await server->stop(0s);
    });
}

TEST_P(server_modes, no_password_reaches_clients_the_journal_or_the_log) {
    // The disk has a thread of its own.
    run_with_threads([&]() -> task<void> {
        const temporary_folder folder;
        const std::string log = folder.file("log");
        subject server("server", forwarding({{"log", log}, {"log_traffic", true}}));
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        co_await become_master(a);
        co_await b.say("master gue");
        co_await b.say("ss\nmaster sesame\r\nhello\n");
        EXPECT_EQ(co_await b.line(), "master: denied");
        EXPECT_THAT(co_await b.line(), StartsWith("master: denied: there is"));
        EXPECT_EQ(co_await a.line(), "[2] hello");
        co_await server->stop(1s);
        EXPECT_EQ(co_await a.rest(), "");
        EXPECT_FALSE(server.events.has("sesame"));
        EXPECT_FALSE(server.events.has("guess"));
        EXPECT_EQ(content(log), "hello\n");
    });
}

TEST_P(server_modes, a_change_of_the_mode_or_password_is_live_and_ends_the_claim) {
    run([&]() -> task<void> {
        subject server("server", of_master);
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        co_await become_master(a);
        must_do(server->apply(server.parse(forwarding())));
        co_await b.say("now\n");
        EXPECT_EQ(co_await a.line(), "[2] now");
        must_do(server->apply(server.parse(with({{"master_password", "other"}}, of_master))));
        EXPECT_EQ(co_await a.line(), "master: ended");
        co_await a.say("master sesame\n");
        EXPECT_EQ(co_await a.line(), "master: denied");
        co_await b.say("master other\n");
        EXPECT_EQ(co_await b.line(), "master: ok");
        must_do(server->apply(server.parse(any_port)));
        EXPECT_EQ(co_await b.line(), "master: ended");
        EXPECT_EQ(sample_of(*server, "master"), 0.0);
        co_await a.say("master of ceremonies\n");
        EXPECT_EQ(co_await b.line(), "master of ceremonies");
        must_do(server->apply(server.parse(with({{"mode", "in"}}))));
        co_await a.say("for the journal\n");
        co_await until([&] { return server.events.has("client 1: for the journal"); });
        must_do(server->apply(server.parse(with({{"mode", "out"}}))));
        co_await a.say("for none\n");
        EXPECT_EQ(must_do(co_await server->send("news")), 2U);
        EXPECT_EQ(co_await a.line(), "news");
        EXPECT_EQ(co_await b.line(), "news");
        co_await server->stop(0s);
    });
}

TEST_P(server_modes, the_password_is_read_from_its_file_at_start_edit_and_reload) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const std::string path = folder.file("password");
        const auto write = [&](std::string_view text) { std::ofstream(path) << text; };
        const json of_file = with({{"mode", "master"}, {"master_password_file", path}});
        subject server("server", of_file);
        EXPECT_THAT(co_await server.failure_to_start(), HasSubstr("cannot be read"));
        write("");
        EXPECT_THAT(co_await server.failure_to_start(), HasSubstr("has no password"));
        write("two\nlines\n");
        EXPECT_THAT(co_await server.failure_to_start(), HasSubstr("must be one line"));
        write(std::string(server::max_master_password + 1, 'x') + "\n");
        EXPECT_THAT(co_await server.failure_to_start(), HasSubstr("at most 1024"));
        write("first\n");
        co_await server.start();
        talker a = co_await join(server);
        co_await a.say("master first\n");
        EXPECT_EQ(co_await a.line(), "master: ok");
        EXPECT_TRUE(must_do(co_await server->reread()));
        write("second\r\n");
        EXPECT_EQ(sample_of(*server, "master"), 1.0);
        EXPECT_TRUE(must_do(co_await server->reread()));
        EXPECT_EQ(co_await a.line(), "master: ended");
        co_await a.say("master second\n");
        EXPECT_EQ(co_await a.line(), "master: ok");
        write("");
        EXPECT_FALSE(co_await server->reread());
        EXPECT_FALSE(server->apply(server.parse(of_file)));
        EXPECT_EQ(sample_of(*server, "master"), 1.0);
        co_await server->stop(0s);
    });
}

TEST_P(server_modes, with_several_threads_there_is_one_master) {
    run([&]() -> task<void> {
        subject server("server", forwarding({{"threads", 3}}));
        co_await server.start();
        std::vector<talker> all;
        for (int i = 0; i < 6; ++i) all.push_back(co_await join(server));
        co_await become_master(all[0]);
        for (std::size_t i = 1; i < all.size(); ++i) {
            co_await all[i].say("master sesame\nfrom " + std::to_string(i) + "\n");
            EXPECT_THAT(co_await all[i].line(), StartsWith("master: denied: there is"));
            EXPECT_THAT(co_await all[0].line(), HasSubstr("] from " + std::to_string(i)));
        }
        co_await all[0].say("to all\n");
        for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(co_await all[i].line(), "to all");
        all.erase(all.begin());
        co_await until([&] { return sample_of(*server, "master") == 0.0; });
        co_await become_master(all[4]);
        co_await all[0].say("again\n");
        EXPECT_THAT(co_await all[4].line(), HasSubstr("] again"));
        must_do(server->apply(server.parse(with({{"threads", 3}}))));
        EXPECT_EQ(co_await all[4].line(), "master: ended");
        co_await server->stop(0s);
        EXPECT_EQ(sample_of(*server, "master_claims_total"), 2.0);
        EXPECT_EQ(sample_of(*server, "master_claims_refused_total"), 5.0);
    });
}

// --- Commands to a cache ----------------------------------------------------------------------

/// A cache, and a server that names it.
struct cache_and_server {
    explicit cache_and_server(json options = json::object(), json of_cache = json::object())
        : cache_host(std::make_shared<test_host>(among, "db")),
          cache("cache", with(std::move(of_cache)), "db", cache_host),
          server("server", with(std::move(options), with({{"cache", "db"}})), "room", among) {}

    task<void> start() {
        co_await cache.start();
        cache_host->has_started();
        co_await server.start();
    }
    task<void> stop() {
        co_await server->stop(0s);
        cache_host->stops();
        co_await cache->stop(0s);
    }

    neighbours among;
    std::shared_ptr<test_host> cache_host;
    subject cache;
    subject server;
};

TEST_P(server_modes, a_client_has_the_commands_of_a_cache) {
    run([&]() -> task<void> {
        cache_and_server both;
        co_await both.start();
        talker a = co_await join(both.server);
        talker b = co_await join(both.server);
        co_await a.say("cache set k \"two words\"\ncache get k\ncache get none\nhello\n");
        EXPECT_EQ(co_await a.line(), "ok");
        EXPECT_EQ(co_await a.line(), "two words");
        EXPECT_EQ(co_await a.line(), "nil");
        EXPECT_EQ(co_await b.line(), "hello");
        co_await b.say("cache rpush l x y\r\ncache lrange l 0 -1\ncache flushall\ncache size\n");
        for (const char* const line : {"2", "x", "y", "end"}) EXPECT_EQ(co_await b.line(), line);
        EXPECT_EQ(co_await b.line(), "error: \"flushall\" is not for clients of a server");
        EXPECT_EQ(co_await b.line(), "2");
        co_await b.say("cache incr k\nlast\n");
        EXPECT_EQ(co_await b.line(), "error: ERR value is not an integer or out of range");
        EXPECT_EQ(co_await a.line(), "last");
        EXPECT_EQ(sample_of(*both.server, "cache_commands_total"), 8.0);
        EXPECT_EQ(sample_of(*both.server, "cache_failures_total"), 0.0);
        EXPECT_EQ(both.server->count().messages_in, 10U);
        co_await both.stop();
    });
}

TEST_P(server_modes, commands_are_answered_in_their_order_however_many_come) {
    run([&]() -> task<void> {
        constexpr int commands = 1000;
        cache_and_server both;
        co_await both.start();
        talker a = co_await join(both.server);
        std::string all;
        for (int i = 0; i < commands; ++i) all += "cache incr n\ncache none\n";
        co_await a.say(all + "cache get n");
        must(a.socket.shutdown_write());
        for (int i = 1; i <= commands; ++i) {
            EXPECT_EQ(co_await a.line(), std::to_string(i));
            EXPECT_THAT(co_await a.line(), StartsWith("error: there is no command"));
        }
        EXPECT_EQ(co_await a.line(), std::to_string(commands));
        EXPECT_EQ(co_await a.rest(), "");
        co_await both.stop();
    });
}

TEST_P(server_modes, more_clients_than_connections_to_the_cache_wait_for_their_turn) {
    run([&]() -> task<void> {
        cache_and_server both;
        co_await both.start();
        std::vector<talker> all;
        for (std::size_t i = 0; i < server::max_cache_connections + 4; ++i)
            all.push_back(co_await join(both.server));
        for (talker& each : all) co_await each.say("cache incr n\n");
        std::uint64_t sum = 0;
        for (talker& each : all) sum += std::stoull(co_await each.line());
        EXPECT_EQ(sum, all.size() * (all.size() + 1) / 2);
        EXPECT_LE(both.cache->count().connections_total, server::max_cache_connections);
        co_await both.stop();
    });
}

TEST_P(server_modes, without_the_cache_there_is_an_error_and_the_server_serves_on) {
    run([&]() -> task<void> {
        cache_and_server both;
        co_await both.server.start();
        talker a = co_await join(both.server);
        talker b = co_await join(both.server);
        co_await a.say("cache get k\nhello\n");
        EXPECT_EQ(co_await a.line(), "error: there is no running cache \"db\"");
        EXPECT_EQ(co_await b.line(), "hello");
        co_await both.cache.start();
        both.cache_host->has_started();
        co_await a.say("cache set k v\n");
        EXPECT_EQ(co_await a.line(), "ok");
        // A kept connection is of no use after a restart.
        co_await both.cache->stop(0s);
        both.cache_host->stops();
        co_await a.say("cache get k\n");
        EXPECT_THAT(co_await a.line(), StartsWith("error: the"));
        co_await a.say("cache get k\n");
        EXPECT_EQ(co_await a.line(), "error: there is no running cache \"db\"");
        EXPECT_EQ(sample_of(*both.server, "cache_failures_total"), 3.0);
        co_await both.server->stop(0s);
    });
}

TEST_P(server_modes, the_cache_is_changed_live_and_taken_back) {
    run([&]() -> task<void> {
        cache_and_server both(json{{"cache", "other"}});
        co_await both.start();
        talker a = co_await join(both.server);
        co_await a.say("cache ping\n");
        EXPECT_EQ(co_await a.line(), "error: there is no running cache \"other\"");
        must_do(both.server->apply(both.server.parse(with({{"cache", "db"}}))));
        co_await a.say("cache ping\n");
        EXPECT_EQ(co_await a.line(), "PONG");
        // Its own name would lead to itself.
        must_do(both.server->apply(both.server.parse(with({{"cache", "room"}}))));
        co_await a.say("cache ping\n");
        EXPECT_EQ(co_await a.line(), "error: there is no running cache \"room\"");
        must_do(both.server->apply(both.server.parse(any_port)));
        talker b = co_await join(both.server);
        co_await a.say("cache ping\n");
        EXPECT_EQ(co_await b.line(), "cache ping");
        co_await both.stop();
    });
}

TEST_P(server_modes, commands_are_answered_in_each_mode) {
    run([&]() -> task<void> {
        for (const char* const mode : {"in", "out", "master"}) {
            json options = {{"mode", mode}};
            if (options["mode"] == "master") options["master_password"] = "sesame";
            cache_and_server both(options);
            co_await both.start();
            talker a = co_await join(both.server);
            co_await a.say("dropped\ncache set k v\ndropped\ncache get k\n");
            EXPECT_EQ(co_await a.line(), "ok");
            EXPECT_EQ(co_await a.line(), "v");
            co_await both.stop();
        }
    });
}

TEST_P(server_modes, a_reply_that_is_too_large_is_an_error) {
    run([&]() -> task<void> {
        cache_and_server both({{"max_queue", "16k"}, {"max_line", "4k"}});
        co_await both.start();
        talker a = co_await join(both.server);
        co_await a.say("cache setrange k 9000 x\ncache get k\ncache strlen k\n");
        EXPECT_EQ(co_await a.line(), "9001");
        EXPECT_THAT(co_await a.line(), HasSubstr("more than 8192 bytes"));
        EXPECT_THAT(co_await a.line(), HasSubstr("more than 8192 bytes"));
        co_await a.say("cache strlen k\n");
        EXPECT_EQ(co_await a.line(), "9001");
        co_await both.stop();
    });
}

TEST_P(server_modes, a_client_that_reads_late_gets_all_answers) {
    run([&]() -> task<void> {
        for (const char* const policy : {"disconnect", "wait"}) {
            constexpr int commands = 300;
            cache_and_server both(
                {{"max_queue", "64k"}, {"max_line", "4k"}, {"slow_reader", policy}});
            co_await both.start();
            talker a = co_await join(both.server);
            co_await a.say("cache setrange k 29999 x\n");
            EXPECT_EQ(co_await a.line(), "30000");
            std::string all;
            for (int i = 0; i < commands; ++i) all += "cache get k\ncache incr n\n";
            co_await a.say(all);
            co_await until(
                [&] { return sample_of(*both.server, "cache_commands_total").value_or(0) > 1; });
            for (int i = 1; i <= commands; ++i) {
                EXPECT_EQ((co_await a.line()).size(), 30000U);
                EXPECT_EQ(co_await a.line(), std::to_string(i));
            }
            EXPECT_EQ(both.server->count().dropped, 0U);
            co_await both.stop();
        }
    });
}

TEST_P(server_modes, rates_limit_commands_too) {
    run([&]() -> task<void> {
        cache_and_server both({{"rate_limit", 20}});
        co_await both.start();
        talker a = co_await join(both.server);
        std::string all;
        for (int i = 0; i < 30; ++i) all += "cache incr n\n";
        const time_point before = here().now();
        co_await a.say(all);
        for (int i = 1; i <= 30; ++i) EXPECT_EQ(co_await a.line(), std::to_string(i));
        EXPECT_GE(here().now() - before, 490ms);
        co_await both.stop();
    });
}

TEST_P(server_modes, clients_of_several_threads_have_the_cache) {
    run([&]() -> task<void> {
        cache_and_server both(json{{"threads", 3}});
        co_await both.start();
        std::vector<talker> all;
        for (int i = 0; i < 6; ++i) all.push_back(co_await join(both.server));
        for (talker& each : all) co_await each.say("cache incr n\n");
        std::uint64_t sum = 0;
        for (talker& each : all) sum += std::stoull(co_await each.line());
        EXPECT_EQ(sum, 21U);
        co_await both.server->stop(0s);
        EXPECT_EQ(sample_of(*both.server, "cache_commands_total"), 6.0);
        both.cache_host->stops();
        co_await both.cache->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
