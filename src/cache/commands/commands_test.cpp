// Edge cases of the commands, as Redis 7.0 answers them; differential_test.cpp asks the real one.
#include "cache/engine/engine.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using testing::arguments;
using testing::parse_reply;
using testing::test_client;

constexpr std::string_view wrong_type =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
constexpr std::string_view not_an_integer = "-ERR value is not an integer or out of range\r\n";
constexpr std::string_view syntax_error = "-ERR syntax error\r\n";
constexpr std::string_view null = "$-1\r\n";

class commands : public ::testing::Test {
protected:
    void expect(std::string_view line, std::string_view reply) {
        EXPECT_EQ(client_(line), reply) << line;
    }

    engine engine_;
    test_client client_{engine_};
};

TEST_F(commands, set_drops_the_time_to_live_unless_told_to_keep_it) {
    expect("SET a 1 EX 100", "+OK\r\n");
    expect("SET a 2 KEEPTTL", "+OK\r\n");
    expect("TTL a", ":100\r\n");
    expect("SET a 3", "+OK\r\n");
    expect("TTL a", ":-1\r\n");
    expect("SET a 4 EX 0", "-ERR invalid expire time in 'set' command\r\n");
    expect("SET a 4 EX 10 PX 10", syntax_error);
    expect("SET a 4 NX", null);
    expect("SET b 4 XX", null);
    expect("SET a 5 NX GET", "$1\r\n3\r\n");
    expect("GET a", "$1\r\n3\r\n");
}

TEST_F(commands, keys_and_values_are_any_bytes) {
    const std::string key("\0\r\n\xff", 4);
    EXPECT_EQ(client_({"SET", key, key}), "+OK\r\n");
    EXPECT_EQ(client_({"GET", key}), "$4\r\n" + key + "\r\n");
    EXPECT_EQ(client_({"GET", key.substr(0, 3)}), null);
    EXPECT_EQ(client_({"HSET", "h", key, key}), ":1\r\n");
    EXPECT_EQ(client_({"HGET", "h", key}), "$4\r\n" + key + "\r\n");
    EXPECT_EQ(client_({"RPUSH", "l", key, ""}), ":2\r\n");
    EXPECT_EQ(client_({"LINDEX", "l", "0"}), "$4\r\n" + key + "\r\n");
    EXPECT_EQ(client_({"LINDEX", "l", "1"}), "$0\r\n\r\n");
    EXPECT_EQ(client_({"SET", "", ""}), "+OK\r\n");
    EXPECT_EQ(client_({"GET", ""}), "$0\r\n\r\n");
}

TEST_F(commands, counters_stop_at_the_ends_of_64_bits) {
    expect("SET n 9223372036854775806", "+OK\r\n");
    expect("INCR n", ":9223372036854775807\r\n");
    expect("INCR n", "-ERR increment or decrement would overflow\r\n");
    expect("GET n", "$19\r\n9223372036854775807\r\n");
    expect("SET n -9223372036854775808", "+OK\r\n");
    expect("DECR n", "-ERR increment or decrement would overflow\r\n");
    expect("DECRBY n -9223372036854775808", "-ERR decrement would overflow\r\n");
    expect("INCRBY n x", not_an_integer);
    expect("SET n 1.5", "+OK\r\n");
    expect("INCR n", not_an_integer);
    expect("INCRBYFLOAT n 1e3", "$6\r\n1001.5\r\n");
    expect("INCRBYFLOAT m nan", "-ERR value is not a valid float\r\n");
    expect("INCRBYFLOAT m inf", "-ERR increment would produce NaN or Infinity\r\n");
    expect("EXISTS m", ":0\r\n");
    expect("HSET h f 9223372036854775807", ":1\r\n");
    expect("HINCRBY h f 1", "-ERR increment or decrement would overflow\r\n");
    expect("HINCRBYFLOAT h g inf", "-ERR value is NaN or Infinity\r\n");
    expect("HINCRBYFLOAT h g 0.25", "$4\r\n0.25\r\n");
}

