// Tests of the recorded changes of commands, by example, and compared with a real redis-server's.
#include "cache/persistence/propagation.hpp"

#include "base/counted_memory.hpp"
#include "cache/memory/large_argument.hpp"
#include "cache/testing/mirror.hpp"
#include "cache/testing/redis_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using namespace cache::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t start_ms = 1'700'000'000'000;

class propagated : public ::testing::Test {
protected:
    propagated() {
        set_time(0);
        add_sink(home_.internals(), sink_);
    }
    ~propagated() override { remove_sink(home_.internals(), sink_); }

    void set_time(std::int64_t ms) { home_.set_time(std::chrono::milliseconds(start_ms + ms)); }
    static engine_options options() {
        engine_options made;
        made.mode = access_mode::admin;
        return made;
    }
    /// Executes the commands, and returns the recorded ones.
    std::vector<std::string> after(std::string_view commands) {
        for (const std::string_view each : separate(commands)) ask_(each);
        return sink_.lines();
    }
    void quietly(std::string_view commands) { after(commands); }

    engine home_{options()};
    kept_changes sink_;
    test_client ask_{home_};
    test_client other_{home_};
};

TEST_F(propagated, commands_that_change_something_are_recorded_as_they_came) {
    EXPECT_THAT(after("set a 1 ; LPUSH l x y ; Hset h f v"),
                ElementsAre("set a 1", "LPUSH l x y", "Hset h f v"));
}

TEST_F(propagated, commands_that_change_nothing_are_not_recorded) {
    quietly("SET a 1 ; SADD s m");
    EXPECT_THAT(after("GET a ; SET a 2 NX ; DEL no ; SADD s m ; SREM s no ; EXPIRE no 10 ; "
                      "PERSIST a ; HDEL a f ; LPOP no ; FLUSHALL extra ; WRONG ; SETNX a 2"),
                IsEmpty());
}

// So that a flush also empties a replica with more keys than its master.
TEST_F(propagated, flushes_of_nothing_are_recorded) {
    EXPECT_THAT(after("FLUSHALL ; flushdb ASYNC ; MULTI ; FLUSHDB ; EXEC"),
                ElementsAre("FLUSHALL", "flushdb ASYNC", "FLUSHDB"));
    EXPECT_THAT(ask_("INFO persistence"), HasSubstr("rdb_changes_since_last_save:0\r\n"));
}

TEST_F(propagated, scan_removes_the_expired_keys_that_match_of_any_type) {
    quietly("SET text 1 PX 10 ; SET stays 1 ; RPUSH list a ; PEXPIRE list 10");
    set_time(20);
    EXPECT_THAT(after("SCAN 0 MATCH no*"), IsEmpty());
    EXPECT_THAT(after("SCAN 0 MATCH l* COUNT 1000"), ElementsAre("DEL list"));
    EXPECT_EQ(ask_("DBSIZE"), ":2\r\n");
    EXPECT_THAT(after("SCAN 0 TYPE list COUNT 1000"), ElementsAre("DEL text"));
    EXPECT_EQ(ask_("SCAN 0 COUNT 1000"), "*2\r\n$1\r\n0\r\n*1\r\n$5\r\nstays\r\n");
    EXPECT_THAT(ask_("INFO stats"), HasSubstr("expired_keys:2\r\n"));
}

TEST_F(propagated, keys_that_expire_within_a_transaction_are_removed_within_it) {
    quietly("SET x 1 PX 10 ; SET y 1 PX 10");
    set_time(20);
    EXPECT_THAT(after("MULTI ; GET x ; SET z 1 ; INCR y ; GET nosuch ; EXEC"),
                ElementsAre("MULTI", "DEL x", "SET z 1", "DEL y", "INCR y", "EXEC"));
    quietly("SET x 1 PX 10 ; SET y 1 PX 10");
    set_time(40);
    EXPECT_THAT(after("MGET x y"), ElementsAre("MULTI", "DEL x", "DEL y", "EXEC"));
}

