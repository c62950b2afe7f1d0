// Tests of DUMP and RESTORE on an engine alone: all types there and back, options, errors, damaged
// payloads.
#include <eddy/base/random.hpp>

#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/rdb/fixtures.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using cache::testing::parse_reply;
using cache::testing::test_client;

constexpr std::string_view bad_format = "-ERR Bad data format\r\n";
constexpr std::string_view bad_checksum = "-ERR DUMP payload version or checksum are wrong\r\n";

class dump_restore : public ::testing::Test {
protected:
    static constexpr std::int64_t now_ms = 1'700'000'000'000;
    void SetUp() override { engine_.set_time(std::chrono::milliseconds(now_ms)); }

    std::string dumped(const std::string& key) {
        const std::string reply = client_({"DUMP", key});
        return parse_reply(reply).text;
    }
    // Sorted where the type has no order.
    std::string value_of(const std::string& key) {
        const std::string type = client_("TYPE " + key);
        if (type == "+string\r\n") return client_("GET " + key);
        if (type == "+list\r\n") return client_("LRANGE " + key + " 0 -1");
        if (type == "+zset\r\n") return client_("ZRANGE " + key + " 0 -1 WITHSCORES");
        auto tree = parse_reply(client_((type == "+set\r\n" ? "SMEMBERS " : "HGETALL ") + key));
        tree.sort_children(type == "+set\r\n" ? 1 : 2);
        return type + tree.print();
    }

    engine engine_;
    test_client client_{engine_};
};

TEST_F(dump_restore, only_the_restored_key_is_told_as_new) {
    client_({"SET", "text", "some text"});
    const std::string payload = dumped("text");
    client_({"CONFIG", "SET", "notify-keyspace-events", "En"});
    test_client listener(engine_);
    listener({"PSUBSCRIBE", "*"});
    ASSERT_EQ(client_({"RESTORE", "other", "0", payload}), "+OK\r\n");
    EXPECT_EQ(listener.pushed(),
              "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$18\r\n__keyevent@0__:new\r\n$5\r\nother\r\n");
}

