// Tests of consistency between a cache and the backend behind its hooks, for all commands.
#include "cache/persistence/engine_files.hpp"
#include "cache/replication/replication.hpp"
#include "cache/testing/hooks_fixture.hpp"
#include "cache/testing/mirror.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::HooksTest;
using testing::test_client;

TEST_F(HooksTest, what_depends_on_a_string_that_is_not_there_asks_for_it) {
    begin(all());
    const struct {
        const char* command;
        const char* missing;
    } cases[] = {{"PFADD a x", "miss a"},       {"PFCOUNT a", "miss a"},
                 {"PFMERGE a there", "miss a"}, {"BITOP OR d a there", "miss d"},
                 {"SETNX a 1", "miss a"},       {"MSETNX there 1 a 2", "miss a"},
                 {"SET a 1 NX", "miss a"},      {"SET a 1 EX 100 XX", "miss a"},
                 {"SET a 1 GET", "miss a"},     {"LCS a there", "miss a"}};
    test_client setter(*home_);
    setter("SET there 1");
    while (!next().empty()) {
    }
    for (const auto& each : cases) {
        test_client c(*home_);
        EXPECT_EQ(c(each.command), "") << each.command;
        EXPECT_EQ(next(), each.missing) << each.command;
        give_failure(each.missing);
    }
    test_client c(*home_);
    c("SET a 1 NX");
    EXPECT_EQ(next(), "miss a");
    give("miss a", "0");
    EXPECT_EQ(c.pushed(), "$-1\r\n");
    EXPECT_EQ(next(), "");
    EXPECT_EQ(c("SET a 2 EX 100"), "+OK\r\n");
}

TEST_F(HooksTest, what_another_type_replaces_is_deleted) {
    begin(all());
    test_client c(*home_);
    c("SADD s a");
    c("ZADD z 1 a");
    c("RPUSH l 1");
    c("GEOADD g 1 1 a");
    for (const char* const command :
         {"SUNIONSTORE k s", "ZUNIONSTORE k 1 z", "SORT l STORE k", "ZRANGESTORE k z 0 -1",
          "GEOSEARCHSTORE k g FROMLONLAT 1 1 BYRADIUS 1 km"}) {
        EXPECT_EQ(c("SET k v"), "+OK\r\n");
        EXPECT_EQ(next(), "write k=v") << command;
        give_none("write k=v");
        c(command);
        EXPECT_EQ(next(), "erase k") << command;
        give_none("erase k");
    }
    EXPECT_EQ(next(), "");
}

