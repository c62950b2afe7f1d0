// Tests of SAVE, BGSAVE, save points and their status. No file is written: the test acts as the
// server.
#include "cache/persistence/persistence.hpp"

#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/testing/test_client.hpp"
#include "cache/testing/test_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using cache::testing::test_client;

constexpr std::int64_t start_s = 1'700'000'000;

struct cache_with_disk : save_host {
    explicit cache_with_disk(std::string points = "100 5 10 100") : home(options(points)) {
        set_time(0);
        note_saved_time(home.internals());
        home.internals().persistence.saves.host = this;
    }
    static engine_options options(const std::string& points) {
        engine_options made;
        made.mode = access_mode::admin;
        made.save_points = *parse_save_points(points);
        return made;
    }
    void save_began() noexcept override { ++asked; }
    void set_time(std::int64_t seconds) { home.set_time(std::chrono::seconds(start_s + seconds)); }
    void change(int times) {
        for (int i = 0; i < times; ++i) ask("INCR n");
    }
    // Writes the file as a server does, or fails.
    void write(std::string_view fault = {}) {
        rdb::snapshot* const image = home.internals().persistence.saves.snapshot;
        ASSERT_NE(image, nullptr);
        byte_buffer out;
        while (image->step(out) == rdb::snapshot::status::writing) out.clear();
        image->end();
        end_save(home.internals(), fault);
    }
    bool due() { return save_is_due(home.internals()); }
    std::string told(const std::string& field) {
        const std::string info = ask("INFO persistence");
        const std::size_t at = info.find("\n" + field + ":");
        if (at == std::string::npos) return "no such field";
        const std::size_t begin = at + field.size() + 2;
        return info.substr(begin, info.find('\r', begin) - begin);
    }

    int asked = 0;
    engine home;
    testing::test_server server{home, testing::with_folder()};
    test_client ask{home};
};

constexpr std::string_view no_folder =
    "-ERR this cache keeps nothing on disk: create it with --dir FOLDER\r\n";

TEST(cache_persistence, without_a_folder_saving_is_refused_and_says_what_to_do) {
    engine home;
    test_client ask(home);
    EXPECT_EQ(ask("SAVE"), no_folder);
    EXPECT_EQ(ask("BGSAVE"), no_folder);
    EXPECT_EQ(ask("BGSAVE SCHEDULE"), no_folder);
    EXPECT_EQ(ask("CONFIG GET dir"), "*2\r\n$3\r\ndir\r\n$0\r\n\r\n");
    EXPECT_TRUE(ask({"CONFIG", "SET", "save", "10 1"}).starts_with("-ERR CONFIG SET failed"));
    EXPECT_EQ(ask({"CONFIG", "SET", "save", ""}), "+OK\r\n");
}

TEST(cache_persistence, bgsave_replies_at_once) {
    cache_with_disk it;
    it.change(3);
    EXPECT_EQ(it.told("rdb_changes_since_last_save"), "3");
    EXPECT_EQ(it.told("rdb_bgsave_in_progress"), "0");
    EXPECT_EQ(it.ask("BGSAVE"), "+Background saving started\r\n");
    EXPECT_EQ(it.asked, 1);
    EXPECT_EQ(it.told("rdb_bgsave_in_progress"), "1");
    EXPECT_EQ(it.ask("BGSAVE"), "-ERR Background save already in progress\r\n");
    EXPECT_EQ(it.ask("BGSAVE SCHEDULE"), "-ERR Background save already in progress\r\n");
    EXPECT_EQ(it.ask("SAVE"), "-ERR Background save already in progress\r\n");
    EXPECT_EQ(it.ask("BGSAVE now"), "-ERR syntax error\r\n");
    it.change(2);
    it.set_time(7);
    EXPECT_EQ(it.told("rdb_current_bgsave_time_sec"), "7");
    EXPECT_EQ(it.ask("LASTSAVE"), ":1700000000\r\n");
    it.write();
    EXPECT_EQ(it.ask("LASTSAVE"), ":1700000007\r\n");
    EXPECT_EQ(it.told("rdb_last_save_time"), "1700000007");
    EXPECT_EQ(it.told("rdb_last_bgsave_status"), "ok");
    EXPECT_EQ(it.told("rdb_last_bgsave_time_sec"), "7");
    EXPECT_EQ(it.told("rdb_current_bgsave_time_sec"), "-1");
    EXPECT_EQ(it.told("rdb_saves"), "1");
    // Changes after the snapshot's instant are still unsaved.
    EXPECT_EQ(it.told("rdb_changes_since_last_save"), "2");
}

