// Comparison of the same commands by the engine and by a real redis-server 7.0: the replies must be
// the same bytes, but for the order of unordered replies. Skipped, with the reason, where
// redis-server is not installed.
#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"
#include "cache/testing/differential_fixture.hpp"
#include "cache/testing/differential_persistence.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::arguments;
using testing::test_client;

class differential : public testing::differential {};

// Makes commands of the templates, now and then with an argument too few or too many.
class command_maker {
public:
    command_maker(std::uint64_t seed, bool for_7_0)
        : random_(seed),
          templates_(testing::separate(testing::command_templates)),
          for_7_0_(for_7_0) {
        const std::vector<std::string_view> more =
            testing::separate(testing::command_templates_of_7_0);
        if (for_7_0) {
            templates_.insert(templates_.end(), more.begin(), more.end());
        } else {
            std::cout << "left out, since this redis-server is not 7.0: " << more.size()
                      << " kinds of commands\n";
        }
    }

    arguments make() {
        const std::string_view chosen = templates_[random_.below(templates_.size())];
        arguments args = testing::split(chosen);
        for (std::string& word : args) fill(word);
        // Without its count a random pick is at random indeed.
        const bool picks =
            args[0] == "SPOP" || args[0].ends_with("RANDMEMBER") || args[0] == "HRANDFIELD";
        // ZRANK takes one more since version 7.2.
        const bool grew = args[0] == "ZRANK" || args[0] == "ZREVRANK";
        if (random_.below(40) == 0 && !picks) args.pop_back();
        if (random_.below(40) == 0 && !grew) args.push_back(value());
        if (args.empty() || args[0].empty()) args = {"PING"};
        if (random_.below(8) == 0) {
            for (char& c : args[0]) {
                if (random_.below(2) == 0) c = static_cast<char>(std::tolower(c));
            }
        }
        return args;
    }

private:
    void fill(std::string& word) {
        const std::size_t at = word.find('%');
        if (at == std::string::npos) return;
        std::string with;
        switch (word[at + 1]) {
            case 'k': with = "k" + std::to_string(random_.below(12)); break;
            case 'v': with = value(); break;
            case 'm': with = member(); break;
            case 'i': with = integer(); break;
            case 'n': with = std::to_string(static_cast<int>(random_.below(14)) - 4); break;
            case 'f': with = number(); break;
            case 'z': with = "z" + std::to_string(random_.below(4)); break;
            case 'g': with = "g" + std::to_string(random_.below(4)); break;
            case 'd': with = std::to_string(random_.unit() * 190 - 95); break;
            case 'b': with = score_bound(); break;
            case 'l': with = text_bound(); break;
            case 'x':
                do with = integer();
                while (with.size() < 4 && std::atoi(with.c_str()) > 0);
                break;
            default: with = pattern(); break;
        }
        if (word[at + 1] == 'n' && at > 0) with = std::to_string(random_.below(10));
        word = word.substr(0, at) + with + word.substr(at + 2);
    }
    std::string value() {
        switch (random_.below(12)) {
            case 0: return "";
            case 1: return integer();
            case 2: return number();
            case 3: return std::string(random_.below(400), 'x');
            case 4: return std::string(random_.below(6000), 'y');
            case 5: return std::string("bin\0\r\n\xff", 7) + std::to_string(random_.below(3));
            case 6: return std::string(1, static_cast<char>('a' + random_.below(3)));
            default: return "value:" + std::to_string(random_.below(50));
        }
    }
    std::string member() {
        switch (random_.below(10)) {
            case 0: return value();
            case 1: return std::to_string(random_.below(20));
            default: return "m" + std::to_string(random_.below(60));
        }
    }
    std::string integer() {
        static constexpr const char* odd[] = {"0",
                                              "1",
                                              "-1",
                                              "10",
                                              "9223372036854775807",
                                              "-9223372036854775808",
                                              "9223372036854775808",
                                              "007",
                                              "+5",
                                              " 5",
                                              "5 ",
                                              "-0",
                                              "1.5",
                                              "abc",
                                              "",
                                              "4611686018427387904",
                                              "-9223372036854775807"};
        if (random_.below(3) == 0) return odd[random_.below(std::size(odd))];
        return std::to_string(static_cast<int>(random_.below(2000)) - 1000);
    }
    std::string number() {
        static constexpr const char* odd[] = {
            "0",     "1.5", "-2.25", "3.0e3", "1e-5",   "inf", "-inf", "nan",    " 1", "1 ", "0x10",
            "1e400", "",    "abc",   "-0.0",  "1e4000", "0.1", "1e17", "5e-324", ".5", "5."};
        if (random_.below(3) == 0) return odd[random_.below(std::size(odd))];
        return std::to_string(static_cast<double>(random_.below(100000)) / 64 - 500);
    }
    std::string score_bound() {
        static constexpr const char* ends[] = {"-inf", "+inf", "inf", "(1", "0", "(-3", "5"};
        if (random_.below(2) == 0) return ends[random_.below(std::size(ends))];
        std::string written = number();
        // Later versions read them as C++ does: without spaces, and no hexadecimal ones.
        if (!for_7_0_ && written.find_first_of(" x") != std::string::npos) written = "7";
        return (random_.below(3) == 0 ? "(" : "") + written;
    }
    std::string text_bound() {
        switch (random_.below(8)) {
            case 0:
            case 1: return "-";
            case 2:
            case 3: return "+";
            case 4: return value();
            case 5: return "(" + member();
            default: return "[" + member();
        }
    }
    std::string pattern() {
        static constexpr const char* patterns[] = {"*",      "k*", "k?",    "k1*",  "[k]1",
                                                   "k[2-5]", "m*", "k[^1]", "\\k1", "",
                                                   "*1",     "k[", "**",    "?"};
        return patterns[random_.below(std::size(patterns))];
    }

