// Tests of sorted set commands: edge cases, and sets too big for differential_test.cpp.
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
using testing::reply_tree;
using testing::test_client;

constexpr std::string_view wrong_type =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
constexpr std::string_view syntax_error = "-ERR syntax error\r\n";
constexpr std::string_view null = "$-1\r\n";

class sorted_set_commands : public ::testing::Test {
protected:
    void expect(std::string_view line, std::string_view reply) {
        EXPECT_EQ(client_(line), reply) << line;
    }
    // m0 .. with scores 0 .., in an order that is neither.
    void fill(const std::string& key, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t n = i * 7'919 % size;
            client_({"ZADD", key, std::to_string(n), "m" + std::to_string(n)});
        }
    }

    engine engine_;
    test_client client_{engine_};
};

TEST_F(sorted_set_commands, rank_with_score_is_a_pair) {
    expect("ZADD z 1 a 2 b 3 c", ":3\r\n");
    expect("ZRANK z b WITHSCORE", "*2\r\n:1\r\n$1\r\n2\r\n");
    expect("ZREVRANK z c withscore", "*2\r\n:0\r\n$1\r\n3\r\n");
    expect("ZRANK z x WITHSCORE", "*-1\r\n");
    expect("ZRANK nosuch x WITHSCORE", "*-1\r\n");
    expect("ZRANK z x", null);
    expect("ZRANK z b FOO", syntax_error);
    expect("ZRANK z b WITHSCORE x", "-ERR wrong number of arguments for 'zrank' command\r\n");
    EXPECT_TRUE(client_("HELLO 3").starts_with("%"));
    expect("ZRANK z b WITHSCORE", "*2\r\n:1\r\n,2\r\n");
    expect("ZRANK z x WITHSCORE", "_\r\n");
    expect("ZSCORE z b", ",2\r\n");
    expect("ZRANGE z 0 0 WITHSCORES", "*1\r\n*2\r\n$1\r\na\r\n,1\r\n");
    expect("ZPOPMIN z", "*2\r\n$1\r\na\r\n,1\r\n");
    expect("ZPOPMAX z 1", "*1\r\n*2\r\n$1\r\nc\r\n,3\r\n");
}

TEST_F(sorted_set_commands, scores_have_the_fewest_digits) {
    expect("ZADD z 0.1 a 1e20 b -0.5 c 3 d inf e -inf f 1e-7 g 12345678901234567 h", ":8\r\n");
    expect("ZMSCORE z a b c d e f g h",
           "*8\r\n$3\r\n0.1\r\n$5\r\n1e+20\r\n$4\r\n-0.5\r\n$1\r\n3\r\n$3\r\ninf"
           "\r\n$4\r\n-inf\r\n$4\r\n1e-7\r\n$17\r\n12345678901234568\r\n");
    expect("ZINCRBY z -inf e", "-ERR resulting score is not a number (NaN)\r\n");
    expect("ZADD z nan a", "-ERR value is not a valid float\r\n");
}

TEST_F(sorted_set_commands, many_members_are_added_all_or_none) {
    arguments args{"ZADD", "z"};
    for (int i = 0; i < 100; ++i) {
        args.push_back(std::to_string(i));
        args.push_back("m" + std::to_string(i));
    }
    arguments bad = args;
    bad[bad.size() - 2] = "x";
    EXPECT_EQ(client_.ask(bad), "-ERR value is not a valid float\r\n");
    expect("EXISTS z", ":0\r\n");
    EXPECT_EQ(client_.ask(args), ":100\r\n");
    expect("ZRANK z m99", ":99\r\n");
}

TEST_F(sorted_set_commands, an_emptied_key_is_gone) {
    for (const char* const line :
         {"ZREM z a b", "ZPOPMIN z 5", "ZPOPMAX z 2", "ZREMRANGEBYRANK z 0 -1",
          "ZREMRANGEBYSCORE z -inf inf", "ZREMRANGEBYLEX z - +", "ZMPOP 2 nosuch z MIN COUNT 3",
          "ZDIFFSTORE z 1 nosuch", "ZRANGESTORE z z 5 6", "ZINTERSTORE z 2 z nosuch"}) {
        expect("ZADD z 1 a 1 b", ":2\r\n");
        EXPECT_NE(client_(line)[0], '-') << line;
        expect("EXISTS z", ":0\r\n");
    }
    expect("DBSIZE", ":0\r\n");
}