TEST(cache_persistence, save_waits_and_the_others_go_on) {
    cache_with_disk it;
    test_client other(it.home);
    EXPECT_EQ(it.ask("SAVE"), "");
    EXPECT_EQ(other("PING"), "+PONG\r\n");
    EXPECT_EQ(other("SET a 1"), "+OK\r\n");
    EXPECT_EQ(it.ask("ECHO behind"), "");
    EXPECT_FALSE(it.ask.woken());
    it.write();
    EXPECT_TRUE(it.ask.woken());
    EXPECT_EQ(it.ask.pushed(), "+OK\r\n$6\r\nbehind\r\n");
    EXPECT_EQ(it.ask("SAVE"), "");
    it.write("could not write: the disk is full");
    EXPECT_EQ(it.ask.pushed(), "-ERR could not write: the disk is full\r\n");
}

TEST(cache_persistence, a_client_may_go_while_it_waits_for_save) {
    cache_with_disk it;
    {
        test_client other(it.home);
        other("SAVE");
    }
    it.write();
    EXPECT_EQ(it.ask("PING"), "+PONG\r\n");
}

TEST(cache_persistence, save_is_no_part_of_a_transaction) {
    cache_with_disk it;
    it.ask("MULTI");
    EXPECT_EQ(it.ask("SAVE"), "-ERR Command not allowed inside a transaction\r\n");
    it.ask("DISCARD");
    it.ask("MULTI");
    EXPECT_EQ(it.ask("BGSAVE"), "+QUEUED\r\n");
    EXPECT_EQ(it.ask("EXEC"), "*1\r\n+Background saving started\r\n");
    it.write();
}

TEST(cache_persistence, while_another_snapshot_is_written_one_can_be_scheduled) {
    cache_with_disk it;
    rdb::snapshot* const other = rdb::snapshot::begin(it.home);
    EXPECT_TRUE(it.ask("BGSAVE").starts_with("-ERR Another child process is active (AOF?)"));
    EXPECT_EQ(it.ask("BGSAVE SCHEDULE"), "+Background saving scheduled\r\n");
    other->end();
    EXPECT_TRUE(it.due());
    EXPECT_TRUE(begin_save(it.home.internals()));
    EXPECT_FALSE(it.due());
    it.write();
    EXPECT_FALSE(it.due());
}

TEST(cache_persistence, save_points_say_when_it_is_time) {
    cache_with_disk it;
    EXPECT_FALSE(it.due());
    it.set_time(1000);
    EXPECT_FALSE(it.due());
    it.change(4);
    EXPECT_FALSE(it.due());
    it.change(1);
    EXPECT_TRUE(it.due());
    it.set_time(100);
    EXPECT_FALSE(it.due());
    it.change(95);
    EXPECT_TRUE(it.due());
    it.set_time(10);
    EXPECT_FALSE(it.due());
    it.set_time(11);
    EXPECT_TRUE(it.due());
    begin_save(it.home.internals());
    EXPECT_FALSE(it.due());
    it.write();
    EXPECT_FALSE(it.due());
    EXPECT_FALSE(has_unsaved_changes(it.home.internals()));
    // After a failure the next try waits some seconds.
    it.set_time(1000);
    it.change(5);
    EXPECT_TRUE(it.due());
    begin_save(it.home.internals());
    it.write("no");
    EXPECT_FALSE(it.due());
    it.set_time(1005);
    EXPECT_FALSE(it.due());
    it.set_time(1006);
    EXPECT_TRUE(it.due());
}

