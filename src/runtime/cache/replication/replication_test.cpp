// Tests of replication between caches: links that break anywhere, waits and refusals.
#include "base/files/temporary_folder.hpp"
#include "runtime/cache/replication/replication_servers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_replication);

std::string some_change(random_generator& dice) {
    const std::string key = std::to_string(dice.below(30));
    switch (dice.below(8)) {
        case 0: return "INCR counter:" + key + "\r\n";
        case 1: return "APPEND text:" + key + " " + std::string(dice.below(200), 'x') + "y\r\n";
        case 2: return "RPUSH list:" + key + " a b c\r\n";
        case 3: return "LPOP list:" + key + "\r\n";
        case 4: return "MULTI\r\nINCR counter:" + key + "\r\nINCR twin:" + key + "\r\nEXEC\r\n";
        case 5: return "SELECT " + std::to_string(dice.below(3)) + "\r\n";
        case 6: return "HINCRBY hash:" + key + " field 3\r\n";
        default: return "DEL text:" + key + "\r\n";
    }
}

TEST_P(cache_replication, a_link_that_breaks_anywhere_goes_on_where_it_was) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        EXPECT_EQ(co_await master.ask("SET before 1"), "+OK");
        // More is written meanwhile than a link that is cut so often takes.
        EXPECT_EQ(co_await master.ask("CONFIG SET repl-backlog-size 100mb"), "+OK");
        relay between((*master.cache)->local(), random()());
        scope tasks(co_await current_source());
        tasks.spawn(between.serve());
        co_await replica.replicate(between.port());
        co_await replica.until_up();
        between.cut_after(2000);
        talker writer = co_await talker::to((*master.cache)->local());
        co_await writer.say("CLIENT REPLY OFF\r\n");
        // A second passes after each cut before the link is tried again.
        const std::size_t wanted = simulated() ? 12 : 3;
        while (between.cuts() < wanted) {
            std::string changes;
            for (int i = 0; i < 20; ++i) changes += some_change(random());
            co_await writer.say(changes);
            must(co_await loop::current().sleep_for(10ms));
        }
        between.cut_after(0);
        co_await replica.until_equal(master);
        EXPECT_EQ(co_await master.info("stats", "sync_full"), "1");
        EXPECT_GE(std::stoul(co_await master.info("stats", "sync_partial_ok")), 1U);
        tasks.cancel();
        co_await tasks.join();
        co_await master.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_replication, a_chain_keeps_its_offsets_and_survives_a_promotion) {
    run([&]() -> task<void> {
        server first;
        server second;
        server third;
        for (server* const each : {&first, &second, &third}) co_await each->start();
        EXPECT_EQ(co_await first.ask("SET a 1"), "+OK");
        co_await second.replicate(first.port());
        co_await second.until_up();
        co_await third.replicate(second.port());
        co_await third.until_up();
        for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(co_await first.ask("INCR n"), ":" + std::to_string(i + 1));
        }
        co_await third.until_equal(first);
        // A replica that begins in the middle of the stream gets no SELECT of its database.
        server late;
        co_await late.start();
        EXPECT_EQ(co_await first.ask("SELECT 3"), "+OK");
        EXPECT_EQ(co_await first.ask("SET there 1"), "+OK");
        co_await second.until_equal(first);
        co_await late.replicate(second.port());
        co_await late.until_up();
        EXPECT_EQ(co_await first.ask("SET there 2"), "+OK");
        EXPECT_EQ(co_await first.ask("SELECT 0"), "+OK");
        co_await late.until_equal(first);
        co_await late.stop();
        EXPECT_EQ(co_await second.ask("SET a 2"),
                  "-READONLY You can't write against a read only replica.");
        EXPECT_EQ(co_await second.ask("REPLICAOF NO ONE"), "+OK");
        EXPECT_EQ(co_await second.ask("SET a 2"), "+OK");
        co_await first.replicate(second.port());
        co_await first.until_up();
        co_await third.until_up();
        co_await first.until_equal(second);
        co_await third.until_equal(second);
        // Only the late one needed all data again.
        EXPECT_EQ(co_await second.info("stats", "sync_full"), "2");
        EXPECT_EQ(co_await first.text("GET a"), "2");
        for (server* const each : {&first, &second, &third}) co_await each->stop();
    });
}