TEST_F(propagated, a_scan_of_many_expired_keys_removes_all_of_them) {
    for (int i = 0; i < 2000; ++i) {
        const std::string n = std::to_string(i);
        ask_({"SET", "k" + n, n, "PX", i % 3 == 0 ? "100000" : "10"});
    }
    set_time(20);
    for (std::string cursor = "0";;) {
        const std::string page = ask_({"SCAN", cursor, "COUNT", "50"});
        cursor = page.substr(page.find("\r\n", 4) + 2);
        cursor = cursor.substr(0, cursor.find('\r'));
        if (cursor == "0") break;
    }
    EXPECT_EQ(ask_("DBSIZE"), ":667\r\n");
}

TEST_F(propagated, the_database_is_named_when_it_changes) {
    ask_("SET a 1");
    ask_("SELECT 3");
    ask_("SET b 2");
    ask_("SET c 3");
    const std::string select_0 = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";
    const std::string select_3 = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
    const auto set = [](const std::string& key, const std::string& value) {
        return "*3\r\n$3\r\nSET\r\n$1\r\n" + key + "\r\n$1\r\n" + value + "\r\n";
    };
    EXPECT_EQ(sink_.take(), select_0 + set("a", "1") + select_3 + set("b", "2") + set("c", "3"));
}

TEST_F(propagated, times_become_absolute) {
    EXPECT_THAT(after("SET a 1 EX 10 ; SETEX b 10 v ; PSETEX c 5 v ; SET d 1 PXAT 1700000009999 ; "
                      "EXPIRE d 20 ; PEXPIRE d 7 NX ; PEXPIRE d 7 GT ; EXPIREAT d 1700000100 XX"),
                ElementsAre("SET a 1 PXAT 1700000010000", "SET b v PXAT 1700000010000",
                            "SET c v PXAT 1700000000005", "SET d 1 PXAT 1700000009999",
                            "PEXPIREAT d 1700000020000", "PEXPIREAT d 1700000100000 XX"));
    EXPECT_THAT(
        after("GETEX a ; GETEX a EX 50 ; GETEX a PERSIST ; GETEX a PERSIST ; GETEX a EXAT 1"),
        ElementsAre("PEXPIREAT a 1700000050000", "PERSIST a", "DEL a"));
    EXPECT_THAT(after("EXPIRE b -1"), ElementsAre("DEL b"));
}

TEST_F(propagated, keys_that_end_by_themselves_are_deleted) {
    quietly("SET a 1 PX 10 ; SET b 1 PX 10 ; SET c 1 PX 10 ; SELECT 2 ; SET d 1 PX 10");
    set_time(100);
    EXPECT_THAT(after("SELECT 0 ; GET a"), ElementsAre("DEL a"));
    EXPECT_THAT(after("SET b 2"), ElementsAre("MULTI", "DEL b", "SET b 2", "EXEC"));
    while (home_.upkeep()) {
    }
    EXPECT_THAT(sink_.lines(), ElementsAre("DEL c"));
    while (home_.upkeep()) {
    }
    EXPECT_THAT(sink_.lines(), ElementsAre("DEL d"));
}

TEST_F(propagated, chance_is_replaced_by_what_came_of_it) {
    quietly("SADD one m ; SADD s a b c d");
    EXPECT_THAT(after("SPOP one"), ElementsAre("SREM one m"));
    const std::vector<std::string> popped = after("SPOP s 2");
    ASSERT_EQ(popped.size(), 1U);
    EXPECT_TRUE(popped[0].starts_with("SREM s "));
    EXPECT_THAT(after("SPOP s 5 ; SPOP s 5 ; SPOP s 0"), ElementsAre("DEL s"));
    EXPECT_THAT(after("SET f 10.5 ; INCRBYFLOAT f 0.1 ; HSET h f 1 ; HINCRBYFLOAT h f 0.5"),
                ElementsAre("SET f 10.5", "SET f 10.6 KEEPTTL", "HSET h f 1", "HSET h f 1.5"));
}