TEST(cache_persistence, a_failed_save_in_the_foreground_refuses_no_write) {
    cache_with_disk it;
    it.set_time(1000);
    it.change(5);
    EXPECT_EQ(it.ask("SAVE"), "");
    it.write("no");
    EXPECT_EQ(it.ask.pushed(), "-ERR no\r\n");
    EXPECT_EQ(it.ask("SET a 1"), "+OK\r\n");
    EXPECT_EQ(it.ask("PING"), "+PONG\r\n");
    EXPECT_EQ(it.told("rdb_last_bgsave_status"), "ok");
    EXPECT_EQ(it.told("rdb_last_bgsave_time_sec"), "-1");
    EXPECT_EQ(it.told("rdb_changes_since_last_save"), "6");
    // Save points are not affected by it.
    EXPECT_TRUE(it.due());
    it.ask("BGSAVE");
    it.write("no");
    EXPECT_EQ(it.told("rdb_last_bgsave_status"), "err");
    EXPECT_TRUE(it.ask("SET a 1").starts_with("-MISCONF "));
    // A failed save does not change that; a successful one does.
    it.ask("SAVE");
    it.write("no");
    EXPECT_EQ(it.ask.pushed(), "-ERR no\r\n");
    EXPECT_TRUE(it.ask("SET a 1").starts_with("-MISCONF "));
    it.ask("SAVE");
    it.write();
    EXPECT_EQ(it.ask.pushed(), "+OK\r\n");
    EXPECT_EQ(it.told("rdb_last_bgsave_status"), "ok");
    EXPECT_EQ(it.ask("SET a 1"), "+OK\r\n");
}

TEST(cache_persistence, after_a_failed_background_save_nothing_is_written) {
    cache_with_disk it;
    it.change(1);
    it.ask("BGSAVE");
    it.write("no");
    EXPECT_EQ(it.told("rdb_last_bgsave_status"), "err");
    EXPECT_EQ(it.told("rdb_changes_since_last_save"), "1");
    const auto refused = [&](const std::string& command) {
        return it.ask(command).starts_with("-MISCONF ");
    };
    EXPECT_TRUE(refused("SET a 1"));
    EXPECT_TRUE(refused("DEL n"));
    EXPECT_TRUE(refused("PING"));
    EXPECT_EQ(it.ask("GET n"), "$1\r\n1\r\n");
    EXPECT_EQ(it.ask("MULTI"), "+OK\r\n");
    EXPECT_TRUE(refused("INCR n"));
    EXPECT_EQ(it.ask("EXEC"), "-EXECABORT Transaction discarded because of previous errors.\r\n");
    EXPECT_EQ(it.ask("CONFIG SET stop-writes-on-bgsave-error no"), "+OK\r\n");
    EXPECT_EQ(it.ask("INCR n"), ":2\r\n");
    EXPECT_EQ(it.ask("CONFIG SET stop-writes-on-bgsave-error yes"), "+OK\r\n");
    EXPECT_TRUE(refused("INCR n"));
    EXPECT_EQ(it.ask({"CONFIG", "SET", "save", ""}), "+OK\r\n");
    EXPECT_EQ(it.ask("INCR n"), ":3\r\n");
    EXPECT_EQ(it.ask({"CONFIG", "SET", "save", "3600 1"}), "+OK\r\n");
    EXPECT_TRUE(refused("INCR n"));
    EXPECT_EQ(it.ask("BGSAVE"), "+Background saving started\r\n");
    it.write();
    EXPECT_EQ(it.ask("INCR n"), ":4\r\n");
}

TEST(cache_persistence, parameters) {
    cache_with_disk it;
    EXPECT_EQ(it.ask("CONFIG GET save"), "*2\r\n$4\r\nsave\r\n$12\r\n100 5 10 100\r\n");
    EXPECT_EQ(it.ask("CONFIG GET dir"), "*2\r\n$3\r\ndir\r\n$10\r\n/somewhere\r\n");
    EXPECT_EQ(it.ask("CONFIG GET dbfilename"), "*2\r\n$10\r\ndbfilename\r\n$8\r\ndump.rdb\r\n");
    for (const char* const wrong : {"1", "a b", "0 1", "10 -1", "1 2 3", "99999999999 1"}) {
        EXPECT_EQ(it.ask({"CONFIG", "SET", "save", wrong}),
                  "-ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save "
                  "parameters\r\n")
            << wrong;
    }
    EXPECT_EQ(it.ask({"CONFIG", "SET", "save", " 20  1 30 0 "}), "+OK\r\n");
    EXPECT_EQ(it.ask("CONFIG GET save"), "*2\r\n$4\r\nsave\r\n$9\r\n20 1 30 0\r\n");
    EXPECT_EQ(it.ask("CONFIG SET dir /tmp"),
              "-ERR CONFIG SET failed (possibly related to argument 'dir') - can't set protected "
              "config\r\n");
}