TEST_P(cache_replication, what_its_master_deletes_is_freed_without_clients_of_its_own) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        co_await replica.replicate(master.port());
        co_await replica.until_up();
        std::string push = "*5002\r\n$5\r\nRPUSH\r\n$3\r\nbig\r\n";
        for (int i = 0; i < 5'000; ++i) push += "$22\r\nelement-of-some-length\r\n";
        constexpr int rounds = 30;
        for (int i = 0; i < rounds; ++i) {
            co_await master.client.say(push);
            EXPECT_EQ(co_await master.line(), ":5000");
            EXPECT_EQ(co_await master.ask("DEL big"), ":1");
            must(co_await loop::current().sleep_for(150ms));
        }
        co_await replica.until_equal(master);
        // A list of them takes some 120 KB.
        EXPECT_LT(std::stoul(co_await replica.info("memory", "used_memory_peak")),
                  rounds / 3 * 120'000U);
        co_await master.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_replication, wait_replies_how_many_have_it) {
    run([&]() -> task<void> {
        server master;
        co_await master.start();
        EXPECT_EQ(co_await master.ask("WAIT 0 0"), ":0");
        EXPECT_EQ(co_await master.ask("WAIT 1 20"), ":0");
        server replica;
        co_await replica.start();
        co_await replica.replicate(master.port());
        co_await replica.until_up();
        // Commands behind it in the same pipeline wait, too.
        co_await master.client.say("SET a 1\r\nWAIT 1 0\r\nSET b 1\r\nWAIT 1 0\r\nECHO end\r\n");
        for (const char* const each : {"+OK", ":1", "+OK", ":1", "$3", "end"}) {
            EXPECT_EQ(co_await master.line(), each);
        }
        EXPECT_EQ(co_await master.ask("WAIT 2 20"), ":1");
        EXPECT_THAT(co_await replica.ask("WAIT 0 0"),
                    StartsWith("-ERR WAIT cannot be used with replica instances."));
        co_await master.stop();
        co_await replica.stop();
    });
}

// Else it would be known after a second: WAIT and FAILOVER would take as long.
TEST_P(cache_replication, a_replica_acknowledges_all_of_it_at_once_on_request) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        co_await replica.replicate(std::to_string(at.local().port()));
        talker master(must(co_await at.accept()));
        const auto answer = [&](std::string_view to, std::string with) -> task<void> {
            while (co_await master.line() != std::string(to) + "\r") {
            }
            co_await master.say(std::move(with));
        };
        co_await answer("PING", "+PONG\r\n");
        for (int i = 0; i < 3; ++i) co_await answer("REPLCONF", "+OK\r\n");
        co_await answer("PSYNC", "+FULLRESYNC " + std::string(40, 'a') + " 100\r\n$18\r\n" +
                                     std::string("REDIS0009\xff\0\0\0\0\0\0\0\0", 18));
        const std::string change = "*3\r\n$3\r\nSET\r\n$1\r\nn\r\n$1\r\n1\r\n";
        const std::string ask = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";
        std::uint64_t offset = 100;
        // The periodic ones would take longer than the test may.
        for (int i = 0; i < 100; ++i) {
            co_await master.say(change + ask);
            offset += change.size() + ask.size();
            while (co_await master.line() != std::to_string(offset) + "\r") {
            }
        }
        co_await replica.stop();
    });
}

