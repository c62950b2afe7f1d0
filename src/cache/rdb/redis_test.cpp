// Exchange of RDB between the cache and a real redis-server 7.0, both ways: files and DUMP
// payloads, judged by its own digest and by redis-check-rdb. Skipped, with the reason, where
// redis-server is not installed.
#include <eddy/base/random.hpp>

#include "base/files/temporary_folder.hpp"
#include "base/test_seed.hpp"
#include "cache/engine/engine.hpp"
#include "cache/rdb/fixtures.hpp"
#include "cache/rdb/load.hpp"
#include "cache/rdb/save.hpp"
#include "cache/testing/redis_process.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using cache::testing::arguments;
using cache::testing::parse_reply;
using cache::testing::redis_process;
using cache::testing::test_client;

std::string file_content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string saved(engine& from) {
    rdb::saver saver(from);
    byte_buffer all;
    while (saver.next(all, SIZE_MAX / 2)) {
    }
    return std::string(all.text());
}

// Output of redis-check-rdb for a file.
std::string judgement(std::string_view file) {
    const eddy::testing::temporary_folder folder;
    const std::string path = folder.file("dump.rdb");
    std::ofstream(path, std::ios::binary)
        .write(file.data(), static_cast<std::streamsize>(file.size()));
    FILE* const output = ::popen(("redis-check-rdb " + path + " 2>&1").c_str(), "r");
    if (output == nullptr) return "popen failed";
    std::string all;
    char piece[4096];
    while (const std::size_t got = std::fread(piece, 1, sizeof piece, output)) {
        all.append(piece, got);
    }
    return all + "exit " + std::to_string(::pclose(output));
}

class with_redis : public ::testing::Test {
protected:
    void SetUp() override {
        redis_ = start();
        if (redis_ == nullptr) GTEST_SKIP() << why_not_;
        using namespace std::chrono;
        engine_.set_time(duration_cast<microseconds>(system_clock::now().time_since_epoch()));
    }

    std::unique_ptr<redis_process> start(std::string_view dump = {}) {
        const std::vector<std::string> debug{"--enable-debug-command", "yes"};
        return redis_process::start(why_not_, dump, debug);
    }

    std::string theirs(const arguments& args) { return redis_->ask(args); }
    std::string digest(redis_process& of) { return of.ask(arguments{"DEBUG", "DIGEST"}); }
    void both(const arguments& args) {
        const std::string reply = client_.ask(args);
        EXPECT_EQ(reply, theirs(args)) << args[0] << " " << args[1];
    }

