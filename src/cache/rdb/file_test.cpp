// Tests of whole databases: saved and loaded again in pieces of any size; exclusions from loading.
#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/rdb/fixtures.hpp"
#include "cache/rdb/load.hpp"
#include "cache/rdb/save.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::cache {
namespace {

using cache::testing::parse_reply;
using cache::testing::test_client;
using rdb::testing::byte;
using rdb::testing::ended_file;
using rdb::testing::length;
using rdb::testing::magic;
using rdb::testing::text;
using status = rdb::reader::status;

constexpr std::int64_t now_ms = 1'700'000'000'000;

struct cache_with_client {
    cache_with_client() { home.set_time(std::chrono::milliseconds(now_ms)); }
    static engine_options options() {
        engine_options made;
        made.mode = access_mode::admin;  // for DEBUG
        return made;
    }
    engine home{options()};
    test_client ask{home};
};

// In pieces within the limit, except for texts that are not split.
std::string saved(engine& from, std::size_t limit = 64U << 10) {
    rdb::saver saver(from);
    std::string all;
    for (bool more = true; more;) {
        byte_buffer piece;
        more = saver.next(piece, limit);
        EXPECT_LE(piece.size(), limit + rdb::value_writer::max_whole_text + 64);
        all += piece.text();
    }
    byte_buffer nothing;
    EXPECT_FALSE(saver.next(nothing));
    EXPECT_TRUE(nothing.empty());
    return all;
}

std::string saved_for_valkey(engine& from) {
    rdb::saver saver(from, rdb::file_form::valkey_rdb);
    byte_buffer all;
    while (saver.next(all, SIZE_MAX / 2)) {
    }
    return std::string(all.text());
}

rdb::load_counts load(engine& to, std::string_view file, std::size_t piece = SIZE_MAX,
                      rdb::load_options options = {}) {
    rdb::loader loader(to, options);
    while (!file.empty() && loader.now() == status::reading) {
        const std::string_view now = file.substr(0, piece);
        file.remove_prefix(loader.feed(now));
    }
    loader.finish();
    EXPECT_EQ(loader.now(), status::done) << loader.fault().what << " " << loader.fault().offset;
    return loader.counts();
}

// The fault; empty without one.
std::string fault_of(engine& to, std::string_view file) {
    rdb::loader loader(to);
    loader.feed(file);
    loader.finish();
    return loader.now() == status::failed ? loader.fault().what : "";
}

// Every key of every database with its value and expiry.
std::map<std::string, std::string> content(cache_with_client& of) {
    std::map<std::string, std::string> all;
    for (int database = 0; database < 16; ++database) {
        of.ask("SELECT " + std::to_string(database));
        for (const auto& each : parse_reply(of.ask("KEYS *")).children) {
            const std::string& key = each.text;
            const std::string type = of.ask({"TYPE", key});
            auto value = type == "+string\r\n" ? parse_reply(of.ask({"GET", key}))
                         : type == "+list\r\n" ? parse_reply(of.ask({"LRANGE", key, "0", "-1"}))
                         : type == "+set\r\n"  ? parse_reply(of.ask({"SMEMBERS", key}))
                                               : parse_reply(of.ask({"HGETALL", key}));
            if (type == "+set\r\n") value.sort_children();
            if (type == "+hash\r\n") value.sort_children(2);
            all[std::to_string(database) + " " + key] =
                type + of.ask({"PEXPIRETIME", key}) + value.print();
        }
    }
    of.ask("SELECT 0");
    return all;
}

void fill(cache_with_client& it) {
    for (int i = 0; i < 3000; ++i) {
        const std::string n = std::to_string(i);
        it.ask({"SET", "key" + n, i % 3 == 0 ? n : "value" + n});
        if (i % 4 == 0) it.ask({"PEXPIREAT", "key" + n, std::to_string(now_ms + 1 + i)});
        it.ask({"RPUSH", "list" + std::to_string(i / 50), n,
                std::string(static_cast<unsigned>(i) % 200, 'l')});
        it.ask({"SADD", "set" + std::to_string(i / 70), n, "m" + n});
        it.ask({"HSET", "hash" + std::to_string(i / 70), n, "v" + n, "f" + n, n});
    }
    it.ask({"SET", "huge", std::string(1'000'000, 'h')});
    it.ask({"RPUSH", "huge list", std::string(300'000, 'i'), "x", std::string(5000, 'j')});
    it.ask({"HSET", "huge hash", std::string(20'000, 'k'), std::string(30'000, 'v')});
    it.ask({"SET", std::string(70'000, 'K'), "a long key"});
    it.ask({"EXPIRE", "huge hash", "100"});
    it.ask("SELECT 15");
    it.ask("SET last 1 EX 1000");
    it.ask("SET '' ''");
    it.ask("SELECT 0");
}

TEST(rdb_file, what_was_saved_is_loaded) {
    cache_with_client from;
    fill(from);
    const std::string file = saved(from.home);
    EXPECT_TRUE(file.starts_with("REDIS0010"));
    const auto before = content(from);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, SIZE_MAX}) {
        cache_with_client to;
        const rdb::load_counts counts = load(to.home, file, piece);
        EXPECT_EQ(counts.keys, from.home.stats().keys);
        EXPECT_EQ(counts.expired + counts.empty, 0U);
        EXPECT_EQ(to.home.stats().keys_with_expiry, from.home.stats().keys_with_expiry);
        EXPECT_TRUE(content(to) == before) << piece;
    }
}

// A file that stands beside the tests.
std::string stored(const std::string& name) {
    std::ifstream file(std::string(EDDY_RDB_FILES) + "/" + name, std::ios::binary);
    EXPECT_TRUE(file) << name;
    return std::string(std::istreambuf_iterator<char>(file), {});
}

// Files of servers older and newer than the tests' own, written by tools/make_rdb_files.py.
// The loaded keys must match the servers' own description of them.
TEST(rdb_file, what_other_servers_have_saved_is_loaded) {
    for (const auto& [name, magic] :
         {std::pair("redis-6.0", "REDIS0009"), std::pair("redis-8.0", "REDIS0012"),
          std::pair("redis-8.6", "REDIS0013"), std::pair("valkey-9.1", "VALKEY080")}) {
        const std::string file = stored(std::string(name) + ".rdb");
        ASSERT_TRUE(file.starts_with(magic)) << name;
        for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, SIZE_MAX}) {
            cache_with_client to;
            load(to.home, file, piece);
            std::uint64_t keys = 0;
            std::istringstream lines(stored(std::string(name) + ".keys"));
            std::string line;
            std::getline(lines, line);  // the server's version
            while (std::getline(lines, line)) {
                const auto words = cache::testing::split(line);
                ASSERT_GE(words.size(), 4U);
                const std::string& key = words[1];
                to.ask({"SELECT", words[0]});
                SCOPED_TRACE(std::string(name) + ' ' + key);
                if (words[2] != "-") {
                    EXPECT_EQ(to.ask({"DEBUG", "DIGEST-VALUE", key}),
                              "*1\r\n+" + words[2] + "\r\n");
                }
                EXPECT_EQ(to.ask({"PEXPIRETIME", key}),
                          ":" + (words[3] == "-" ? "-1" : words[3]) + "\r\n");
                for (std::size_t i = 4; i < words.size(); ++i) {
                    const std::string part = words[i].substr(0, words[i].find('='));
                    const std::string value = words[i].substr(part.size() + 1);
                    if (to.ask({"TYPE", key}) == "+zset\r\n") {
                        EXPECT_EQ(parse_reply(to.ask({"ZSCORE", key, part})).text, value);
                    } else {
                        EXPECT_EQ(to.ask({"HPEXPIRETIME", key, "FIELDS", "1", part}),
                                  "*1\r\n:" + value + "\r\n");
                    }
                }
                ++keys;
            }
            EXPECT_EQ(to.home.stats().keys, keys) << name;
        }
    }
}

// Without the checksum, so that all of the damage is met.
TEST(rdb_file, damaged_and_cut_files_of_the_newest_servers_are_faults_or_files) {
    constexpr std::size_t expansion = 200;  // of the most compressed bytes, and of a key's own
    random_generator random(29);
    for (const char* const name : {"redis-8.6.rdb", "valkey-9.1.rdb"}) {
        const std::string good = stored(name);
        for (std::size_t at = 9; at < good.size(); at += 200 * eddy::testing::place_step) {
            const bool is_cut = random.chance(0.3);
            std::string bad = good.substr(0, is_cut ? at : good.size());
            if (!is_cut) bad[at] = static_cast<char>(random());
            cache_with_client to;
            rdb::loader loader(to.home, {.reading = {.check_sum = false}});
            for (std::string_view rest = bad; !rest.empty() && loader.now() == status::reading;)
                rest.remove_prefix(loader.feed(rest.substr(0, 1 + random.below(5000))));
            loader.finish();
            ASSERT_NE(loader.now(), status::reading) << name << ' ' << at;
            ASSERT_EQ(is_cut ? status::failed : loader.now(), loader.now()) << name << ' ' << at;
            ASSERT_LT(to.home.used_memory(), expansion * good.size()) << name << ' ' << at;
        }
    }
}

// For a replica of that family: the same keys, of which only the form of expiring fields differs.
TEST(rdb_file, what_was_saved_in_valkeys_form_is_loaded) {
    cache_with_client from;
    for (int i = 0; i < 300; ++i) {
        const std::string n = std::to_string(i);
        from.ask({"SET", "key" + n, n});
        from.ask({"HSET", "hash" + std::to_string(i / 70), n, "v" + n, "f" + n, n});
    }
    EXPECT_TRUE(saved_for_valkey(from.home).starts_with("REDIS0010"));
    from.ask("HSET h f v g w h x");
    from.ask({"HPEXPIREAT", "h", std::to_string(now_ms + 5000), "FIELDS", "2", "f", "g"});
    from.ask({"HSET", "large", "f", std::string(10'000, 'v')});
    from.ask({"HPEXPIREAT", "large", std::to_string(now_ms + 6000), "FIELDS", "1", "f"});
    const std::string file = saved_for_valkey(from.home);
    EXPECT_TRUE(file.starts_with("VALKEY080"));
    const auto before = content(from);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, SIZE_MAX}) {
        cache_with_client to;
        load(to.home, file, piece);
        EXPECT_TRUE(content(to) == before) << piece;
        for (const char* const ask :
             {"HPEXPIRETIME h FIELDS 3 f g h", "HPEXPIRETIME large FIELDS 1 f"})
            EXPECT_EQ(to.ask(ask), from.ask(ask));
    }
}

TEST(rdb_file, the_size_of_the_pieces_changes_nothing_in_the_file) {
    cache_with_client from;
    fill(from);
    const std::string whole = saved(from.home, SIZE_MAX / 2);
    for (const std::size_t limit : {1U, 100U, 4096U, 100'000U}) {
        EXPECT_TRUE(saved(from.home, limit) == whole) << limit;
    }
}

TEST(rdb_file, no_keys_are_a_file_too) {
    cache_with_client from;
    const std::string file = saved(from.home);
    cache_with_client to;
    EXPECT_EQ(load(to.home, file).keys, 0U);
    from.ask("SET a 1");
    from.ask("DEL a");
    EXPECT_EQ(load(to.home, saved(from.home)).keys, 0U);
}

TEST(rdb_file, keys_whose_time_is_over_are_left_out_or_kept) {
    const auto until = [](std::int64_t at) {
        return byte(252) + rdb::testing::little(static_cast<std::uint64_t>(at), 8);
    };
    const std::string list = length(1) + text("x");
    const std::string file =
        ended_file(magic() + until(now_ms - 1) + byte(0) + text("over") + text("1") +
                   until(now_ms - 1) + byte(1) + text("over too") + list + until(0) + byte(0) +
                   text("zero") + text("1") + until(-1) + byte(0) + text("minus") + text("1") +
                   until(now_ms) + byte(0) + text("now") + text("1") + until(now_ms + 1) + byte(1) +
                   text("soon") + list + byte(0) + text("never") + text("1"));
    cache_with_client one;
    const rdb::load_counts left_out = load(one.home, file);
    EXPECT_EQ(left_out.keys, 3U);
    EXPECT_EQ(left_out.expired, 4U);
    EXPECT_EQ(one.home.stats().keys_with_expiry, 2U);
    EXPECT_EQ(one.ask("PTTL soon"), ":1\r\n");
    EXPECT_EQ(one.ask("PTTL never"), ":-1\r\n");
    cache_with_client other;
    const rdb::load_counts kept = load(other.home, file, SIZE_MAX, {.keep_expired = true});
    EXPECT_EQ(kept.keys, 7U);
    EXPECT_EQ(other.home.stats().keys_with_expiry, 6U);
    EXPECT_EQ(other.ask("EXISTS over minus zero now soon never"), ":3\r\n");
}

TEST(rdb_file, keys_without_elements_are_left_out) {
    cache_with_client one;
    const rdb::load_counts counts = load(
        one.home, ended_file(magic() + byte(1) + text("a") + length(0) + byte(16) + text("b") +
                             text(rdb::testing::listpack({})) + byte(0) + text("c") + text("")));
    EXPECT_EQ(counts.empty, 2U);
    EXPECT_EQ(counts.keys, 1U);
    EXPECT_EQ(one.ask("DBSIZE"), ":1\r\n");
}

TEST(rdb_file, what_cannot_be_loaded_is_said) {
    const std::string one = byte(0) + text("k") + text("v");
    cache_with_client it;
    EXPECT_EQ(fault_of(it.home, ended_file(magic() + one + one)), "a key is there already");
    EXPECT_EQ(it.ask("GET k"), "$1\r\nv\r\n");  // what came before the fault stays
    EXPECT_EQ(fault_of(it.home, ended_file(magic() + byte(1) + text("k") + length(1) + text("e"))),
              "a key is there already");
    EXPECT_EQ(fault_of(it.home, ended_file(magic() + byte(254) + length(16) + one)),
              "the file has a database with a number above 15");
    EXPECT_EQ(fault_of(it.home, ended_file(magic() + byte(2) + text("s") + length(2) + text("e") +
                                           text("e"))),
              "a set has a member twice");
    EXPECT_EQ(fault_of(it.home, ended_file(magic() + byte(4) + text("h") + length(2) + text("f") +
                                           text("1") + text("f") + text("1"))),
              "a hash has a field twice");
    EXPECT_EQ(fault_of(it.home, ended_file(magic() + byte(3) + text("z") + length(2) + text("m") +
                                           byte(1) + "1" + text("m") + byte(1) + "2")),
              "a sorted set has a member twice");
    EXPECT_EQ(fault_of(it.home, magic() + byte(1) + text("half") + length(2) + text("e")),
              "the input ends too early");
    EXPECT_EQ(it.ask("DBSIZE"), ":1\r\n");
    EXPECT_EQ(fault_of(it.home, "") + fault_of(it.home, "junk and junk"),
              "the input ends too earlythis is no RDB file");
}

// A partial value is kept outside of the databases, whatever happens to them.
TEST(rdb_file, commands_run_between_the_pieces) {
    cache_with_client it;
    const std::string file = ended_file(magic() + byte(1) + text("l") + length(2) + text("a") +
                                        text("b") + byte(0) + text("k") + text("v"));
    rdb::loader loader(it.home);
    loader.feed(std::string_view(file).substr(0, 14));
    EXPECT_EQ(it.ask("EXISTS l"), ":0\r\n");
    for (int i = 0; i < 5000; ++i) it.ask({"SET", "other" + std::to_string(i), "x"});
    it.ask("SWAPDB 0 1");
    it.ask("FLUSHALL");
    while (it.home.upkeep()) {
    }
    loader.feed(std::string_view(file).substr(14));
    EXPECT_EQ(loader.now(), status::done);
    EXPECT_EQ(it.ask("LRANGE l 0 -1"), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    EXPECT_EQ(it.ask("DBSIZE"), ":2\r\n");
}

TEST(rdb_file, memory_is_given_back_after_a_fault) {
    cache_with_client it;
    const std::size_t before = it.home.stats().used_memory;
    std::string file = magic() + byte(4) + text("h") + length(5001);
    for (int i = 0; i < 5000; ++i) file += text("field" + std::to_string(i)) + text("value");
    fault_of(it.home, file);
    while (it.home.upkeep()) {
    }
    EXPECT_LE(it.home.stats().used_memory, before + 1024);
}

}  // namespace
}  // namespace eddy::cache