// A replica that is promoted then has what was acknowledged.
TEST_P(cache_replication, a_stop_waits_until_replicas_have_everything) {
    run([&]() -> task<void> {
        server master;
        co_await master.start();
        talker replica = co_await silent_replica((*master.cache)->local());
        EXPECT_EQ(co_await master.ask("SET k v"), "+OK");
        talker writer = co_await talker::to((*master.cache)->local());
        bool has_ended = false;
        scope tasks(co_await current_source());
        tasks.spawn([](server& its, bool& ended) -> task<void> {
            co_await (*its.cache)->stop(60s);
            ended = true;
        }(master, has_ended));
        while (co_await replica.line() != "GETACK\r") {
        }
        co_await writer.say("SET late 1\r\n");
        must(co_await loop::current().sleep_for(50ms));
        EXPECT_FALSE(has_ended);
        co_await replica.say("REPLCONF ACK 1000000\r\n");
        co_await until([&] { return has_ended; });
        EXPECT_EQ(co_await writer.rest(), "") << "no replica has it";
        EXPECT_FALSE(master.cache->events.has("not acknowledged everything"));
        co_await tasks.join();
    });
}

TEST_P(cache_replication, a_stop_waits_for_replicas_no_longer_than_the_limit) {
    run([&]() -> task<void> {
        server master;
        co_await master.start();
        EXPECT_EQ(co_await master.ask("CONFIG SET shutdown-timeout 1"), "+OK");
        talker replica = co_await silent_replica((*master.cache)->local());
        EXPECT_EQ(co_await master.ask("SET k v"), "+OK");
        co_await (*master.cache)->stop(60s);
        EXPECT_TRUE(master.cache->events.has(
            "stops though 1 of 1 replicas has not acknowledged everything"));
    });
}

TEST_P(cache_replication, waitaof_replies_which_disks_have_it) {
    run([&]() -> task<void> {
        const temporary_folder own;
        const temporary_folder other;
        const auto kept_in = [](const temporary_folder& folder, const char* policy) {
            json options = usual;
            options.update(
                {{"dir", folder.path()}, {"appendonly", "yes"}, {"appendfsync", policy}});
            return options;
        };
        server master(kept_in(own, "everysec"));
        server replica(kept_in(other, "always"));
        server plain;
        for (server* const each : {&master, &replica, &plain}) co_await each->start();
        const auto both = [](server& of, std::string command) -> task<std::string> {
            const std::string head = co_await of.ask(std::move(command));
            if (head != "*2") co_return head;
            const std::string first = co_await of.line();
            co_return first + " " + co_await of.line();
        };
        EXPECT_EQ(co_await master.ask("SET a 1"), "+OK");
        EXPECT_EQ(co_await both(master, "WAITAOF 1 0 0"), ":1 :0");
        EXPECT_EQ(co_await both(master, "WAITAOF 1 1 20"), ":1 :0");
        co_await replica.replicate(master.port());
        co_await plain.replicate(master.port());
        co_await replica.until_up();
        co_await plain.until_up();
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(co_await master.ask("INCR n"), ":" + std::to_string(i + 1));
            EXPECT_EQ(co_await both(master, "WAITAOF 1 1 0"), ":1 :1");
        }
        EXPECT_EQ(co_await master.ask("WAIT 2 0"), ":2");
        // One of the two keeps nothing.
        EXPECT_EQ(co_await both(master, "WAITAOF 0 2 20"), ":1 :1");
        EXPECT_EQ(co_await master.ask("MULTI"), "+OK");
        EXPECT_EQ(co_await master.ask("WAITAOF 0 9 0"), "+QUEUED");
        EXPECT_EQ(co_await master.ask("EXEC"), "*1");
        EXPECT_EQ(co_await master.line(), "*2");
        co_await master.line();
        co_await master.line();
        EXPECT_THAT(co_await replica.ask("WAITAOF 1 0 0"),
                    StartsWith("-ERR WAITAOF cannot be used with replica instances."));
        EXPECT_EQ(co_await master.ask("WAITAOF 2 0 0"),
                  "-ERR value is out of range, value must between 0 and 1");
        EXPECT_EQ(co_await master.ask("WAITAOF 0 -1 0"),
                  "-ERR value is out of range, must be positive");
        EXPECT_EQ(co_await master.ask("WAITAOF 0 0 -1"), "-ERR timeout is negative");
        EXPECT_EQ(co_await plain.ask("REPLICAOF NO ONE"), "+OK");
        EXPECT_THAT(co_await plain.ask("WAITAOF 1 0 0"), HasSubstr("appendonly is disabled"));
        for (server* const each : {&master, &replica, &plain}) co_await each->stop();
    });
}

