// Tests of waits for a snapshot: commands that change a huge value wait while it is written, no
// other command does.
#include "cache/rdb/snapshot_fixture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using namespace cache::testing;

void fill_huge(cache_with_client& it) {
    for (int i = 0; i < 6000; ++i) {
        const std::string n = std::to_string(i);
        it.ask({"HSET", "hash", "field" + n, "value" + n});
        it.ask({"RPUSH", "list", "element" + n});
        it.ask({"SADD", "set", "member" + n});
        it.ask({"ZADD", "sorted", n, "member" + n});
        it.ask({"XADD", "stream", std::to_string(i + 1), "field", std::string(60, 'v')});
    }
    it.ask("XGROUP CREATE stream g 0");
    it.ask({"SET", "text", std::string((2U << 20) - 1, 't')});
    it.ask("SET small 1");
    it.ask("RPUSH short 1 2 3");
}

// Runs until the client's command is executed; returns the number of turns and the reply.
std::pair<int, std::string> wait_of(cache_with_client& it, const snapshot& image) {
    int turns = 0;
    while (it.ask.who().blocked && turns < 100'000) {
        const std::size_t before = image.waiting();
        it.home.go_on();
        ++turns;
        EXPECT_LT(image.waiting(), before + (130U << 10)) << "more than a slice";
        // All other clients continue.
        EXPECT_EQ(it.other("APPEND small 1").front(), ':');
    }
    return {turns, it.ask.pushed()};
}

TEST(rdb_snapshot_waits, who_changes_a_huge_value_waits_and_nobody_else_does) {
    const std::string script = "return redis.call('RPUSH', KEYS[1], ARGV[1])";
    const std::vector<std::pair<arguments, std::string>> changes = {
        {{"HSET", "hash", "new", "1"}, ":1\r\n"},
        {{"HDEL", "hash", "field7"}, ":1\r\n"},
        {{"LPUSH", "list", "new"}, ":6001\r\n"},
        {{"LMOVE", "short", "list", "LEFT", "LEFT"}, "$1\r\n1\r\n"},
        {{"LMPOP", "1", "list", "RIGHT"}, "*2\r\n$4\r\nlist\r\n*1\r\n$11\r\nelement5999\r\n"},
        {{"BLPOP", "none", "list", "0"}, "*2\r\n$4\r\nlist\r\n$8\r\nelement0\r\n"},
        {{"SADD", "set", "new"}, ":1\r\n"},
        {{"ZADD", "sorted", "1", "new"}, ":1\r\n"},
        {{"ZINCRBY", "sorted", "1", "member7"}, "$1\r\n8\r\n"},
        {{"XADD", "stream", "30000", "f", "v"}, "$7\r\n30000-0\r\n"},
        {{"XREADGROUP", "GROUP", "g", "c", "COUNT", "0", "NOACK", "STREAMS", "stream", "99999"},
         "*1\r\n*2\r\n$6\r\nstream\r\n*0\r\n"},
        {{"APPEND", "text", "x"}, ":2097152\r\n"},
        {{"SETRANGE", "text", "7", "x"}, ":2097151\r\n"},
        {{"EXPIRE", "hash", "100"}, ":1\r\n"},
        {{"RENAME", "hash", "other"}, "+OK\r\n"},
        {{"EVAL", script, "1", "list", "x"}, ":6001\r\n"},
    };
    for (const auto& [change, reply] : changes) {
        SCOPED_TRACE(change[0]);
        cache_with_client it;
        fill_huge(it);
        const std::string before = fingerprint(it.home);
        snapshot* const image = snapshot::begin(it.home);
        EXPECT_EQ(it.ask.ask(change), "");
        EXPECT_TRUE(it.ask.who().blocked);
        EXPECT_TRUE(it.home.is_behind());
        EXPECT_LT(image->waiting(), 1000U);
        // Neither readers of the value nor writers of other keys wait.
        EXPECT_EQ(it.other("HGET hash field3"), "$6\r\nvalue3\r\n");
        EXPECT_EQ(it.other("SET another 1"), "+OK\r\n");
        const auto [turns, told] = wait_of(it, *image);
        EXPECT_GT(turns, 2);
        EXPECT_EQ(told, reply);
        EXPECT_FALSE(it.home.is_behind());
        // It is written: no later command waits for it.
        EXPECT_NE(it.ask("LLEN list"), "");
        EXPECT_EQ(loaded(rest_of(*image)), before);
        image->end();
    }
}