TEST(cache_persistence, debug_reload_keeps_what_is_longer_than_clients_may_send) {
    cache_with_disk it;
    EXPECT_EQ(it.ask("SETRANGE big 1500000 x"), ":1500001\r\n");
    EXPECT_EQ(it.ask("SETRANGE large 3000000 x"), ":3000001\r\n");
    EXPECT_EQ(it.ask("CONFIG SET proto-max-bulk-len 1mb"), "+OK\r\n");
    EXPECT_EQ(it.ask("DEBUG RELOAD"), "+OK\r\n");
    EXPECT_EQ(it.ask("STRLEN big"), ":1500001\r\n");
    EXPECT_EQ(it.ask("STRLEN large"), ":3000001\r\n");
}

TEST(cache_persistence, debug_reload_changes_nothing) {
    cache_with_disk it;
    it.ask("RPUSH l a b");
    it.ask("SELECT 3");
    it.ask("SET a 1 EX 100");
    const std::string before = it.ask("DEBUG DIGEST");
    EXPECT_EQ(it.ask("DEBUG RELOAD"), "+OK\r\n");
    EXPECT_EQ(it.ask("DEBUG DIGEST"), before);
    EXPECT_EQ(it.ask("TTL a"), ":100\r\n");
}

TEST(cache_persistence, debug_reload_takes_the_options_of_redis) {
    cache_with_disk it;
    constexpr std::string_view not_loaded =
        "-ERR Error trying to load the RDB dump, check server logs\r\n";
    EXPECT_EQ(it.ask("DEBUG RELOAD NOSAVE"), not_loaded);
    it.ask("SET a 1");
    it.ask("SET b 1");
    EXPECT_EQ(it.ask("DEBUG RELOAD"), "+OK\r\n");
    it.ask("SET a 2");
    it.ask("SET c 2");
    // Existing keys prevent the load, or are replaced.
    EXPECT_EQ(it.ask("DEBUG RELOAD NOSAVE NOFLUSH"), not_loaded);
    EXPECT_EQ(it.ask("DEBUG RELOAD NOSAVE NOFLUSH MERGE"), "+OK\r\n");
    EXPECT_EQ(it.ask("MGET a b c"), "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n2\r\n");
    EXPECT_EQ(it.ask("DEBUG RELOAD nosave"), "+OK\r\n");
    EXPECT_EQ(it.ask("DBSIZE"), ":2\r\n");
    EXPECT_EQ(it.ask("DEBUG RELOAD NOFLUSH"), not_loaded);
    EXPECT_EQ(it.ask("DEBUG RELOAD NOFLUSH MERGE"), "+OK\r\n");
    EXPECT_EQ(it.ask("DBSIZE"), ":2\r\n");
    EXPECT_EQ(it.ask("DEBUG RELOAD ALL"),
              "-ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.\r\n");
    EXPECT_EQ(it.ask("DEBUG LOADAOF"), "-ERR the append-only file is off\r\n");
    it.home.internals().settings.options.append.enabled = true;
    const std::string before = it.ask("DEBUG DIGEST");
    EXPECT_EQ(it.ask("DEBUG LOADAOF"), "+OK\r\n");
    EXPECT_EQ(it.ask("DEBUG DIGEST"), before);
}