TEST_P(cache_replication, waitaof_waits_for_a_file_that_begins_and_ends_with_it) {
    run([&]() -> task<void> {
        const temporary_folder own;
        json options = usual;
        options.update({{"dir", own.path()}});
        server it(options);
        co_await it.start();
        talker other = co_await talker::to((*it.cache)->local());
        for (int i = 0; i < 3; ++i) {
            // Changes that it waits for are executed before the file begins.
            co_await other.say("CONFIG SET appendonly yes\r\nSET a 1\r\nWAITAOF 1 0 0\r\n");
            for (const char* const reply : {"+OK", "+OK", "*2", ":1", ":0"})
                EXPECT_EQ(co_await other.line(), std::string(reply) + "\r");
            EXPECT_EQ(co_await it.ask("CONFIG SET appendfsync no"), "+OK");
            co_await other.say("SET a 2\r\nWAITAOF 1 0 0\r\n");
            EXPECT_EQ(co_await other.line(), "+OK\r");
            while (co_await it.info("clients", "blocked_clients") != "1")
                must(co_await loop::current().sleep_for(2ms));
            EXPECT_EQ(co_await it.ask("CONFIG SET appendonly no"), "+OK");
            EXPECT_THAT(co_await other.line(), HasSubstr("appendonly is disabled"));
            EXPECT_EQ(co_await it.ask("CONFIG SET appendfsync everysec"), "+OK");
        }
        co_await it.stop();
    });
}

TEST_P(cache_replication, too_few_replicas_refuse_writes) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        EXPECT_EQ(co_await master.ask("CONFIG SET min-replicas-to-write 1"), "+OK");
        EXPECT_EQ(co_await master.ask("SET a 1"), "-NOREPLICAS Not enough good replicas to write.");
        EXPECT_EQ(co_await master.text("GET a"), "$-1");
        co_await replica.replicate(master.port());
        co_await replica.until_up();
        while (co_await master.ask("SET a 1") != "+OK")
            must(co_await loop::current().sleep_for(2ms));
        EXPECT_EQ(co_await master.info("replication", "min_slaves_good_slaves"), "1");
        co_await replica.stop();
        while (co_await master.ask("SET a 1") == "+OK")
            must(co_await loop::current().sleep_for(2ms));
        co_await master.stop();
    });
}

TEST_P(cache_replication, a_shorter_limit_holds_for_a_wait_that_has_begun) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        co_await replica.replicate(std::to_string(at.local().port()));
        talker silent(must(co_await at.accept()));
        EXPECT_EQ(co_await silent.line(), "*1\r");
        EXPECT_EQ(co_await replica.ask("CONFIG SET repl-timeout 2"), "+OK");
        co_await until([&] { return replica.cache->events.has("sent nothing for 2 s"); });
        co_await replica.stop();
    });
}

TEST_P(cache_replication, a_replica_without_its_master_says_so) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        EXPECT_EQ(co_await replica.ask("SET a 1"), "+OK");
        const std::uint16_t closed_port =
            must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0)))).local().port();
        co_await replica.replicate(std::to_string(closed_port));
        // Stale data is served, unless an option forbids it.
        EXPECT_EQ(co_await replica.text("GET a"), "1");
        EXPECT_EQ(co_await replica.ask("CONFIG SET replica-serve-stale-data no"), "+OK");
        EXPECT_EQ(co_await replica.ask("GET a"),
                  "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to "
                  "'no'.");
        EXPECT_EQ(co_await replica.info("replication", "master_link_status"), "down");
        co_await until([&] { return replica.cache->events.has("cannot reach the master"); });
        EXPECT_EQ(co_await replica.ask("CONFIG SET replica-serve-stale-data yes"), "+OK");
        talker other = co_await talker::to((*replica.cache)->local());
        co_await other.say("REPLCONF capa eof capa psync2\r\nPSYNC ? -1\r\n");
        EXPECT_EQ(co_await other.line(), "+OK\r");
        EXPECT_EQ(co_await other.line(),
                  "-NOMASTERLINK Can't SYNC while not connected with my master\r");
        EXPECT_EQ(co_await replica.ask("REPLICAOF NO ONE"), "+OK");
        EXPECT_EQ(co_await replica.text("GET a"), "1");
        co_await replica.stop();
    });
}