TEST(rdb_snapshot_waits, nobody_waits_for_a_value_at_the_limit) {
    const rdb::snapshot_options limits;
    for (const bool beyond : {false, true}) {
        cache_with_client it;
        const std::size_t elements = limits.huge_elements + (beyond ? 1 : 0);
        for (std::size_t i = 0; i < elements; ++i) it.ask({"SADD", "set", std::to_string(i)});
        it.ask({"SET", "text", std::string(limits.huge_bytes + (beyond ? 1 : 0), 't')});
        snapshot* const image = snapshot::begin(it.home);
        EXPECT_EQ(it.ask("SADD set new").empty(), beyond);
        EXPECT_EQ(it.other("SETRANGE text 0 x").empty(), beyond);
        image->end();
        while (it.home.is_behind()) go_on(it);
        clear_up(it.home);
    }
}

TEST(rdb_snapshot_waits, a_transaction_waits_for_the_huge_values_that_it_changes) {
    cache_with_client it;
    fill_huge(it);
    const std::string before = fingerprint(it.home);
    snapshot* const image = snapshot::begin(it.home);
    it.ask("MULTI");
    it.ask("SET small 2");
    EXPECT_EQ(it.ask("HSET hash new 1"), "+QUEUED\r\n");
    EXPECT_EQ(it.ask("SADD set new"), "+QUEUED\r\n");
    EXPECT_EQ(it.ask("EXEC"), "");
    EXPECT_EQ(it.other("GET small"), "$1\r\n1\r\n");
    std::string told;
    for (int i = 0; i < 100'000 && told.empty(); ++i) {
        it.home.go_on();
        told = it.ask.pushed();
    }
    EXPECT_EQ(told, "*3\r\n+OK\r\n:1\r\n:1\r\n");
    EXPECT_EQ(loaded(rest_of(*image)), before);
    image->end();
}