    random_generator random_;
    std::vector<std::string_view> templates_;
    bool for_7_0_;
};

TEST_P(differential, random_commands_are_answered_as_redis_answers_them) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    command_maker maker(seed, redis_->is_7());
    constexpr int commands = 20'000;
    for (int i = 0; i < commands; ++i) {
        ASSERT_TRUE(same(maker.make())) << "command " << i << ", seed " << seed;
    }
}

TEST_P(differential, all_that_was_stored_is_the_same_in_the_end) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    command_maker maker(seed, redis_->is_7());
    for (int i = 0; i < 5'000; ++i) {
        ASSERT_TRUE(same(maker.make())) << "command " << i << ", seed " << seed;
    }
    ASSERT_TRUE(same_line("DEBUG DIGEST"));
    for (const std::string database : {"0", "1"}) {
        ASSERT_TRUE(same_line("SELECT " + database));
        ASSERT_TRUE(same_line("DBSIZE"));
        for (int k = 0; k < 12; ++k) {
            const std::string key = "k" + std::to_string(k);
            const std::string type = client_("TYPE " + key);
            ASSERT_TRUE(same_line("TYPE " + key));
            ASSERT_TRUE(same_line("DEBUG DIGEST-VALUE " + key));
            if (type == "+string\r\n") ASSERT_TRUE(same_line("GET " + key));
            if (type == "+list\r\n") ASSERT_TRUE(same_line("LRANGE " + key + " 0 -1"));
            if (type == "+set\r\n") ASSERT_TRUE(same_line("SMEMBERS " + key));
            if (type == "+hash\r\n") ASSERT_TRUE(same_line("HGETALL " + key));
            if (type == "+zset\r\n") {
                ASSERT_TRUE(same_line("ZRANGE " + key + " 0 -1 WITHSCORES"));
                ASSERT_TRUE(same_line("ZSCAN " + key + " 0 COUNT 100000"));
                ASSERT_TRUE(same_line("OBJECT ENCODING " + key));
            }
        }
    }
}

TEST_P(differential, scripted_edges) {
    for (const std::string_view script : testing::edge_scripts) follow(script);
    for (const std::string_view script : testing::persistence_scripts) follow(script);
}

