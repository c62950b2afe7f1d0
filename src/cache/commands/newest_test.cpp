// Tests of the commands and options that Redis 8 and Valkey 9 have added, with the replies of those
// servers; testing/differential_newest_test.cpp compares with the servers themselves.
#include "cache/config/engine_settings.hpp"
#include "cache/engine/engine.hpp"
#include "cache/testing/mirror.hpp"
#include "cache/testing/test_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::cache {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::test_client;

constexpr std::string_view ok = "+OK\r\n";
constexpr std::string_view null = "$-1\r\n";
constexpr std::string_view wrong_type =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

std::string bulk(std::string_view text) {
    return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}
std::string integers(std::initializer_list<int> all) {
    std::string text = "*" + std::to_string(all.size()) + "\r\n";
    for (const int each : all) text += ":" + std::to_string(each) + "\r\n";
    return text;
}

class newest : public ::testing::Test {
protected:
    newest() { at(milliseconds(0)); }
    void at(milliseconds since_begin) {
        engine_.set_time(milliseconds(1'700'000'000'000) + since_begin);
    }
    void expect(std::initializer_list<std::pair<std::string_view, std::string_view>> steps) {
        for (const auto& [command, reply] : steps) EXPECT_EQ(a_(command), reply) << command;
    }
    // The commands that replicas and files get.
    std::vector<std::string> recorded(std::string_view commands) {
        testing::kept_changes sink;
        add_sink(engine_.internals(), sink);
        for (const std::string_view each : testing::separate(commands)) a_(each);
        remove_sink(engine_.internals(), sink);
        return sink.lines();
    }

    static engine_options options() {
        engine_options made;
        made.mode = access_mode::admin;
        return made;
    }
    engine engine_{options()};
    test_client a_{engine_};
    test_client b_{engine_};
};

TEST_F(newest, set_compares_the_value) {
    expect({{"SET k v IFEQ x", null},
            {"SET k v IFDEQ 0123456789abcdef", null},
            {"EXISTS k", ":0\r\n"},
            {"SET k v IFNE x", ok},
            {"SET k w IFNE v", null},
            {"SET k w IFEQ v", ok},
            {"SET k x IFEQ v GET", bulk("w")},
            {"GET k", bulk("w")},
            {"SET k x IFEQ w GET EX 100", bulk("w")},
            {"TTL k", ":100\r\n"},
            {"SET k y IFEQ x KEEPTTL", ok},
            {"TTL k", ":100\r\n"},
            {"SET k z IFDNE 0123456789abcdef", ok},
            {"SET k z IFDEQ zz", "-ERR must be exactly 16 hexadecimal characters\r\n"},
            {"SET other z IFDNE zz", ok},
            {"SET k z IFEQ", "-ERR syntax error\r\n"},
            {"SET k z NX IFEQ z", "-ERR syntax error\r\n"},
            {"SET k z IFEQ z XX", ok},
            {"SET k y IFEQ z NX", null},
            {"SET k z XX IFEQ z", "-ERR syntax error\r\n"},
            {"SET k z IFEQ z IFNE y", "-ERR syntax error\r\n"},
            {"RPUSH l a", ":1\r\n"},
            {"SET l x IFEQ a", wrong_type},
            {"SET l x IFDNE 0123456789abcdef", wrong_type}});
}

TEST_F(newest, keys_are_deleted_by_their_value) {
    expect({{"SET k v", ok},
            {"DELEX k IFEQ w", ":0\r\n"},
            {"DELEX k IFNE v", ":0\r\n"},
            {"DELEX k ifeq v", ":1\r\n"},
            {"EXISTS k", ":0\r\n"},
            {"DELEX k IFNE v", ":0\r\n"},
            {"DELEX k IFDEQ zz", ":0\r\n"},
            {"DELEX k", ":0\r\n"},
            {"SET k b", ok},
            {"DELEX k IFDEQ zz", "-ERR must be exactly 16 hexadecimal characters\r\n"},
            {"DELEX k IFDNE 575a0b1c44d8843f", ":0\r\n"},
            {"DELEX k IFDEQ 575A0B1C44D8843F", ":1\r\n"},
            {"DELEX k IFEQ", "-ERR wrong number of arguments for 'delex' command\r\n"},
            {"DELEX k FOO x", "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE\r\n"},
            {"RPUSH l a", ":1\r\n"},
            {"DELEX l IFEQ a", "-ERR Key should be of string type if conditions are specified\r\n"},
            {"DELIFEQ l a", wrong_type},
            {"DELEX l", ":1\r\n"},
            {"SET n 12", ok},
            {"DELIFEQ n 13", ":0\r\n"},
            {"DELIFEQ n 12", ":1\r\n"},
            {"DELIFEQ n 12", ":0\r\n"}});
}

