// Tests of MIGRATE between caches: batches, and other servers that are slow, silent or wrong.
#include "runtime/cache/replication/migrating.hpp"

#include "runtime/cache/replication/replication_servers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_migration);

std::string order(const std::string& port, std::string_view rest) {
    return "MIGRATE 127.0.0.1 " + port + " " + std::string(rest);
}

// Another server, which sends the `answers` one after the other, whatever it gets, and is silent
// then.
struct pretender {
    explicit pretender(std::vector<std::string> said) : answers(std::move(said)) {
        listening = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
    }
    std::string port() const { return std::to_string(listening.local().port()); }
    task<void> serve() {
        for (;;) {
            result<stream> accepted = co_await listening.accept();
            if (!accepted) co_return;
            peer = std::move(*accepted);
            ++connections;
            for (const std::string& each : answers) {
                if (!co_await peer->read() || !co_await peer->write_all(each)) break;
            }
            while (const result<lease> got = co_await peer->read()) heard += got->size();
            peer.reset();
            ++ended;
        }
    }
    listener listening;
    std::optional<stream> peer;  // the last one
    std::vector<std::string> answers;
    std::size_t connections = 0;
    std::size_t heard = 0;
    std::size_t ended = 0;  // connections
};

// A client that moves the key "a", which the other server has got and not answered for.
task<talker> begin_to_move(server& source, const pretender& other) {
    talker client = co_await talker::to((*source.cache)->local());
    co_await client.say(order(other.port(), "a 0 30000\r\n"));
    while (other.heard == 0) must(co_await loop::current().sleep_for(1ms));
    co_return client;
}

TEST_P(cache_migration, more_keys_than_are_sent_at_once_arrive_whole) {
    run([&]() -> task<void> {
        server source;
        server target;
        co_await source.start();
        co_await target.start();
        std::string keys;
        std::string values;
        // Many small ones, and a few that are a batch by themselves.
        const std::size_t small = 2 * cache::most_keys_migrated_at_once + 7;
        for (std::size_t i = 0; i < small; ++i) {
            const std::string key = "k" + std::to_string(i);
            keys += " " + key;
            values += " " + key + " value" + std::to_string(i);
        }
        const std::string large(cache::most_migrated_at_once * 3 / 2, 'x');
        EXPECT_EQ(co_await source.ask("MSET" + values), "+OK");
        for (const char* const each : {"l1", "l2", "l3"}) {
            EXPECT_EQ(co_await source.ask("SETRANGE " + std::string(each) + " " +
                                          std::to_string(large.size() - 1) + " x"),
                      ":" + std::to_string(large.size()));
        }
        const std::string digest = co_await source.ask("DEBUG DIGEST");
        EXPECT_EQ(
            co_await source.ask(order(target.port(), "\"\" 0 5000 KEYS l1" + keys + " l2 l3")),
            "+OK");
        EXPECT_EQ(co_await source.ask("DBSIZE"), ":0");
        EXPECT_EQ(co_await target.ask("DBSIZE"), ":" + std::to_string(small + 3));
        EXPECT_EQ(co_await target.ask("DEBUG DIGEST"), digest);
        co_await source.stop();
        co_await target.stop();
    });
}

TEST_P(cache_migration, each_step_has_its_time) {
    run([&]() -> task<void> {
        server source;
        co_await source.start();
        EXPECT_EQ(co_await source.ask("MSET a 1 b 2"), "+OK");
        // Silent from the beginning, after SELECT, after the first key, and within a line.
        for (const std::vector<std::string>& said : std::vector<std::vector<std::string>>{
                 {}, {"+OK\r\n"}, {"+OK\r\n", "+OK\r\n"}, {"+OK\r\n", "+OK\r\n+O"}}) {
            pretender other(said);
            scope tasks(co_await current_source());
            tasks.spawn(other.serve());
            EXPECT_EQ(co_await source.ask("MSET a 1 b 2"), "+OK");
            EXPECT_EQ(co_await source.ask(order(other.port(), "\"\" 0 50 KEYS a b")),
                      "-IOERR error or timeout reading to target instance");
            // Keys that the other server has acknowledged are gone.
            EXPECT_EQ(co_await source.ask("EXISTS a"), said.size() == 2 ? ":0" : ":1");
            EXPECT_EQ(co_await source.text("GET b"), "2");
            EXPECT_EQ(other.connections, 1U);
            tasks.cancel();
            co_await tasks.join();
        }
        co_await source.stop();
    });
}