TEST_F(commands, every_type_refuses_the_others_commands) {
    expect("SET string x", "+OK\r\n");
    expect("RPUSH list x", ":1\r\n");
    expect("SADD set x", ":1\r\n");
    expect("HSET hash x 1", ":1\r\n");
    for (const std::string_view line : {"GET list",
                                        "APPEND list x",
                                        "INCR set",
                                        "GETRANGE hash 0 1",
                                        "SETRANGE list 0 x",
                                        "STRLEN set",
                                        "GETSET list x",
                                        "GETDEL list",
                                        "GETEX list",
                                        "SET list x GET",
                                        "LPUSH string x",
                                        "LPOP set",
                                        "LLEN hash",
                                        "LRANGE string 0 1",
                                        "LINDEX set 0",
                                        "LSET string 0 x",
                                        "LTRIM hash 0 1",
                                        "LREM set 0 x",
                                        "LINSERT string BEFORE a b",
                                        "LPOS set x",
                                        "LMOVE list set LEFT LEFT",
                                        "RPOPLPUSH string list",
                                        "LMPOP 1 hash LEFT",
                                        "LPUSHX string x",
                                        "SADD string x",
                                        "SREM list x",
                                        "SMEMBERS hash",
                                        "SISMEMBER list x",
                                        "SMISMEMBER list x",
                                        "SCARD hash",
                                        "SPOP list",
                                        "SRANDMEMBER list",
                                        "SMOVE set list x",
                                        "SMOVE list set x",
                                        "SSCAN hash 0",
                                        "SINTER set list",
                                        "SUNION hash set",
                                        "SDIFF set string",
                                        "SINTERSTORE d set list",
                                        "SINTERCARD 2 set list",
                                        "HSET set x 1",
                                        "HGET string x",
                                        "HMGET list x",
                                        "HGETALL set",
                                        "HDEL string x",
                                        "HLEN list",
                                        "HEXISTS set x",
                                        "HKEYS list",
                                        "HVALS string",
                                        "HSTRLEN set x",
                                        "HINCRBY list x 1",
                                        "HINCRBYFLOAT list x 1",
                                        "HRANDFIELD list",
                                        "HSCAN set 0",
                                        "HSETNX list x 1"}) {
        expect(line, wrong_type);
    }
    expect("MGET string list", "*2\r\n$1\r\nx\r\n$-1\r\n");
    expect("SET list x", "+OK\r\n");
}