TEST_F(newest, a_digest_is_xxh3) {
    expect({{"DIGEST k", null},
            {"SET k b", ok},
            {"DIGEST k", "$16\r\n575a0b1c44d8843f\r\n"},
            {"SET k ''", ok},
            {"DIGEST k", "$16\r\n2d06800538d394c2\r\n"},
            {"SET k 12345", ok},
            {"DIGEST k", "$16\r\nf34099ede96b5581\r\n"},
            {"RPUSH l a", ":1\r\n"},
            {"DIGEST l", wrong_type}});
}

TEST_F(newest, several_keys_are_set_with_one_expiry_and_condition) {
    expect({{"MSETEX 2 a 1 b 2 NX EX 100", ":1\r\n"},
            {"TTL b", ":100\r\n"},
            {"MSETEX 2 b 3 c 4 NX", ":0\r\n"},
            {"MSETEX 2 b 3 c 4 XX", ":0\r\n"},
            {"GET b", bulk("2")},
            {"MSETEX 2 a 5 b 6 XX KEEPTTL", ":1\r\n"},
            {"TTL b", ":100\r\n"},
            {"MSETEX 1 a 5", ":1\r\n"},
            {"TTL a", ":-1\r\n"},
            {"MSETEX 2 z x z y NX", ":1\r\n"},
            {"GET z", bulk("y")},
            {"MSETEX 0 a b", "-ERR invalid numkeys value\r\n"},
            {"MSETEX 2147483648 a b", "-ERR invalid numkeys value\r\n"},
            {"MSETEX x a b", "-ERR invalid numkeys value\r\n"},
            {"MSETEX 2 a b", "-ERR wrong number of key-value pairs\r\n"},
            {"MSETEX 1 a b c d", "-ERR syntax error\r\n"},
            {"MSETEX 1 a b NX XX", "-ERR syntax error\r\n"},
            {"MSETEX 1 a b GET", "-ERR syntax error\r\n"},
            {"MSETEX 1 a b EX 10 KEEPTTL", "-ERR syntax error\r\n"},
            {"MSETEX 1 a b EX 0", "-ERR invalid expire time in 'msetex' command\r\n"},
            {"COMMAND GETKEYS MSETEX 2 a b c d NX", "*2\r\n$1\r\na\r\n$1\r\nc\r\n"}});
}

TEST_F(newest, conditions_are_not_recorded) {
    EXPECT_THAT(
        recorded("SET a 1 ; SET a 2 IFEQ 1 EX 10 ; SET a 3 IFNE 9 KEEPTTL ; SET a 4 IFEQ 9 ; "
                 "SET a 4 IFEQ 3 GET ; DELEX a IFEQ 9 ; DELEX a IFEQ 4 ; SET a 1 ; "
                 "DELIFEQ a 2 ; DELIFEQ a 1"),
        ElementsAre("SET a 1", "SET a 2 PXAT 1700000010000", "SET a 3 KEEPTTL", "SET a 4", "DEL a",
                    "SET a 1", "DEL a"));
    EXPECT_THAT(recorded("MSETEX 2 a 1 b 2 NX EX 10 ; MSETEX 1 a 1 NX ; MSETEX 1 c 3"),
                ElementsAre("MULTI", "SET a 1 PXAT 1700000010000", "SET b 2 PXAT 1700000010000",
                            "EXEC", "SET c 3"));
}

TEST_F(newest, bitop_tells_the_first_from_the_others) {
    a_("SET a abc");
    a_("SET b abd");
    a_("SET long abcdefghijklmnop");
    expect(
        {{"BITOP DIFF d long a b", ":16\r\n"},
         {"GET d", bulk(std::string("\0\0\0defghijklmnop", 16))},
         {"BITOP DIFF1 d a long", ":16\r\n"},
         {"GET d", bulk(std::string("\0\0\0defghijklmnop", 16))},
         {"BITOP ANDOR d a nosuch b", ":3\r\n"},
         {"GET d", bulk("ab`")},
         {"BITOP ONE d a b", ":3\r\n"},
         {"GET d", bulk(std::string("\0\0\7", 3))},
         {"BITOP ONE d a b a", ":3\r\n"},
         {"GET d", bulk(std::string("\0\0\4", 3))},
         {"BITOP one a a", ":3\r\n"},
         {"GET a", bulk("abc")},
         {"BITOP DIFF a a b", ":3\r\n"},
         {"GET a", bulk(std::string("\0\0\3", 3))},
         {"BITOP DIFF d nosuch nosuch", ":0\r\n"},
         {"EXISTS d", ":0\r\n"},
         {"BITOP DIFF d a", "-ERR BITOP DIFF must be called with at least two source keys.\r\n"},
         {"BITOP ANDOR d a", "-ERR BITOP ANDOR must be called with at least two source keys.\r\n"},
         {"BITOP FOO d a", "-ERR syntax error\r\n"}});
}