// Random commands seldom make one big.
TEST_P(differential, big_sorted_sets_are_answered_as_redis_answers_them) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    const auto number = [&] { return std::to_string(random.unit() * 1'000 - 500); };
    const auto rank = [&] { return std::to_string(static_cast<int>(random.below(3'000)) - 1'500); };
    const auto key = [&] { return std::string(random.below(4) == 0 ? "other" : "big"); };
    const auto member = [&] { return "m" + std::to_string(random.below(2'000)); };
    const std::vector<std::string> by_score{"-inf", "+inf", "(0", "(-100", "100", "250.5"};
    const auto bound = [&] {
        return random.below(3) == 0 ? by_score[random.below(by_score.size())] : number();
    };
    // Enough for tables of two thousand members; EDDY_ROUNDS=10 searches for longer.
    for (int i = 0; i < eddy::testing::rounds(3'000); ++i) {
        arguments args;
        const std::string z = key();
        switch (random.below(24)) {
            case 0: args = {"ZREM", z, member(), member()}; break;
            case 1: args = {"ZRANK", z, member()}; break;
            case 2: args = {"ZREVRANK", z, member()}; break;
            case 3: args = {"ZRANGE", z, rank(), rank(), "WITHSCORES"}; break;
            case 4: args = {"ZREVRANGE", z, rank(), rank()}; break;
            case 5: args = {"ZRANGEBYSCORE", z, bound(), bound(), "WITHSCORES"}; break;
            case 6: args = {"ZREVRANGEBYSCORE", z, bound(), bound(), "LIMIT", "7", "11"}; break;
            case 7: args = {"ZCOUNT", z, bound(), bound()}; break;
            case 8: args = {"ZINCRBY", z, number(), member()}; break;
            case 9: args = {"ZINCRBY", z, "0.001", member()}; break;
            case 10: args = {"ZPOPMIN", z, std::to_string(random.below(3))}; break;
            case 11: args = {"ZPOPMAX", z}; break;
            case 12: args = {"ZSCORE", z, member()}; break;
            case 13:
                args = {"ZUNIONSTORE", "other", "2", "big", "other", "WEIGHTS", "0.5", "0.25"};
                break;
            case 14: args = {"ZINTER", "2", "big", "other", "WITHSCORES"}; break;
            case 15: args = {"ZDIFF", "2", "big", "other"}; break;
            case 16: args = {"ZADD", z, "GT", "CH", number(), member(), number(), member()}; break;
            case 17:
                if (random.below(40) == 0) args = {"ZREMRANGEBYSCORE", z, bound(), bound()};
                break;
            case 18:
                if (random.below(40) == 0) args = {"ZREMRANGEBYRANK", z, rank(), rank()};
                break;
            case 19:
                if (random.below(10) == 0) args = {"ZRANGESTORE", "other", "big", rank(), rank()};
                break;
            case 20:
                if (random.below(10) == 0) args = {"COPY", "big", "other", "REPLACE"};
                break;
            case 21: args = {"ZADD", z, "7", member(), "7", member(), "7", member()}; break;
            default: break;
        }
        if (args.empty()) {
            args = {"ZADD", z};
            for (int j = 0; j < 5; ++j) {
                args.push_back(number());
                args.push_back(member());
            }
        }
        ASSERT_TRUE(same(args)) << "command " << i << ", seed " << seed;
    }
    ASSERT_TRUE(same_line("ZRANGE big 0 -1 WITHSCORES"));
    ASSERT_TRUE(same_line("ZSCAN big 0 COUNT 100000"));
}

// Replies with all elements, byte for byte, as long as Redis holds the value in a block.
TEST_P(differential, small_hashes_and_sets_keep_their_order_and_encoding) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    const auto exactly = [&](const arguments& args) {
        const std::string theirs = redis_->ask(args);
        ASSERT_EQ(client_.ask(args), theirs) << testing::in_quotes(args);
    };
    const auto integer = [&] {
        return std::to_string(static_cast<int>(random.below(1'200)) - 600);
    };
    const auto text = [&](std::size_t range) {
        return std::string(1 + random.below(12), 'f') + std::to_string(random.below(range));
    };
    // Redis 7.0 has no listpacks of sets.
    const bool has_listed_sets = !redis_->is_7_0();
    std::size_t changes = 0;
    for (int i = 0; i < eddy::testing::rounds(6'000); ++i) {
        const std::size_t which = random.below(has_listed_sets ? 3 : 2);
        const bool is_hash = which == 0;
        const std::string key = is_hash ? "hash" : which == 1 ? "integers" : "set";
        const std::string element = is_hash ? text(700) : which == 1 ? integer() : text(150);
        const bool grows = i / 1'500 % 2 == 0;
        arguments change{is_hash ? "HDEL" : "SREM", key, element};
        if (random.below(10) < (grows ? 8U : 3U)) {
            change[0] = is_hash ? "HSET" : "SADD";
            if (is_hash) change.emplace_back(random.below(64), 'v');
        }
        // Now and then something that no block of its kind holds.
        if (random.below(2'000) == 0) change.back() = std::string(65, 'x');
        if (random.below(1'000) == 0) change = {"DEL", key};
        ASSERT_NO_FATAL_FAILURE(exactly(change));
        ASSERT_NO_FATAL_FAILURE(exactly({"OBJECT", "ENCODING", key}));
        if (client_("OBJECT ENCODING " + key).find("hashtable") != std::string::npos) continue;
        ++changes;
        ASSERT_NO_FATAL_FAILURE(exactly({is_hash ? "HSCAN" : "SSCAN", key, "0"}));
        if (i % 20 != 0) continue;
        ASSERT_NO_FATAL_FAILURE(exactly({is_hash ? "HGETALL" : "SMEMBERS", key}));
        ASSERT_NO_FATAL_FAILURE(exactly({"COPY", key, "copy", "REPLACE"}));
        ASSERT_NO_FATAL_FAILURE(exactly({is_hash ? "HKEYS" : "SMEMBERS", "copy"}));
    }
    EXPECT_GT(changes, static_cast<std::size_t>(eddy::testing::rounds(1'000)));
}

// The names of encodings while a list grows and shrinks, with limits of bytes and of elements.
TEST_P(differential, lists_and_limits_have_the_encodings_of_redis) {
    if (redis_->is_7_0()) GTEST_SKIP() << "Redis 7.0 keeps every list as a quicklist";
    const auto push = [&](const std::string& key, std::size_t count, const std::string& element) {
        arguments args{"RPUSH", key};
        for (; count > 0; --count) {
            args.push_back(element);
            ASSERT_TRUE(same(args));
            args.pop_back();
        }
        ASSERT_TRUE(same({"OBJECT", "ENCODING", key}));
    };
    const auto follow_lines = [&](std::string_view lines) {
        for (const std::string_view line : testing::separate(lines)) {
            EXPECT_TRUE(same_line(line));
            EXPECT_TRUE(same_line("OBJECT ENCODING l"));
        }
    };
    ASSERT_NO_FATAL_FAILURE(push("l", 300, std::string(50, 'x')));
    follow_lines("LTRIM l 0 100 ; LTRIM l 0 80 ; LTRIM l 0 77 ; LTRIM l 0 70 ; RPUSH l a ; DEL l");
    ASSERT_NO_FATAL_FAILURE(push("l", 160, std::string(50, 'x')));
    for (int i = 0; i < 100; ++i) follow_lines("RPOP l");
    follow_lines("RPOP l 10 ; LREM l 0 a ; DEL l");
    // As many numbers as fit 8 KiB, each of which takes three bytes.
    ASSERT_NO_FATAL_FAILURE(push("l", 2'700, "1000"));
    follow_lines("RPUSH l 1000 1000 1000 1000 1000 1000 1000 1000 1000 1000");
    ASSERT_NO_FATAL_FAILURE(push("l", 20, "1000"));
    follow_lines("LTRIM l 0 1400 ; LTRIM l 0 1300 ; DEL l");
    ASSERT_NO_FATAL_FAILURE(push("l", 100, std::string(60, 'x')));
    follow_lines("LSET l 0 a ; COPY l m ; RENAME m l ; DUMP nosuch ; DEL l");
    EXPECT_TRUE(
        same_line("CONFIG SET list-max-listpack-size 4 hash-max-listpack-entries 3 "
                  "hash-max-listpack-value 8 set-max-intset-entries 3 "
                  "set-max-listpack-entries 3 set-max-listpack-value 8 "
                  "zset-max-listpack-entries 3 zset-max-listpack-value 8"));
    follow_lines(
        "RPUSH l 1 2 3 4 ; RPUSH l 5 ; RPOP l ; RPOP l ; RPOP l ; DEL l ; HSET l a 1 b 2 c 3 ; "
        "HSET l d 4 ; HDEL l c d ; DEL l ; HSET l a 12345678 ; HSET l a 123456789 ; HSET l a 1 ; "
        "DEL l ; HSET l a 1 a 1 a 1 a 1 ; DEL l ; SADD l 1 2 3 ; SADD l 4 ; SREM l 3 4 ; DEL l ; "
        "SADD l a b c ; SADD l d ; DEL l ; SADD l 1 2 3 ; SADD l a ; DEL l ; SADD l 1 2 ; SADD l a "
        "; "
        "SREM l a ; COPY l m ; SADD l 3 ; DEL l ; SADD l 123456789 ; SADD l abcdefghi ; DEL l ; "
        "SADD l a a a a ; DEL l ; ZADD l 1 a 2 b 3 c ; ZADD l 4 d ; ZREM l c d ; DEL l ; "
        "ZADD l 1 123456789 ; DEL l ; SADD l 3 1 2 ; SADD m 2 3 x ; SINTERSTORE l l m ; "
        "SUNIONSTORE l l m ; SDIFFSTORE l m l");
    EXPECT_TRUE(
        same_line("CONFIG SET list-max-listpack-size -2 hash-max-listpack-entries 512 "
                  "hash-max-listpack-value 64 set-max-intset-entries 512 "
                  "set-max-listpack-entries 128 set-max-listpack-value 64 "
                  "zset-max-listpack-entries 128 zset-max-listpack-value 64"));
}

TEST_P(differential, unknown_commands_repeat_what_was_asked) {
    same({"nosuch", std::string(200, 'a'), "b"});
    same({std::string(300, 'n'), "b"});
    same({"nosuch", std::string(100, 'a'), std::string(100, 'b'), "c"});
    same({"nosuch", std::string(127, 'a'), "b"});
    same({"nosuch", std::string("a\0b", 3), "c\r\nd"});
    same({std::string("no\0such", 7), "c"});
    same({"no\r\nsuch", "c"});
    same({"get ", "c"});
    same({"CLIENT", "no\r\nsuch", "c"});
    same({"CLIENT", std::string(300, 'n'), "c"});
    same({"EXPIRE", "a", "1", "no\r\nsuch"});
    same({"HELLO", "2", "no\nsuch"});
    same({"CLIENT", "SETNAME", "a b"});
    same({"CLIENT", "SETNAME", ""});
    same({"CLIENT", "GETNAME"});
}

TEST_P(differential, values_of_all_types_of_the_protocol_are_written_as_redis_writes_them) {
    const auto theirs = redis_->open();
    theirs->ask({"HELLO", std::to_string(GetParam())});
    engine_options options;
    options.mode = access_mode::admin;
    engine home(options);
    test_client ours(home);
    ours.ask(arguments{"HELLO", std::to_string(GetParam())});
    for (const char* const type :
         {"string", "integer", "double", "bignum", "null", "array", "set", "map", "attrib", "push",
          "verbatim", "true", "false", "ATTRIB", "nosuch", ""}) {
        // Redis 7.0 has the push before the reply.
        if (std::string_view(type) == "push" && redis_->is_7_0()) continue;
        const arguments args{"DEBUG", "PROTOCOL", type};
        EXPECT_EQ(ours.ask(args), theirs->ask_for_all(args)) << type;
    }
}

INSTANTIATE_TEST_SUITE_P(protocols, differential, ::testing::Values(2, 3),
                         [](const auto& p) { return "resp" + std::to_string(p.param); });

}  // namespace
}  // namespace eddy::cache