TEST_F(commands, empty_collections_are_removed) {
    expect("RPUSH l a b", ":2\r\n");
    expect("LPOP l 5", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    expect("RPUSH l a", ":1\r\n");
    expect("RPOPLPUSH l m", "$1\r\na\r\n");
    expect("RPUSH l a", ":1\r\n");
    expect("LREM l 0 a", ":1\r\n");
    expect("RPUSH l a", ":1\r\n");
    expect("LTRIM l 1 0", "+OK\r\n");
    expect("SADD s a", ":1\r\n");
    expect("SREM s a", ":1\r\n");
    expect("SADD s a", ":1\r\n");
    expect("SMOVE s t a", ":1\r\n");
    expect("SPOP t", "$1\r\na\r\n");
    expect("HSET h a 1", ":1\r\n");
    expect("HDEL h a b", ":1\r\n");
    expect("EXISTS l s t h", ":0\r\n");
    expect("DBSIZE", ":1\r\n");
}

TEST_F(commands, lists_take_indexes_from_both_ends) {
    expect("RPUSH l a b c d e", ":5\r\n");
    expect("LRANGE l -2 -1", "*2\r\n$1\r\nd\r\n$1\r\ne\r\n");
    expect("LRANGE l 3 1", "*0\r\n");
    expect("LINDEX l -6", null);
    expect("LSET l 5 x", "-ERR index out of range\r\n");
    expect("LSET l -5 A", "+OK\r\n");
    expect("LINSERT l AFTER e f", ":6\r\n");
    expect("LINSERT l BEFORE nosuch f", ":-1\r\n");
    expect("LPOS l f RANK -1", ":5\r\n");
    expect("LPOS l nosuch", null);
    expect("LPOS l f RANK 0",
           "-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or "
           "use negative to start from the end of the list\r\n");
    expect("LMOVE l l LEFT RIGHT", "$1\r\nA\r\n");
    expect("LRANGE l 0 -1",
           "*6\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$1\r\nA\r\n");
    expect("LPOP l 0", "*0\r\n");
    expect("LPOP l -1", "-ERR value is out of range, must be positive\r\n");
    expect("LPOP nosuch 1", "*-1\r\n");
    expect("LMPOP 2 nosuch l RIGHT COUNT 2", "*2\r\n$1\r\nl\r\n*2\r\n$1\r\nA\r\n$1\r\nf\r\n");
}

TEST_F(commands, algebra_of_large_and_small_sets) {
    for (int i = 0; i < 1'000; ++i) client_({"SADD", "big", std::to_string(i)});
    expect("SADD small 5 999 1000", ":3\r\n");
    expect("SINTERCARD 2 big small", ":2\r\n");
    expect("SINTERCARD 2 big small LIMIT 1", ":1\r\n");
    expect("SDIFF small big", "*1\r\n$4\r\n1000\r\n");
    expect("SUNIONSTORE all big small", ":1001\r\n");
    expect("SINTERSTORE all small big nosuch", ":0\r\n");
    expect("EXISTS all", ":0\r\n");
    expect("SDIFFSTORE big big small", ":998\r\n");
    expect("SCARD big", ":998\r\n");
    expect("SMISMEMBER big 4 5 6", "*3\r\n:1\r\n:0\r\n:1\r\n");
}

TEST_F(commands, random_picks_are_members) {
    for (int i = 0; i < 100; ++i) {
        client_({"SADD", "s", std::to_string(i)});
        client_({"HSET", "h", std::to_string(i), "v"});
    }
    for (const char* const line : {"SRANDMEMBER s 10", "SRANDMEMBER s 90", "HRANDFIELD h 10"}) {
        auto tree = parse_reply(client_(line));
        tree.sort_children();
        for (std::size_t i = 1; i < tree.children.size(); ++i) {
            EXPECT_NE(tree.children[i].text, tree.children[i - 1].text) << line;
        }
    }
    EXPECT_EQ(parse_reply(client_("SRANDMEMBER s -500")).children.size(), 500U);
    EXPECT_EQ(parse_reply(client_("HRANDFIELD h -3 WITHVALUES")).children.size(), 6U);
    EXPECT_EQ(parse_reply(client_("SPOP s 40")).children.size(), 40U);
    expect("SCARD s", ":60\r\n");
    for (int i = 0; i < 60; ++i) {
        const auto member = parse_reply(client_("SPOP s")).text;
        EXPECT_EQ(client_({"SISMEMBER", "s", member}), ":0\r\n");
    }
    expect("EXISTS s", ":0\r\n");
    expect("SPOP s", null);
}

TEST_F(commands, an_encoding_stays_after_the_value_has_shrunk) {
    const auto encoding = [this](const std::string& key) {
        return parse_reply(client_({"OBJECT", "ENCODING", key})).text;
    };
    for (int i = 0; i < 300; ++i) client_({"RPUSH", "l", std::string(50, 'x')});
    EXPECT_EQ(encoding("l"), "quicklist");
    expect("LTRIM l 0 100", "+OK\r\n");
    EXPECT_EQ(encoding("l"), "quicklist");
    expect("LTRIM l 0 70", "+OK\r\n");
    EXPECT_EQ(encoding("l"), "listpack");
    client_({"HSET", "h", "f", std::string(65, 'x')});
    expect("HSET h f x", ":0\r\n");
    EXPECT_EQ(encoding("h"), "hashtable");
    expect("SADD s 10 9 a", ":3\r\n");
    expect("SREM s a", ":1\r\n");
    EXPECT_EQ(encoding("s"), "listpack");
    expect("CONFIG SET hash-max-listpack-entries 1", "+OK\r\n");
    expect("HSET few a 1", ":1\r\n");
    EXPECT_EQ(encoding("few"), "listpack");
    expect("HSET few b 2", ":1\r\n");
    EXPECT_EQ(encoding("few"), "hashtable");
}

// As in Redis 7.2: a value keeps its encoding until a command adds to it.
TEST_F(commands, encodings_follow_limits_that_were_changed) {
    constexpr std::string_view at_first =
        "hash-max-listpack-entries 512 hash-max-listpack-value 64 set-max-intset-entries 512 "
        "set-max-listpack-entries 128 set-max-listpack-value 64 zset-max-listpack-entries 128 "
        "zset-max-listpack-value 64";
    struct change {
        std::string_view before;
        std::string_view limits;
        std::string_view after;
        std::string_view encoding;
    };
    constexpr std::string_view few_fields = "HSET k a 1 b 2 c 3";
    constexpr std::string_view two_fields = "hash-max-listpack-entries 2";
    constexpr std::string_view long_field = "HSET k abcdef 1 b 2";
    constexpr std::string_view short_fields = "hash-max-listpack-value 3";
    constexpr std::string_view no_intset = "set-max-intset-entries 0";
    constexpr std::string_view short_members = "set-max-listpack-value 3";
    constexpr std::string_view few_integers = "set-max-intset-entries 2 set-max-listpack-entries 3";
    constexpr change all[] = {
        {few_fields, two_fields, "HLEN k", "listpack"},
        {few_fields, two_fields, "HSET k a 2", "hashtable"},
        {few_fields, two_fields, "HINCRBY k a 2", "hashtable"},
        {few_fields, two_fields, "HSETNX k a 2", "listpack"},
        {few_fields, two_fields, "HDEL k a", "listpack"},
        {"HSET k a 1", "hash-max-listpack-entries 0", "HSET k a 1", "hashtable"},
        {long_field, short_fields, "HSET k b 3", "listpack"},
        {long_field, short_fields, "HSET k abcdef 3", "hashtable"},
        {long_field, short_fields, "HSETNX k abcdef 3", "listpack"},
        {long_field, short_fields, "HINCRBY k b 12345", "hashtable"},
        {"", no_intset, "SADD k 1", "listpack"},
        {"SADD other 1", no_intset, "SMOVE other k 1", "listpack"},
        {"", "set-max-intset-entries 0 set-max-listpack-value 3", "SADD k 12345", "hashtable"},
        {"", "set-max-intset-entries 0 set-max-listpack-entries 0", "SADD k 1", "hashtable"},
        {"SADD k 1", no_intset, "SADD k 1", "hashtable"},
        {"SADD other 1", no_intset, "SUNIONSTORE k other", "hashtable"},
        {"", few_integers, "SADD k 3 1 2", "listpack"},
        {"SADD k 1 2 3", "set-max-intset-entries 2", "SADD k 1", "intset"},
        {"SADD k 1 2 3", "set-max-intset-entries 2", "SADD k 9", "hashtable"},
        {"SADD k 1 2 3", "set-max-intset-entries 2", "SADD k x", "listpack"},
        {"SADD k -1000 5", "set-max-listpack-value 5", "SADD k x", "listpack"},
        {"SADD k -10000 5", "set-max-listpack-value 5", "SADD k x", "hashtable"},
        {"SADD k abcdef", short_members, "SADD k x", "listpack"},
        {"SADD k abcdef", short_members, "SADD k abcdef", "listpack"},
        {"SADD k abcdef", short_members, "SADD k abcdeg", "hashtable"},
        {"SADD a x 1 2 3 4 5 ; SADD b x y 5 4 3 2 1 ; SREM a x", "set-max-listpack-entries 3",
         "SINTERSTORE k a b", "intset"},
        {"ZADD k 1 a 2 b 3 c", "zset-max-listpack-entries 2", "ZADD k 9 a", "listpack"},
        {"ZADD k 1 a 2 b 3 c", "zset-max-listpack-entries 2", "ZADD k 9 a 8 b 7 c", "skiplist"},
        {"ZADD k 1 abcdef", "zset-max-listpack-value 3", "ZINCRBY k 1 abcdef", "skiplist"},
        {"ZADD k 1 abcdef", "zset-max-listpack-value 3", "ZADD k 1 b", "listpack"},
    };
    for (const change& each : all) {
        client_("FLUSHALL");
        client_("CONFIG SET " + std::string(at_first));
        for (const std::string_view line : testing::separate(each.before)) client_(line);
        client_("CONFIG SET " + std::string(each.limits));
        client_(each.after);
        EXPECT_EQ(parse_reply(client_("OBJECT ENCODING k")).text, each.encoding)
            << each.before << " | " << each.limits << " | " << each.after;
    }
    // A small rest after SPOP.
    client_("CONFIG SET " + std::string(at_first));
    for (const std::string_view left : {"5", "40"}) {
        client_("DEL k");
        for (int i = 0; i < 200; ++i) client_({"SADD", "k", "member" + std::to_string(i)});
        const std::string popped = std::to_string(200 - std::stoi(std::string(left)));
        client_("SPOP k " + popped);
        expect("SCARD k", ":" + std::string(left) + "\r\n");
        EXPECT_EQ(parse_reply(client_("OBJECT ENCODING k")).text,
                  left == "5" ? "listpack" : "hashtable");
    }
    // Too many for an intset, in the order in which they came.
    client_("CONFIG SET " + std::string(at_first));
    client_("CONFIG SET " + std::string(few_integers));
    client_("SADD listed 3 1 2");
    expect("SMEMBERS listed", "*3\r\n$1\r\n3\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

TEST_F(commands, small_hashes_and_sets_come_in_order_and_in_one_page) {
    arguments hash;
    for (int i = 0; i < 512; ++i) {
        hash.insert(hash.end(), {"f" + std::to_string(i * 7919 % 512), std::to_string(i)});
        client_({"HSET", "h", hash[hash.size() - 2], hash.back()});
    }
    expect("HSET h f0 changed", ":0\r\n");
    hash[1] = "changed";
    const auto page = parse_reply(client_("HSCAN h 0 COUNT 10"));
    EXPECT_EQ(page.children.at(0).text, "0");
    ASSERT_EQ(page.children.at(1).children.size(), hash.size());
    for (std::size_t i = 0; i < hash.size(); ++i)
        EXPECT_EQ(page.children[1].children[i].text, hash[i]) << i;
    expect("SADD s b c a", ":3\r\n");
    expect("SMEMBERS s", "*3\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\na\r\n");
    expect("SADD i 10 -1 9", ":3\r\n");
    expect("SSCAN i 0", "*2\r\n$1\r\n0\r\n*3\r\n$2\r\n-1\r\n$1\r\n9\r\n$2\r\n10\r\n");
    expect("SADD j 10 x 9", ":3\r\n");
    expect("SINTER j i", "*2\r\n$2\r\n10\r\n$1\r\n9\r\n");
}

// SCAN's guarantee: elements that exist from the first call to the last are returned, whatever
// changes in between. Sorted sets have a test of their own.
TEST_F(commands, scan_finds_what_stays_while_the_table_grows) {
    for (int i = 0; i < 1'000; ++i) client_({"SET", "stays:" + std::to_string(i), "x"});
    for (int i = 0; i < 300; ++i) client_({"SADD", "set", "stays:" + std::to_string(i)});
    // More than a block holds, which would be returned at once.
    constexpr std::size_t fields = 600;
    for (std::size_t i = 0; i < fields; ++i) {
        client_({"HSET", "hash", "stays:" + std::to_string(i), std::to_string(i)});
        client_({"HSET", "ending", "stays:" + std::to_string(i), std::to_string(i)});
    }
    client_({"HEXPIRE", "ending", "100000", "FIELDS", "1", "stays:7"});
    struct scanned {
        arguments scan;  // the cursor follows
        arguments add;   // a name and a value follow
        std::size_t stays;
    };
    for (const scanned& each :
         {scanned{{"SCAN"}, {"SET"}, 1'000}, scanned{{"SSCAN", "set"}, {"SADD", "set"}, 300},
          scanned{{"HSCAN", "hash"}, {"HSET", "hash"}, fields},
          scanned{{"HSCAN", "ending"}, {"HSET", "ending"}, fields}}) {
        std::set<std::string> seen;
        std::string cursor = "0";
        int added = 0;
        const bool has_values = each.scan[0] == "HSCAN";
        do {
            arguments scan = each.scan;
            scan.insert(scan.end(), {cursor, "MATCH", "stays:*"});
            const auto reply = parse_reply(client_.ask(scan));
            ASSERT_EQ(reply.children.size(), 2U);
            cursor = reply.children[0].text;
            const auto& found = reply.children[1].children;
            for (std::size_t i = 0; i < found.size(); i += has_values ? 2 : 1) {
                seen.insert(found[i].text);
                if (has_values) ASSERT_EQ("stays:" + found.at(i + 1).text, found[i].text);
            }
            for (int i = 0; i < 300 && added < 30'000; ++i, ++added) {
                arguments add = each.add;
                add.push_back("extra:" + std::to_string(added));
                if (each.add[0] != "SADD") add.emplace_back("x");
                client_.ask(add);
            }
        } while (cursor != "0");
        EXPECT_EQ(seen.size(), each.stays) << each.scan[0];
        EXPECT_GT(added, 1'000) << each.scan[0];
    }
}

TEST_F(commands, rename_copy_and_move_take_the_time_to_live_along) {
    expect("SET a 1 EX 100", "+OK\r\n");
    expect("RENAME a b", "+OK\r\n");
    expect("TTL b", ":100\r\n");
    expect("COPY b c", ":1\r\n");
    expect("TTL c", ":100\r\n");
    expect("MOVE c 3", ":1\r\n");
    expect("EXISTS c", ":0\r\n");
    expect("SELECT 3", "+OK\r\n");
    expect("TTL c", ":100\r\n");
    expect("SWAPDB 0 3", "+OK\r\n");
    expect("GET b", "$1\r\n1\r\n");
    expect("RENAME nosuch x", "-ERR no such key\r\n");
    expect("SET d 2", "+OK\r\n");
    expect("RENAMENX b d", ":0\r\n");
    expect("RENAME d b", "+OK\r\n");
    expect("TTL b", ":-1\r\n");
}

TEST_F(commands, expire_has_conditions) {
    expect("SET a 1", "+OK\r\n");
    expect("EXPIRE a 100 XX", ":0\r\n");
    expect("EXPIRE a 100 GT", ":0\r\n");
    expect("EXPIRE a 100 LT", ":1\r\n");
    expect("EXPIRE a 200 NX", ":0\r\n");
    expect("EXPIRE a 50 GT", ":0\r\n");
    expect("EXPIRE a 200 GT", ":1\r\n");
    expect("TTL a", ":200\r\n");
    expect("EXPIRE a 100 FOO", "-ERR Unsupported option FOO\r\n");
    expect("EXPIRE a 100 NX XX",
           "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n");
    expect("EXPIRE a 9223372036854775807", "-ERR invalid expire time in 'expire' command\r\n");
    expect("EXPIRE a -1", ":1\r\n");
    expect("EXISTS a", ":0\r\n");
    expect("TTL a", ":-2\r\n");
}

TEST_F(commands, hello_changes_the_protocol_of_the_next_replies) {
    EXPECT_TRUE(client_("HELLO 3").starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"));
    expect("GET nosuch", "_\r\n");
    expect("HSET h a 1", ":1\r\n");
    expect("HGETALL h", "%1\r\n$1\r\na\r\n$1\r\n1\r\n");
    expect("SMEMBERS nosuch", "~0\r\n");
    expect("CONFIG GET save", "%1\r\n$4\r\nsave\r\n$0\r\n\r\n");
    expect("HELLO 4", "-NOPROTO unsupported protocol version\r\n");
    expect("GET nosuch", "_\r\n");
    expect("RESET", "+RESET\r\n");
    expect("GET nosuch", null);
    expect("CONFIG GET appendonly", "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
}

TEST_F(commands, config_is_set_whole_or_not_at_all) {
    expect("CONFIG SET maxmemory 1mb", "+OK\r\n");
    expect("CONFIG GET max*memory", "*2\r\n$9\r\nmaxmemory\r\n$7\r\n1048576\r\n");
    expect("CONFIG SET maxmemory 5mb nosuch 1",
           "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n");
    expect(
        "CONFIG SET maxmemory 5mb maxmemory-policy nonsense",
        "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) "
        "must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, "
        "allkeys-lru, allkeys-lfu, allkeys-random, noeviction\r\n");
    expect("CONFIG SET port 1",
           "-ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable "
           "config\r\n");
    expect("CONFIG SET appendonly yes",
           "-ERR CONFIG SET failed (possibly related to argument 'appendonly') - this cache keeps "
           "nothing on disk\r\n");
    expect("CONFIG GET MAXMEMORY", "*2\r\n$9\r\nmaxmemory\r\n$7\r\n1048576\r\n");
    expect("CONFIG SET maxmemory 0", "+OK\r\n");
}

TEST_F(commands, info_has_redis_field_names) {
    client_("SET a 1");
    client_("GET a");
    const std::string all = client_("INFO");
    for (const char* const field :
         {"# Server\r\n", "redis_version:8.4.0\r\n", "connected_clients:1\r\n",
          "used_memory:", "used_memory_human:", "maxmemory_policy:noeviction\r\n",
          "total_commands_processed:2\r\n", "keyspace_hits:1\r\n", "role:master\r\n",
          "db0:keys=1,expires=0,avg_ttl=0,subexpiry=0\r\n"}) {
        EXPECT_NE(all.find(field), std::string::npos) << field << " in " << all;
    }
    const std::string part = client_("INFO keyspace CLIENTS");
    EXPECT_NE(part.find("# Clients"), std::string::npos);
    EXPECT_EQ(part.find("# Server"), std::string::npos);
}

TEST_F(commands, client_tells_about_connections) {
    const test_client other(engine_);
    expect("CLIENT ID", ":1\r\n");
    expect("CLIENT GETNAME", null);
    expect("CLIENT SETNAME worker-1", "+OK\r\n");
    expect("CLIENT GETNAME", "$8\r\nworker-1\r\n");
    EXPECT_EQ(client_({"CLIENT", "SETNAME", "a b"}),
              "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
    expect("CLIENT SETINFO lib-name tester", "+OK\r\n");
    const std::string info = client_("CLIENT INFO");
    EXPECT_NE(info.find("id=1 addr=test:1 laddr=test:0 fd=-1 name=worker-1 "), std::string::npos)
        << info;
    EXPECT_NE(info.find("lib-name=tester"), std::string::npos);
    const std::string all = client_("CLIENT LIST");
    EXPECT_NE(all.find("id=2 "), std::string::npos) << all;
    expect("CLIENT NOSUCH", "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.\r\n");
    expect("CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command\r\n");
}

TEST_F(commands, command_lists_them_all) {
    const auto all = parse_reply(client_("COMMAND"));
    EXPECT_GT(all.children.size(), 100U);
    EXPECT_EQ(client_("COMMAND COUNT"), ":" + std::to_string(all.children.size()) + "\r\n");
    for (const auto& each : all.children) {
        ASSERT_EQ(each.children.size(), 10U);
        // Found under its name in any case.
        std::string name = each.children[0].text;
        name[0] = static_cast<char>(std::toupper(name[0]));
        test_client other(engine_);
        EXPECT_FALSE(other(name).starts_with("-ERR unknown command")) << name;
    }
    expect("COMMAND GETKEYS MSET a 1 b 2", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
}

TEST_F(commands, object_and_memory_describe_a_key) {
    expect("SET n 5", "+OK\r\n");
    expect("OBJECT ENCODING n", "$3\r\nint\r\n");
    expect("APPEND n x", ":2\r\n");
    expect("OBJECT ENCODING n", "$3\r\nraw\r\n");
    expect("OBJECT ENCODING nosuch", null);
    expect("OBJECT IDLETIME n", ":0\r\n");
    expect("CONFIG SET maxmemory-policy volatile-lfu", "+OK\r\n");
    expect("OBJECT IDLETIME nosuch", null);
    EXPECT_TRUE(
        client_("OBJECT IDLETIME n").starts_with("-ERR An LFU maxmemory policy is selected"));
    expect("CONFIG SET maxmemory-policy noeviction", "+OK\r\n");
    expect("MEMORY USAGE nosuch", null);
    const auto small = parse_reply(client_("MEMORY USAGE n"));
    EXPECT_GT(std::stoi(small.text), 10);
    for (int i = 0; i < 1'000; ++i) client_({"HSET", "h", "field" + std::to_string(i), "value"});
    const auto big = parse_reply(client_("MEMORY USAGE h SAMPLES 0"));
    EXPECT_GT(std::stoi(big.text), 20'000);
}

TEST_F(commands, flush_empties_one_database_or_all) {
    expect("SET a 1", "+OK\r\n");
    expect("SELECT 1", "+OK\r\n");
    expect("SET b 1", "+OK\r\n");
    expect("FLUSHDB", "+OK\r\n");
    expect("DBSIZE", ":0\r\n");
    expect("SELECT 0", "+OK\r\n");
    expect("DBSIZE", ":1\r\n");
    expect("FLUSHALL ASYNC", "+OK\r\n");
    expect("DBSIZE", ":0\r\n");
    expect("RANDOMKEY", null);
    expect("SELECT 16", "-ERR DB index is out of range\r\n");
}

}  // namespace
}  // namespace eddy::cache