TEST(rdb_snapshot_waits, who_removes_or_replaces_a_huge_value_does_not_wait) {
    for (const char* const change :
         {"DEL hash", "UNLINK list", "SET text 1", "SET hash 1", "GETSET text 1", "SETEX set 9 1",
          "MSET text 1 hash 2", "SUNIONSTORE set short2", "ZUNIONSTORE sorted 1 none", "FLUSHDB",
          "COPY list other", "LRANGE list 0 1", "SORT_RO short", "RENAME small hash",
          "RESTORE hash 0 none"}) {
        SCOPED_TRACE(change);
        cache_with_client it;
        fill_huge(it);
        const std::string before = fingerprint(it.home);
        snapshot* const image = snapshot::begin(it.home);
        EXPECT_NE(it.ask(change), "");
        EXPECT_FALSE(it.ask.who().blocked);
        EXPECT_LT(image->waiting(), 10'000U);
        EXPECT_EQ(loaded(rest_of(*image)), before);
        image->end();
    }
}

TEST(rdb_snapshot_waits, a_huge_value_that_is_written_ahead_may_change_by_other_ways) {
    // Commands that name no key, or do not change it, do not wait.
    for (const char* const change :
         {"EVAL redis.call('HSET','hash','undeclared','1') 0", "DEL hash", "FLUSHALL", "FLUSHDB",
          "SWAPDB 0 3", "EVAL redis.call('DEL','hash') 0", "SET hash 1"}) {
        for (const bool is_current : {false, true}) {
            SCOPED_TRACE(std::string(change) + (is_current ? ", the walk is at it" : ""));
            cache_with_client it;
            if (is_current)
                big_value_of(it, "hash");
            else
                fill_huge(it);
            it.ask("SELECT 4");
            it.ask("SET b 1");
            it.ask("SELECT 0");
            const std::string before = fingerprint(it.home);
            snapshot* const image = snapshot::begin(it.home);
            byte_buffer out;
            if (is_current)
                while (out.size() < 5000) image->step(out, out.size() + 100);
            std::string file(out.text());
            out.clear();
            EXPECT_EQ(it.ask("HSET hash new 1"), "");
            it.home.go_on();
            it.home.go_on();
            EXPECT_GT(image->waiting(), 10'000U);
            it.other("SELECT 4");
            it.other("SET b 2");
            it.other("SELECT 0");
            arguments words = testing::split(change);
            EXPECT_NE(it.other.ask(words), "");
            image->step(out, 3000);
            file += out.text();
            while (it.home.is_behind()) go_on(it);
            EXPECT_FALSE(it.ask.who().blocked);
            file += rest_of(*image, 3000);
            image->end();
            clear_up(it.home);
            EXPECT_EQ(loaded(file), before);
            EXPECT_EQ(marked(it.home), 0);
        }
    }
}

// Each hash and list is larger than many of these slices.
rdb::snapshot_options in_small_slices() {
    rdb::snapshot_options made;
    made.huge_elements = 20;
    made.slice_parts = 16;
    made.piece_bytes = 512;
    return made;
}

// A value is written ahead, the walk advances by so many steps, and then the change happens.
void change_behind_the_walk(const std::string& change, int steps) {
    SCOPED_TRACE(change + " after steps: " + std::to_string(steps));
    cache_with_client it;
    for (int i = 0; i < 150; ++i) {
        const std::string n = std::to_string(i);
        it.ask({"HSET", "hash", "field" + n, "value" + n});
        it.other({"SELECT", "4"});
        it.other({"RPUSH", "list", n});
        it.other({"SELECT", "0"});
    }
    it.ask("SET small 1");
    const std::string before = fingerprint(it.home);
    snapshot* const image = snapshot::begin(it.home, in_small_slices());
    EXPECT_EQ(it.ask("HSET hash new 1"), "");
    it.home.go_on();
    byte_buffer out;
    std::string file;
    for (int i = 0; i < steps; ++i) {
        ASSERT_EQ(image->step(out, 100), status::writing);
        file += out.text();
        out.clear();
    }
    it.other.ask(testing::split(change));
    while (it.home.is_behind()) go_on(it);
    file += rest_of(*image, 300);
    image->end();
    clear_up(it.home);
    EXPECT_FALSE(it.ask.who().blocked);
    EXPECT_FALSE(it.other.who().blocked);
    EXPECT_EQ(loaded(file), before);
    EXPECT_EQ(marked(it.home), 0);
    it.ask("FLUSHALL");
    clear_up(it.home);
    EXPECT_LT(it.home.stats().used_memory, 64U << 10);
}

TEST(rdb_snapshot_waits, a_value_written_ahead_is_kept_when_the_walk_ends_its_database) {
    for (const char* const change :
         {"HSET hash other 1", "EVAL redis.call('HSET','hash','undeclared','1') 0",
          "EVAL redis.call('HDEL','hash','field7','field8') 0", "DEL hash", "UNLINK hash",
          "SET hash 1", "RENAME hash other", "RENAME small hash", "MOVE hash 3", "EXPIRE hash 100",
          "PEXPIREAT hash 1", "FLUSHDB", "FLUSHALL", "FLUSHALL ASYNC", "SWAPDB 0 4",
          "EVAL redis.call('SWAPDB','0','4') redis.call('DEL','hash') 0",
          "EVAL redis.call('FLUSHALL') redis.call('RPUSH','hash','x') 0"}) {
        // Up to the middle of the next database.
        for (int steps = 0; steps <= 5; ++steps) change_behind_the_walk(change, steps);
    }
}

TEST(rdb_snapshot_waits, who_waits_for_it_goes_on_when_it_ends) {
    for (const bool fails : {false, true}) {
        cache_with_client it;
        fill_huge(it);
        rdb::snapshot_options options;
        options.max_waiting = 100'000;
        snapshot* const image = snapshot::begin(it.home, options);
        EXPECT_EQ(it.ask("HSET hash new 1"), "");
        it.home.go_on();
        if (fails) {
            for (int i = 0; i < 5 && it.ask.who().blocked; ++i) go_on(it);
            it.other("EVAL redis.call('RPUSH','list','new') 0");
            EXPECT_FALSE(it.other.who().blocked);
            EXPECT_NE(image->fault(), nullptr);
        } else {
            image->end();
        }
        it.home.go_on();
        EXPECT_EQ(it.ask.pushed(), ":1\r\n");
        EXPECT_FALSE(it.home.is_behind());
        if (fails) image->end();
        clear_up(it.home);
        EXPECT_EQ(marked(it.home), 0);
    }
}

// ---- room for changed values

rdb::snapshot_options with_little_room() {
    rdb::snapshot_options made;
    made.max_waiting = 80'000;
    return made;
}

constexpr int values = 400;

void fill_values(cache_with_client& it) {
    for (int i = 0; i < values; ++i)
        it.ask({"SET", "k" + std::to_string(i), std::string(1000, 'v')});
    it.ask("RPUSH list 1 2 3");
}

// Changes by one client until it is held; returns the first key that was not changed.
int change_until_held(cache_with_client& it, int from = 0) {
    for (; from < values; ++from) {
        if (it.ask({"APPEND", "k" + std::to_string(from), "x"}).empty()) break;
    }
    return from;
}

TEST(rdb_snapshot_waits, who_writes_faster_than_it_is_taken_waits_until_there_is_room) {
    cache_with_client it;
    fill_values(it);
    const std::string before = fingerprint(it.home);
    const rdb::snapshot_options limits = with_little_room();
    snapshot* const image = snapshot::begin(it.home, limits);
    std::string file;
    byte_buffer out;
    int waits = 0;
    for (int next = 0; next < values; ++next) {
        if (!it.ask({"APPEND", "k" + std::to_string(next), "x"}).empty()) continue;
        ++waits;
        EXPECT_TRUE(it.ask.who().blocked);
        EXPECT_GT(image->waiting(), limits.max_waiting / 2);
        EXPECT_LT(image->waiting(), limits.max_waiting / 2 + 1100);
        // No client is due before some of it was taken.
        EXPECT_FALSE(it.home.is_behind());
        std::string told;
        for (int turn = 0; turn < 1000 && told.empty(); ++turn) {
            out.clear();
            ASSERT_EQ(image->step(out, 2000), status::writing);
            file += out.text();
            told = it.ask.pushed();
        }
        EXPECT_EQ(told, ":1001\r\n");
        EXPECT_LT(image->waiting(), limits.max_waiting / 2);
    }
    EXPECT_GT(waits, 10);
    file += rest_of(*image);
    EXPECT_EQ(loaded(file), before);
    image->end();
}

TEST(rdb_snapshot_waits, without_room_only_those_wait_that_need_some) {
    const std::string script = "return redis.call('APPEND', KEYS[1], 'x')";
    for (const arguments& each : std::vector<arguments>{{"SET", "k300", "1"},
                                                        {"DEL", "k300"},
                                                        {"EXPIRE", "k300", "100"},
                                                        {"LPUSH", "list", "0"},
                                                        {"MSET", "new", "1", "k300", "2"},
                                                        {"RENAME", "k300", "new"},
                                                        {"EVAL", script, "1", "k300"}}) {
        SCOPED_TRACE(each[0]);
        cache_with_client it;
        fill_values(it);
        const std::string before = fingerprint(it.home);
        snapshot* const image = snapshot::begin(it.home, with_little_room());
        ASSERT_LT(change_until_held(it), values);
        EXPECT_EQ(it.other.ask(each), "");
        EXPECT_TRUE(it.other.who().blocked);
        // Also with other commands in a transaction.
        test_client third(it.home);
        third("MULTI");
        third("SET new 1");
        third.ask(each);
        EXPECT_EQ(third("EXEC"), "");
        EXPECT_EQ(loaded(rest_of(*image)), before);
        image->end();
        EXPECT_TRUE(it.other.woken());
        EXPECT_NE(it.other.pushed(), "");
        EXPECT_NE(third.pushed(), "");
    }
    for (const char* const each :
         {"GET k300", "STRLEN k300", "LRANGE list 0 -1", "SET new 1", "APPEND k0 y", "PING",
          "SET k0 1", "COPY k0 another", "DBSIZE", "FLUSHALL"}) {
        SCOPED_TRACE(each);
        cache_with_client it;
        fill_values(it);
        const std::string before = fingerprint(it.home);
        snapshot* const image = snapshot::begin(it.home, with_little_room());
        ASSERT_LT(change_until_held(it), values);
        EXPECT_NE(it.other(each), "");
        EXPECT_EQ(loaded(rest_of(*image)), before);
        image->end();
    }
}

TEST(rdb_snapshot_waits, who_waits_for_room_goes_on_when_it_ends_or_fails) {
    for (const bool fails : {false, true}) {
        cache_with_client it;
        fill_values(it);
        snapshot* const image = snapshot::begin(it.home, with_little_room());
        const int held = change_until_held(it);
        ASSERT_LT(held, values);
        if (fails) {
            // The second half is for commands that cannot wait.
            for (int i = values - 1; i > held && image->fault() == nullptr; --i) {
                it.other({"EVAL", "redis.call('DEL', ARGV[1])", "0", "k" + std::to_string(i)});
                EXPECT_FALSE(it.other.who().blocked);
            }
            EXPECT_NE(image->fault(), nullptr);
        } else {
            image->end();
        }
        EXPECT_TRUE(it.ask.woken());
        EXPECT_EQ(it.ask.pushed(), ":1001\r\n");
        if (fails) image->end();
        clear_up(it.home);
        EXPECT_EQ(marked(it.home), 0);
    }
}

TEST(rdb_snapshot_waits, one_that_nobody_takes_holds_up_nobody_for_long) {
    cache_with_client it;
    fill_values(it);
    const rdb::snapshot_options limits = with_little_room();
    snapshot* const image = snapshot::begin(it.home, limits);
    int next = change_until_held(it);
    ASSERT_LT(next, values);
    const std::int64_t until_us = engine::deadline_us(it.ask.who());
    it.home.set_time(std::chrono::microseconds(until_us - 1));
    it.home.end_wait(it.ask.who());
    EXPECT_EQ(it.ask.pushed(), "");
    it.home.set_time(std::chrono::microseconds(until_us));
    it.home.end_wait(it.ask.who());
    EXPECT_EQ(it.ask.pushed(), ":1001\r\n");
    // From here on all commands run, as if none could wait, until some of it is taken.
    byte_buffer out;
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(it.ask({"APPEND", "k" + std::to_string(++next), "x"}), ":1001\r\n");
    while (image->waiting() > limits.max_waiting / 4) ASSERT_EQ(image->step(out), status::writing);
    EXPECT_LT(change_until_held(it, next + 1), values);
    EXPECT_EQ(image->fault(), nullptr);
    image->end();
    EXPECT_EQ(it.ask.pushed(), ":1001\r\n");
}

TEST(rdb_snapshot_waits, without_room_nothing_is_evicted_for_new_keys) {
    cache_with_client it;
    fill_values(it);
    const std::string limit = std::to_string(it.home.stats().used_memory);
    EXPECT_EQ(it.other("CONFIG SET maxmemory-policy allkeys-random"), "+OK\r\n");
    EXPECT_EQ(it.other({"CONFIG", "SET", "maxmemory", limit}), "+OK\r\n");
    const std::string before = fingerprint(it.home);
    snapshot* const image = snapshot::begin(it.home, with_little_room());
    std::string file;
    byte_buffer out;
    int waits = 0;
    for (int i = 0; i < 2 * values; ++i) {
        it.ask({"SET", "new" + std::to_string(i), std::string(1000, 'n')});
        for (; it.ask.who().blocked; ++waits) {
            out.clear();
            ASSERT_EQ(image->step(out, 2000), status::writing);
            file += out.text();
            if (it.ask.woken()) EXPECT_EQ(it.ask.pushed(), "+OK\r\n");
        }
    }
    EXPECT_GT(waits, 10);
    EXPECT_EQ(loaded(file + rest_of(*image)), before);
    image->end();
}

TEST(rdb_snapshot_waits, the_last_of_it_may_be_what_is_written_ahead) {
    cache_with_client it;
    fill_huge(it);
    const std::string before = fingerprint(it.home);
    snapshot* const image = snapshot::begin(it.home);
    EXPECT_EQ(it.ask("HSET hash new 1"), "");
    // Without calls of go_on().
    EXPECT_EQ(loaded(rest_of(*image)), before);
    image->end();
    go_on(it);
    EXPECT_FALSE(it.ask.who().blocked);
}

}  // namespace
}  // namespace eddy::cache