TEST_P(cache_migration, a_line_without_end_is_not_kept) {
    run([&]() -> task<void> {
        server source;
        co_await source.start();
        EXPECT_EQ(co_await source.ask("SET a 1"), "+OK");
        std::string longest = "-" + std::string(cache::most_migration_answer - 1, 'x');
        for (const bool is_too_long : {false, true}) {
            if (is_too_long) longest += 'x';
            pretender other({"+OK\r\n", longest + "\r\n"});
            scope tasks(co_await current_source());
            tasks.spawn(other.serve());
            EXPECT_THAT(co_await source.ask(order(other.port(), "a 0 30000")),
                        StartsWith(is_too_long ? "-IOERR" : "-ERR Target instance replied with"));
            tasks.cancel();
            co_await tasks.join();
        }
        EXPECT_EQ(co_await source.text("GET a"), "1");
        co_await source.stop();
    });
}

TEST_P(cache_migration, nothing_is_sent_to_a_server_that_refuses_the_password_or_the_database) {
    run([&]() -> task<void> {
        server source;
        co_await source.start();
        EXPECT_EQ(co_await source.ask("SET a 1"), "+OK");
        for (const std::vector<std::string>& said : std::vector<std::vector<std::string>>{
                 {"-WRONGPASS no\r\n"}, {"+OK\r\n", "-ERR DB index is out of range\r\n"}}) {
            pretender other(said);
            scope tasks(co_await current_source());
            tasks.spawn(other.serve());
            EXPECT_EQ(co_await source.ask(order(other.port(), "a 77 5000 AUTH secret")),
                      "-ERR Target instance replied with error: " +
                          said.back().substr(1, said.back().size() - 3));
            tasks.cancel();
            co_await tasks.join();
            EXPECT_EQ(other.heard, 0U);
        }
        EXPECT_EQ(co_await source.text("GET a"), "1");
        co_await source.stop();
    });
}

TEST_P(cache_migration, others_go_on_while_it_waits) {
    run([&]() -> task<void> {
        server source;
        co_await source.start();
        EXPECT_EQ(co_await source.ask("MSET a 1 b 1"), "+OK");
        pretender other({"+OK\r\n"});
        scope tasks(co_await current_source());
        tasks.spawn(other.serve());
        talker moves = co_await begin_to_move(source, other);
        talker writes = co_await talker::to((*source.cache)->local());
        co_await writes.say("INCR b\r\nINCR a\r\n");
        EXPECT_EQ(co_await writes.line(), ":2\r");
        EXPECT_EQ(co_await source.text("GET a"), "1");
        tasks.cancel();
        co_await tasks.join();
        EXPECT_THAT(co_await moves.line(), StartsWith("-IOERR"));
        EXPECT_EQ(co_await writes.line(), ":2\r");
        co_await source.stop();
    });
}

TEST_P(cache_migration, no_migration_waits_for_one_whose_client_has_gone) {
    run([&]() -> task<void> {
        server source;
        co_await source.start();
        EXPECT_EQ(co_await source.ask("MSET a 1 b 1"), "+OK");
        pretender other({"+OK\r\n", "+OK\r\n"});
        scope tasks(co_await current_source());
        tasks.spawn(other.serve());
        std::optional<talker> moves = co_await talker::to((*source.cache)->local());
        co_await moves->say(order(other.port(), "\"\" 0 1000000000 KEYS a b\r\n"));
        while (co_await source.ask("EXISTS a b") != ":2" || other.connections == 0)
            must(co_await loop::current().sleep_for(1ms));
        talker writes = co_await talker::to((*source.cache)->local());
        co_await writes.say("INCR b\r\n");
        moves.reset();
        EXPECT_EQ(co_await writes.line(), ":2\r");
        // The other server had acknowledged this one.
        EXPECT_EQ(co_await source.ask("EXISTS a"), ":0");
        tasks.cancel();
        co_await tasks.join();
        co_await source.stop();
    });
}