TEST_F(propagated, a_transaction_is_one_unit) {
    EXPECT_THAT(after("MULTI ; SET a 1 ; GET a ; INCR a ; EXEC"),
                ElementsAre("MULTI", "SET a 1", "INCR a", "EXEC"));
    EXPECT_THAT(after("MULTI ; SET a 1 ; GET a ; EXEC"), ElementsAre("SET a 1"));
    EXPECT_THAT(after("MULTI ; GET a ; EXEC ; MULTI ; SET a 1 ; DISCARD"), IsEmpty());
    const std::size_t before = sink_.units;
    ask_("MULTI");
    ask_("SET x 1");
    ask_("SELECT 4");
    ask_("SET y 1");
    ask_("EXEC");
    EXPECT_EQ(sink_.units, before + 1);
}

TEST_F(propagated, a_transaction_selects_its_database_within) {
    EXPECT_THAT(after("SELECT 3 ; MULTI ; SET a 1 ; SET b 1 ; EXEC ; SELECT 0"),
                ElementsAre("MULTI", "SET a 1", "SET b 1", "EXEC"));
    ask_("SELECT 4");
    for (const char* each : {"MULTI", "SET a 1", "SET b 1", "EXEC"}) ask_(each);
    EXPECT_TRUE(sink_.take().starts_with("*1\r\n$5\r\nMULTI\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n4\r\n"));
}

TEST_F(propagated, pops_that_waited_are_recorded_when_they_are_served) {
    EXPECT_THAT(after("RPUSH l a b ; BLPOP l 0 ; BRPOP l 0"),
                ElementsAre("RPUSH l a b", "LPOP l", "RPOP l"));
    other_("BLPOP l 0");
    EXPECT_THAT(after("RPUSH l a b c"), ElementsAre("RPUSH l a b c", "LPOP l"));
    quietly("DEL l");
    other_("BLMOVE l m LEFT RIGHT 0");
    EXPECT_THAT(after("RPUSH l a"), ElementsAre("RPUSH l a", "LMOVE l m LEFT RIGHT"));
    other_("BRPOPLPUSH l m 0");
    EXPECT_THAT(after("RPUSH l a"), ElementsAre("RPUSH l a", "RPOPLPUSH l m"));
    other_("BLMPOP 0 2 l k LEFT COUNT 5");
    EXPECT_THAT(after("RPUSH l a b"), ElementsAre("RPUSH l a b", "LPOP l 2"));
    other_("BZPOPMAX z 0");
    EXPECT_THAT(after("ZADD z 1 a 2 b"), ElementsAre("ZADD z 1 a 2 b", "ZPOPMAX z"));
    other_("BZMPOP 0 1 y MIN COUNT 3");
    EXPECT_THAT(after("ZADD y 1 a"), ElementsAre("ZADD y 1 a", "ZPOPMIN y 1"));
}

TEST_F(propagated, streams_are_recorded_with_what_was_chosen) {
    EXPECT_THAT(after("XADD s * f v"), ElementsAre("XADD s 1700000000000-0 f v"));
    EXPECT_THAT(after("XADD s MAXLEN ~ 1 1700000000000-* f v"),
                ElementsAre("XADD s MAXLEN = 2 1700000000000-1 f v"));
    EXPECT_THAT(after("XGROUP CREATE s g 0 ; XREADGROUP GROUP g c COUNT 1 STREAMS s >"),
                ElementsAre("XGROUP CREATE s g 0", "MULTI",
                            "XCLAIM s g c 0 1700000000000-0 TIME 1700000000000 RETRYCOUNT 1 FORCE "
                            "JUSTID LASTID 1700000000000-0",
                            "XGROUP SETID s g 1700000000000-0 ENTRIESREAD 1", "EXEC"));
    EXPECT_THAT(after("XREADGROUP GROUP g d STREAMS s 0"),
                ElementsAre("XGROUP CREATECONSUMER s g d"));
    EXPECT_THAT(after("XREADGROUP GROUP g c NOACK STREAMS s >"),
                ElementsAre("XGROUP SETID s g 1700000000000-1 ENTRIESREAD 2"));
    EXPECT_THAT(after("XREADGROUP GROUP g c STREAMS s 0 ; XPENDING s g"), IsEmpty());
    EXPECT_THAT(after("XACK s g 1700000000000-0 1-1"), ElementsAre("XACK s g 1700000000000-0 1-1"));
}

