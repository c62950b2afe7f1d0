// Tests of how a replica begins: by a copy with its size, by a part of one, or where it was before
// a planned restart of either side.
#include "base/files/temporary_folder.hpp"
#include "runtime/cache/replication/replication_servers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_copies);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(cache_copies_kernel);

/// The next line that is not empty; empty ones are signs of life.
task<std::string> line_with_text(talker& from) {
    std::string line = co_await from.line();
    while (line.empty() || line == "\r") line = co_await from.line();
    co_return line;
}

/// The bytes behind "$SIZE".
task<std::string> sized_copy(talker& from) {
    const std::string line = co_await line_with_text(from);
    EXPECT_THAT(line, StartsWith("$"));
    co_return co_await from.bytes(std::stoul(line.substr(1)));
}

TEST_P(cache_copies, a_replica_that_does_not_announce_capa_eof_gets_a_copy_with_its_size) {
    run([&]() -> task<void> {
        server master;
        co_await master.start();
        // Larger than a piece.
        for (int i = 0; i < 20; ++i) {
            EXPECT_EQ(co_await master.ask("SETRANGE key" + std::to_string(i) + " 30000 x"),
                      ":30001");
        }
        for (const bool is_plain : {false, true}) {
            talker replica = co_await talker::to((*master.cache)->local());
            co_await replica.say(is_plain ? "SYNC\r\n" : "PSYNC ? -1\r\n");
            if (!is_plain)
                EXPECT_THAT(co_await line_with_text(replica), StartsWith("+FULLRESYNC "));
            const std::string copy = co_await sized_copy(replica);
            EXPECT_THAT(copy, StartsWith("REDIS0010"));
            EXPECT_GT(copy.size(), 10'000U);
            EXPECT_THAT(copy, HasSubstr("key19"));
            // The stream follows at once.
            EXPECT_EQ(co_await master.ask("SET after 1"), "+OK");
            for (const std::string_view line :
                 {"*2", "$6", "SELECT", "$1", "0", "*3", "$3", "SET", "$5", "after", "$1", "1"})
                EXPECT_EQ(co_await replica.line(), std::string(line) + "\r");
            EXPECT_EQ(co_await master.info("replication", "connected_slaves"), "1");
            replica = talker();
            co_await until([&] { return (*master.cache)->count().connections_now == 1; });
        }
        co_await master.stop();
    });
}

TEST_P(cache_copies, one_copy_is_for_all_if_it_has_a_size) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        EXPECT_EQ(co_await master.ask("SET a 1"), "+OK");
        EXPECT_EQ(co_await master.ask("CONFIG SET repl-diskless-sync-delay 3600"), "+OK");
        talker old = co_await talker::to((*master.cache)->local());
        co_await old.say("PSYNC ? -1\r\n");
        co_await replica.replicate(master.port());
        while (co_await master.info("replication", "connected_slaves") != "2")
            must(co_await loop::current().sleep_for(2ms));
        // Two are enough.
        EXPECT_EQ(co_await master.ask("CONFIG SET repl-diskless-sync-max-replicas 2"), "+OK");
        EXPECT_THAT(co_await line_with_text(old), StartsWith("+FULLRESYNC "));
        EXPECT_THAT(co_await sized_copy(old), StartsWith("REDIS0010"));
        co_await replica.until_up();
        co_await replica.until_equal(master);
        EXPECT_TRUE(master.cache->events.has("for 2 replicas"));
        co_await master.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_copies, a_replica_that_takes_its_sized_copy_slowly_delays_no_other) {
    run([&]() -> task<void> {
        server master;
        co_await master.start();
        // More than what is on its way to one that does not read.
        for (int i = 0; i < 50; ++i) {
            EXPECT_EQ(co_await master.ask("SETRANGE key" + std::to_string(i) + " 500000 x"),
                      ":500001");
        }
        EXPECT_EQ(co_await master.ask("CONFIG SET repl-diskless-sync-delay 3600 "
                                      "repl-diskless-sync-max-replicas 2"),
                  "+OK");
        talker slow = co_await talker::to((*master.cache)->local());
        talker quick = co_await talker::to((*master.cache)->local());
        for (talker* const each : {&slow, &quick}) co_await each->say("PSYNC ? -1\r\n");
        for (talker* const each : {&slow, &quick})
            EXPECT_THAT(co_await line_with_text(*each), StartsWith("+FULLRESYNC "));
        EXPECT_GT((co_await sized_copy(quick)).size(), 25'000'000U);
        // Nor does it delay the next copy.
        EXPECT_EQ(co_await master.ask("CONFIG SET repl-diskless-sync-delay 0"), "+OK");
        talker next = co_await talker::to((*master.cache)->local());
        co_await next.say("PSYNC ? -1\r\n");
        EXPECT_THAT(co_await line_with_text(next), StartsWith("+FULLRESYNC "));
        EXPECT_GT((co_await sized_copy(next)).size(), 25'000'000U);
        EXPECT_GT((co_await sized_copy(slow)).size(), 25'000'000U);
        co_await master.stop();
    });
}