TEST_P(cache_migration, what_has_gone_is_removed_after_a_pause_though_its_client_has_gone) {
    run([&]() -> task<void> {
        server source;
        co_await source.start();
        EXPECT_EQ(co_await source.ask("SET a 1"), "+OK");
        pretender other({"+OK\r\n"});
        scope tasks(co_await current_source());
        tasks.spawn(other.serve());
        std::optional<talker> moves = co_await begin_to_move(source, other);
        EXPECT_EQ(co_await source.ask("CLIENT PAUSE 30000 WRITE"), "+OK");
        must(co_await other.peer->write_all("+OK\r\n"));
        moves.reset();
        while (other.ended == 0) must(co_await loop::current().sleep_for(1ms));
        EXPECT_EQ(co_await source.text("GET a"), "1");
        EXPECT_EQ(co_await source.ask("CLIENT UNPAUSE"), "+OK");
        while (co_await source.ask("EXISTS a") != ":0")
            must(co_await loop::current().sleep_for(1ms));
        tasks.cancel();
        co_await tasks.join();
        co_await source.stop();
    });
}

TEST_P(cache_migration, what_has_gone_is_removed_as_soon_as_a_pause_ends_by_its_time) {
    run([&]() -> task<void> {
        server source;
        co_await source.start();
        EXPECT_EQ(co_await source.ask("SET a 1"), "+OK");
        pretender other({"+OK\r\n"});
        scope tasks(co_await current_source());
        tasks.spawn(other.serve());
        talker moves = co_await begin_to_move(source, other);
        EXPECT_EQ(co_await source.ask("CLIENT PAUSE 300 WRITE"), "+OK");
        const time_point began = loop::current().now();
        must(co_await other.peer->write_all("+OK\r\n"));
        EXPECT_EQ(co_await moves.line(), "+OK\r");
        // Simulated time is no machine's.
        if (simulated()) EXPECT_LT(loop::current().now() - began, 305ms);
        EXPECT_EQ(co_await source.ask("EXISTS a"), ":0");
        tasks.cancel();
        co_await tasks.join();
        co_await source.stop();
    });
}

// One byte now and then is no answer.
TEST_P(cache_migration, an_answer_has_its_time_however_it_comes) {
    run([&]() -> task<void> {
        server source;
        co_await source.start();
        EXPECT_EQ(co_await source.ask("SET a 1"), "+OK");
        listener listening = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        scope tasks(co_await current_source());
        tasks.spawn([](listener& at) -> task<void> {
            result<stream> peer = co_await at.accept();
            while (peer && co_await peer->write_all("+") &&
                   co_await loop::current().sleep_for(20ms)) {
            }
        }(listening));
        const time_point began = loop::current().now();
        EXPECT_EQ(co_await source.ask(order(std::to_string(listening.local().port()), "a 0 200")),
                  "-IOERR error or timeout reading to target instance");
        EXPECT_LT(loop::current().now() - began, 20s);
        tasks.cancel();
        co_await tasks.join();
        co_await source.stop();
    });
}

TEST_P(cache_migration, a_closed_port_is_named_as_redis_names_it) {
    run([&]() -> task<void> {
        server source;
        co_await source.start();
        EXPECT_EQ(co_await source.ask("SET a 1"), "+OK");
        std::string port;
        {
            const listener closed =
                must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
            port = std::to_string(closed.local().port());
        }
        EXPECT_EQ(co_await source.ask(order(port, "a 0 1000")),
                  "-IOERR error or timeout writing to target instance");
        EXPECT_EQ(co_await source.text("GET a"), "1");
        co_await source.stop();
    });
}

TEST_P(cache_migration, a_stop_ends_it_and_keeps_the_key) {
    run([&]() -> task<void> {
        server source;
        co_await source.start();
        EXPECT_EQ(co_await source.ask("SET a 1"), "+OK");
        pretender other({"+OK\r\n"});
        scope tasks(co_await current_source());
        tasks.spawn(other.serve());
        talker moves = co_await begin_to_move(source, other);
        co_await source.stop();
        tasks.cancel();
        co_await tasks.join();
    });
}

}  // namespace
}  // namespace eddy::runtime