TEST_F(propagated, messages_are_for_replicas_alone) {
    kept_changes replica(true);
    add_sink(home_.internals(), replica);
    EXPECT_THAT(after("PUBLISH c hello"), IsEmpty());
    EXPECT_THAT(replica.lines(), ElementsAre("PUBLISH c hello"));
    EXPECT_THAT(after("MULTI ; SET a 1 ; PUBLISH c x ; EXEC"), ElementsAre("SET a 1"));
    EXPECT_THAT(replica.lines(), ElementsAre("MULTI", "SET a 1", "PUBLISH c x", "EXEC"));
    remove_sink(home_.internals(), replica);
}

TEST_F(propagated, evicted_keys_are_deleted_before_the_command) {
    quietly("CONFIG SET maxmemory-policy allkeys-random ; SET a 1 ; CONFIG SET maxmemory 1");
    const std::vector<std::string> lines = after("GET nothing");
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines[0], "DEL a");
}

TEST_F(propagated, nothing_is_recorded_for_nobody) {
    remove_sink(home_.internals(), sink_);
    EXPECT_THAT(after("SET a 1"), IsEmpty());
    EXPECT_EQ(home_.internals().clients.slow_path, 0);
    EXPECT_EQ(home_.internals().clients.observers, 0U);
    add_sink(home_.internals(), sink_);
}

TEST_F(propagated, who_comes_within_a_unit_gets_what_is_behind_it) {
    kept_changes second;
    const std::size_t before = sink_.units;
    ask_("MULTI");
    ask_("SET a 1");
    ask_("EXEC");
    EXPECT_EQ(sink_.units, before + 1);
    add_sink(home_.internals(), second);
    ask_("SET b 1");
    EXPECT_THAT(second.lines(), ElementsAre("SET b 1"));
    remove_sink(home_.internals(), second);
}

#if EDDY_COUNTS_ALLOCATIONS
/// True if `command` allocates more than `place` times; the next allocation fails.
bool runs_out_of_memory(test_client& asks, const arguments& command, std::uint64_t place) {
    const eddy::testing::no_memory after(place);
    try {
        asks.ask(command);
    } catch (const std::bad_alloc&) {
        return true;
    }
    return false;
}

TEST_F(propagated, a_change_that_had_no_memory_is_told_as_missed) {
    bool failed = true;
    bool missed = false;
    for (std::uint64_t place = 0; failed; ++place) {
        engine home(options());
        test_client asks(home);
        asks("SET a-key-of-some-length v");
        kept_changes sink;
        sink.bytes.append(std::string(1000, ' '));  // it must not allocate either
        sink.bytes.clear();
        add_sink(home.internals(), sink);
        failed = runs_out_of_memory(asks, {"SET", "a-key-of-some-length", "w"}, place);
        text_view now;
        const bool is_changed =
            now(*home.internals().data.database(0).look_at("a-key-of-some-length")) == "w";
        if (is_changed && sink.misses == 0) {
            EXPECT_THAT(sink.lines(), ElementsAre("SET a-key-of-some-length w")) << place;
        } else {
            EXPECT_THAT(sink.lines(), IsEmpty()) << place;
        }
        missed |= sink.misses != 0;
        remove_sink(home.internals(), sink);
        ASSERT_LT(place, 1000U);
    }
    EXPECT_TRUE(missed);
}