TEST_F(HooksTest, nothing_is_brought_beyond_maxmemory) {
    begin();
    test_client c(*home_);
    c("CONFIG SET maxmemory 3mb");
    c("CONFIG SET maxmemory-policy noeviction");
    std::string last;
    for (int i = 0; i < 5000; ++i) {
        const std::string key = std::to_string(i);
        c("GET " + key);
        ASSERT_EQ(next(), "miss " + key);
        give("miss " + key, std::string(1000, 'x'));
        last = c.pushed();
    }
    EXPECT_TRUE(last.starts_with("-OOM a key of this command was found")) << last;
    EXPECT_LT(home_->stats().used_memory, (3U << 20) + 100'000);
}

TEST_F(HooksTest, nothing_is_brought_while_writes_are_held_up) {
    hook_options options = all();
    options.fallback = hook_fallback::stale;
    begin(options);
    test_client c(*home_), other(*home_), admin(*home_);
    c("GET k");
    EXPECT_EQ(next(), "miss k");
    give("miss k", "old", 1000);
    EXPECT_EQ(c.pushed(), "$3\r\nold\r\n");
    testing::kept_changes sink;
    add_sink(home_->internals(), sink);
    admin("CLIENT PAUSE 20000 WRITE");
    EXPECT_EQ(c("GET k"), "$3\r\nold\r\n");
    EXPECT_EQ(c("GET late"), "");
    EXPECT_EQ(next(), "miss late");
    give("miss late", "1");
    pass_ms(1001);
    EXPECT_EQ(c.pushed(), "") << "nor is it answered";
    // The key has expired, but is not removed.
    EXPECT_EQ(other("GET k"), "");
    EXPECT_EQ(next(), "miss k");
    give_failure("miss k");
    home_->end_wait(c.who());
    EXPECT_TRUE(c.pushed().starts_with("-ERR on_miss did not answer in time"));
    pass_ms(1001);
    home_->end_wait(other.who());
    EXPECT_TRUE(other.pushed().starts_with("-ERR on_miss did not answer in time"));
    EXPECT_TRUE(sink.lines().empty());
    // The pause ends by its deadline.
    EXPECT_EQ(other("GET next"), "");
    EXPECT_EQ(next(), "miss next");
    give("miss next", "1");
    pass_ms(20'000);
    EXPECT_EQ(other.pushed(), "$1\r\n1\r\n");
    EXPECT_EQ(c("DBSIZE"), ":2\r\n") << "what came too late is kept, and what has expired goes";
    remove_sink(home_->internals(), sink);
}

TEST_F(HooksTest, nothing_is_brought_beyond_maxmemory_by_a_pause) {
    begin();
    test_client admin(*home_);
    admin("CONFIG SET maxmemory 3mb");
    admin("CONFIG SET maxmemory-policy noeviction");
    admin("CLIENT PAUSE 20000 WRITE");
    const std::size_t used = home_->stats().used_memory;
    std::deque<test_client> readers;
    for (int i = 0; i < 6; ++i) {
        const std::string key = std::to_string(i);
        readers.emplace_back (*home_)("GET " + key);
        ASSERT_EQ(next(), "miss " + key);
        give("miss " + key, std::string(1U << 20, 'x'));
    }
    EXPECT_LT(home_->stats().used_memory, used + 100'000);
    admin("CLIENT UNPAUSE");
    hooks_->tick();
    EXPECT_LT(home_->stats().used_memory, (4U << 20) + 100'000);
    std::size_t refused = 0;
    for (test_client& each : readers)
        refused += each.pushed().starts_with("-OOM a key of this command was found");
    EXPECT_EQ(refused, 3);
}

// The value of an undelivered change is known, but putting the key back is a change, too.
TEST_F(HooksTest, what_is_not_written_yet_is_not_put_back_while_writes_are_held_up) {
    begin(all());
    test_client c(*home_), reader(*home_);
    c("SET k v");
    ASSERT_EQ(next(), "write k=v");
    c("CONFIG SET maxmemory-policy allkeys-lru");
    c("CONFIG SET maxmemory 1");
    while (home_->upkeep()) {
    }
    c("CONFIG SET maxmemory 0");
    ASSERT_EQ(c("DBSIZE"), ":0\r\n");
    c("CLIENT PAUSE 20000 WRITE");
    EXPECT_EQ(reader("GET k"), "");
    EXPECT_EQ(c("DBSIZE"), ":0\r\n");
    c("CLIENT UNPAUSE");
    give_none("write k=v");
    EXPECT_EQ(next(), "miss k");
    give("miss k", "v");
    EXPECT_EQ(reader.pushed(), "$1\r\nv\r\n");
}

TEST_F(HooksTest, transactions_and_scripts_write_on_no_stale_value) {
    hook_options options = all();
    options.fallback = hook_fallback::stale;
    begin(options);
    test_client c(*home_);
    const auto bring_back = [&] {
        c("GET k");
        EXPECT_EQ(next(), "miss k");
        give("miss k", "10", 1000);
        c.pushed();
        pass_ms(1001);
        c("GET k");
        EXPECT_EQ(next(), "expire k");
        give_none("expire k");
        EXPECT_EQ(next(), "miss k");
        give_failure("miss k");
        EXPECT_EQ(c.pushed(), "$2\r\n10\r\n");
    };
    bring_back();
    c("MULTI");
    c("INCR k");
    EXPECT_EQ(c("EXEC"), "*1\r\n:1\r\n");
    EXPECT_EQ(next(), "write k=1");
    give_none("write k=1");
    c("DEL k");
    EXPECT_EQ(next(), "erase k");
    give_none("erase k");
    if (c({"EVAL", "return 1", "0"}).starts_with("-")) return;
    bring_back();
    EXPECT_EQ(c({"EVAL", "return redis.call('INCR', KEYS[1])", "1", "k"}), ":1\r\n");
}

TEST_F(HooksTest, who_tracks_a_key_is_told_what_was_brought) {
    hook_options options;
    options.fallback = hook_fallback::nil;
    begin(options);
    test_client tracking(*home_);
    tracking("HELLO 3");
    tracking("CLIENT TRACKING ON");
    tracking("GET a");
    EXPECT_EQ(next(), "miss a");
    set_time(now_us_ + options.deadline_us);
    end_waits(tracking);
    EXPECT_EQ(tracking.pushed(), "_\r\n");
    give("miss a", "1");
    EXPECT_EQ(tracking.pushed(), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n");
}

TEST_F(HooksTest, what_is_set_before_a_flush_or_swap_is_told) {
    begin(all());
    test_client c(*home_);
    for (const char* const then : {"FLUSHALL", "FLUSHDB", "SWAPDB 0 1"}) {
        c("MULTI");
        c("SET a 1");
        c(then);
        c("EXEC");
        EXPECT_EQ(next(), "write a=1") << then;
        give_none("write a=1");
        EXPECT_EQ(next(), "") << then;
    }
}

TEST_F(HooksTest, a_large_value_is_told_as_it_is_then_whatever_becomes_of_the_key) {
    begin(all());
    test_client c(*home_);
    std::string big(100'000, 'x');
    const auto set = [&] { EXPECT_EQ(c({"SET", "k", big}), "+OK\r\n"); };
    set();
    for (int i = 0; i < 10; ++i) {
        c({"APPEND", "k", "y"});
        big += 'y';
    }
    EXPECT_GT(hooks_->counts().queued_bytes, big.size());
    EXPECT_EQ(next(), "write k=" + big);
    c({"APPEND", "k", "z"});
    give_failure("write k=" + big);
    big += 'z';
    pass_ms(10'000);
    EXPECT_EQ(next(), "write k=" + big);
    give_none("write k=" + big);
    EXPECT_EQ(hooks_->counts().queued_bytes, 0);
    for (const char* const then : {"FLUSHALL", "SWAPDB 0 1", "DEBUG RELOAD"}) {
        set();
        c(then);
        EXPECT_EQ(next(), "write k=" + big) << then;
        give_none("write k=" + big);
    }
    EXPECT_EQ(c({"SET", "k", big, "PX", "10"}), "+OK\r\n");
    pass_ms(11);
    EXPECT_EQ(c("EXISTS k"), ":0\r\n");
    EXPECT_EQ(next(), "write k=" + big + " 1");
    give_none("write k=" + big + " 1");
    EXPECT_EQ(next(), "expire k");
    give_none("expire k");
    set();
    home_->internals().settings.options.max_memory = 1;
    home_->internals().settings.options.policy = eviction::allkeys_random;
    while (home_->upkeep()) {
    }
    EXPECT_EQ(next(), "write k=" + big);
}

TEST_F(HooksTest, a_large_value_that_goes_before_it_is_told_is_not_told) {
    const std::string big(20'000, 'x');
    for (const bool has_miss : {false, true}) {
        for (const char* const gone : {"DEL k", "UNLINK k", "GETDEL k", "EXPIRE k -1", "RENAME k l",
                                       "MOVE k 1", "SUNIONSTORE k s", "COPY s k REPLACE"}) {
            SCOPED_TRACE(gone);
            hook_options options;
            options.has_write = true;
            options.has_miss = has_miss;
            begin_exactly(options);
            test_client c(*home_);
            c("SADD s 1");
            c({"SET", "k", big});
            c(gone);
            c("GET k");
            std::string told;
            for (std::string job = next(); !job.empty(); job = next()) {
                told += job.substr(0, job.find('=')) + ";";
                give_none(job);
            }
            std::string right = has_miss && !std::string_view(gone).starts_with("COPY") &&
                                        !std::string_view(gone).starts_with("SUNION")
                                    ? "miss k;"
                                    : "";
            if (std::string_view(gone) == "RENAME k l") right += "write l;";
            if (std::string_view(gone) == "MOVE k 1") right += "write 1:k;";
            EXPECT_EQ(told, right);
            EXPECT_TRUE(hooks_->flushed());
        }
    }
}

TEST_F(HooksTest, what_is_another_type_within_a_transaction_is_deleted) {
    for (const std::string& value : {std::string("small"), std::string(20'000, 'x')}) {
        for (const auto& steps : {std::vector<std::string>{"DEL k", "LPUSH k x"},
                                  {"RENAME k other", "HSET k f v"},
                                  {"MOVE k 1", "SADD k x"},
                                  {"GETDEL k", "ZADD k 1 x"}}) {
            SCOPED_TRACE(steps.front());
            begin(all());
            test_client c(*home_);
            c({"SET", "k", value});
            c("MULTI");
            for (const std::string& each : steps) c(each);
            c("EXEC");
            std::string told;
            for (std::string job = next(); !job.empty(); job = next()) {
                if (job.find(" k") != std::string::npos) told += job + ";";
                give_none(job);
            }
            EXPECT_EQ(told, "erase k;");
            EXPECT_TRUE(hooks_->flushed());
        }
    }
}

TEST_F(HooksTest, a_large_value_that_the_master_takes_away_is_not_told) {
    const std::string big(20'000, 'x');
    for (const char* const gone : {"DEL k", "SUNIONSTORE k s", "RENAME k l"}) {
        begin(all());
        test_client c(*home_);
        c("SADD s 1");
        c({"SET", "k", big});
        home_->internals().clients.slow_path |= slow_path::replica;
        c(gone);
        EXPECT_EQ(next(), "") << gone;
        EXPECT_TRUE(hooks_->flushed()) << gone;
    }
}

TEST_F(HooksTest, a_large_value_is_told_also_when_its_server_becomes_a_replica) {
    const std::string big(20'000, 'x');
    begin(all());
    test_client c(*home_);
    c({"SET", "k", big});
    replication::of(home_->internals()).become_replica("127.0.0.1", 1);
    c("DEL k");
    EXPECT_EQ(next(), "write k=" + big);
    give_none("write k=" + big);
    EXPECT_EQ(next(), "");
}

TEST_F(HooksTest, a_full_queue_has_room_for_the_end_of_a_large_value) {
    hook_options options = all();
    options.queue.max_bytes = 4096;
    begin(options);
    test_client c(*home_);
    c({"SET", "k", std::string(20'000, 'x')});
    EXPECT_GT(hooks_->counts().queued_bytes, 4096 * write_behind::slack);
    // A late script continues, although the queue is full.
    home_->internals().data.database(0).remove("k", home_->internals().data.env.hash("k"));
    home_->internals().key_happened(0, key_event::generic, "del", "k");
    EXPECT_EQ(next(), "erase k");
}

TEST_F(HooksTest, a_state_that_is_lost_takes_the_older_one_with_it) {
    hook_options options = all();
    options.queue.max_bytes = 4096;
    begin(options);
    test_client c(*home_);
    EXPECT_EQ(c("SET k old"), "+OK\r\n");
    EXPECT_EQ(c({"SET", "big", std::string(20'000, 'x')}), "+OK\r\n");
    // A write although the queue is full, as by a script that began before.
    keyspace& keys = home_->internals().data.database(0);
    const std::uint64_t hash = keys.hash("k");
    keys.put_text(keys.find("k", hash), "k", hash, "newer");
    home_->internals().key_happened(0, key_event::string, "set", "k");
    hooks_->queue_changes();
    EXPECT_EQ(hooks_->counts().changes.lost, 2);
    EXPECT_EQ(hooks_->counts().queued_keys, 1);
    // Removed as by an eviction. The older state is discarded.
    keys.remove("k", hash);
    EXPECT_EQ(c("GET k"), "");
    EXPECT_EQ(next(), "miss k");
    give("miss k", "what the backend has");
    EXPECT_EQ(c.pushed(), "$20\r\nwhat the backend has\r\n");
    EXPECT_EQ(next(), "write big=" + std::string(20'000, 'x'));
    EXPECT_EQ(next(), "");
}

TEST_F(HooksTest, nothing_of_a_script_that_the_end_of_the_cache_has_cut_off_is_told) {
    begin(all());
    home_->set_slice_clock(nullptr);
    test_client c(*home_);
    EXPECT_EQ(c("SET k whole"), "+OK\r\n");
    EXPECT_EQ(next(), "write k=whole");
    EXPECT_EQ(c.begin(testing::arguments{"EVAL", "redis.call('SET', 'k', 'half') while true do end",
                                         "0"}),
              "");
    ASSERT_TRUE(home_->script_is_late());
    engine_files files(*home_);
    files.begin_end();
    files.cut_script();
    EXPECT_EQ(next(), "");
}

TEST_F(HooksTest, what_was_dropped_may_come_again) {
    hook_options options;
    options.has_write = true;
    begin_exactly(options);
    test_client c(*home_);
    c("SET k 1");
    EXPECT_EQ(next(), "write k=1");
    give_failure("write k=1");
    c("DEL k");
    EXPECT_TRUE(hooks_->flushed()) << "while it waits for the next try";
    EXPECT_EQ(hooks_->counts().queued_keys, 0);
    c("SET k 2");
    EXPECT_FALSE(hooks_->flushed());
    EXPECT_EQ(hooks_->counts().queued_keys, 1);
    EXPECT_EQ(next(), "");
    pass_ms(10'000);
    EXPECT_EQ(next(), "write k=2");
    give_none("write k=2");
    c("SET k 3");
    c("DEL k");
    EXPECT_TRUE(hooks_->flushed());
    EXPECT_EQ(next(), "");
    EXPECT_EQ(hooks_->counts().queued_bytes, 0);
}

TEST_F(HooksTest, a_stale_value_whose_second_is_over_is_stale_once) {
    hook_options options = all();
    options.fallback = hook_fallback::stale;
    options.stale_for_us = 5'000'000;
    begin(options);
    test_client c(*home_);
    for (const std::string key : {"k", "l"}) {
        c("GET " + key);
        next();
        give("miss " + key, "old", 1000);
        c.pushed();
    }
    pass_ms(1001);
    for (const std::string key : {"k", "l"}) {
        while (!c("GET " + key).empty()) {
        }
        std::string job = next();
        for (; job.starts_with("expire "); job = next()) give_none(job);
        EXPECT_EQ(job, "miss " + key);
        give_failure(job);
        EXPECT_EQ(c.pushed(), "$3\r\nold\r\n");
    }
    // They have expired, but are not removed yet.
    set_time(now_us_ + (read_through::stale_retry_ms + 1) * 1000);
    c("MULTI");
    c("INCR n");
    EXPECT_EQ(c("EXEC"), "*1\r\n:1\r\n");
    EXPECT_EQ(next(), "write n=1");
    EXPECT_EQ(next(), "") << "that they expired was told before";
    pass_ms(4000);
    for (const std::string key : {"k", "l"}) {
        c("GET " + key);
        EXPECT_EQ(next(), "miss " + key);
        give_failure("miss " + key);
        EXPECT_TRUE(c.pushed().starts_with("-ERR on_miss failed")) << "its time was over";
    }
}

TEST_F(HooksTest, one_value_may_be_larger_than_the_queue) {
    hook_options options = all();
    options.queue.max_bytes = 4096;
    begin(options);
    test_client c(*home_);
    const std::string big(20'000, 'x');
    EXPECT_EQ(c("SET k old"), "+OK\r\n");
    EXPECT_EQ(c({"SET", "k", big}), "+OK\r\n");
    EXPECT_TRUE(hooks_->queue().is_full());
    EXPECT_EQ(hooks_->counts().changes.lost, 0);
    EXPECT_EQ(next(), "write k=" + big);
}

}  // namespace
}  // namespace eddy::cache