    // Values of all types, of sizes that make Redis choose each of its encodings.
    void fill_redis() {
        for (const char* database : {"0", "7"}) {
            theirs({"SELECT", database});
            fill_strings();
            fill_collections();
        }
        theirs({"SELECT", "0"});
    }
    void fill_strings() {
        for (const char* number : {"0", "-1", "127", "-129", "32768", "2147483647", "2147483648",
                                   "-9223372036854775808", "007", "1.5", ""}) {
            theirs({"SET", std::string("number ") + number, number});
            theirs({"SET", number, number});
        }
        theirs({"SET", "compressible", std::string(10'000, 'z') + std::string(10'000, 'y')});
        std::string noise;
        for (int i = 0; i < 100'000; ++i) noise += static_cast<char>(random_());
        theirs({"SET", "noise", noise, "EX", "10000"});
        theirs({"SET", "binary", std::string("\0\r\n\xff", 4), "PX", "12345678"});
        theirs({"SET", std::string(20'000, 'k'), "a long key"});
    }
    void fill_collections() {
        // Small, middle and large: of numbers, of short texts, of long ones.
        for (const int size : {1, 5, 100, 600}) {
            const std::string name = std::to_string(size);
            for (int i = 0; i < size; ++i) {
                const std::string n = std::to_string(i * i - 1000);
                const std::string wide = n + "00000000";
                const std::string word = "word" + n;
                const std::string longer(static_cast<std::size_t>(i % 300), 'x');
                theirs({"RPUSH", "list of numbers " + name, n, wide});
                theirs({"RPUSH", "list of words " + name, word, longer});
                theirs({"SADD", "set of small numbers " + name, std::to_string(i)});
                theirs({"SADD", "set of numbers " + name, n, wide});
                theirs({"SADD", "set of words " + name, word});
                theirs({"HSET", "hash of words " + name, word, n});
                theirs({"HSET", "hash of long words " + name, word, longer});
                theirs({"ZADD", "sorted set of words " + name, n, word});
                theirs({"ZADD", "sorted set of long words " + name, "0." + std::to_string(i),
                        word + longer, i % 2 == 0 ? "-inf" : "inf", wide});
            }
        }
        fill_streams();
        theirs({"RPUSH", "list with a huge element", "a", std::string(100'000, 'h'), "b"});
        theirs({"EXPIRE", "list of words 5", "1000"});
    }

    // Streams of one entry, of several blocks, with groups, and without any entry.
    void fill_streams() {
        for (const int size : {1, 5, 1000}) {
            const std::string name = "stream " + std::to_string(size);
            theirs({"XGROUP", "CREATE", name, "all", "0", "MKSTREAM"});
            theirs({"XGROUP", "CREATE", name, "some", "3", "ENTRIESREAD", "2"});
            for (int i = 1; i <= size; ++i) {
                const std::string id = std::to_string(i * i) + "-" + std::to_string(i % 3);
                const std::string n = std::to_string(i * 1'000'003);
                theirs({"XADD", name, id, "number", n, "text",
                        std::string(static_cast<std::size_t>(i % 90), 'x')});
                if (i % 10 == 0) theirs({"XADD", name, id + "1", "its own", n});
            }
            theirs({"XREADGROUP", "GROUP", "all", "one", "COUNT", "30", "STREAMS", name, ">"});
            theirs({"XREADGROUP", "GROUP", "all", "two", "COUNT", "300", "STREAMS", name, ">"});
            theirs({"XREADGROUP", "GROUP", "all", "one", "COUNT", "7", "STREAMS", name, "0"});
            theirs({"XGROUP", "CREATECONSUMER", name, "some", "idle"});
            theirs({"XACK", name, "all", "1-1", "4-2", "9-0"});
            theirs({"XDEL", name, "16-1", "10000-1"});
        }
        theirs({"XADD", "stream of none", "5-5", "a", "b"});
        theirs({"XDEL", "stream of none", "5-5"});
    }

    rdb::load_counts load(std::string_view file) {
        rdb::loader loader(engine_);
        loader.feed(file);
        loader.finish();
        EXPECT_EQ(loader.now(), rdb::reader::status::done)
            << loader.fault().what << " at " << loader.fault().offset;
        return loader.counts();
    }

    std::string why_not_;
    std::unique_ptr<redis_process> redis_;
    random_generator random_{23};
    engine engine_;
    test_client client_{engine_};
};

TEST_F(with_redis, a_file_goes_from_redis_to_the_cache_and_back_with_nothing_lost) {
    fill_redis();
    ASSERT_EQ(theirs({"SAVE"}), "+OK\r\n");
    const rdb::load_counts counts = load(file_content(redis_->dump_file()));
    EXPECT_EQ(":" + std::to_string(counts.keys / 2) + "\r\n", theirs({"DBSIZE"}));
    const std::string file = saved(engine_);
    const std::unique_ptr<redis_process> other = start(file);
    ASSERT_NE(other, nullptr) << why_not_;
    EXPECT_EQ(other->ask(arguments{"DBSIZE"}), theirs({"DBSIZE"}));
    const std::string before = digest(*redis_);
    EXPECT_EQ(before.size(), 43U) << before;
    EXPECT_EQ(digest(*other), before);
}

// The same with Redis's other encodings: one element a node, compressed nodes, no packed values.
TEST_F(with_redis, other_settings_of_redis_make_other_files_of_the_same_keys) {
    const std::vector<arguments> settings[] = {
        {{"list-max-listpack-size", "1"}, {"list-compress-depth", "1"}},
        {{"list-max-listpack-size", "-5"}, {"rdbcompression", "no"}},
        {{"set-max-intset-entries", "0"}, {"hash-max-listpack-entries", "0"}},
        {{"hash-max-listpack-entries", "100000"}, {"hash-max-listpack-value", "100000"}},
        {{"rdbchecksum", "no"}},
    };
    for (const auto& each : settings) {
        theirs({"FLUSHALL"});
        client_("FLUSHALL");
        for (const arguments& one : each) theirs({"CONFIG", "SET", one[0], one[1]});
        fill_redis();
        ASSERT_EQ(theirs({"SAVE"}), "+OK\r\n");
        load(file_content(redis_->dump_file()));
        const std::unique_ptr<redis_process> other = start(saved(engine_));
        ASSERT_NE(other, nullptr) << why_not_;
        EXPECT_EQ(digest(*other), digest(*redis_)) << each[0][0];
    }
}

TEST_F(with_redis, redis_check_rdb_passes_our_files) {
    fill_redis();
    ASSERT_EQ(theirs({"SAVE"}), "+OK\r\n");
    load(file_content(redis_->dump_file()));
    std::string file = saved(engine_);
    const std::string good = judgement(file);
    if (good.find("not found") != std::string::npos) GTEST_SKIP() << good;
    EXPECT_NE(good.find("RDB looks OK"), std::string::npos) << good;
    EXPECT_TRUE(good.ends_with("exit 0")) << good;
    EXPECT_NE(judgement(saved(*std::make_unique<engine>())).find("RDB looks OK"),
              std::string::npos);
    file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 1);
    EXPECT_FALSE(judgement(file).ends_with("exit 0"));
}

TEST_F(with_redis, payloads_go_both_ways) {
    fill_redis();
    const auto keys = parse_reply(theirs({"KEYS", "*"}));
    ASSERT_GT(keys.children.size(), 40U);
    std::set<std::string> encodings;
    for (const auto& each : keys.children) {
        const std::string& key = each.text;
        encodings.insert(theirs({"TYPE", key}) + theirs({"OBJECT", "ENCODING", key}));
        const std::string dump = parse_reply(theirs({"DUMP", key})).text;
        ASSERT_EQ(client_({"RESTORE", key, "0", dump}), "+OK\r\n") << key;
        const std::string ours = parse_reply(client_({"DUMP", key})).text;
        ASSERT_EQ(theirs({"RESTORE", "copy", "0", ours, "REPLACE"}), "+OK\r\n") << key;
        // The digest includes the expiry, which the payload does not.
        theirs({"PERSIST", key});
        const arguments original{"DEBUG", "DIGEST-VALUE", key};
        const arguments copy{"DEBUG", "DIGEST-VALUE", "copy"};
        EXPECT_EQ(theirs(copy), theirs(original)) << key;
        if (!redis_->is_7_0()) continue;
        EXPECT_EQ(theirs({"OBJECT", "ENCODING", "copy"}), theirs({"OBJECT", "ENCODING", key}))
            << key;
    }
    // int, embstr, raw; quicklist; intset, hashtable; listpack, hashtable; listpack, skiplist;
    // stream
    if (redis_->is_7_0()) EXPECT_EQ(encodings.size(), 11U);
}

// Redis's digest leaves out groups: XINFO's description of them is compared, with all its times.
TEST_F(with_redis, groups_of_streams_go_both_ways) {
    if (!redis_->is_7_0())
        GTEST_SKIP() << "later versions note more of a consumer than 7.0's files have";
    fill_redis();
    const auto keys = [&] {
        std::vector<std::string> found;
        for (const auto& each :
             parse_reply(theirs({"SCAN", "0", "COUNT", "100000", "TYPE", "stream"}))
                 .children[1]
                 .children) {
            found.push_back(each.text);
        }
        return found;
    }();
    ASSERT_EQ(keys.size(), 4U);
    ASSERT_EQ(theirs({"SAVE"}), "+OK\r\n");
    load(file_content(redis_->dump_file()));
    const std::unique_ptr<redis_process> other = start(saved(engine_));
    ASSERT_NE(other, nullptr) << why_not_;
    for (const std::string& key : keys) {
        for (const arguments& about : {arguments{"XINFO", "STREAM", key, "FULL", "COUNT", "0"},
                                       {"XINFO", "GROUPS", key},
                                       {"XRANGE", key, "-", "+"},
                                       {"OBJECT", "ENCODING", key}}) {
            EXPECT_EQ(other->ask(about), theirs(about)) << key;
        }
        // The same in a payload of ours, and in one of theirs.
        const std::string ours = parse_reply(client_({"DUMP", key})).text;
        ASSERT_EQ(theirs({"RESTORE", "copy", "0", ours, "REPLACE"}), "+OK\r\n") << key;
        const arguments full{"XINFO", "STREAM", key, "FULL", "COUNT", "0"};
        const arguments of_copy{"XINFO", "STREAM", "copy", "FULL", "COUNT", "0"};
        EXPECT_EQ(theirs(of_copy), theirs(full));
        const std::string dump = parse_reply(theirs({"DUMP", key})).text;
        ASSERT_EQ(client_({"RESTORE", "copy", "0", dump, "REPLACE"}), "+OK\r\n") << key;
        EXPECT_EQ(client_.ask(of_copy), client_.ask(full));
        both({"XINFO", "GROUPS", "copy"});
        both({"XPENDING", "copy", "all"});
        both({"XRANGE", "copy", "-", "+"});
    }
}

// The file of this cache after random commands of all kinds, loaded by Redis, equals Redis's data
// after the same commands.
TEST_F(with_redis, our_file_of_random_changes_is_what_redis_has) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_ = random_generator(seed);
    const auto number = [&](std::uint64_t below) { return std::to_string(random_.below(below)); };
    const auto text = [&] {
        switch (random_.below(5)) {
            case 0: return number(1000);
            case 1: return "-" + number(5'000'000'000);
            case 2: return std::string(random_.below(70), 'x');
            case 3: return std::string(random_.below(3000), static_cast<char>(random_()));
            default: return "word" + number(100);
        }
    };
    const auto element = [&] { return "m" + number(60); };
    const auto change = [&](const std::string& key) -> arguments {
        switch (random_.below(22)) {
            case 0: return {"SET", key, text()};
            case 1: return {"APPEND", key, text()};
            case 2: return {"SETRANGE", key, number(50), text()};
            case 3: return {"INCRBY", key, number(100'000)};
            case 4: return {"RPUSH", key, text(), text(), element()};
            case 5: return {"LPUSH", key, text()};
            case 6: return {"LREM", key, "0", element()};
            case 7: return {"LINSERT", key, "BEFORE", element(), text()};
            case 8: return {"LSET", key, number(4), text()};
            case 9: return {"LTRIM", key, "0", number(200)};
            case 10: return {"SADD", key, element(), text(), number(700)};
            case 11: return {"SADD", key, number(700), number(700)};
            case 12: return {"SREM", key, element(), number(700)};
            case 13: return {"HSET", key, element(), text(), text(), element()};
            case 14: return {"HSET", key, text(), text()};
            case 15: return {"HDEL", key, element()};
            case 16: return {"HINCRBY", key, "n", number(1000)};
            case 17: return {"PEXPIREAT", key, "99999999" + number(90'000) + "123"};
            case 18: return {"PERSIST", key};
            case 19: return {"SELECT", number(3)};
            case 20: return {"RENAME", key, "k" + number(40)};
            default: return random_.below(6) == 0 ? arguments{"DEL", key} : arguments{"GET", key};
        }
    };
    for (int i = 0; i < 10'000; ++i) {
        const arguments args = change("k" + number(40));
        ASSERT_EQ(client_.ask(args), theirs(args)) << args[0] << ", seed " << seed;
    }
    const std::unique_ptr<redis_process> other = start(saved(engine_));
    ASSERT_NE(other, nullptr) << why_not_;
    EXPECT_EQ(digest(*other), digest(*redis_)) << "seed " << seed;
}

TEST_F(with_redis, sorted_sets_of_redis_are_read) {
    for (const int size : {3, 300}) {
        theirs({"DEL", "z"});
        for (int i = 0; i < size; ++i) {
            const std::string n = std::to_string(i);
            theirs({"ZADD", "z", std::to_string(i * 0.37 - 5), "m" + n});
        }
        theirs({"ZADD", "z", "inf", "last", "-inf", "first", "1e300", "large", "5", "7"});
        const std::string dump = parse_reply(theirs({"DUMP", "z"})).text;
        rdb::testing::recorder told;
        rdb::reader reader(told, rdb::reader::input::value);
        reader.feed(std::string_view(dump).substr(0, dump.size() - rdb::dump_footer_bytes));
        ASSERT_EQ(reader.now(), rdb::reader::status::done);
        const auto all = parse_reply(theirs({"ZRANGE", "z", "0", "-1", "WITHSCORES"}));
        std::set<std::string> expected;
        for (std::size_t i = 0; i < all.children.size(); i += 2) {
            char digits[40];
            std::snprintf(digits, sizeof digits, " %.17g",
                          std::strtod(all.children[i + 1].text.c_str(), nullptr));
            expected.insert("scored " + all.children[i].text + digits);
        }
        EXPECT_EQ(std::set<std::string>(told.lines.begin() + 1, told.lines.end() - 1), expected);
    }
}

TEST_F(with_redis, old_encodings_mean_to_redis_what_they_mean_here) {
    for (const rdb::testing::fixture& each : rdb::testing::fixtures()) {
        // Redis 7.0 cannot read these.
        if (each.type == rdb::object_type::set_listpack) continue;
        if (each.type == rdb::object_type::stream_3) continue;
        if (each.type >= rdb::object_type::hash_with_expiry_rc) continue;
        const std::string value = rdb::testing::payload(each.value());
        ASSERT_EQ(theirs({"RESTORE", each.name, "0", value}), "+OK\r\n") << each.name;
        ASSERT_EQ(client_({"RESTORE", each.name, "0", value}), "+OK\r\n") << each.name;
        const std::string ours = parse_reply(client_({"DUMP", each.name})).text;
        ASSERT_EQ(theirs({"RESTORE", "copy", "0", ours, "REPLACE"}), "+OK\r\n") << each.name;
        EXPECT_EQ(theirs({"DEBUG", "DIGEST-VALUE", "copy"}),
                  theirs({"DEBUG", "DIGEST-VALUE", each.name}))
            << each.name;
    }
}

TEST_F(with_redis, the_options_and_errors_of_restore_are_the_same) {
    const std::string value = rdb::testing::payload(rdb::testing::fixtures()[0].value());
    const auto with = [&](std::vector<std::string> more) {
        arguments args{"RESTORE", "k"};
        args.insert(args.end(), more.begin(), more.end());
        both(args);
        // Only an absolute time is equal on both to the millisecond.
        both({more.back() == "absttl" ? "PEXPIRETIME" : "TTL", "k"});
        both({"GET", "k"});
    };
    both({"DUMP", "nosuch"});
    both({"DUMP", "a", "b"});
    both({"RESTORE", "k", "0"});
    with({"0", value});
    with({"0", value});
    with({"x", value});
    with({"x", value, "REPLACE"});
    with({"-1", value, "REPLACE"});
    with({"-1", "junk", "REPLACE"});
    with({"0", "junk", "REPLACE"});
    with({"0", "", "REPLACE"});
    with({"0", rdb::testing::payload(""), "REPLACE"});
    with({"0", rdb::testing::payload("junk"), "REPLACE"});
    with({"0", rdb::testing::payload(rdb::testing::byte(250)), "REPLACE"});
    with({"100000", value, "REPLACE"});
    with({"0", value, "replace"});
    with({"1", value, "ABSTTL", "REPLACE"});
    with({"99999999999999", value, "absttl"});
    if (redis_->is_7_0())
        with({"9223372036854775807", value, "REPLACE"});
    else
        std::cout << "left out, since this redis-server is not 7.0: a time beyond all times\n";
    with({"0", value, "FOO"});
    with({"0", value, "IDLETIME"});
    with({"0", value, "REPLACE", "IDLETIME", "x"});
    with({"0", value, "REPLACE", "IDLETIME", "-1"});
    with({"0", value, "REPLACE", "IDLETIME", "10"});
    with({"0", value, "REPLACE", "FREQ"});
    with({"0", value, "REPLACE", "FREQ", "x"});
    with({"0", value, "REPLACE", "FREQ", "-1"});
    with({"0", value, "REPLACE", "FREQ", "256"});
    with({"0", value, "REPLACE", "FREQ", "255"});
    with({"0", value, "REPLACE", "FREQ", "1", "IDLETIME", "1"});
    with({"0", value, "REPLACE", "IDLETIME", "1", "FREQ", "1"});
    with({"0", value, "REPLACE", "IDLETIME", "1", "IDLETIME", "2"});
    // The order of checks.
    with({"x", "junk", "IDLETIME", "-1"});
    with({"x", "junk"});
    both({"DEL", "k"});
    with({"x", "junk"});
    with({"-5", "junk"});
    std::string damaged = value;
    damaged[3] = static_cast<char>(damaged[3] ^ 1);
    with({"0", damaged});
}

}  // namespace
}  // namespace eddy::cache