TEST_F(sorted_set_commands, refuse_other_types_and_are_refused_by_them) {
    expect("SET string x", "+OK\r\n");
    expect("SADD set x", ":1\r\n");
    expect("ZADD z 1 a", ":1\r\n");
    for (const std::string_view line : {"ZADD string 1 a",
                                        "ZINCRBY set 1 a",
                                        "ZREM set x",
                                        "ZSCORE set x",
                                        "ZMSCORE string x",
                                        "ZCARD set",
                                        "ZRANK set x",
                                        "ZREVRANK string x",
                                        "ZPOPMIN set",
                                        "ZPOPMAX string 1",
                                        "ZMPOP 1 set MIN",
                                        "ZRANDMEMBER set",
                                        "ZRANDMEMBER string 1",
                                        "ZSCAN set 0",
                                        "ZRANGE set 0 1",
                                        "ZRANGESTORE d set 0 1",
                                        "ZRANGEBYSCORE set 0 1",
                                        "ZREVRANGEBYSCORE set 1 0",
                                        "ZRANGEBYLEX set - +",
                                        "ZREVRANGEBYLEX set + -",
                                        "ZREVRANGE set 0 1",
                                        "ZCOUNT set 0 1",
                                        "ZLEXCOUNT set - +",
                                        "ZREMRANGEBYRANK set 0 1",
                                        "ZREMRANGEBYSCORE set 0 1",
                                        "ZREMRANGEBYLEX set - +",
                                        "ZUNION 2 z string",
                                        "ZINTER 1 string",
                                        "ZDIFF 2 z string",
                                        "ZUNIONSTORE d 1 string",
                                        "ZINTERCARD 1 string",
                                        "GET z",
                                        "SADD z a",
                                        "SINTER set z",
                                        "SUNIONSTORE d set z",
                                        "HGET z a",
                                        "LPUSH z a",
                                        "SMOVE set z x",
                                        "INCR z"}) {
        expect(line, wrong_type);
    }
    expect("ZUNION 2 z set WITHSCORES", "*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nx\r\n$1\r\n1\r\n");
    expect("TYPE z", "+zset\r\n");
    expect("SCAN 0 TYPE zset COUNT 1000", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nz\r\n");
    expect("SET z x", "+OK\r\n");
    expect("TYPE z", "+string\r\n");
}

TEST_F(sorted_set_commands, a_big_set_answers_by_rank_score_and_text) {
    constexpr std::size_t size = 20'000;
    fill("z", size);
    EXPECT_EQ(client_("ZCARD z"), ":20000\r\n");
    expect("OBJECT ENCODING z", "$8\r\nskiplist\r\n");
    expect("ZRANK z m12345", ":12345\r\n");
    expect("ZREVRANK z m12345", ":7654\r\n");
    expect("ZRANGE z 9999 10000", "*2\r\n$5\r\nm9999\r\n$6\r\nm10000\r\n");
    expect("ZREVRANGE z 0 1", "*2\r\n$6\r\nm19999\r\n$6\r\nm19998\r\n");
    expect("ZCOUNT z (100 200", ":100\r\n");
    expect("ZRANGEBYSCORE z 100 (200 LIMIT 50 1", "*1\r\n$4\r\nm150\r\n");
    expect("ZREVRANGEBYSCORE z 200 100 LIMIT 99 5", "*2\r\n$4\r\nm101\r\n$4\r\nm100\r\n");
    expect("ZINCRBY z 0.5 m7", "$3\r\n7.5\r\n");
    expect("ZINCRBY z 100000 m0", "$6\r\n100000\r\n");
    expect("ZREVRANK z m0", ":0\r\n");
    expect("ZREMRANGEBYSCORE z 1000 (19000", ":18000\r\n");
    expect("ZCARD z", ":2000\r\n");
    expect("ZRANK z m19000", ":999\r\n");
    expect("COPY z y", ":1\r\n");
    expect("ZPOPMIN z 1", "*2\r\n$2\r\nm1\r\n$1\r\n1\r\n");
    expect("ZRANGE y 0 0", "*1\r\n$2\r\nm1\r\n");
    expect("RENAME y x", "+OK\r\n");
    expect("ZCARD x", ":2000\r\n");
    expect("ZINTERCARD 2 x z", ":1999\r\n");
    expect("ZDIFF 2 x z", "*1\r\n$2\r\nm1\r\n");
    expect("ZUNIONSTORE u 2 x z", ":2000\r\n");
    expect("ZSCORE u m2", "$1\r\n4\r\n");
    expect("ZRANGESTORE few u 0 2", ":3\r\n");
    expect("OBJECT ENCODING few", "$8\r\nlistpack\r\n");
    const auto usage = parse_reply(client_("MEMORY USAGE x SAMPLES 0"));
    EXPECT_GT(std::stoi(usage.text), 2'000 * 40);
    EXPECT_LT(std::stoi(usage.text), 2'000 * 110);
    expect("DEL x z u few", ":4\r\n");
}

TEST_F(sorted_set_commands, members_of_one_score_are_ordered_by_their_bytes) {
    for (int i = 0; i < 1'000; ++i) client_({"ZADD", "z", "0", std::to_string(10'000 + i)});
    expect("ZLEXCOUNT z [10100 (10200", ":100\r\n");
    expect("ZRANGEBYLEX z (10998 +", "*1\r\n$5\r\n10999\r\n");
    expect("ZREVRANGEBYLEX z (10002 -", "*2\r\n$5\r\n10001\r\n$5\r\n10000\r\n");
    expect("ZRANGE z [101 + BYLEX LIMIT 0 1", "*1\r\n$5\r\n10100\r\n");
    expect("ZRANGE z + [10 BYLEX REV LIMIT 1 1", "*1\r\n$5\r\n10998\r\n");
    expect("ZREMRANGEBYLEX z - (10990", ":990\r\n");
    expect("ZCARD z", ":10\r\n");
}

TEST_F(sorted_set_commands, random_picks_are_members) {
    fill("z", 1'000);
    for (const char* const line : {"ZRANDMEMBER z 10", "ZRANDMEMBER z 900", "ZRANDMEMBER z 2000"}) {
        const reply_tree tree = parse_reply(client_(line));
        std::set<std::string> seen;
        for (const reply_tree& each : tree.children) {
            EXPECT_TRUE(seen.insert(each.text).second) << line;
            EXPECT_NE(client_({"ZSCORE", "z", each.text}), null) << line;
        }
    }
    EXPECT_EQ(parse_reply(client_("ZRANDMEMBER z 900")).children.size(), 900U);
    EXPECT_EQ(parse_reply(client_("ZRANDMEMBER z -1500")).children.size(), 1'500U);
    EXPECT_EQ(parse_reply(client_("ZRANDMEMBER z -3 WITHSCORES")).children.size(), 6U);
    std::set<std::string> seen;
    client_("ZREMRANGEBYRANK z 5 -1");
    for (int i = 0; i < 2'000 && seen.size() < 5; ++i) {
        seen.insert(parse_reply(client_("ZRANDMEMBER z")).text);
    }
    EXPECT_EQ(seen.size(), 5U);
}

TEST_F(sorted_set_commands, scan_finds_what_stays_while_the_set_grows) {
    fill("z", 300);
    std::set<std::string> seen;
    std::string cursor = "0";
    int added = 0;
    do {
        const auto reply = parse_reply(client_({"ZSCAN", "z", cursor, "MATCH", "m*"}));
        ASSERT_EQ(reply.children.size(), 2U);
        cursor = reply.children[0].text;
        const auto& found = reply.children[1].children;
        for (std::size_t i = 0; i < found.size(); i += 2) {
            EXPECT_EQ("m" + found[i + 1].text, found[i].text);
            seen.insert(found[i].text);
        }
        for (int i = 0; i < 300 && added < 30'000; ++i, ++added) {
            client_({"ZADD", "z", "5", "extra:" + std::to_string(added)});
        }
    } while (cursor != "0");
    EXPECT_EQ(seen.size(), 300U);
}

TEST_F(sorted_set_commands, a_reply_above_the_limit_takes_nothing_away) {
    engine_options options;
    options.max_reply = 1'000;
    engine small(options);
    test_client client(small);
    for (int i = 0; i < 200; ++i) client({"ZADD", "z", "1", "member:" + std::to_string(i)});
    for (const char* const line :
         {"ZPOPMIN z 200", "ZPOPMAX z 150", "ZMPOP 1 z MIN COUNT 150", "ZRANGE z 0 -1",
          "ZUNION 1 z", "ZRANDMEMBER z -500", "ZRANDMEMBER z 150", "ZSCAN z 0 COUNT 1000"}) {
        EXPECT_TRUE(client(line).starts_with("-ERR the reply is larger than the limit")) << line;
    }
    EXPECT_EQ(client("ZCARD z"), ":200\r\n");
}

// The names are longer than others, and one that is longer still is unknown.
TEST_F(sorted_set_commands, long_names_are_found_in_any_case) {
    expect("zRevRangeByScore nosuch 1 0", "*0\r\n");
    expect("ZREMRANGEBYSCORE nosuch 0 1", ":0\r\n");
    EXPECT_TRUE(client_("ZREVRANGEBYSCORES nosuch 1 0").starts_with("-ERR unknown command"));
    EXPECT_TRUE(client_("ZREVRANGEBYSCORE0123456789 a").starts_with("-ERR unknown command"));
    EXPECT_TRUE(client_({"ZREVRANGEBYSCOR\x25", "a", "1", "0"}).starts_with("-ERR unknown"));
}

}  // namespace
}  // namespace eddy::cache