TEST_P(cache_replication, clients_that_wait_get_an_error_when_it_becomes_a_replica) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        talker waiting = co_await talker::to((*replica.cache)->local());
        co_await waiting.say("BLPOP list 0\r\n");
        while (co_await replica.info("clients", "blocked_clients") != "1")
            must(co_await loop::current().sleep_for(2ms));
        co_await replica.replicate(master.port());
        EXPECT_THAT(co_await waiting.rest(), StartsWith("-UNBLOCKED force unblock"));
        co_await replica.until_up();
        // A stream can be waited for.
        talker reading = co_await talker::to((*replica.cache)->local());
        co_await reading.say("XREAD BLOCK 0 STREAMS news $\r\n");
        while (co_await replica.info("clients", "blocked_clients") != "1")
            must(co_await loop::current().sleep_for(2ms));
        co_await master.client.say("XADD news 5-1 a b\r\n");
        EXPECT_EQ(co_await master.line(), "$3");
        EXPECT_EQ(co_await master.line(), "5-1");
        EXPECT_EQ(co_await reading.line(), "*1\r");
        co_await master.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_replication, while_it_loads_it_says_so) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        const std::string begin =
            "+FULLRESYNC " + std::string(40, 'a') + " 0\r\n$1000\r\nREDIS0009";
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        std::size_t served = 0;
        scope tasks(co_await current_source());
        struct stays {
            static task<void> all(listener& at, std::string begin, std::size_t& served) {
                co_await pretend_master(at, begin + "stay", served);
            }
        };
        // "stay" is taken for the beginning of the file's content, which never comes whole.
        tasks.spawn(stays::all(at, begin + std::string("\xfa\x04name\x20", 7), served));
        co_await replica.replicate(std::to_string(at.local().port()));
        while (co_await replica.info("replication", "master_sync_in_progress") != "1")
            must(co_await loop::current().sleep_for(2ms));
        EXPECT_EQ(co_await replica.ask("GET a"), "-LOADING Redis is loading the dataset in memory");
        EXPECT_EQ(co_await replica.info("persistence", "loading"), "1");
        EXPECT_THAT(co_await replica.text("ROLE"), HasSubstr("*5"));
        for (int i = 0; i < 8; ++i) static_cast<void>(co_await replica.line());
        // Given up in the middle.
        EXPECT_EQ(co_await replica.ask("REPLICAOF NO ONE"), "+OK");
        EXPECT_EQ(co_await replica.info("persistence", "loading"), "0");
        EXPECT_EQ(co_await replica.ask("SET a 1"), "+OK");
        tasks.cancel();
        co_await tasks.join();
        co_await replica.stop();
    });
}

TEST_P(cache_replication, replicating_itself_loses_nothing) {
    run([&]() -> task<void> {
        server alone;
        co_await alone.start();
        EXPECT_EQ(co_await alone.ask("SET a 1"), "+OK");
        co_await alone.replicate(alone.port());
        co_await until([&] { return alone.cache->events.has("NOMASTERLINK"); });
        EXPECT_EQ(co_await alone.text("GET a"), "1");
        EXPECT_EQ(co_await alone.ask("REPLICAOF NO ONE"), "+OK");
        EXPECT_EQ(co_await alone.ask("SET a 2"), "+OK");
        co_await alone.stop();
    });
}