TEST_F(newest, scans_leave_values_out) {
    a_("HSET h f v");
    a_("ZADD z 1 m");
    a_("SADD s m");
    expect({{"HSCAN h 0 NOVALUES COUNT 5", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nf\r\n"},
            {"HSCAN h 0 MATCH x NOVALUES", "*2\r\n$1\r\n0\r\n*0\r\n"},
            {"ZSCAN z 0 noscores", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nm\r\n"},
            {"ZSCAN z 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN\r\n"},
            {"SSCAN s 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN\r\n"},
            {"HSCAN h 0 NOSCORES", "-ERR NOSCORES option can only be used in ZSCAN\r\n"},
            {"SCAN 0 NOSCORES", "-ERR NOSCORES option can only be used in ZSCAN\r\n"}});
}

class newest_streams : public newest {
protected:
    newest_streams() {
        for (const char* const id : {"1", "2", "3", "4"}) a_(std::string("XADD s ") + id + " f v");
        a_("XGROUP CREATE s g 0");
        a_("XGROUP CREATE s h 0");
    }
};

TEST_F(newest_streams, entries_are_deleted_with_or_without_references) {
    a_("XREADGROUP GROUP g c COUNT 3 STREAMS s >");
    a_("XREADGROUP GROUP h c COUNT 3 STREAMS s >");
    a_("XACK s h 1 2");
    expect({{"XDELEX s ACKED IDS 3 1 4 9", integers({2, 2, 2})},
            {"XDELEX s IDS 2 1 7", integers({1, -1})},
            {"XPENDING s g - + 1", "*1\r\n*4\r\n$3\r\n1-0\r\n$1\r\nc\r\n:0\r\n:1\r\n"},
            {"XDELEX s ACKED IDS 1 1", integers({2})},
            {"XDELEX s DELREF IDS 2 1 2", integers({-1, 1})},
            {"XPENDING s g - + 9", "*1\r\n*4\r\n$3\r\n3-0\r\n$1\r\nc\r\n:0\r\n:1\r\n"},
            {"XACK s g 3", ":1\r\n"},
            {"XACK s h 3", ":1\r\n"},
            {"XDELEX s KEEPREF IDS 1 x",
             "-ERR Invalid stream ID specified as stream command argument\r\n"},
            {"XDELEX s ACKED IDS 1 3", integers({1})},
            {"XDELEX n IDS 2 x y", integers({-1, -1})},
            {"XDELEX s IDS 0 1", "-ERR Number of IDs must be a positive integer\r\n"},
            {"XDELEX s IDS 3 1 2",
             "-ERR The `numids` parameter must match the number of arguments\r\n"},
            {"XDELEX s KEEPREF DELREF IDS 1 1", "-ERR syntax error\r\n"},
            {"XDELEX s FOO IDS 1 1", "-ERR syntax error\r\n"},
            {"XLEN s", ":1\r\n"}});
}

TEST_F(newest_streams, entries_are_acknowledged_and_deleted) {
    a_("XREADGROUP GROUP g c STREAMS s >");
    a_("XREADGROUP GROUP h c COUNT 2 STREAMS s >");
    expect({{"XACKDEL s g IDS 2 1 9", integers({1, -1})},
            {"XACKDEL s g ACKED IDS 2 2 3", integers({2, 2})},
            {"XLEN s", ":3\r\n"},
            {"XACKDEL s h ACKED IDS 1 2", integers({1})},
            {"XLEN s", ":2\r\n"},
            {"XACKDEL s g DELREF IDS 1 4", integers({1})},
            {"XLEN s", ":1\r\n"},
            {"XACKDEL s h IDS 2 1 1", integers({1, -1})},
            {"XACKDEL s nosuch IDS 1 x", integers({-1})},
            {"XACKDEL n g IDS 1 1", integers({-1})},
            {"XACKDEL s g FOO IDS 1 1", "-ERR syntax error\r\n"}});
}

TEST_F(newest_streams, deletions_are_recorded_as_what_they_did) {
    a_("XREADGROUP GROUP g c STREAMS s >");
    a_("XREADGROUP GROUP h c STREAMS s >");
    EXPECT_THAT(
        recorded("XDELEX s ACKED IDS 1 1 ; XDELEX s IDS 2 1 9 ; XDELEX s DELREF IDS 2 1 2 ; "
                 "XACKDEL s g ACKED IDS 1 3 ; XACKDEL s h ACKED IDS 1 3 ; XACKDEL s g IDS 1 9"),
        ElementsAre("XDEL s 1-0", "MULTI", "XACK s g 1-0 2-0", "XACK s h 1-0 2-0", "XDEL s 2-0",
                    "EXEC", "XACK s g 3-0", "MULTI", "XACK s h 3-0", "XDEL s 3-0", "EXEC"));
}

TEST_F(newest_streams, trims_spare_or_forget_references) {
    a_("XREADGROUP GROUP g c STREAMS s >");
    a_("XREADGROUP GROUP h c STREAMS s >");
    a_("XACK s g 2 3 4");
    a_("XACK s h 2 3");
    expect({{"XTRIM s MAXLEN 1 ACKED", ":2\r\n"},
            {"XLEN s", ":2\r\n"},
            {"XADD s ACKED MAXLEN 0 5 f v", bulk("5-0")},
            {"XLEN s", ":3\r\n"},
            {"XTRIM s MINID 2 DELREF", ":1\r\n"},
            {"XPENDING s g", "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n"},
            {"XADD s MAXLEN = 1 DELREF 6 f v", bulk("6-0")},
            {"XPENDING s h", "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n"},
            {"XTRIM s ACKED MAXLEN 0 DELREF", "-ERR syntax error\r\n"},
            {"XADD s KEEPREF ACKED 7 f v",
             "-ERR Invalid stream ID specified as stream command argument\r\n"}});
}

// Several blocks, of which the last one is not trimmed as a whole.
TEST_F(newest_streams, trims_that_spare_entries_are_recorded_exactly) {
    a_("CONFIG SET stream-node-max-entries 3");
    for (int i = 5; i < 13; ++i) a_("XADD s " + std::to_string(i) + " f v");
    a_("XGROUP DESTROY s h");
    a_("XREADGROUP GROUP g c STREAMS s >");
    a_("XACK s g 1 3 5 6 8");
    EXPECT_THAT(recorded("XTRIM s MAXLEN ~ 6 ACKED"), ElementsAre("XTRIM s MINID = 8-1 ACKED"));
    EXPECT_THAT(recorded("XTRIM s ACKED MINID ~ 8 ; XACK s g 2 ; XTRIM s ACKED MINID ~ 8"),
                ElementsAre("XACK s g 2", "XTRIM s ACKED MINID = 2-1"));
    EXPECT_EQ(a_("XLEN s"), ":6\r\n");
    EXPECT_THAT(
        recorded("XACK s g 4 ; XADD s MAXLEN 1 ACKED 20 f v ; XADD s DELREF MAXLEN ~ 2 21 f v"),
        ElementsAre("XACK s g 4", "XADD s MINID 4-1 ACKED 20-0 f v",
                    "XADD s DELREF MAXLEN = 2 21-0 f v"));
}

// A master of version 8.6 sends a new entry with its ID, a repeated message without.
TEST_F(newest, entries_of_idempotent_producers_come_from_masters_with_their_ids) {
    testing::kept_changes sink;
    add_sink(engine_.internals(), sink);
    testing::change_replayer master(engine_);
    for (const std::string_view each : {
             "XADD s IDMP p i * f v",  // of a stream that is missing here
             "XADD s IDMP p i 5-1 f v",
             "XADD s IDMP p i * f other",
             "XADD s IDMPAUTO p 5-2 f v",
             "XADD s NOMKSTREAM IDMPAUTO p * f v",
             "XADD s NOMKSTREAM idmp q i MAXLEN = 2 5-3 f v",
             "XADD s IDMP q i MAXLEN ~ 1 * f v",
         })
        EXPECT_EQ(master.obey(std::string(each) + "\r\n"), "") << each;
    remove_sink(engine_.internals(), sink);
    EXPECT_THAT(sink.lines(), ElementsAre("XADD s 5-1 f v", "XADD s 5-2 f v",
                                          "XADD s NOMKSTREAM MAXLEN = 2 5-3 f v"));
    expect({{"XLEN s", ":2\r\n"},
            {"XREVRANGE s + - COUNT 1", "*1\r\n*2\r\n$3\r\n5-3\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"}});
    EXPECT_THAT(master.obey("XADD s IDMP p i IDMPAUTO p 6-1 f v\r\n"),
                HasSubstr("-ERR syntax error, IDMP/IDMPAUTO specified multiple times"));
    EXPECT_THAT(master.obey("XADD s IDMP p\r\n"), HasSubstr("-ERR wrong number of arguments"));
    EXPECT_THAT(master.obey("XADD s MAXLEN 1 IDMP p\r\n"), HasSubstr("-ERR Invalid stream ID"));
}

TEST_F(newest, messages_of_idempotent_producers_are_refused) {
    for (const std::string_view each :
         {"XADD s IDMP p i * f v", "XADD s IDMPAUTO p * f v", "XADD s MAXLEN 1 idmp p i 1-1 f v"})
        EXPECT_THAT(a_(each), StartsWith("-ERR IDMP and IDMPAUTO are taken from a master")) << each;
    EXPECT_EQ(a_("EXISTS s"), ":0\r\n");
    // As a field they are what they were.
    EXPECT_EQ(a_("XADD s 1-1 IDMP p"), bulk("1-1"));
}

TEST_F(newest_streams, a_group_is_read_with_its_idle_entries) {
    const auto entry = [](std::string_view id, int idle, int deliveries) {
        return "*4\r\n" + bulk(id) + "*2\r\n$1\r\nf\r\n$1\r\nv\r\n:" + std::to_string(idle) +
               "\r\n:" + std::to_string(deliveries) + "\r\n";
    };
    const auto reply = [&](std::initializer_list<std::string> all) {
        std::string text = "*1\r\n*2\r\n$1\r\ns\r\n*" + std::to_string(all.size()) + "\r\n";
        for (const std::string& each : all) text += each;
        return text;
    };
    a_("XREADGROUP GROUP g c COUNT 1 STREAMS s >");
    at(milliseconds(100));
    a_("XREADGROUP GROUP g c COUNT 1 STREAMS s >");
    at(milliseconds(150));
    EXPECT_EQ(b_("XREADGROUP GROUP g d CLAIM 100 COUNT 2 STREAMS s >"),
              reply({entry("1-0", 150, 1), entry("3-0", 0, 0)}));
    EXPECT_EQ(
        b_("XREADGROUP GROUP g d CLAIM 0 STREAMS s >"),
        reply({entry("2-0", 50, 1), entry("1-0", 0, 2), entry("3-0", 0, 1), entry("4-0", 0, 0)}));
    EXPECT_EQ(b_("XREADGROUP GROUP g d CLAIM 1 STREAMS s >"), "*-1\r\n");
    // A deleted entry stays pending.
    a_("XDEL s 1 2 3");
    EXPECT_EQ(b_("XREADGROUP GROUP g d CLAIM 0 STREAMS s >"), reply({entry("4-0", 0, 1)}));
    EXPECT_THAT(b_("XPENDING s g"), StartsWith("*4\r\n:4\r\n"));
    expect({{"XREADGROUP GROUP g c CLAIM x STREAMS s >",
             "-ERR min-idle-time is not an integer or out of range\r\n"},
            {"XREADGROUP GROUP g c CLAIM -1 STREAMS s >",
             "-ERR min-idle-time must be a positive integer\r\n"},
            {"XREAD CLAIM 0 STREAMS s 0",
             "-ERR The CLAIM option is only supported by XREADGROUP. You called XREAD "
             "instead.\r\n"},
            {"COMMAND GETKEYS XREADGROUP GROUP g c CLAIM 5 STREAMS k >", "*1\r\n$1\r\nk\r\n"}});
}

TEST_F(newest_streams, a_read_waits_until_an_entry_is_idle) {
    a_("XREADGROUP GROUP g c STREAMS s >");
    a_("XDEL s 2 3 4");
    EXPECT_EQ(b_("XREADGROUP GROUP g d CLAIM 400 BLOCK 10000 STREAMS s >"), "");
    at(milliseconds(300));
    engine_.end_wait(b_.who());
    EXPECT_TRUE(b_.who().blocked);
    // Another consumer takes it meanwhile, so it is idle later.
    a_("XCLAIM s g c 0 1");
    at(milliseconds(500));
    engine_.end_wait(b_.who());
    EXPECT_TRUE(b_.who().blocked);
    at(milliseconds(701));
    engine_.end_wait(b_.who());
    EXPECT_FALSE(b_.who().blocked);
    EXPECT_THAT(b_.pushed(), HasSubstr("$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n:401\r\n:2\r\n"));
    // At the end of BLOCK nothing was idle.
    EXPECT_EQ(b_("XREADGROUP GROUP g d CLAIM 5000 BLOCK 100 STREAMS s >"), "");
    at(milliseconds(900));
    engine_.end_wait(b_.who());
    EXPECT_EQ(b_.pushed(), "*-1\r\n");
}

TEST_F(newest_streams, a_read_claims_nothing_while_writes_are_held) {
    a_("XREADGROUP GROUP g c COUNT 1 STREAMS s >");
    a_("XDEL s 2 3 4");
    milliseconds now(0);
    for (const std::string_view kind : {"WRITE", "ALL"}) {
        EXPECT_EQ(b_("XREADGROUP GROUP g d CLAIM 400 BLOCK 10000 STREAMS s >"), "");
        a_("CLIENT PAUSE 2000 " + std::string(kind));
        now += milliseconds(500);
        at(now);
        engine_.end_wait(b_.who());
        EXPECT_TRUE(b_.who().blocked);
        EXPECT_EQ(b_.pushed(), "");
        now += milliseconds(1600);
        at(now);
        engine_.end_wait(b_.who());
        EXPECT_FALSE(b_.who().blocked);
        EXPECT_THAT(b_.pushed(), HasSubstr("$3\r\n1-0\r\n"));
    }
}

TEST_F(newest_streams, a_read_that_waits_is_refused_when_it_would_claim) {
    a_("XREADGROUP GROUP g c STREAMS s >");
    EXPECT_EQ(b_("XREADGROUP GROUP g d CLAIM 400 BLOCK 10000 STREAMS s >"), "");
    a_("CONFIG SET min-replicas-to-write 1");
    at(milliseconds(500));
    engine_.end_wait(b_.who());
    EXPECT_FALSE(b_.who().blocked);
    EXPECT_EQ(b_.pushed(), "-NOREPLICAS Not enough good replicas to write.\r\n");
    a_("CONFIG SET min-replicas-to-write 0");
    EXPECT_EQ(b_("XREADGROUP GROUP g d CLAIM 900 BLOCK 10000 STREAMS s >"), "");
    engine_settings(engine_).set_mode(access_mode::readonly);
    at(milliseconds(1000));
    engine_.end_wait(b_.who());
    EXPECT_THAT(b_.pushed(), StartsWith("-READONLY "));
}

TEST_F(newest, clients_are_chosen_by_any_property) {
    test_client one(engine_);
    test_client two(engine_);
    one("CLIENT SETNAME one");
    two("CLIENT SETNAME two");
    two("CLIENT SETINFO LIB-NAME lib");
    two("SELECT 3");
    const auto listed = [&](std::string_view filter) {
        const std::string reply = a_("CLIENT LIST " + std::string(filter));
        std::string names;
        if (reply.contains("name=one")) names += "one ";
        if (reply.contains("name=two")) names += "two ";
        return names.empty() ? reply : names;
    };
    constexpr std::string_view nothing = "$0\r\n\r\n";
    EXPECT_EQ(listed("NAME two"), "two ");
    EXPECT_EQ(listed("NOT-NAME two"), "one ");
    EXPECT_EQ(listed("DB 3"), "two ");
    EXPECT_EQ(listed("NOT-DB 3"), "one ");
    EXPECT_EQ(listed("LIB-NAME lib"), "two ");
    EXPECT_EQ(listed("NOT-LIB-NAME lib"), "one ");
    EXPECT_EQ(listed("USER default"), "one two ");
    // Clients without one fit no filter, not even an empty one.
    for (const std::string property : {"NAME", "LIB-NAME", "LIB-VER"}) {
        EXPECT_EQ(listed(property + " ''"), nothing);
        EXPECT_EQ(listed("NOT-" + property + " ''"), "one two ");
    }
    EXPECT_EQ(listed("TYPE normal NAME one"), "one ");
    EXPECT_EQ(listed("IP test"), "one two ");
    EXPECT_EQ(listed("NOT-IP test"), nothing);
    EXPECT_EQ(listed("FLAGS N NAME two"), "two ");
    EXPECT_EQ(listed("FLAGS b"), nothing);
    EXPECT_EQ(listed("NOT-NAME one DB 3 NOT-TYPE pubsub"), "two ");
    const std::string ids = std::to_string(one.who().id) + " " + std::to_string(two.who().id);
    EXPECT_EQ(listed("ID " + ids + " DB 3"), "two ");
    EXPECT_EQ(listed("NOT-ID " + ids + " DB 3"), nothing);
    EXPECT_EQ(one("CLIENT LIST NAME one SKIPME yes"), nothing);
    EXPECT_EQ(listed("MAXAGE 5 NOT-NAME ''"), nothing);
    at(milliseconds(6000));
    one("PING");
    EXPECT_EQ(listed("MAXAGE 5 NOT-NAME ''"), "one two ");
    EXPECT_EQ(listed("IDLE 5 NOT-NAME ''"), "two ");
    expect(
        {{"CLIENT LIST DB 99", "-ERR DB number should be between 0 and 15\r\n"},
         {"CLIENT LIST DB x", "-ERR DB is not an integer or out of range\r\n"},
         {"CLIENT LIST IDLE 0", "-ERR idle should be greater than 0\r\n"},
         {"CLIENT LIST MAXAGE x", "-ERR maxage is not an integer or out of range\r\n"},
         {"CLIENT LIST FLAGS zz", "-ERR Unknown flags found in the provided filter: zz\r\n"},
         {"CLIENT LIST NOT-FLAGS zz", "-ERR Unknown flags found in the NOT-FLAGS filter: zz\r\n"},
         {"CLIENT LIST NOT-MAXAGE 1", "-ERR syntax error\r\n"},
         {"CLIENT LIST USER nosuch", "-ERR No such user 'nosuch'\r\n"},
         {"CLIENT LIST NAME", "-ERR syntax error\r\n"},
         {"CLIENT LIST FOO x", "-ERR syntax error\r\n"},
         {"CLIENT KILL NAME one DB 3", ":0\r\n"},
         {"CLIENT KILL NAME two DB 3", ":1\r\n"}});
    EXPECT_TRUE(two.closed());
    EXPECT_FALSE(one.closed());
}

TEST_F(newest, hashes_with_expiring_fields_are_counted) {
    const auto count = [&] {
        const std::string info = a_("INFO keyspace");
        return info.substr(info.find("subexpiry=") + 10, 1);
    };
    a_("HSET h f v g v");
    EXPECT_EQ(count(), "0");
    a_("HEXPIRE h 100 FIELDS 2 f g");
    a_("HSETEX i EX 100 FIELDS 1 f v");
    EXPECT_EQ(count(), "2");
    a_("HPERSIST h FIELDS 1 f");
    EXPECT_EQ(count(), "2");
    a_("HPERSIST h FIELDS 1 g");
    EXPECT_EQ(count(), "1");
    a_("SET k v");
    a_("MOVE i 1");
    EXPECT_THAT(a_("INFO keyspace"),
                AllOf(HasSubstr("db0:keys=2,expires=0,avg_ttl=0,subexpiry=0\r\n"),
                      HasSubstr("db1:keys=1,expires=0,avg_ttl=0,subexpiry=1\r\n")));
    a_("SELECT 1");
    a_("FLUSHDB");
    a_("HSETEX j EX 100 FIELDS 1 f v");
    EXPECT_THAT(a_("INFO keyspace"), HasSubstr("db1:keys=1,expires=0,avg_ttl=0,subexpiry=1\r\n"));
    a_("DEL j");
    a_("SET k v");
    EXPECT_THAT(a_("INFO keyspace"), HasSubstr("db1:keys=1,expires=0,avg_ttl=0,subexpiry=0\r\n"));
}

// The first words and amounts of a log of COMMANDLOG, the oldest first, without the test's own.
std::string log_of(test_client& from, std::string_view which) {
    std::string text;
    const auto log = testing::parse_reply(from("COMMANDLOG GET -1 " + std::string(which)));
    for (const auto& each : log.children) {
        const std::string& name = each.children[3].children[0].text;
        if (name != "COMMANDLOG" && name != "CONFIG")
            text.insert(0, name + ' ' + each.children[2].text + ", ");
    }
    from("COMMANDLOG RESET " + std::string(which));
    return text;
}

TEST_F(newest, large_requests_and_replies_are_logged) {
    const std::string large(1 << 20, 'x');
    a_({"SET", "k", large});
    EXPECT_EQ(log_of(b_, "large-request"), "SET 1048608, ");
    a_("GET k");
    EXPECT_EQ(log_of(b_, "large-reply"), "GET 1048588, ");
    a_({"SET", "k", large.substr(100)});
    a_("GET k");
    EXPECT_EQ(log_of(b_, "large-request") + log_of(b_, "large-reply"), "") << "they are smaller";
    b_("CONFIG SET commandlog-request-larger-than 30 commandlog-reply-larger-than 30");
    // Each command of a transaction for itself, and one that waits when it is served.
    a_("MULTI");
    a_("SET k 123456");
    a_("STRLEN k");
    a_("EXEC");
    EXPECT_EQ(log_of(b_, "large-request"), "SET 32, ");
    EXPECT_EQ(a_("BLPOP nosuch other 0"), "");
    EXPECT_EQ(log_of(b_, "large-request"), "");
    b_("RPUSH other 12345678901234567890");
    a_.pushed();
    EXPECT_EQ(log_of(b_, "large-request"), "RPUSH 53, BLPOP 45, ");
    EXPECT_EQ(log_of(b_, "large-reply"), "BLPOP 42, ");
    // A reply that is not sent has no bytes.
    a_("CLIENT REPLY OFF");
    a_({"SET", "k", std::string(100, 'x')});
    a_("GET k");
    a_("CLIENT REPLY ON");
    EXPECT_EQ(log_of(b_, "large-reply"), "");
    EXPECT_THAT(log_of(b_, "large-request"), HasSubstr("SET 128, "));
    // Within a script the request has none.
    a_("EVAL return(redis.call('get',KEYS[1])) 1 k");
    EXPECT_EQ(log_of(b_, "large-reply"), "get 108, EVAL 108, ");
    EXPECT_EQ(log_of(b_, "large-request"), "EVAL 68, ");
    a_("AUTH 12345678901234567890");
    const std::string secret = b_("COMMANDLOG GET 1 large-request");
    EXPECT_THAT(secret, AllOf(HasSubstr("(redacted)"), ::testing::Not(HasSubstr("123456789"))));
}

TEST_F(newest, logs_of_sizes_have_a_length) {
    b_("CONFIG SET commandlog-request-larger-than 25 commandlog-large-request-max-len 3");
    for (const std::string each : {"a", "b", "c", "d"}) a_({"SET", each, "value"});
    EXPECT_EQ(b_("COMMANDLOG LEN large-request"), ":3\r\n");
    EXPECT_EQ(b_("COMMANDLOG LEN large-reply"), ":0\r\n");
    b_("CONFIG SET commandlog-large-request-max-len 0");
    a_("SET e value");
    EXPECT_EQ(b_("COMMANDLOG LEN large-request"), ":0\r\n");
    // The same data as SLOWLOG.
    b_("CONFIG SET commandlog-execution-slower-than 0");
    a_("SET e value");
    EXPECT_EQ(testing::parse_reply(b_("SLOWLOG GET -1")).children.size(), 2U);
    b_("COMMANDLOG RESET slow");
    EXPECT_EQ(b_("SLOWLOG LEN"), ":1\r\n");
    b_("CONFIG SET slowlog-log-slower-than -1");
    EXPECT_THAT(b_("CONFIG GET commandlog-execution-slower-than"), HasSubstr("-1"));
}

TEST_F(newest, clients_say_that_they_can_be_redirected) {
    EXPECT_EQ(a_("READONLY"), "-ERR This instance has cluster support disabled\r\n");
    EXPECT_EQ(a_("CLIENT CAPA foo"), ok);
    EXPECT_EQ(a_("CLIENT LIST CAPA r"), "$0\r\n\r\n");
    EXPECT_EQ(a_("CLIENT CAPA foo REDIRECT"), ok);
    EXPECT_THAT(b_("CLIENT LIST CAPA r"), HasSubstr(" flags=N capa=r db=0 "));
    EXPECT_EQ(a_("READONLY"), ok);
    EXPECT_EQ(a_("READWRITE"), ok);
    EXPECT_EQ(a_("SET k v"), ok) << "there is no master";
    EXPECT_EQ(b_("CLIENT KILL CAPA r"), ":1\r\n");
}

TEST_F(newest, a_replica_redirects_them_to_its_master) {
    a_("SET k v");
    EXPECT_EQ(a_("REPLICAOF 10.0.0.1 6379"), ok);
    a_("CLIENT CAPA redirect");
    constexpr std::string_view redirected = "-REDIRECT 10.0.0.1:6379\r\n";
    for (const std::string_view each :
         {"GET k", "SET k v", "SCAN 0", "DBSIZE", "OBJECT ENCODING k", "EVAL_RO return(1) 0",
          "FLUSHALL", "XADD s * f v", "MEMORY USAGE k", "PFCOUNT k", "FUNCTION FLUSH"})
        EXPECT_EQ(a_(each), redirected) << each;
    expect({{"PING", "+PONG\r\n"},
            {"MULTI", ok},
            {"GET k", redirected},
            {"EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"},
            {"EVAL return(1) 0", ":1\r\n"},
            {"PUBLISH a b", ":0\r\n"},
            {"WATCH k", ok},
            {"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
            {"READONLY", ok},
            {"GET k", bulk("v")},
            {"SET k v", redirected},
            {"MULTI", ok},
            {"GET k", "+QUEUED\r\n"},
            {"SET k v", redirected},
            {"EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"},
            {"DBSIZE", ":1\r\n"},
            {"READWRITE", ok},
            {"GET k", redirected},
            {"READONLY", ok},
            {"RESET", "+RESET\r\n"},
            {"GET k", redirected}});
    EXPECT_EQ(b_("GET k"), bulk("v"));
    EXPECT_THAT(b_("SET k v"), StartsWith("-READONLY"));
    EXPECT_EQ(a_("REPLICAOF NO ONE"), ok);
    EXPECT_EQ(a_("GET k"), bulk("v"));
}

TEST_F(newest, a_cluster_of_one_node_is_scanned) {
    expect({{"CLUSTERSCAN 0", "-ERR This instance has cluster support disabled\r\n"},
            {"CONFIG SET cluster-enabled yes", ok},
            {"CLUSTERSCAN x", "-ERR Invalid cursor\r\n"},
            {"CLUSTERSCAN 1", "-ERR Invalid cursor\r\n"},
            {"CLUSTERSCAN 0-{a}-x", "-ERR Invalid cursor\r\n"},
            {"CLUSTERSCAN 0-{a}-", "-ERR Invalid cursor\r\n"},
            {"CLUSTERSCAN 0-{a}-0 SLOT 5", "-ERR Cursor slot mismatch with SLOT argument\r\n"},
            {"CLUSTERSCAN 0 SLOT 16384", "-ERR Invalid or out of range slot\r\n"},
            {"CLUSTERSCAN 0 SLOT 1 SLOT 2", "-ERR SLOT option can only be specified once\r\n"},
            {"CLUSTERSCAN 0 SLOT", "-ERR syntax error\r\n"},
            {"SCAN 0 SLOT 1", "-ERR syntax error\r\n"}});
    for (int i = 0; i < 100; ++i) a_({"SET", "key" + std::to_string(i), "v"});
    for (int i = 0; i < 30; ++i) a_({"RPUSH", "{a}" + std::to_string(i), "v"});
    const auto found = [&](const std::string& options) {
        std::set<std::string> keys;
        std::string cursor = "0";
        do {
            const auto page = testing::parse_reply(a_("CLUSTERSCAN " + cursor + options));
            cursor = page.children.at(0).text;
            for (const auto& each : page.children.at(1).children) keys.insert(each.text);
        } while (cursor != "0");
        return keys.size();
    };
    EXPECT_EQ(found(""), 130U);
    EXPECT_EQ(found(" COUNT 1000"), 130U);
    EXPECT_EQ(found(" TYPE list"), 30U);
    EXPECT_EQ(found(" MATCH key1*"), 11U);
    EXPECT_EQ(found(" SLOT 15495"), 30U) << "the slot of {a}";
    EXPECT_EQ(found(" SLOT 0"), 0U);
}

TEST_F(newest, versions_are_three_numbers) {
    EXPECT_EQ(version_number("7.2.4"), 0x00070204U);
    EXPECT_EQ(version_number("8.255.0"), 0x0008ff00U);
    for (const std::string_view each :
         {"", "7", "7.2", "7.2.", "7.2.4.1", "7.2.256", "a.b.c", "-1.2.3"})
        EXPECT_EQ(version_number(each), std::nullopt) << each;
    EXPECT_THAT(a_("INFO server"), HasSubstr("redis_version:8.4.0\r\n"));
    EXPECT_THAT(a_("HELLO"), HasSubstr("version\r\n$5\r\n8.4.0\r\n"));
}

}  // namespace
}  // namespace eddy::cache