TEST_P(cache_copies, a_replica_that_leaves_before_its_copy_holds_up_no_script) {
    run([&]() -> task<void> {
        server master;
        co_await master.start();
        EXPECT_EQ(
            co_await master.ask("CONFIG SET repl-diskless-sync-delay 3600 busy-reply-threshold 1"),
            "+OK");
        talker replica = co_await talker::to((*master.cache)->local());
        co_await replica.say("PSYNC ? -1\r\n");
        while (co_await master.info("replication", "connected_slaves") != "1")
            must(co_await loop::current().sleep_for(2ms));
        // The copy becomes due, and waits for the script.
        talker client = co_await talker::to((*master.cache)->local());
        co_await client.say(
            "CONFIG SET repl-diskless-sync-delay 0\r\nEVAL \"while true do end\" 0\r\n");
        while (!(co_await master.ask("EXISTS x")).starts_with("-BUSY"))
            co_await loop::current().yield();
        replica = talker();
        co_await until([&] { return (*master.cache)->count().connections_now == 2; });
        EXPECT_EQ(co_await master.ask("SCRIPT KILL"), "+OK");
        EXPECT_EQ(co_await client.line(), "+OK\r");
        EXPECT_THAT(co_await client.line(), StartsWith("-ERR Script killed by user"));
        EXPECT_EQ(co_await master.ask("EVAL \"return 8\" 0"), ":8");
        co_await master.stop();
    });
}

TEST_P(cache_copies, a_copy_may_be_of_functions_alone) {
    run([&]() -> task<void> {
        server master;
        co_await master.start();
        EXPECT_EQ(co_await master.ask("SET secret 1"), "+OK");
        const std::string code =
            "#!lua name=mine\nredis.register_function('f', function() return 1 end)";
        co_await master.client.say("*3\r\n$8\r\nFUNCTION\r\n$4\r\nLOAD\r\n$" +
                                   std::to_string(code.size()) + "\r\n" + code + "\r\n");
        const bool has_scripts = !(co_await master.line()).starts_with("-ERR");
        if (has_scripts) EXPECT_EQ(co_await master.line(), "mine");
        for (const bool of_functions : {true, false}) {
            talker reader = co_await talker::to((*master.cache)->local());
            co_await reader.say(
                std::string("*7\r\n$8\r\nREPLCONF\r\n$8\r\nrdb-only\r\n$1\r\n1\r\n$15"
                            "\r\nrdb-filter-only\r\n") +
                (of_functions ? "$9\r\nfunctions\r\n" : "$0\r\n\r\n") +
                "$4\r\ncapa\r\n$3\r\nx-y\r\n");
            EXPECT_EQ(co_await reader.line(), "+OK\r");
            co_await reader.say("SYNC\r\n");
            const std::string copy = co_await sized_copy(reader);
            EXPECT_THAT(copy, StartsWith("REDIS0010"));
            EXPECT_THAT(copy, Not(HasSubstr("secret")));
            EXPECT_EQ(copy.find("name=mine") != std::string::npos, of_functions && has_scripts);
            EXPECT_EQ(co_await reader.rest(), "");
        }
        co_await master.stop();
    });
}

/// Options of a cache that keeps its keys in the folder.
json kept_in(const temporary_folder& folder, json more = json::object()) {
    json options = {{"port", 0}, {"mode", "admin"}, {"dir", folder.path()}, {"save", "3600 1"}};
    options.update(more);
    return options;
}

task<void> restart(server& which) {
    which.client = talker();
    must_do(co_await (*which.cache)->prepare_stop(5s));
    co_await (*which.cache)->stop(5s);
    co_await which.start();
}