TEST_P(cache_replication, it_stops_in_the_middle_of_a_copy) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        EXPECT_EQ(co_await master.ask("DEBUG POPULATE 300 key 30000"), "+OK");
        // It takes nothing of its copy.
        talker lazy = co_await talker::to((*master.cache)->local());
        co_await lazy.say("REPLCONF capa eof\r\nPSYNC ? -1\r\n");
        EXPECT_EQ(co_await lazy.line(), "+OK\r");
        EXPECT_THAT(co_await lazy.line(), StartsWith("+FULLRESYNC "));
        // And this one has what it is sent in the middle of a key.
        const std::string begin =
            "+FULLRESYNC " + std::string(40, 'a') + " 0\r\n$1000\r\nREDIS0009\xfa\x04name\x20stay";
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        std::size_t served = 0;
        scope tasks(co_await current_source());
        tasks.spawn(pretend_master(at, begin, served));
        co_await replica.replicate(std::to_string(at.local().port()));
        while (co_await replica.info("replication", "master_sync_in_progress") != "1")
            must(co_await loop::current().sleep_for(2ms));
        co_await master.stop();
        co_await replica.stop();
        tasks.cancel();
        co_await tasks.join();
    });
}

// No replica takes the copy any more; what comes after must not wait for it.
TEST_P(cache_replication, a_copy_for_a_replica_beyond_its_limit_is_given_up) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        json options = usual;
        options["dir"] = folder.path();
        server master(options);
        co_await master.start();
        EXPECT_EQ(co_await master.ask("DEBUG POPULATE 300 key 30000"), "+OK");
        EXPECT_EQ(co_await master.ask("CONFIG SET repl-backlog-size 16kb"), "+OK");
        EXPECT_EQ(co_await master.ask("CONFIG SET client-output-buffer-limit 'replica 1mb 0 0'"),
                  "+OK");
        talker lazy = co_await talker::to((*master.cache)->local());
        co_await lazy.say("REPLCONF capa eof\r\nPSYNC ? -1\r\n");
        EXPECT_EQ(co_await lazy.line(), "+OK\r");
        EXPECT_THAT(co_await lazy.line(), StartsWith("+FULLRESYNC "));
        const std::string part(30'000, 'x');
        for (int i = 0; i < 40; ++i) EXPECT_EQ(co_await master.ask("SET big " + part), "+OK");
        while (co_await master.info("replication", "connected_slaves") != "0")
            must(co_await loop::current().sleep_for(2ms));
        while (co_await master.ask("SAVE") != "+OK") must(co_await loop::current().sleep_for(10ms));
        co_await master.stop();
    });
}

// Its own data goes when the master begins to send; the files keep theirs until there is more.
TEST_P(cache_replication, a_copy_that_breaks_off_leaves_the_files_alone) {
    run([&]() -> task<void> {
        for (const bool appends : {true, false}) {
            const temporary_folder folder;
            json options = usual;
            options["dir"] = folder.path();
            options["appendonly"] = appends ? "yes" : "no";
            options["save"] = "1 1";
            {
                server replica(options);
                co_await replica.start();
                EXPECT_EQ(co_await replica.ask("SET a 1"), "+OK");
                EXPECT_EQ(co_await replica.ask("SAVE"), "+OK");
                const std::string begin = "+FULLRESYNC " + std::string(40, 'a') +
                                          " 100\r\n$1000\r\nREDIS0009\xfa\x04name";
                listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
                std::size_t served = 0;
                scope tasks(co_await current_source());
                tasks.spawn(pretend_master(at, begin, served));
                co_await replica.replicate(std::to_string(at.local().port()));
                co_await until([&] { return replica.cache->events.has("is lost"); });
                EXPECT_EQ(co_await replica.info("replication", "slave_repl_offset"), "1");
                EXPECT_THAT(co_await replica.ask("SAVE"), StartsWith("-ERR the master's data"));
                if (appends) {
                    EXPECT_THAT(co_await replica.ask("BGREWRITEAOF"), StartsWith("+"));
                }
                // Longer than a save point, and than a rewrite waits.
                must(co_await loop::current().sleep_for(simulated() ? 5s : 1200ms));
                co_await replica.stop();
                tasks.cancel();
                co_await tasks.join();
            }
            server alone(options);
            co_await alone.start();
            EXPECT_EQ(co_await alone.text("GET a"), "1") << "appendonly " << appends;
            co_await alone.stop();
        }
    });
}