// In this file, since only one file of a program can count allocations.
TEST(values_without_memory, are_never_empty) {
    const std::string text = "text-of-more-than-some-length";
    const std::vector<std::pair<std::string, std::string>> changes = {
        {"", "RPUSH k1 " + text + " b"},
        {"", "HSET k1 " + text + " b"},
        {"", "SADD k1 " + text + " b"},
        {"", "ZADD k1 1 " + text},
        {"RPUSH k1 " + text, "LPOP k1"},
        {"RPUSH k1 " + text, "LPOP k1 2"},
        {"RPUSH k1 " + text, "LMPOP 1 k1 LEFT"},
        {"RPUSH k1 " + text, "BLPOP k1 0"},
        {"RPUSH k1 " + text, "LREM k1 0 " + text},
        {"RPUSH k1 " + text, "LTRIM k1 1 0"},
        {"RPUSH k1 " + text, "RPOPLPUSH k1 k2"},
        {"HSET k1 " + text + " b", "HDEL k1 " + text},
        {"SADD k1 " + text, "SREM k1 " + text},
        {"SADD k1 " + text, "SPOP k1"},
        {"SADD k1 " + text, "SPOP k1 3"},
        {"SADD k1 " + text, "SMOVE k1 k2 " + text},
        {"ZADD k1 1 " + text, "ZREM k1 " + text},
        {"ZADD k1 1 " + text, "ZPOPMIN k1"},
        {"ZADD k1 1 " + text, "ZMPOP 1 k1 MAX"},
        {"ZADD k1 1 " + text, "ZREMRANGEBYRANK k1 0 -1"},
        {"SADD k1 " + text, "SUNIONSTORE k2 k1"},
        {"ZADD k1 1 " + text, "ZUNIONSTORE k2 1 k1"},
        {"RPUSH k1 " + text, "SORT k1 ALPHA STORE k2"},
        {"GEOADD k1 1 1 " + text, "GEOSEARCHSTORE k2 k1 FROMLONLAT 1 1 BYRADIUS 1 km"},
        {"RPUSH k1 " + text, "COPY k1 k2"},
    };
    for (const auto& [before, change] : changes) {
        SCOPED_TRACE(change);
        for (std::uint64_t place = 0, failed = 1; failed != 0; ++place) {
            engine home;
            home.set_time(std::chrono::milliseconds(1'700'000'000'000));
            kept_changes sink;
            sink.bytes.append(std::string(1000, ' '));  // it must not allocate either
            sink.bytes.clear();
            test_client asks(home);
            test_client watches(home);
            asks("CONFIG SET notify-keyspace-events KEA");
            watches("PSUBSCRIBE __key*");
            if (!before.empty()) asks(before);
            add_sink(home.internals(), sink);
            failed = runs_out_of_memory(asks, testing::split(change), place) ? 1 : 0;
            dictionary::iterator all(home.internals().data.database(0).table());
            while (const dictionary::slot* const slot = all.next())
                EXPECT_GT(elements_of(*dictionary::entry_of(*slot)), 0U) << place;
            remove_sink(home.internals(), sink);
            ASSERT_LT(place, 1000U);
        }
    }
}

TEST(values_without_memory, that_others_wait_for_are_never_empty) {
    for (std::uint64_t place = 0; place < 100; ++place) {
        engine home;
        home.set_time(std::chrono::milliseconds(1'700'000'000'000));
        test_client asks(home);
        test_client waits(home);
        test_client watches(home);
        asks("CONFIG SET notify-keyspace-events KEA");
        watches("PSUBSCRIBE __key*");
        waits("BLPOP a-list-of-some-length 0");
        static_cast<void>(runs_out_of_memory(
            asks, {"RPUSH", "a-list-of-some-length", "an-element-of-some-length"}, place));
        dictionary::iterator all(home.internals().data.database(0).table());
        while (const dictionary::slot* const slot = all.next())
            EXPECT_GT(elements_of(*dictionary::entry_of(*slot)), 0U) << place;
    }
}

TEST(large_arguments_without_memory, are_freed_all_the_same) {
    engine home;
    const std::size_t before = home.stats().used_memory;
    std::vector<large_argument> begun;
    for (int i = 0; i < 40; ++i) {
        large_argument& each = begun.emplace_back(100U << 20, 0, "some");
        while (each.held_bytes() <= 8U << 20) each.note_received(each.room().size());
    }
    {
        const eddy::testing::no_memory now;
        home.discard(begun);
    }
    EXPECT_TRUE(begun.empty());
    while (home.upkeep()) {
    }
    EXPECT_EQ(home.stats().used_memory, before);
}