TEST(cache_persistence, debug_reload_keeps_libraries_as_it_keeps_keys) {
    cache_with_disk it;
    const auto load = [&](const std::string& name) {
        return it.ask({"FUNCTION", "LOAD",
                       "#!lua name=" + name + "\nredis.register_function('" + name +
                           "', function() return 'hello' end)"});
    };
    if (load("one").starts_with("-ERR unknown")) GTEST_SKIP() << "built without scripts";
    EXPECT_EQ(it.ask("DEBUG RELOAD NOFLUSH"),
              "-ERR Error trying to load the RDB dump, check server logs\r\n");
    EXPECT_EQ(it.ask("DEBUG RELOAD NOFLUSH MERGE"), "+OK\r\n");
    EXPECT_EQ(it.ask("FCALL one 0"), "$5\r\nhello\r\n");
    load("two");
    EXPECT_EQ(it.ask("DEBUG RELOAD NOSAVE NOFLUSH MERGE"), "+OK\r\n");
    EXPECT_EQ(it.ask("FCALL one 0"), "$5\r\nhello\r\n");
    EXPECT_EQ(it.ask("FCALL two 0"), "$5\r\nhello\r\n");
    EXPECT_EQ(it.ask("DEBUG RELOAD NOSAVE"), "+OK\r\n");
    EXPECT_EQ(it.ask("FCALL two 0"), "-ERR Function not found\r\n");
    // Scripts may call DEBUG when permitted, but never the forms that replace keys.
    constexpr std::string_view refused = "This Redis command is not allowed from script";
    const auto call = [&](std::string_view what) {
        return it.ask({"EVAL", "return redis.call('debug', " + std::string(what) + ")", "0"});
    };
    EXPECT_NE(call("'sleep', 0").find(refused), std::string::npos);
    EXPECT_EQ(it.ask("DEBUG SET-DISABLE-DENY-SCRIPTS 1"), "+OK\r\n");
    EXPECT_EQ(call("'sleep', 0"), "+OK\r\n");
    // They do not get a reply's attributes.
    EXPECT_EQ(
        it.ask({"EVAL", "redis.setresp(3) return redis.call('debug', 'protocol', 'attrib')", "0"}),
        "$39\r\nSome real reply following the attribute\r\n");
    EXPECT_NE(call("'reload'").find(refused), std::string::npos);
    EXPECT_NE(it.ask({"EVAL", "return redis.call('shutdown')", "0"}).find(refused),
              std::string::npos);
    EXPECT_EQ(it.ask("DEBUG SET-DISABLE-DENY-SCRIPTS 0"), "+OK\r\n");
    EXPECT_NE(call("'sleep', 0").find(refused), std::string::npos);
}

TEST(cache_persistence, debug_tells_how_large_tables_are) {
    cache_with_disk it;
    testing::arguments add{"SADD", "large"};
    for (int i = 0; i < 1000; ++i) add.push_back("member:" + std::to_string(i));
    it.ask.ask(add);
    it.ask("SADD small a");
    it.ask("SET text x EX 100");
    EXPECT_NE(it.ask("DEBUG HTSTATS-KEY large").find("number of elements: 1000\n"),
              std::string::npos);
    EXPECT_EQ(it.ask("DEBUG HTSTATS-KEY text"),
              "-ERR The value stored at the specified key is not represented using an hash "
              "table\r\n");
    EXPECT_EQ(it.ask("DEBUG HTSTATS-KEY nosuch"), "-ERR no such key\r\n");
    const std::string all = it.ask("DEBUG HTSTATS 0 full");
    EXPECT_NE(all.find("[Dictionary HT]\nHash table 0 stats (main hash table):\n"),
              std::string::npos);
    EXPECT_NE(all.find("number of elements: 3\n"), std::string::npos);
    EXPECT_NE(all.find("number of elements: 1\n"), std::string::npos);
    EXPECT_EQ(it.ask("DEBUG HTSTATS 16"), "-ERR Out of range database\r\n");
    EXPECT_EQ(it.ask("DEBUG REPLYBUFFER PEAK-RESET-TIME never"), "+OK\r\n");
    EXPECT_EQ(it.ask("DEBUG REPLYBUFFER peak-reset-time 100"), "+OK\r\n");
    EXPECT_EQ(it.ask("DEBUG REPLYBUFFER RESIZING 0"), "+OK\r\n");
    EXPECT_EQ(it.ask("DEBUG REPLYBUFFER PEAK-RESET-TIME x"),
              "-ERR value is not an integer or out of range\r\n");
}