// redis-server takes more arguments from its clients than this cache does.
TEST_P(cache_replication, a_master_may_send_longer_commands_than_clients) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        std::string begin = "+FULLRESYNC " + std::string(40, 'a') + " 100\r\n$18\r\n" +
                            std::string("REDIS0009\xff\0\0\0\0\0\0\0\0", 18);
        const std::size_t members = 1'100'000;
        begin += "*" + std::to_string(members + 2) + "\r\n$4\r\nSADD\r\n$1\r\nk\r\n";
        for (std::size_t i = 0; i < members; ++i) {
            const std::string text = std::to_string(i);
            begin += "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
        }
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        std::size_t served = 0;
        scope tasks(co_await current_source());
        tasks.spawn(pretend_master(at, begin + "*1\r\n$4\r\nstay", served));
        co_await replica.replicate(std::to_string(at.local().port()));
        while (co_await replica.ask("SCARD k") != ":" + std::to_string(members))
            must(co_await loop::current().sleep_for(5ms));
        co_await replica.stop();
        tasks.cancel();
        co_await tasks.join();
    });
}

// proto-max-bulk-len is for what clients send.
TEST_P(cache_replication, a_master_may_have_longer_strings_than_clients_may_send) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        EXPECT_EQ(co_await replica.ask("CONFIG SET proto-max-bulk-len 1mb"), "+OK");
        EXPECT_EQ(co_await master.ask("SETRANGE before 1500000 x"), ":1500001");
        co_await replica.replicate(master.port());
        co_await replica.until_up();
        EXPECT_EQ(co_await master.ask("SETRANGE behind 1500000 x"), ":1500001");
        EXPECT_EQ(co_await master.ask("APPEND before yy"), ":1500003");
        EXPECT_EQ(co_await master.ask("SETBIT bits 12000007 1"), ":0");
        EXPECT_EQ(co_await master.ask("COPY before copy"), ":1");
        co_await replica.until_equal(master);
        EXPECT_EQ(co_await replica.ask("STRLEN before"), ":1500003");
        EXPECT_EQ(co_await replica.info("replication", "master_link_status"), "up");
        co_await master.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_replication, a_replica_that_is_paused_leaves_the_stream_where_it_is) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        co_await replica.replicate(master.port());
        co_await replica.until_up();
        EXPECT_EQ(co_await master.ask("SET before 1"), "+OK");
        co_await replica.until_equal(master);
        EXPECT_EQ(co_await replica.ask("CLIENT PAUSE 100000 WRITE"), "+OK");
        const std::string before = co_await replica.info("replication", "slave_repl_offset");
        EXPECT_EQ(co_await master.ask("SET a 1"), "+OK");
        EXPECT_EQ(co_await master.ask("WAIT 1 20"), ":0");
        EXPECT_EQ(co_await replica.ask("EXISTS a"), ":0");
        EXPECT_EQ(co_await replica.info("replication", "slave_repl_offset"), before);
        EXPECT_EQ(co_await replica.info("replication", "master_link_status"), "up");
        EXPECT_EQ(co_await replica.ask("CLIENT UNPAUSE"), "+OK");
        co_await replica.until_equal(master);
        EXPECT_EQ(co_await replica.text("GET a"), "1");
        // A pause that ends by itself, in which not even its clients are answered.
        EXPECT_EQ(co_await replica.ask("CLIENT PAUSE 30 ALL"), "+OK");
        EXPECT_EQ(co_await master.ask("SET a 2"), "+OK");
        co_await replica.until_equal(master);
        EXPECT_EQ(co_await replica.text("GET a"), "2");
        // It can be given another role meanwhile.
        EXPECT_EQ(co_await replica.ask("CLIENT PAUSE 100000 WRITE"), "+OK");
        EXPECT_EQ(co_await master.ask("SET a 3"), "+OK");
        EXPECT_EQ(co_await master.ask("WAIT 1 20"), ":0");
        EXPECT_EQ(co_await replica.ask("REPLICAOF NO ONE"), "+OK");
        EXPECT_EQ(co_await replica.ask("CLIENT UNPAUSE"), "+OK");
        EXPECT_EQ(co_await replica.text("GET a"), "2");
        co_await master.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_replication, what_comes_while_a_replica_is_paused_waits_at_its_master) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        EXPECT_EQ(co_await master.ask("CONFIG SET client-output-buffer-limit \"replica 2mb 0 0\""),
                  "+OK");
        co_await replica.replicate(master.port());
        co_await replica.until_up();
        EXPECT_EQ(co_await replica.ask("CLIENT PAUSE 1000000 WRITE"), "+OK");
        const std::string value(1 << 20, 'x');
        int sent = 0;
        while (co_await master.info("replication", "connected_slaves") == "1") {
            co_await master.client.say("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$" +
                                       std::to_string(value.size()) + "\r\n" + value + "\r\n");
            EXPECT_EQ(co_await master.line(), "+OK");
            if (++sent > 200) throw std::runtime_error("the replica takes all there is");
        }
        EXPECT_EQ(co_await replica.ask("EXISTS a"), ":0");
        EXPECT_EQ(co_await replica.ask("CLIENT UNPAUSE"), "+OK");
        co_await replica.until_equal(master);
        EXPECT_EQ(co_await replica.ask("STRLEN a"), ":" + std::to_string(value.size()));
        co_await master.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_replication, a_replica_that_says_more_than_replicas_do_is_closed) {
    run([&]() -> task<void> {
        server master;
        co_await master.start();
        talker rogue = co_await talker::to((*master.cache)->local());
        co_await rogue.say("REPLCONF capa eof\r\n");
        EXPECT_EQ(co_await rogue.line(), "+OK\r");
        co_await rogue.say("PSYNC ? -1\r\n");
        EXPECT_THAT(co_await rogue.line(), StartsWith("+FULLRESYNC "));
        co_await rogue.say("GET a\r\n");
        EXPECT_THAT(co_await rogue.rest(), ::testing::Not(HasSubstr("$-1\r\n")));
        EXPECT_TRUE(master.cache->events.has("it sent a command that expects a reply"));
        co_await until([&] { return (*master.cache)->count().connections_now == 1; });
        co_await master.stop();
    });
}