TEST_F(propagated, a_key_whose_end_had_no_memory_lives_on_everywhere) {
    ask_("CONFIG SET notify-keyspace-events KEA");
    other_("SUBSCRIBE __keyevent@0__:expired");
    bool failed = true;
    bool lived_on = false;
    for (std::uint64_t place = 0; failed; ++place) {
        // Not a short string, so that the event's channel and message allocate.
        const std::string key = "a-key-of-some-length-" + std::to_string(place);
        ask_("SET " + key + " v PX 10");
        sink_.lines();
        const std::size_t before = sink_.misses;
        set_time(static_cast<std::int64_t>(place + 1) * 100);
        const keyspace& keys = home_.internals().data.database(0);
        {
            test_client asks(home_);
            failed = runs_out_of_memory(asks, {"EXISTS", key}, place);
        }
        const bool is_gone = keys.look_at(key) == nullptr;
        lived_on |= failed && !is_gone;
        if (is_gone && sink_.misses == before) {
            EXPECT_THAT(sink_.lines(), ElementsAre("DEL " + key)) << place;
        } else {
            EXPECT_THAT(sink_.lines(), IsEmpty()) << place;
        }
        ask_("DEL " + key);
        sink_.lines();
        ASSERT_LT(place, 1000U);
    }
    EXPECT_TRUE(lived_on);
}
#endif

TEST_F(propagated, who_is_told_obeys_though_times_are_over) {
    engine copy(options());
    copy.set_time(std::chrono::milliseconds(start_ms + 1'000'000));
    change_replayer told(copy);
    quietly("SET a 1 EX 5 ; SET b 1 EX 5");
    ask_("SET c 1 EX 5");
    ask_("PERSIST c");
    ask_("EXPIRE c 2");
    ask_("APPEND c x");
    EXPECT_EQ(told.obey(sink_.take()), "");
    const entry* const c = copy.internals().data.database(0).look_at("c");
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->expiry(), start_ms + 2000);
    // For clients it has expired.
    test_client reader(copy);
    EXPECT_EQ(reader("GET c"), "$-1\r\n");
}

TEST_F(propagated, a_follower_is_not_refused_what_clients_are) {
    engine_options strict;
    strict.mode = access_mode::readonly;
    strict.max_memory = 1;
    strict.password = "secret";
    engine copy(strict);
    change_replayer told(copy);
    quietly("");
    ask_("SET a 1");
    ask_("MULTI");
    ask_("SET b 1");
    ask_("INCR a");
    ask_("EXEC");
    EXPECT_EQ(told.obey(sink_.take()), "");
    EXPECT_EQ(copy.internals().data.database(0).size(), 2U);
}

// --- Beside redis-server -----------------------------------------------------------------------