TEST_P(cache_copies, after_a_planned_restart_of_the_master_replicas_go_on_where_they_were) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        server master(kept_in(folder));
        server replica;
        co_await master.start();
        co_await replica.start();
        EXPECT_EQ(co_await master.ask("SET a 1"), "+OK");
        co_await replica.replicate(master.port());
        co_await replica.until_up();
        for (int round = 0; round < 2; ++round) {
            EXPECT_EQ(co_await master.ask("SELECT 3"), "+OK");
            EXPECT_EQ(co_await master.ask("SET there " + std::to_string(round)), "+OK");
            EXPECT_EQ(co_await master.ask("SET short 1 PX 1"), "+OK");
            co_await replica.until_equal(master);
            co_await restart(master);
            EXPECT_EQ(co_await master.info("replication", "repl_backlog_active"), "1");
            co_await replica.replicate(master.port());
            co_await replica.until_up();
            EXPECT_EQ(co_await master.ask("SET b " + std::to_string(round)), "+OK");
            co_await replica.until_equal(master);
            EXPECT_EQ(co_await replica.text("GET b"), std::to_string(round));
            EXPECT_EQ(co_await master.info("stats", "sync_full"), "0");
            EXPECT_EQ(co_await master.info("stats", "sync_partial_ok"), "1");
        }
        co_await master.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_copies, after_its_own_planned_restart_a_replica_goes_on_where_it_was) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        server master;
        co_await master.start();
        server replica(kept_in(folder, {{"replicate", "127.0.0.1:" + master.port()}}));
        co_await replica.start();
        co_await replica.until_up();
        EXPECT_EQ(co_await master.ask("SELECT 5"), "+OK");
        EXPECT_EQ(co_await master.ask("SET a 1"), "+OK");
        co_await replica.until_equal(master);
        // Within one database the stream continues without SELECT.
        replica.client = talker();
        must_do(co_await (*replica.cache)->prepare_stop(5s));
        co_await (*replica.cache)->stop(5s);
        EXPECT_EQ(co_await master.ask("SET b 2"), "+OK");
        co_await replica.start();
        co_await replica.until_up();
        co_await replica.until_equal(master);
        EXPECT_EQ(co_await replica.ask("SELECT 5"), "+OK");
        EXPECT_EQ(co_await replica.text("GET b"), "2");
        EXPECT_EQ(co_await master.info("stats", "sync_full"), "1");
        EXPECT_EQ(co_await master.info("stats", "sync_partial_ok"), "1");
        co_await master.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_copies, a_master_with_an_older_dump_sends_everything) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        server master(kept_in(folder));
        server replica;
        co_await master.start();
        co_await replica.start();
        co_await replica.replicate(master.port());
        co_await replica.until_up();
        EXPECT_EQ(co_await master.ask("SET a 1"), "+OK");
        EXPECT_EQ(co_await master.ask("SAVE"), "+OK");
        EXPECT_EQ(co_await master.ask("SET a 2"), "+OK");
        co_await replica.until_equal(master);
        // As after a crash.
        EXPECT_EQ(co_await master.ask("CONFIG SET save ''"), "+OK");
        EXPECT_EQ(co_await master.ask("CONFIG GET save"), "*2");
        for (int i = 0; i < 4; ++i) co_await master.line();
        co_await restart(master);
        EXPECT_EQ(co_await master.text("GET a"), "1");
        co_await replica.replicate(master.port());
        co_await replica.until_up();
        co_await replica.until_equal(master);
        EXPECT_EQ(co_await replica.text("GET a"), "1");
        EXPECT_EQ(co_await master.info("stats", "sync_full"), "1");
        EXPECT_EQ(co_await master.info("stats", "sync_partial_err"), "1");
        co_await master.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_copies, test_suites_slow_saves_and_loads_down) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        server one(kept_in(folder));
        co_await one.start();
        for (int i = 0; i < 10; ++i)
            EXPECT_EQ(co_await one.ask("SET key" + std::to_string(i) + " v"), "+OK");
        EXPECT_EQ(co_await one.ask("CONFIG SET rdb-key-save-delay 1000000000"), "+OK");
        EXPECT_EQ(co_await one.ask("BGSAVE"), "+Background saving started");
        must(co_await loop::current().sleep_for(50ms));
        EXPECT_EQ(co_await one.info("persistence", "rdb_bgsave_in_progress"), "1");
        EXPECT_EQ(co_await one.ask("CONFIG SET rdb-key-save-delay 0"), "+OK");
        while (co_await one.info("persistence", "rdb_bgsave_in_progress") != "0")
            must(co_await loop::current().sleep_for(2ms));
        EXPECT_EQ(co_await one.info("persistence", "rdb_last_bgsave_status"), "ok");
        // The same for the delay of a load, in a replica.
        server replica;
        co_await replica.start();
        EXPECT_EQ(co_await replica.ask("CONFIG SET key-load-delay 1000000000"), "+OK");
        co_await replica.replicate(one.port());
        while (co_await replica.info("persistence", "loading") != "1")
            must(co_await loop::current().sleep_for(2ms));
        EXPECT_EQ(co_await replica.ask("CONFIG SET key-load-delay 0"), "+OK");
        co_await replica.until_up();
        co_await replica.until_equal(one);
        co_await one.stop();
        co_await replica.stop();
    });
}

TEST_P(cache_copies_kernel, a_link_comes_from_the_address_that_is_chosen) {
    run([&]() -> task<void> {
        server master;
        server replica;
        co_await master.start();
        co_await replica.start();
        // One of no machine is passed over.
        for (const std::string source : {"127.0.0.9", "192.0.2.1", "nonsense"}) {
            EXPECT_EQ(co_await replica.ask("CONFIG SET bind-source-addr " + source), "+OK");
            co_await replica.replicate(master.port());
            co_await replica.until_up();
            const std::string shown = source.starts_with("127") ? source : "127.0.0.1";
            EXPECT_THAT(co_await master.text("CLIENT LIST TYPE replica"),
                        HasSubstr(" addr=" + shown + ":"));
            EXPECT_EQ(co_await replica.ask("REPLICAOF NO ONE"), "+OK");
            while (co_await master.info("replication", "connected_slaves") != "0")
                must(co_await loop::current().sleep_for(2ms));
        }
        co_await master.stop();
        co_await replica.stop();
    });
}

}  // namespace
}  // namespace eddy::runtime