TEST_P(cache_replication, sentinels_transaction_works) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        co_await replica.client.say("MULTI\r\nREPLICAOF 127.0.0.1 " + master.port() +
                                    "\r\nCONFIG REWRITE\r\nCLIENT KILL TYPE normal\r\n"
                                    "CLIENT KILL TYPE pubsub\r\nEXEC\r\n");
        for (const char* const each :
             {"+OK", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED", "*4", "+OK"}) {
            EXPECT_EQ(co_await replica.line(), each);
        }
        static_cast<void>(co_await replica.line());  // the reply to CONFIG REWRITE
        EXPECT_EQ(co_await replica.line(), ":0");
        EXPECT_EQ(co_await replica.line(), ":0");
        co_await replica.until_up();
        EXPECT_THAT(co_await replica.text("CLIENT LIST TYPE master"), HasSubstr("flags=M"));
        EXPECT_THAT(co_await master.text("CLIENT LIST TYPE replica"), HasSubstr("flags=S"));
        EXPECT_EQ(co_await replica.ask("CLIENT KILL TYPE master"), ":1");
        while (co_await master.info("stats", "sync_partial_ok") != "1")
            must(co_await loop::current().sleep_for(2ms));
        co_await master.stop();
        co_await replica.stop();
    });
}

}  // namespace
}  // namespace eddy::runtime