TEST_F(dump_restore, every_type_comes_back) {
    const std::string big(100'000, 'x');
    client_({"SET", "text", "some text"});
    client_({"SET", "empty", ""});
    client_({"SET", "big", big});
    for (const char* number :
         {"0", "-1", "127", "128", "-32769", "2147483647", "2147483648", "-9223372036854775808"}) {
        client_({"SET", std::string("n") + number, number});
    }
    client_({"RPUSH", "list", "a", "", "1", big, "-5"});
    client_({"SADD", "set", "a", "", "1", "-1"});
    client_({"HSET", "hash", "f", "1", "", "", "g", "x"});
    client_({"ZADD", "sortedset", "1", "one", "-inf", "", "2.5", "b"});
    for (int i = 0; i < 1000; ++i) {
        const std::string n = std::to_string(i);
        client_({"SADD", "big set", n, "member" + n});
        client_({"HSET", "big hash", n, big.substr(0, static_cast<std::size_t>(i)), "f" + n, n});
        client_({"RPUSH", "big list", n, big.substr(0, static_cast<std::size_t>(i) * 3)});
        client_({"ZADD", "bigsortedset", n, "member" + n});
    }
    const auto keys = parse_reply(client_("KEYS *"));
    ASSERT_EQ(keys.children.size(), 19U);
    for (const auto& each : keys.children) {
        const std::string& key = each.text;
        ASSERT_EQ(client_({"RESTORE", "copy", "0", dumped(key), "REPLACE"}), "+OK\r\n") << key;
        client_({"RENAME", key, "original"});
        EXPECT_EQ(value_of("copy"), value_of("original")) << key;
        EXPECT_EQ(client_("OBJECT ENCODING copy"), client_("OBJECT ENCODING original")) << key;
        EXPECT_EQ(client_("TTL copy"), ":-1\r\n");
    }
}

TEST_F(dump_restore, every_encoding_is_restored) {
    for (const rdb::testing::fixture& each : rdb::testing::fixtures()) {
        const std::string value = rdb::testing::payload(each.value());
        EXPECT_EQ(client_({"RESTORE", each.name, "0", value}), "+OK\r\n") << each.name;
    }
    EXPECT_EQ(client_({"GET", "lzf"}), "$41\r\nsome text that is not compressible at all\r\n");
    EXPECT_EQ(client_({"LINDEX", "list ziplist", "-1"}), "$3\r\nend\r\n");
    EXPECT_EQ(client_({"LINDEX", "quicklist 2", "-1"}), "$1\r\n1\r\n");
    EXPECT_EQ(client_({"HGET", "zipmap", "g"}), "$3\r\ntwo\r\n");
    EXPECT_EQ(client_({"HGET", "hash ziplist", "g"}), "$3\r\ntwo\r\n");
    EXPECT_EQ(client_({"HGET", "hash listpack", ""}), "$0\r\n\r\n");
    EXPECT_EQ(client_({"SISMEMBER", "intset 64", "9223372036854775807"}), ":1\r\n");
    EXPECT_EQ(client_({"SCARD", "set listpack"}), ":3\r\n");
    EXPECT_EQ(client_({"ZRANK", "zset", "b"}), ":3\r\n");
    EXPECT_EQ(client_({"ZSCORE", "zset 2", "a"}), "$5\r\n-0.25\r\n");
}

TEST_F(dump_restore, a_listpack_stays_one_in_its_order) {
    const auto moved = [&](const std::string& key) {
        EXPECT_EQ(client_({"RESTORE", "copy", "0", dumped(key), "REPLACE"}), "+OK\r\n");
        const bool is_set = client_("TYPE copy") == "+set\r\n";
        return client_("OBJECT ENCODING copy") + client_(is_set ? "SMEMBERS copy" : "HKEYS copy");
    };
    const auto held = [&](const std::string& key) {
        const bool is_set = client_("TYPE " + key) == "+set\r\n";
        return client_("OBJECT ENCODING " + key) + client_((is_set ? "SMEMBERS " : "HKEYS ") + key);
    };
    // Integers, which an intset would sort, before other members and alone.
    client_("SADD mixed m1 545 -507 x");
    client_("SREM mixed m1");
    client_("SADD integers m1 5 4 3 2 1");
    client_("SREM integers m1");
    client_("SADD many x");
    for (int i = 100; i > 0; --i) client_("SADD many " + std::to_string(i));
    client_("SREM many x");
    client_("SADD intset 3 1 2");
    const std::string longer(60, 'x');
    client_({"HSET", "hash", "f", longer, "e", "1"});
    client_({"SADD", "texts", longer, "1"});
    for (const char* const key : {"mixed", "integers", "many", "intset", "hash", "texts"})
        EXPECT_EQ(moved(key), held(key)) << key;
    EXPECT_EQ(held("integers"),
              "$8\r\nlistpack\r\n*5\r\n$1\r\n5\r\n$1\r\n4\r\n$1\r\n3\r\n$1\r\n2\r\n$1\r\n1\r\n");
    // Its texts may exceed the current limit; the number of its elements may not.
    client_("CONFIG SET set-max-listpack-value 3 hash-max-listpack-value 3");
    for (const char* const key : {"hash", "texts"}) EXPECT_EQ(moved(key), held(key)) << key;
    client_("ZADD scores 1 abcdef");
    client_("CONFIG SET zset-max-listpack-value 3");
    EXPECT_EQ(client_({"RESTORE", "copied", "0", dumped("scores")}), "+OK\r\n");
    EXPECT_EQ(client_("OBJECT ENCODING copied"), "$8\r\nlistpack\r\n");
    client_("CONFIG SET set-max-listpack-entries 3");
    EXPECT_TRUE(moved("integers").starts_with("$9\r\nhashtable\r\n"));
    EXPECT_EQ(client_("SCARD copy"), ":5\r\n");
    // A table may become a listpack.
    client_("CONFIG SET set-max-listpack-entries 128");
    for (int i = 0; i < 600; ++i) client_("SADD table " + std::to_string(i));
    for (int i = 3; i < 600; ++i) client_("SREM table " + std::to_string(i));
    EXPECT_TRUE(held("table").starts_with("$9\r\nhashtable\r\n"));
    EXPECT_TRUE(moved("table").starts_with("$6\r\nintset\r\n"));
}

TEST_F(dump_restore, times_are_relative_or_absolute_and_what_is_over_is_not_made) {
    client_("SET a 1");
    const std::string value = dumped("a");
    EXPECT_EQ(client_({"RESTORE", "b", "5000", value}), "+OK\r\n");
    EXPECT_EQ(client_("PTTL b"), ":5000\r\n");
    const std::string at = std::to_string(now_ms + 7000);
    EXPECT_EQ(client_({"RESTORE", "b", at, value, "ABSTTL", "REPLACE"}), "+OK\r\n");
    EXPECT_EQ(client_("PTTL b"), ":7000\r\n");
    EXPECT_EQ(client_({"RESTORE", "c", "5", value, "absttl"}), "+OK\r\n");
    EXPECT_EQ(client_("EXISTS c"), ":0\r\n");
    const std::string now = std::to_string(now_ms);
    EXPECT_EQ(client_({"RESTORE", "b", now, value, "ABSTTL", "REPLACE"}), "+OK\r\n");
    EXPECT_EQ(client_("EXISTS b"), ":0\r\n");
}

TEST_F(dump_restore, a_key_that_is_there_stays_unless_it_is_to_be_replaced) {
    client_("SET a 1");
    const std::string value = dumped("a");
    client_("RPUSH b x");
    EXPECT_EQ(client_({"RESTORE", "b", "0", value}),
              "-BUSYKEY Target key name already exists.\r\n");
    EXPECT_EQ(client_({"RESTORE", "b", "0", "junk", "REPLACE"}), bad_checksum);
    EXPECT_EQ(client_({"RESTORE", "b", "0", rdb::testing::payload("junk"), "REPLACE"}), bad_format);
    EXPECT_EQ(client_("LRANGE b 0 -1"), "*1\r\n$1\r\nx\r\n");
    EXPECT_EQ(client_({"RESTORE", "b", "0", value, "replace"}), "+OK\r\n");
    EXPECT_EQ(client_("GET b"), "$1\r\n1\r\n");
    EXPECT_EQ(client_("DUMP nosuch"), "$-1\r\n");
}

TEST_F(dump_restore, who_moves_a_slot_restores_by_another_name) {
    client_("RPUSH list a b c");
    const std::string payload = dumped("list");
    EXPECT_EQ(client_({"RESTORE-ASKING", "list", "0", payload}),
              "-BUSYKEY Target key name already exists.\r\n");
    EXPECT_EQ(client_({"RESTORE-ASKING", "moved", "5000", payload}), "+OK\r\n");
    EXPECT_EQ(client_("PTTL moved"), ":5000\r\n");
    EXPECT_EQ(value_of("moved"), value_of("list"));
    EXPECT_EQ(client_({"RESTORE-ASKING", "list", "0", payload, "REPLACE"}), "+OK\r\n");
}

TEST_F(dump_restore, only_what_was_really_done_counts_as_a_change) {
    client_("SET a 1");
    const std::string value = dumped("a");
    const auto changes = [&] { return engine_.internals().data.changes; };
    std::uint64_t before = changes();
    client_({"RESTORE", "a", "0", value});
    client_({"RESTORE", "b", "0", "junk"});
    client_({"RESTORE", "b", "1", value, "ABSTTL"});
    EXPECT_EQ(changes(), before);
    client_({"RESTORE", "b", "0", value});
    EXPECT_EQ(changes(), before + 1);
    client_({"RESTORE", "b", "1", value, "ABSTTL", "REPLACE"});
    EXPECT_EQ(changes(), before + 2);
}

TEST_F(dump_restore, versions_up_to_redis_8_6_and_valkey_9_are_taken) {
    const std::string value = rdb::testing::fixtures()[0].value();
    for (const unsigned version : {1U, 6U, 9U, 10U, 11U, 12U, 13U, 80U}) {
        EXPECT_EQ(client_({"RESTORE", "a", "0", rdb::testing::payload(value, version), "REPLACE"}),
                  "+OK\r\n");
    }
    // Redis's text, followed by advice for the user.
    const std::string named(bad_checksum.substr(0, bad_checksum.size() - 2));
    for (const unsigned version : {14U, 79U, 81U}) {
        std::string payload = rdb::testing::payload(value, version);
        EXPECT_EQ(client_({"RESTORE", "b", "0", payload}),
                  named + ": it has RDB version " + std::to_string(version) +
                      ", and versions up to 13 of Redis and 80 of Valkey are read\r\n");
        payload.back() = static_cast<char>(payload.back() ^ 1);
        EXPECT_EQ(client_({"RESTORE", "b", "0", payload}), bad_checksum);
    }
}

TEST_F(dump_restore, a_hash_of_valkey_keeps_the_ends_of_its_fields) {
    const std::string value = rdb::testing::fixtures_of_valkey()[0].value();
    EXPECT_EQ(client_({"RESTORE", "h", "0", rdb::testing::payload(value, 80)}), "+OK\r\n");
    EXPECT_EQ(client_("HPEXPIRETIME h FIELDS 3 f g h"),
              "*3\r\n:5000000000000\r\n:-1\r\n:281474976710654\r\n");
    EXPECT_EQ(client_("HGET h g"), "$3\r\ntwo\r\n");
    // With a version of Redis the same bytes are none of its types.
    EXPECT_EQ(client_({"RESTORE", "h", "0", rdb::testing::payload(value, 12), "REPLACE"}),
              "-ERR Bad data format\r\n");
    EXPECT_EQ(client_("HLEN h"), ":3\r\n");
}

TEST_F(dump_restore, a_stream_of_redis_8_6_is_taken_without_its_producers) {
    const auto& all = rdb::testing::fixtures();
    const auto of_8_6 =
        std::ranges::find(all, rdb::object_type::stream_4, &rdb::testing::fixture::type);
    EXPECT_EQ(client_({"RESTORE", "s", "0", rdb::testing::payload(of_8_6->value(), 13)}),
              "+OK\r\n");
    EXPECT_EQ(client_("XLEN s"), ":3\r\n");
    EXPECT_EQ(client_("XINFO GROUPS s").substr(0, 4), "*1\r\n");
}

TEST_F(dump_restore, no_key_is_empty_and_no_element_is_there_twice) {
    using rdb::testing::byte;
    using rdb::testing::length;
    using rdb::testing::text;
    const auto restored = [&](const std::string& value) {
        return client_({"RESTORE", "a", "0", rdb::testing::payload(value)});
    };
    EXPECT_EQ(restored(byte(1) + length(0)), bad_format);
    EXPECT_EQ(restored(byte(2) + length(0)), bad_format);
    EXPECT_EQ(restored(byte(4) + length(0)), bad_format);
    EXPECT_EQ(restored(byte(18) + length(0)), bad_format);
    EXPECT_EQ(restored(byte(16) + text(rdb::testing::listpack({}))), bad_format);
    EXPECT_EQ(restored(byte(2) + length(2) + text("x") + text("x")), bad_format);
    EXPECT_EQ(restored(byte(4) + length(2) + text("x") + text("1") + text("x") + text("2")),
              bad_format);
    EXPECT_EQ(restored(byte(16) + text(rdb::testing::listpack({"x", "1", "x", "2"}))), bad_format);
    EXPECT_EQ(restored(byte(0) + text("x") + "more"), bad_format);
    EXPECT_EQ(client_("EXISTS a"), ":0\r\n");
}

TEST_F(dump_restore, damaged_payloads_are_refused) {
    client_({"RPUSH", "l", "a", "b", "1000", std::string(300, 'x')});
    const std::string good = dumped("l");
    for (std::size_t at = 0; at < good.size(); ++at) {
        std::string damaged = good;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
        ASSERT_EQ(client_({"RESTORE", "a", "0", damaged}), bad_checksum) << at;
        ASSERT_EQ(client_({"RESTORE", "a", "0", good.substr(0, at)}), bad_checksum) << at;
    }
}

// The author of a payload can compute its checksum, too.
TEST_F(dump_restore, damage_under_a_right_checksum_is_refused_or_some_value) {
    random_generator random(17);
    for (const rdb::testing::fixture& each : rdb::testing::fixtures()) {
        const std::string good = each.value();
        for (int i = 0; i < 300; ++i) {
            std::string damaged = good;
            damaged[random.below(damaged.size())] = static_cast<char>(random());
            if (random.below(4) == 0) damaged.resize(random.below(damaged.size() + 1));
            const std::string reply =
                client_({"RESTORE", "a", "0", rdb::testing::payload(damaged), "REPLACE"});
            ASSERT_TRUE(reply == "+OK\r\n" || reply == bad_format) << reply;
            if (reply != "+OK\r\n") continue;
            const std::string again = dumped("a");
            ASSERT_EQ(client_({"RESTORE", "b", "0", again, "REPLACE"}), "+OK\r\n") << each.name;
            ASSERT_EQ(value_of("a"), value_of("b")) << each.name;
        }
    }
}

TEST(dump_limits, a_dump_beyond_the_longest_reply_is_refused) {
    engine_options options;
    options.max_reply = 10'000;
    options.max_text = 20'000;
    engine small(options);
    test_client client(small);
    client({"SET", "fits", std::string(9'000, 'x')});
    client({"SET", "big", std::string(11'000, 'x')});
    EXPECT_TRUE(client("DUMP fits").starts_with("$9"));
    EXPECT_TRUE(client("DUMP big").starts_with("-ERR the reply is larger"));
    using rdb::testing::byte;
    using rdb::testing::text;
    EXPECT_EQ(client({"RESTORE", "a", "0",
                      rdb::testing::payload(byte(0) + text(std::string(20'000, 'x')))}),
              "+OK\r\n");
    EXPECT_EQ(client({"RESTORE", "b", "0",
                      rdb::testing::payload(byte(0) + text(std::string(20'001, 'x')))}),
              bad_format);
}

}  // namespace
}  // namespace eddy::cache
