// Tests of snapshots: each holds the data of its instant, whatever commands run while it is
// written.
#include "cache/rdb/snapshot.hpp"

#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"
#include "cache/engine/engine.hpp"
#include "cache/rdb/snapshot_fixture.hpp"
#include "cache/rdb/snapshot_traffic.hpp"
#include "cache/testing/redis_process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using namespace cache::testing;

void one_run(std::uint64_t seed) {
    random_generator random(seed);
    const bool in_commands = seed % 2 == 0;
    constexpr unsigned sizes[] = {0, 5, 60, 400, 4000};
    cache_with_client it(seed + 1);
    disturbance others(it, seed, sizes[random.below(20) == 0 ? 4 : random.below(4)]);
    others.fill();
    rdb::snapshot_options options = at_once();
    if (in_commands) options.form = rdb::file_form::commands;
    const std::string before = fingerprint(it.home, options.form);
    const std::uint64_t keys = it.home.stats().keys;
    if (random.below(2) == 0) {
        options.huge_elements = random.below(60);
        options.huge_bytes = random.below(20'000);
    }
    snapshot* const image = snapshot::begin(it.home, options);
    ASSERT_NE(image, nullptr);
    EXPECT_EQ(image->keys(), keys);
    const std::uint64_t pace = 1 + random.below(60);
    const std::size_t most = random.below(3) == 0 ? 20'000 : 700;
    std::string file;
    byte_buffer out;
    for (status now = status::writing; now == status::writing;) {
        for (std::uint64_t i = random.below(pace); i > 0; --i) others.command();
        now = image->step(out, 1 + random.below(most));
        ASSERT_NE(now, status::failed) << image->fault();
        file += out.text();
        out.clear();
    }
    image->end();
    while (it.home.is_behind()) go_on(it);
    EXPECT_TRUE(snapshot::may_begin(it.home));
    EXPECT_EQ(marked(it.home), 0);
    EXPECT_EQ(loaded(file, options.form), before);
}

TEST(rdb_snapshot, is_the_data_of_its_instant_whatever_happens_meanwhile) {
    for_each_seed(eddy::testing::rounds(40U), one_run);
}

TEST(rdb_snapshot, there_is_one_at_a_time) {
    cache_with_client it;
    it.ask("SET a 1");
    snapshot* const first = snapshot::begin(it.home);
    EXPECT_FALSE(snapshot::may_begin(it.home));
    EXPECT_EQ(snapshot::begin(it.home), nullptr);
    rest_of(*first);
    first->end();
    EXPECT_TRUE(snapshot::may_begin(it.home));
}

TEST(rdb_snapshot, one_that_is_given_up_leaves_nothing_behind) {
    cache_with_client it;
    disturbance others(it, 7, 3000);
    others.fill();
    big_value_of(it, "big");
    snapshot* image = snapshot::begin(it.home);
    byte_buffer out;
    for (int i = 0; i < 20; ++i) {
        image->step(out, out.size() + 1000);
        for (int j = 0; j < 30; ++j) others.command();
        if (i == 5) it.ask("DEL big");
        if (i == 10) it.ask("FLUSHALL");
        if (i == 11) others.fill();
    }
    image->end();
    others.fill();
    clear_up(it.home);
    ASSERT_TRUE(snapshot::may_begin(it.home));
    EXPECT_EQ(marked(it.home), 0);
    const std::string now = fingerprint(it.home);
    image = snapshot::begin(it.home);
    EXPECT_EQ(loaded(rest_of(*image)), now);
    image->end();
    it.ask("FLUSHALL");
    clear_up(it.home);
    EXPECT_LT(it.home.stats().used_memory, 64U << 10);
}

TEST(rdb_snapshot, it_fails_when_too_much_waits_and_the_cache_goes_on) {
    cache_with_client it;
    for (int i = 0; i < 2000; ++i) {
        it.ask({"SET", "k" + std::to_string(i), std::string(1000, 'v')});
    }
    rdb::snapshot_options options;
    options.max_waiting = 100'000;
    snapshot* image = snapshot::begin(it.home, options);
    byte_buffer out;
    ASSERT_EQ(image->step(out, 1), status::writing);
    std::size_t most = 0;
    int changed = 0;
    // A script does not declare its keys, so it cannot wait.
    const auto change = [&](int which) {
        const std::string key = "k" + std::to_string(which);
        it.ask({"EVAL", "return redis.call('APPEND', ARGV[1], 'x')", "0", key});
    };
    for (; changed < 2000 && image->fault() == nullptr; ++changed) {
        change(changed);
        most = std::max(most, image->waiting());
    }
    // One thousand bytes of each, and some more.
    EXPECT_GT(changed, 90);
    EXPECT_LT(changed, 102);
    EXPECT_LE(most, options.max_waiting + 1100);
    EXPECT_NE(std::string_view(image->fault()).find("limit"), std::string_view::npos);
    out.clear();
    EXPECT_EQ(image->step(out), status::failed);
    EXPECT_TRUE(out.empty());
    EXPECT_EQ(image->waiting(), 0U);
    for (; changed < 2000; ++changed) change(changed);
    image->end();
    clear_up(it.home);
    const std::string now = fingerprint(it.home);
    image = snapshot::begin(it.home, options);
    ASSERT_NE(image, nullptr);
    EXPECT_EQ(loaded(rest_of(*image)), now);
    image->end();
}

TEST(rdb_snapshot, what_was_removed_or_flushed_is_written_and_then_freed) {
    cache_with_client it;
    for (const char* const way : {"DEL big", "FLUSHALL", "SET big small", "RENAME small big"}) {
        SCOPED_TRACE(way);
        big_value_of(it, "big");
        it.ask("SET small 1");
        const std::string before = fingerprint(it.home);
        snapshot* const image = snapshot::begin(it.home);
        it.ask(way);
        EXPECT_EQ(loaded(rest_of(*image)), before);
        image->end();
        it.ask("FLUSHALL");
        clear_up(it.home);
        EXPECT_LT(it.home.stats().used_memory, 64U << 10);
    }
}

TEST(rdb_snapshot, a_removed_big_value_is_not_written_at_once) {
    cache_with_client it;
    big_value_of(it, "big");
    snapshot* const image = snapshot::begin(it.home);
    it.ask("UNLINK big");
    EXPECT_EQ(image->waiting(), 0U);
    EXPECT_EQ(it.ask("EXISTS big"), ":0\r\n");
    rest_of(*image);
    image->end();
}

TEST(rdb_snapshot, a_replaced_big_value_is_not_written_at_once) {
    cache_with_client it;
    it.ask({"SET", "text", std::string(1U << 20, 't'), "PX", "100000"});
    it.ask({"SET", "kept", std::string(1U << 20, 'k'), "PX", "100000"});
    big_value_of(it, "big");
    const std::string before = fingerprint(it.home);
    snapshot* const image = snapshot::begin(it.home);
    EXPECT_EQ(it.ask("SET big small"), "+OK\r\n");
    EXPECT_EQ(it.ask("SET text small"), "+OK\r\n");
    EXPECT_EQ(it.ask("SET kept small KEEPTTL"), "+OK\r\n");
    EXPECT_LT(image->waiting(), 1000U);
    EXPECT_EQ(it.ask("PTTL text"), ":-1\r\n");
    EXPECT_EQ(it.ask("PTTL kept"), ":100000\r\n");
    EXPECT_EQ(it.ask("GET big"), "$5\r\nsmall\r\n");
    EXPECT_EQ(loaded(rest_of(*image)), before);
    image->end();
    clear_up(it.home);
    EXPECT_EQ(marked(it.home), 0);
    EXPECT_LT(it.home.stats().used_memory, 64U << 10);
}

TEST(rdb_snapshot, what_only_reads_writes_nothing) {
    cache_with_client it;
    big_value_of(it, "big");
    snapshot* const image = snapshot::begin(it.home);
    for (const char* const reading :
         {"OBJECT ENCODING big", "MEMORY USAGE big", "TYPE big", "EXISTS big", "TTL big"})
        EXPECT_FALSE(it.ask(reading).starts_with('-')) << reading;
    EXPECT_EQ(image->waiting(), 0U);
    image->end();
}

TEST(rdb_snapshot, one_value_beyond_the_limit_is_written) {
    cache_with_client it;
    big_value_of(it, "big");
    it.ask("SET other 1");
    const std::string before = fingerprint(it.home);
    rdb::snapshot_options options = at_once();
    options.max_waiting = 1000;
    snapshot* image = snapshot::begin(it.home, options);
    it.ask("RPUSH big more");
    it.ask("HSET big more 1");
    EXPECT_GT(image->waiting(), options.max_waiting);
    EXPECT_EQ(loaded(rest_of(*image)), before);
    image->end();
    clear_up(it.home);
}

TEST(rdb_snapshot, a_key_may_change_while_it_is_written) {
    for (const char* const change :
         {"HSET big f v", "DEL big", "EXPIRE big 100", "RENAME big other", "FLUSHDB", "SWAPDB 0 3",
          "MOVE big 2", "COPY big other", "HDEL big field1", "HGET big field1"}) {
        SCOPED_TRACE(change);
        cache_with_client it;
        big_value_of(it, "big");
        it.ask("SET a 1");
        it.ask("SELECT 4");
        it.ask("SET b 1");
        it.ask("SELECT 0");
        const std::string before = fingerprint(it.home);
        snapshot* const image = snapshot::begin(it.home, at_once());
        byte_buffer out;
        while (out.size() < 5000) image->step(out, out.size() + 100);
        std::string file(out.text());
        it.ask(change);
        it.ask("SET a 2");
        it.ask("SELECT 4");
        it.ask("SET b 2");
        file += rest_of(*image, 3000);
        image->end();
        EXPECT_EQ(loaded(file), before);
    }
}

TEST(rdb_snapshot, what_is_pending_of_a_stream_may_change_while_it_is_written) {
    constexpr int entries = 5000;
    for (const std::string change :
         {"XACK s g %", "XREADGROUP GROUP g c COUNT 3 STREAMS s >",
          "XREADGROUP GROUP g other COUNT 3 NOACK STREAMS s >",
          "XREADGROUP GROUP g c COUNT 5 STREAMS s %", "XREADGROUP GROUP g new% STREAMS s 0",
          "XCLAIM s g other 0 %", "XCLAIM s g new% 0 % JUSTID", "XCLAIM s g c 0 LASTID 7%",
          "XAUTOCLAIM s g other 0 % COUNT 3", "XAUTOCLAIM s g other 0 0 COUNT 3",
          "XGROUP DELCONSUMER s g c", "XDEL s %"}) {
        SCOPED_TRACE(change);
        cache_with_client it;
        it.ask("XGROUP CREATE s g 0 MKSTREAM");
        for (int i = 1; i <= entries + 1000; ++i)
            it.ask({"XADD", "s", std::to_string(i), "f", "v"});
        it.ask({"XREADGROUP", "GROUP", "g", "c", "COUNT", std::to_string(entries - 100), "STREAMS",
                "s", ">"});
        it.ask("XREADGROUP GROUP g other COUNT 100 STREAMS s >");
        // Claimed and read without an entry: it is acknowledged.
        it.ask("XDEL s 1 2 3 40 50 4000 4001 4002");
        it.set_time(start_ms + 1000);
        const std::string before = fingerprint(it.home);
        snapshot* const image = snapshot::begin(it.home, at_once());
        std::string file;
        byte_buffer out;
        int number = 0;
        for (status now = status::writing; now == status::writing;) {
            now = image->step(out, 1000);
            file += out.text();
            out.clear();
            for (int i = 0; i < 20; ++i) {
                std::string command = change;
                number = number % entries + 1;
                for (std::size_t at; (at = command.find('%')) != std::string::npos;)
                    command.replace(at, 1, std::to_string(number));
                EXPECT_FALSE(it.ask(command).starts_with("-")) << command;
            }
        }
        image->end();
        EXPECT_EQ(loaded(file), before);
    }
}

TEST(rdb_snapshot, the_engine_may_end_before_it) {
    cache_with_client it;
    big_value_of(it, "big");
    big_value_of(it, "more");
    snapshot* const image = snapshot::begin(it.home);
    byte_buffer out;
    image->step(out, 1000);
    it.ask("DEL big");
    it.ask("FLUSHALL");
}

TEST(rdb_snapshot, redis_loads_it) {
    std::string why_not;
    if (redis_process::start(why_not) == nullptr) GTEST_SKIP() << why_not;
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    for (std::uint64_t i = 0; i < 3; ++i) {
        cache_with_client it(seed);
        // Redis drops expired keys by its own clock.
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        it.home.set_time(std::chrono::duration_cast<std::chrono::microseconds>(now));
        disturbance others(it, seed + i, 500);
        others.set_still();
        others.fill();
        const std::string before =
            "+" + hexadecimal(dataset_digest(it.home.internals().data)) + "\r\n";
        snapshot* const image = snapshot::begin(it.home);
        std::string file;
        byte_buffer out;
        while (image->step(out, 1000) == status::writing) {
            for (int j = 0; j < 10; ++j) others.command();
            file += out.text();
            out.clear();
        }
        image->end();
        file += out.text();
        const auto redis = redis_process::start(why_not, file);
        ASSERT_NE(redis, nullptr) << why_not;
        EXPECT_EQ(redis->ask(arguments{"DEBUG", "DIGEST"}), before);
    }
}

TEST(snapshot, a_slice_of_a_value_has_few_elements_however_small_they_are) {
    cache_with_client cache;
    for (int i = 0; i < 50'000; ++i) {
        const std::string name = std::to_string(100'000 + i);
        cache.ask({"RPUSH", "list", name});
        cache.ask({"HSET", "hash", name, "v"});
        cache.ask({"ZADD", "zset", name, name});
    }
    const std::string before = fingerprint(cache.home);
    snapshot* const image = snapshot::begin(cache.home);
    byte_buffer out;
    constexpr std::size_t longest_part = 10;
    for (std::size_t had = 0; image->step(out, SIZE_MAX) == status::writing; had = out.size()) {
        // The first one has the file's head, too.
        ASSERT_LE(out.size() - had, rdb::snapshot_options().slice_parts * longest_part + 300);
    }
    image->end();
    EXPECT_EQ(loaded(out.text()), before);
}

// A cache full of values of 100 kB.
struct full_cache : cache_with_client {
    static constexpr int values = 60;
    full_cache() {
        for (int i = 0; i < values; ++i) store("old", i);
        limit = home.stats().used_memory;
        ask("CONFIG SET maxmemory " + std::to_string(limit));
        ask("CONFIG SET maxmemory-policy allkeys-lru");
        image = snapshot::begin(home);
    }
    void store(const std::string& name, int number) {
        ASSERT_EQ(ask({"SET", name + std::to_string(number), std::string(100'000, 'v')}),
                  "+OK\r\n");
    }
    std::string rest() {
        byte_buffer out;
        while (image->step(out, SIZE_MAX) == status::writing) {
        }
        EXPECT_EQ(image->held_bytes(), 0U);
        image->end();
        while (home.upkeep()) {
        }
        return std::string(out.text());
    }
    std::size_t limit = 0;
    snapshot* image = nullptr;
};

TEST(snapshot, evicts_no_more_than_needed_while_removed_values_wait_to_be_written) {
    full_cache cache;
    const std::string before = fingerprint(cache.home);
    for (int i = 0; i < 10; ++i) cache.store("new", i);
    EXPECT_GT(cache.image->held_bytes(), 900'000U);
    EXPECT_LE(cache.home.stats().evicted_keys, 12U);
    EXPECT_EQ(loaded(cache.rest()), before);
    EXPECT_LE(cache.home.stats().used_memory, cache.limit);
    EXPECT_LE(cache.home.stats().evicted_keys, 14U);
}

TEST(snapshot, a_flushed_database_that_waits_to_be_written_leaves_room_for_new_keys) {
    full_cache cache;
    const std::string before = fingerprint(cache.home);
    ASSERT_EQ(cache.ask("FLUSHALL"), "+OK\r\n");
    for (int i = 0; i < full_cache::values / 2; ++i) cache.store("new", i);
    EXPECT_EQ(cache.home.stats().evicted_keys, 0U);
    EXPECT_EQ(cache.home.stats().keys, full_cache::values / 2);
    EXPECT_EQ(loaded(cache.rest()), before);
    EXPECT_LE(cache.home.stats().used_memory, cache.limit);
    EXPECT_EQ(cache.home.stats().evicted_keys, 0U);
}

}  // namespace
}  // namespace eddy::cache