/// Recorded bytes of both servers for the same commands, with times near the present replaced.
TEST(propagated_as_redis, the_same_bytes_are_written) {
    std::string why;
    const std::vector<std::string> more{"--appendonly", "yes", "--appendfsync", "always"};
    const auto redis = redis_process::start(why, {}, more);
    if (redis == nullptr) GTEST_SKIP() << why;
    if (!redis->is_7()) GTEST_SKIP() << "this redis-server is neither 7.0 nor 7.2";
    const std::string path = std::filesystem::path(redis->dump_file()).parent_path().string() +
                             "/appendonlydir/appendonly.aof.1.incr.aof";

    engine home;
    kept_changes sink;
    add_sink(home.internals(), sink);
    test_client ask(home);
    std::size_t known = 0;
    for (const std::string_view line : separate(R"(
        SET a 1 ; SET a 2 NX ; SET a 3 XX ; SET a 4 GET ; SET b 1 XX ; SET a v EX 100 ;
        SET a v PX 100000 GET ; SET a v EXAT 9999999999 ; SET a v PXAT 9999999999999 ; SETNX n 1 ;
        SETEX a 100 v ; PSETEX a 100000 v ; GETSET a w ; GETDEL a ; GETDEL a ; MSET a 1 b 2 ;
        MSETNX a 1 b 2 ; GETEX a EX 100 ; GETEX a PX 100000 ; GETEX a EXAT 9999999999 ;
        GETEX a PERSIST ; GETEX a PXAT 1 ; APPEND a x ; SETRANGE a 2 y ; INCR n ; INCRBY n 5 ;
        INCRBYFLOAT n 1.5 ; EXPIRE a 100 ; PEXPIRE a 100000 ; EXPIREAT a 9999999999 ;
        PEXPIREAT a 9999999999999 ; EXPIRE a 100 NX ; EXPIRE a 5000 LT ; PERSIST a ; PERSIST a ;
        EXPIRE a -1 ; EXPIRE a -1 ; LPUSH l a b c d e f ; LPOP l ; LPOP l 2 ; RPOP no ; BLPOP l 0 ;
        BRPOP l 0 ; LMPOP 1 l LEFT COUNT 9 ; RPUSH l a b c ; BLMOVE l k LEFT RIGHT 0 ;
        BRPOPLPUSH l k 0 ; BLMPOP 0 1 l LEFT ; LMOVE k l LEFT LEFT ; SADD s a ; SADD s a ; SPOP s ;
        SADD s a b ; SPOP s 5 ; HSET h f 1 ; HINCRBYFLOAT h f 0.5 ; HINCRBY h g 1 ; HDEL h no ;
        ZADD z 1 a 2 b 3 c 4 d 5 e ; ZINCRBY z 1 a ; ZPOPMIN z ; BZPOPMIN z 0 ; ZMPOP 1 z MAX ;
        BZMPOP 0 1 z MIN COUNT 9 ; XADD x 5-1 f v ; XADD x 5-* f v ; XADD x MAXLEN ~ 1 6-1 f v ;
        XADD x MINID ~ 5 LIMIT 10 7-1 f v ; XTRIM x MAXLEN 2 ; XTRIM x MAXLEN ~ 1 ; XDEL x 7-1 ;
        XGROUP CREATE x g $ ; XGROUP CREATECONSUMER x g c ; XGROUP CREATECONSUMER x g c ;
        XGROUP SETID x g 0 ; XSETID x 9-9 ; SELECT 2 ; SET q 1 ; SWAPDB 0 2 ;
        SELECT 0 ; COPY q w DB 3 ; MOVE q 4 ; SELECT 3 ; RENAME w v ; FLUSHDB ; FLUSHALL ASYNC ; FLUSHDB ;
        FLUSHALL ; FLUSHDB SYNC ; SWAPDB 5 6 ; SWAPDB 5 5 ; FUNCTION FLUSH ; MULTI ; SET a 1 ; INCR a ;
        GET a ; EXEC ; MULTI ; INCR a ; EXEC ; MULTI ; GET a ; EXEC ; PFADD p a b ; PFADD p a ;
        SETBIT t 7 1 ; BITFIELD t SET u8 0 5 ; SORT l STORE m ;
        PUBLISH c m ; EVAL return(redis.call('set','e',1)) 0 ;
        EVAL redis.call('incr','e')redis.call('incr','e') 0 ; EVAL return(1) 0
    )")) {
        const arguments words = split(line);
        redis->ask(words);
        home.set_time(std::chrono::duration_cast<std::chrono::microseconds>(
            std::chrono::system_clock::now().time_since_epoch()));
        ask.ask(words);
        std::ifstream file(path, std::ios::binary);
        const std::string all{std::istreambuf_iterator<char>(file), {}};
        std::string theirs = all.substr(known);
        known = all.size();
        std::string ours = sink.take();
        // Times near the present differ.
        const std::regex now("1[0-9]{12}");
        theirs = std::regex_replace(theirs, now, "TIME");
        ours = std::regex_replace(ours, now, "TIME");
        EXPECT_EQ(ours, theirs) << line;
    }
    remove_sink(home.internals(), sink);
}

}  // namespace
}  // namespace eddy::cache