TEST(cache_persistence, parameters_for_test_suites) {
    cache_with_disk it;
    for (const std::string name : {"rdb-key-save-delay", "key-load-delay"}) {
        EXPECT_EQ(it.ask({"CONFIG", "SET", name, "-5"}), "+OK\r\n");
        EXPECT_EQ(it.ask({"CONFIG", "GET", name}).substr(0, 4), "*2\r\n");
        EXPECT_EQ(it.ask({"CONFIG", "GET", "*" + name}), "*0\r\n");
        EXPECT_EQ(it.ask({"CONFIG", "SET", name, "2147483648"}),
                  "-ERR CONFIG SET failed (possibly related to argument '" + name +
                      "') - argument must be between -2147483648 and 2147483647 inclusive\r\n");
    }
    EXPECT_EQ(it.ask("CONFIG SET aof-use-rdb-preamble no"), "+OK\r\n");
    EXPECT_EQ(it.ask("CONFIG GET aof-use-rdb-preamble"),
              "*2\r\n$20\r\naof-use-rdb-preamble\r\n$2\r\nno\r\n");
}

// ---- the append-only file after a master's copy

struct cache_with_append_only_file : append_host {
    cache_with_append_only_file() : home(options()) {
        home.internals().persistence.appending =
            std::make_unique<append_log>(home.internals(), *this);
        log().begin();
        log().set_listed();
    }
    ~cache_with_append_only_file() { home.internals().persistence.appending.reset(); }
    cache_with_append_only_file(const cache_with_append_only_file&) = delete;
    cache_with_append_only_file& operator=(const cache_with_append_only_file&) = delete;

    static engine_options options() {
        engine_options made;
        made.mode = access_mode::admin;
        made.append.enabled = true;
        made.append.fsync = fsync_policy::always;
        return made;
    }
    append_log& log() { return *home.internals().persistence.appending; }
    void append_wanted() noexcept override {}
    void append_interrupted() noexcept override {}
    void append_missed() noexcept override {}

    engine home;
    testing::test_server server{home, testing::with_folder()};
    test_client ask{home};
    test_client other{home};
};

TEST(cache_append_log, who_writes_waits_until_the_files_hold_a_masters_data) {
    for (const char* const write :
         {"SET a 1", "EVAL redis.call('SET','a','1') 0", "MULTI;SET a 1;EXEC"}) {
        SCOPED_TRACE(write);
        cache_with_append_only_file it;
        it.log().interrupt();
        std::string told;
        for (const std::string_view each : testing::separate(write)) told = it.ask(each);
        EXPECT_EQ(told, "");
        EXPECT_EQ(it.other("GET a"), "$-1\r\n");
        EXPECT_EQ(it.other("INFO persistence").front(), '$');
        // Half-way they would not survive a crash either.
        it.log().begin();
        EXPECT_FALSE(it.ask.woken());
        it.log().set_listed();
        EXPECT_TRUE(it.ask.woken());
        EXPECT_NE(it.ask.pushed(), "");
        EXPECT_EQ(it.other("GET a"), "$1\r\n1\r\n");
        EXPECT_GT(it.log().appended, 0U);
    }
}

TEST(cache_append_log, nobody_waits_for_files_that_cannot_be_written_or_are_not_wanted) {
    cache_with_append_only_file it;
    it.log().interrupt();
    EXPECT_EQ(it.ask("SET a 1"), "");
    it.log().fail("no room");
    EXPECT_EQ(it.ask.pushed(), "-MISCONF Errors writing to the AOF file: no room\r\n");
    it.log().recover();
    for (const char* const option :
         {"CONFIG SET appendfsync everysec", "CONFIG SET appendonly no"}) {
        SCOPED_TRACE(option);
        EXPECT_EQ(it.other("CONFIG SET appendfsync always"), "+OK\r\n");
        EXPECT_EQ(it.ask("SET a 1"), "");
        EXPECT_EQ(it.other(option), "+OK\r\n");
        EXPECT_EQ(it.ask.pushed(), "+OK\r\n");
    }
    // Options that are switched on later cause no wait, as at any other time.
    EXPECT_EQ(it.other("CONFIG SET appendfsync always"), "+OK\r\n");
    EXPECT_EQ(it.other("CONFIG SET appendonly yes"), "+OK\r\n");
    EXPECT_EQ(it.ask("SET a 2"), "+OK\r\n");
}

}  // namespace
}  // namespace eddy::cache
