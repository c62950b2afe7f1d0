// Tests of hooks: misses, delivered changes, limits and failures.
#include <eddy/base/random.hpp>

#include "cache/testing/hooks_fixture.hpp"
#include "cache/testing/mirror.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::HooksTest;
using testing::test_client;

TEST_F(HooksTest, a_miss_waits_and_is_then_a_hit) {
    begin();
    test_client c(*home_);
    EXPECT_EQ(c("GET a"), "");
    EXPECT_TRUE(c.who().blocked);
    EXPECT_GE(calls_, 1);
    EXPECT_EQ(c("PING"), "") << "what follows waits, too";
    EXPECT_EQ(next(), "miss a");
    EXPECT_EQ(next(), "");
    give("miss a", "one");
    EXPECT_TRUE(c.woken());
    EXPECT_EQ(c.pushed(), "$3\r\none\r\n+PONG\r\n");
    EXPECT_EQ(c("GET a"), "$3\r\none\r\n");
    EXPECT_EQ(c("TTL a"), ":-1\r\n");
    EXPECT_EQ(next(), "") << "what came from the backend is not written to it";
    EXPECT_EQ(hooks_->counts().misses, 1);
    EXPECT_EQ(hooks_->counts().waiting, 0);
}

TEST_F(HooksTest, a_time_to_live_is_kept) {
    begin();
    test_client c(*home_);
    c("GET a");
    next();
    give("miss a", "one", 5000);
    EXPECT_EQ(c.pushed(), "$3\r\none\r\n");
    EXPECT_EQ(c("PTTL a"), ":5000\r\n");
    pass_ms(5001);
    EXPECT_EQ(c("GET a"), "") << "it is asked for again";
    EXPECT_EQ(next(), "miss a");
    give_none("miss a");
    EXPECT_EQ(c.pushed(), "$-1\r\n");
}

TEST_F(HooksTest, equal_misses_are_one) {
    begin();
    std::deque<test_client> many;
    for (int i = 0; i < 100; ++i) EXPECT_EQ(many.emplace_back(*home_)("GET a"), "");
    EXPECT_EQ(hooks_->counts().asked, 1);
    EXPECT_EQ(hooks_->counts().joined, 99);
    EXPECT_EQ(next(), "miss a");
    EXPECT_EQ(next(), "");
    test_client late(*home_);
    EXPECT_EQ(late("STRLEN a"), "");
    EXPECT_EQ(next(), "");
    give("miss a", "one");
    for (test_client& each : many) EXPECT_EQ(each.pushed(), "$3\r\none\r\n");
    EXPECT_EQ(late.pushed(), ":3\r\n");
}

TEST_F(HooksTest, mget_waits_for_all_its_keys) {
    begin();
    test_client c(*home_);
    c("SET b there");
    EXPECT_EQ(c("MGET a b c a"), "");
    EXPECT_EQ(next(), "miss a");
    EXPECT_EQ(next(), "miss c");
    EXPECT_EQ(next(), "");
    give_none("miss c");
    EXPECT_FALSE(c.woken());
    give("miss a", "1");
    EXPECT_EQ(c.pushed(), "*4\r\n$1\r\n1\r\n$5\r\nthere\r\n$-1\r\n$1\r\n1\r\n");
    EXPECT_EQ(next(), "");
}

TEST_F(HooksTest, what_needs_no_value_and_what_cannot_wait_does_not) {
    begin();
    test_client c(*home_);
    EXPECT_EQ(c("EXISTS a"), ":0\r\n");
    EXPECT_EQ(c("TTL a"), ":-2\r\n");
    EXPECT_EQ(c("HGET a f"), "$-1\r\n");
    EXPECT_EQ(c("SET a 1"), "+OK\r\n");
    c("DEL a");
    c("MULTI");
    c("GET a");
    EXPECT_EQ(c("EXEC"), "*1\r\n$-1\r\n");
    c("RPUSH l x");
    EXPECT_TRUE(c("GET l").starts_with("-WRONGTYPE"));
    EXPECT_EQ(next(), "");
}

TEST_F(HooksTest, a_number_that_is_not_there_is_fetched_before_it_grows) {
    begin(all());
    test_client c(*home_);
    EXPECT_EQ(c("INCR n"), "");
    next();
    give("miss n", "41");
    EXPECT_EQ(c.pushed(), ":42\r\n");
    EXPECT_EQ(next(), "write n=42");
}

TEST_F(HooksTest, a_database_has_keys_of_its_own) {
    begin(all());
    test_client c(*home_);
    test_client other(*home_);
    other("SELECT 3");
    EXPECT_EQ(c("GET a"), "");
    EXPECT_EQ(other("GET a"), "");
    EXPECT_EQ(next(), "miss a");
    EXPECT_EQ(next(), "miss 3:a");
    give("miss 3:a", "three");
    EXPECT_EQ(other.pushed(), "$5\r\nthree\r\n");
    give_none("miss a");
    EXPECT_EQ(c.pushed(), "$-1\r\n");
    other("SET b 1");
    EXPECT_EQ(next(), "write 3:b=1");
}

TEST_F(HooksTest, absence_is_remembered_where_that_is_wanted) {
    hook_options options;
    options.negative_ttl_us = 1'000'000;
    begin(options);
    test_client c(*home_);
    c("GET a");
    next();
    give_none("miss a");
    EXPECT_EQ(c.pushed(), "$-1\r\n");
    EXPECT_EQ(c("GET a"), "$-1\r\n");
    EXPECT_EQ(hooks_->counts().negative, 1);
    pass_ms(1001);
    EXPECT_EQ(c("GET a"), "");
    EXPECT_EQ(next(), "miss a");
    give_none("miss a", 0);
    EXPECT_EQ(c.pushed(), "$-1\r\n");
    EXPECT_EQ(c("GET a"), "") << "the script said that it is not to be remembered";
    next();
    give_none("miss a", 60'000);
    c.pushed();
    pass_ms(30'000);
    EXPECT_EQ(c("GET a"), "$-1\r\n");
    c("SET a 1");
    EXPECT_EQ(c("GETDEL a"), "$1\r\n1\r\n");
    EXPECT_EQ(c("GET a"), "") << "a write ends what was remembered";
}

TEST_F(HooksTest, a_deadline_ends_the_wait_with_what_was_chosen) {
    for (const auto fallback : {hook_fallback::error, hook_fallback::nil, hook_fallback::stale}) {
        hook_options options;
        options.fallback = fallback;
        begin(options);
        test_client c(*home_);
        test_client writer(*home_);
        c("GET a");
        writer("APPEND a x");
        EXPECT_EQ(next(), "miss a");
        EXPECT_EQ(engine::deadline_us(c.who()), now_us_ + 1'000'000);
        pass_ms(999);
        end_waits(c);
        EXPECT_FALSE(c.woken());
        pass_ms(1);
        end_waits(c);
        EXPECT_TRUE(c.woken());
        const std::string got = c.pushed();
        if (fallback == hook_fallback::nil)
            EXPECT_EQ(got, "$-1\r\n");
        else
            EXPECT_TRUE(got.starts_with("-ERR on_miss did not answer in time")) << got;
        end_waits(writer);
        EXPECT_TRUE(writer.pushed().starts_with("-ERR on_miss")) << "it is not written blindly";
        EXPECT_EQ(hooks_->counts().timeouts, 2);
        EXPECT_EQ(hooks_->counts().asked, 1) << "the script is still at it";
        give("miss a", "late");
        EXPECT_EQ(c("GET a"), "$4\r\nlate\r\n");
        EXPECT_EQ(hooks_->counts().waiting, 0);
        EXPECT_EQ(hooks_->counts().asked, 0);
    }
}

TEST_F(HooksTest, a_failure_is_told_at_once) {
    begin();
    test_client c(*home_);
    c("MGET a b");
    next();
    next();
    give_failure("miss a");
    EXPECT_TRUE(c.pushed().starts_with("-ERR on_miss failed"));
    give("miss b", "1");
    EXPECT_EQ(c("GET b"), "$1\r\n1\r\n");
    EXPECT_EQ(hooks_->counts().failed, 1);
}

TEST_F(HooksTest, the_value_that_expired_last_serves_until_the_backend_is_back) {
    hook_options options = all();
    options.fallback = hook_fallback::stale;
    options.stale_for_us = 60'000'000;
    begin(options);
    test_client c(*home_);
    c("GET a");
    next();
    give("miss a", "old", 1000);
    c.pushed();
    pass_ms(1001);
    EXPECT_EQ(c("GET a"), "");
    EXPECT_EQ(next(), "expire a") << "before it is asked for again";
    give_none("expire a");
    EXPECT_EQ(next(), "miss a");
    give_failure("miss a");
    EXPECT_EQ(c.pushed(), "$3\r\nold\r\n");
    EXPECT_EQ(c("GET a"), "$3\r\nold\r\n") << "without a wait, for a second";
    EXPECT_EQ(next(), "");
    test_client writer(*home_);
    EXPECT_EQ(writer("APPEND a x"), "") << "what is old is not written";
    EXPECT_EQ(next(), "miss a");
    give_failure("miss a");
    EXPECT_TRUE(writer.pushed().starts_with("-ERR on_miss failed"));
    EXPECT_EQ(next(), "");
    c("GET a");
    next();
    give_failure("miss a");
    EXPECT_EQ(c.pushed(), "$3\r\nold\r\n");
    pass_ms(read_through::stale_retry_ms + 1);
    EXPECT_EQ(c("GET a"), "") << "the backend has its chance again";
    EXPECT_EQ(next(), "miss a") << "and no further on_expire";
    give("miss a", "new", 1000);
    EXPECT_EQ(c.pushed(), "$3\r\nnew\r\n");
    pass_ms(1001);
    c("GET a");
    next();
    give_none("expire a");
    next();
    give_none("miss a");
    EXPECT_EQ(c.pushed(), "$-1\r\n");
    c("GET a");
    next();
    give_failure("miss a");
    EXPECT_TRUE(c.pushed().starts_with("-ERR")) << "the backend said that it is gone";
}

TEST_F(HooksTest, stale_values_grow_too_old) {
    hook_options options;
    options.fallback = hook_fallback::stale;
    options.stale_for_us = 5'000'000;
    begin(options);
    test_client c(*home_);
    c("SET a old PX 1000");
    pass_ms(1001);
    for (int i = 0; i < 4; ++i) {
        c("GET a");
        next();
        give_failure("miss a");
        EXPECT_EQ(c.pushed(), "$3\r\nold\r\n") << i;
        pass_ms(1200);
    }
    pass_ms(1000);
    c("GET a");
    next();
    give_failure("miss a");
    EXPECT_TRUE(c.pushed().starts_with("-ERR"));
}

TEST_F(HooksTest, so_many_keys_wait_at_most) {
    hook_options options;
    options.max_misses = 2;
    begin(options);
    test_client a(*home_), b(*home_), c(*home_);
    a("GET a");
    b("GET b");
    EXPECT_TRUE(c("GET c").starts_with("-ERR too many keys wait for on_miss"));
    EXPECT_EQ(hooks_->counts().refused, 1);
    EXPECT_EQ(c("GET a"), "") << "a key that is asked for already may be waited for";
    next();
    give("miss a", "1");
    EXPECT_EQ(c.pushed(), "$1\r\n1\r\n");
    EXPECT_EQ(c("GET c"), "");
}

TEST_F(HooksTest, a_client_that_goes_leaves_nothing_behind) {
    begin();
    {
        test_client gone(*home_);
        gone("MGET a b c");
        EXPECT_EQ(hooks_->counts().asked, 3);
        EXPECT_EQ(next(), "miss a");
    }
    EXPECT_EQ(hooks_->counts().waiting, 0);
    EXPECT_EQ(hooks_->counts().asked, 1) << "that one is running";
    EXPECT_EQ(next(), "");
    give("miss a", "1");
    EXPECT_EQ(hooks_->counts().asked, 0);
    test_client stays(*home_);
    {
        test_client gone(*home_);
        gone("GET d");
        stays("GET d");
    }
    EXPECT_EQ(next(), "miss d");
    auto woken_then_gone = std::make_unique<test_client>(*home_);
    (*woken_then_gone)("GET d");
    give("miss d", "4");
    woken_then_gone.reset();
    EXPECT_EQ(stays.pushed(), "$1\r\n4\r\n");
    EXPECT_EQ(hooks_->counts().waiting, 0);
}

TEST_F(HooksTest, a_write_during_a_miss_wins) {
    begin(all());
    test_client c(*home_), writer(*home_);
    c("GET a");
    EXPECT_EQ(next(), "miss a");
    writer("SET a new");
    EXPECT_EQ(c.pushed(), "$3\r\nnew\r\n");
    give("miss a", "old");
    EXPECT_EQ(c("GET a"), "$3\r\nnew\r\n");
    EXPECT_EQ(next(), "write a=new");
    give_none("write a=new");
    // Written and deleted again while the backend was queried.
    c("GET b");
    EXPECT_EQ(next(), "miss b");
    writer("SET b 1");
    EXPECT_EQ(c.pushed(), "$1\r\n1\r\n");
    writer("DEL b");
    give("miss b", "old");
    EXPECT_EQ(c("GET b"), "$-1\r\n") << "what the backend has is about to be deleted";
    EXPECT_EQ(next(), "erase b");
    give_none("erase b");
    EXPECT_EQ(c("GET b"), "");
    EXPECT_EQ(next(), "miss b");
}

TEST_F(HooksTest, what_is_not_written_yet_is_read_from_the_queue) {
    begin(all());
    test_client d(*home_);
    d("SET a 1 PX 5000");
    // As by an eviction.
    home_->internals().key_happened(0, key_event::evicted, "evicted", "a");
    keyspace& keys = home_->internals().data.database(0);
    keys.remove("a", keys.hash("a"));
    EXPECT_EQ(d("GET a"), "$1\r\n1\r\n");
    EXPECT_EQ(d("PTTL a"), ":5000\r\n");
    EXPECT_EQ(next(), "write a=1 5000");
}

TEST_F(HooksTest, changes_are_told_in_order_and_coalesce) {
    begin(all());
    test_client c(*home_);
    c("SET a 1");
    c("SET b 1");
    c("SET a 2");
    c("DEL b");
    EXPECT_EQ(next(), "write a=2");
    EXPECT_EQ(next(), "erase b");
    c("SET a 3");
    c("SET a 4");
    EXPECT_EQ(next(), "") << "one at a time of each key";
    give_none("write a=2");
    EXPECT_EQ(next(), "write a=4");
    give_none("write a=4");
    give_none("erase b");
    EXPECT_EQ(next(), "");
    EXPECT_TRUE(hooks_->flushed());
    EXPECT_EQ(hooks_->counts().changes.coalesced, 3);
    EXPECT_EQ(hooks_->counts().queued_bytes, 0);
    c("SET t 1 PX 700");
    c("RENAME t u");
    EXPECT_EQ(next(), "erase t");
    EXPECT_EQ(next(), "write u=1 700");
    c("RPUSH l x");
    c("SADD s x");
    c("EXPIRE l 5");
    EXPECT_EQ(next(), "") << "only strings are told";
    c("RENAME l u");
    give_none("write u=1 700");
    EXPECT_EQ(next(), "erase l");
    EXPECT_EQ(next(), "erase u") << "it is no string any more";
    c("MULTI");
    c("SET m 1");
    c("INCR m");
    c("EXEC");
    EXPECT_EQ(next(), "write m=2");
}

// Jobs of each command that writes strings, as in docs/hooks.md, sorted by their text.
TEST_F(HooksTest, what_each_command_tells) {
    struct row {
        const char* before;  // commands with "; " between, whose jobs are not looked at
        const char* command;
        const char* told;
    };
    constexpr row rows[] = {
        {"", "SET a 1", "write a=1"},
        {"", "SET a 1 EX 5", "write a=1 5000"},
        {"SETEX a 5 1", "SET a 2", "write a=2"},
        {"SETEX a 5 1", "SET a 2 KEEPTTL", "write a=2 5000"},
        {"SET a 1", "SET a 1", "write a=1"},
        {"RPUSH a x", "SET a 1", "write a=1"},
        {"SET a 1", "SET a 2 NX", ""},
        {"", "SET a 2 XX", ""},
        {"", "SETEX a 5 1", "write a=1 5000"},
        {"SET a 0", "SETEX a 5 1", "write a=1 5000"},
        {"", "SETEX a 0 1", ""},
        {"", "PSETEX a 700 1", "write a=1 700"},
        {"", "SETNX a 1", "write a=1"},
        {"SET a 1", "SETNX a 2", ""},
        {"", "MSET a 1 b 2", "write a=1, write b=2"},
        {"", "MSET a 1 a 2", "write a=2"},
        {"SETEX a 5 1", "MSET a 2", "write a=2"},
        {"", "MSETNX a 1 b 2", "write a=1, write b=2"},
        {"SET b 0", "MSETNX a 1 b 2", ""},
        {"", "GETSET a 1", "write a=1"},
        {"SETEX a 5 1", "GETSET a 2", "write a=2"},
        {"RPUSH a x", "GETSET a 2", ""},
        {"", "APPEND a 1", "write a=1"},
        {"SETEX a 5 1", "APPEND a 2", "write a=12 5000"},
        {"", "INCR a", "write a=1"},
        {"SETEX a 5 1", "INCR a", "write a=2 5000"},
        {"SET a x", "INCR a", ""},
        {"SET a 1", "DECRBY a 3", "write a=-2"},
        {"SET a 1", "INCRBYFLOAT a 0.5", "write a=1.5"},
        {"SET a 1", "SETRANGE a 1 xy", "write a=1xy"},
        {"SET a 1", "SETBIT a 6 1", "write a=3"},
        // Commands that change the expiry alone.
        {"SET a 1", "GETEX a EX 5", "write a=1 5000"},
        {"SETEX a 5 1", "GETEX a PX 700", "write a=1 700"},
        {"SETEX a 5 1", "GETEX a PERSIST", "write a=1"},
        {"SET a 1", "GETEX a PERSIST", ""},
        {"SET a 1", "GETEX a", ""},
        {"", "GETEX a EX 5", ""},
        {"RPUSH a x", "GETEX a EX 5", ""},
        {"SET a 1", "GETEX a EXAT 1", "erase a"},
        {"SET a 1", "EXPIRE a 5", "write a=1 5000"},
        {"SET a 1", "EXPIRE a 5 XX", ""},
        {"SET a 1", "EXPIRE a 0", "erase a"},
        {"SETEX a 5 1", "PERSIST a", "write a=1"},
        {"SET a 1", "PERSIST a", ""},
        // Commands that remove a string, move it, or only read it.
        {"SET a 1", "GETDEL a", "erase a"},
        {"SET a 1", "DEL a", "erase a"},
        {"SETEX a 5 1", "COPY a b", "write b=1 5000"},
        {"SETEX a 5 1", "RENAME a b", "erase a, write b=1 5000"},
        {"SET a 1", "SUNIONSTORE a none", "erase a"},
        {"SET a 1", "GET a", ""},
        {"SET a 1", "MGET a b", ""},
        {"SET a 1", "TOUCH a", ""},
    };
    for (const row& each : rows) {
        SCOPED_TRACE(std::string(each.before) + "; " + each.command);
        begin_exactly(all());
        test_client c(*home_);
        std::string_view before = each.before;
        while (!before.empty()) {
            const std::size_t end = std::min(before.find("; "), before.size());
            c(before.substr(0, end));
            before.remove_prefix(std::min(end + 2, before.size()));
        }
        for (std::string job = next(); !job.empty(); job = next()) give_none(job);
        ASSERT_TRUE(hooks_->flushed());
        c(each.command);
        std::vector<std::string> told;
        for (std::string job = next(); !job.empty(); job = next()) told.push_back(job);
        std::ranges::sort(told);
        std::string text;
        for (const std::string& job : told) text += (text.empty() ? "" : ", ") + job;
        EXPECT_EQ(text, each.told);
    }
}

TEST_F(HooksTest, a_key_that_the_cache_lacks_is_deleted_from_the_backend) {
    begin(all());
    test_client c(*home_), reader(*home_);
    EXPECT_EQ(c("DEL a b"), ":0\r\n");
    EXPECT_EQ(hooks_->queue().keys(), 2);
    reader("GET c");
    EXPECT_EQ(c("UNLINK c"), ":0\r\n");
    EXPECT_EQ(reader.pushed(), "$-1\r\n");
    EXPECT_EQ(hooks_->queue().keys(), 3);
    EXPECT_EQ(reader("GET a"), "$-1\r\n");
}

// Whatever evictions, failures and the order of answers, a client reads the last write, and the
// backend gets it in the end.
TEST_F(HooksTest, nothing_is_lost_and_nothing_old_is_read) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        SCOPED_TRACE(seed);
        hook_options options = all();
        options.has_expire = false;
        options.deadline_us = INT64_MAX / 4;
        options.negative_ttl_us = seed % 2 == 0 ? 50'000 : 0;
        begin(options);
        random_generator random(seed);
        const auto pick = [&](std::size_t below) { return (random() >> 33) % below; };
        std::map<std::string, std::string> truth, store;
        struct running {
            hook_job job;
            bool is_early;
            std::optional<std::string> read;
        };
        std::vector<running> at_work;
        const auto touch = [&](running& of) {
            if (of.job.what == hook_job::kind::write)
                store[of.job.key] = *of.job.value;
            else if (of.job.what == hook_job::kind::erase)
                store.erase(of.job.key);
            else if (const auto found = store.find(of.job.key); found != store.end())
                of.read = found->second;
        };
        const auto begin_one = [&] {
            hook_job job;
            if (!hooks_->take(job)) return false;
            at_work.push_back({job, pick(2) == 0, std::nullopt});
            if (at_work.back().is_early) touch(at_work.back());
            return true;
        };
        const auto end_one = [&](bool may_fail) {
            if (at_work.empty()) return false;
            const auto which = at_work.begin() + static_cast<std::ptrdiff_t>(pick(at_work.size()));
            running one = std::move(*which);
            at_work.erase(which);
            hook_result result;
            result.id = one.job.id;
            result.failed = may_fail && pick(10) == 0;
            if (!one.is_early && (!result.failed || pick(2) == 0)) touch(one);
            if (!result.failed) result.value = one.read;
            hooks_->finish(std::move(result));
            return true;
        };
        std::deque<test_client> clients;
        std::vector<std::string> reads(4);
        for (std::size_t i = 0; i < reads.size(); ++i) clients.emplace_back(*home_);
        const auto expect = [&](const std::string& key, const std::string& got) {
            if (got.starts_with("-ERR on_miss failed")) return;
            const auto found = truth.find(key);
            const std::string right =
                found == truth.end()
                    ? "$-1\r\n"
                    : "$" + std::to_string(found->second.size()) + "\r\n" + found->second + "\r\n";
            EXPECT_EQ(got, right) << key;
        };
        for (int step = 0; step < 3000 && !HasFailure(); ++step) {
            const std::size_t who = pick(clients.size());
            test_client& c = clients[who];
            const std::string key = "k" + std::to_string(pick(6));
            const std::size_t what = pick(10);
            if (what < 4 && !c.who().blocked && reads[who].empty()) {
                if (what == 0) {
                    EXPECT_EQ(c("SET " + key + " v" + std::to_string(step)), "+OK\r\n");
                    truth[key] = "v" + std::to_string(step);
                } else if (what == 1) {
                    c("DEL " + key);
                    truth.erase(key);
                } else {
                    const std::string got = c("GET " + key);
                    if (got.empty())
                        reads[who] = key;
                    else
                        expect(key, got);
                }
            } else if (what == 4) {
                keyspace& keys = home_->internals().data.database(0);
                if (keys.look_at(key) != nullptr) {
                    home_->internals().key_happened(0, key_event::evicted, "evicted", key);
                    keys.remove(key, keys.hash(key));
                }
            } else if (what < 7) {
                begin_one();
            } else if (what < 9) {
                end_one(true);
            } else {
                pass_ms(20);
            }
            for (std::size_t i = 0; i < reads.size(); ++i) {
                if (reads[i].empty()) continue;
                const std::string got = clients[i].pushed();
                if (got.empty()) continue;
                expect(reads[i], got);
                reads[i].clear();
            }
        }
        for (int round = 0; round < 10'000 && !hooks_->flushed(); ++round) {
            while (begin_one()) {
            }
            while (end_one(false)) {
            }
            pass_ms(1000);
        }
        EXPECT_TRUE(hooks_->flushed());
        EXPECT_EQ(store, truth);
        EXPECT_EQ(hooks_->counts().queued_bytes, 0);
    }
}

TEST_F(HooksTest, what_was_written_is_told_before_it_is_told_that_it_expired) {
    begin(all());
    test_client c(*home_);
    c("SET a 1 PX 100");
    pass_ms(101);
    EXPECT_EQ(next(), "write a=1 1");
    EXPECT_EQ(next(), "");
    give_none("write a=1 1");
    EXPECT_EQ(next(), "expire a");
    c("GET a");
    EXPECT_EQ(next(), "") << "the miss waits for on_expire";
    give_none("expire a");
    EXPECT_EQ(next(), "miss a");
    give_none("miss a");
    EXPECT_EQ(c.pushed(), "$-1\r\n");
}

TEST_F(HooksTest, a_miss_behind_a_change_that_fails_fails_with_it) {
    begin(all());
    test_client c(*home_);
    c("SET a 1 PX 100");
    EXPECT_EQ(next(), "write a=1 100");
    give_none("write a=1 100");
    pass_ms(101);
    c("GET a");
    EXPECT_EQ(next(), "expire a");
    EXPECT_EQ(next(), "");
    give_failure("expire a");
    EXPECT_TRUE(c.pushed().starts_with("-ERR on_miss failed"));
    EXPECT_EQ(c("GET a"), "");
    EXPECT_EQ(next(), "");
    EXPECT_TRUE(c.pushed().starts_with("-ERR on_miss failed"));
    pass_ms(100);
    EXPECT_EQ(next(), "expire a");
    c("GET a");
    give_none("expire a");
    EXPECT_EQ(next(), "miss a");
    give("miss a", "2");
    EXPECT_EQ(c.pushed(), "$1\r\n2\r\n");
}

TEST_F(HooksTest, failures_are_tried_again_after_growing_pauses) {
    begin(all());
    test_client c(*home_);
    c("SET a 1");
    std::int64_t pause_ms = 100;
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(next(), "write a=1");
        give_failure("write a=1");
        EXPECT_EQ(next(), "");
        EXPECT_EQ(hooks_->next_due_us(), now_us_ + pause_ms * 1000);
        pass_ms(pause_ms);
        pause_ms = std::min<std::int64_t>(pause_ms * 2, 5000);
    }
    c("SET a 2");
    EXPECT_EQ(next(), "write a=2") << "the newest state, at its time";
    c("SET a 3");
    give_failure("write a=2");
    EXPECT_EQ(next(), "");
    pass_ms(5000);
    EXPECT_EQ(next(), "write a=3");
    give_none("write a=3");
    EXPECT_TRUE(hooks_->flushed());
    EXPECT_EQ(hooks_->counts().changes.lost, 0);
}

TEST_F(HooksTest, tries_may_be_limited) {
    hook_options options = all();
    options.queue.max_retries = 1;
    begin(options);
    test_client c(*home_);
    c("SET a 1");
    next();
    give_failure("write a=1");
    pass_ms(100);
    next();
    give_failure("write a=1");
    EXPECT_TRUE(hooks_->flushed());
    EXPECT_EQ(hooks_->counts().changes.lost, 1);
    EXPECT_EQ(hooks_->counts().queued_bytes, 0);
}

TEST_F(HooksTest, a_full_queue_holds_up_who_writes) {
    hook_options options = all();
    options.queue.max_bytes = 2000;
    begin(options);
    test_client c(*home_), reader(*home_), patient(*home_);
    c({"SET", "a", std::string(2000, 'x')});
    EXPECT_EQ(c("SET b 1"), "");
    EXPECT_TRUE(c.who().blocked);
    EXPECT_EQ(reader("STRLEN a"), ":2000\r\n") << "reads go on";
    const std::string job = next();
    give_none(job);
    EXPECT_EQ(c.pushed(), "+OK\r\n");
    // The backend is slower than the deadline.
    c({"SET", "a", std::string(2000, 'y')});
    EXPECT_EQ(patient("SET b 2"), "");
    pass_ms(1000);
    end_waits(patient);
    EXPECT_TRUE(patient.pushed().starts_with("-ERR too many changes wait"));
    EXPECT_EQ(reader("GET b"), "$1\r\n1\r\n");
    patient("MULTI");
    patient("SET b 3");
    EXPECT_EQ(patient("EXEC"), "");
    pass_ms(1000);
    end_waits(patient);
    EXPECT_TRUE(patient.pushed().starts_with("-EXECABORT"));
    EXPECT_EQ(reader("GET b"), "$1\r\n1\r\n");
    {
        test_client gone(*home_);
        gone("SET c 1");
    }
    while (!next().empty()) {
    }
}

TEST_F(HooksTest, a_full_queue_may_refuse_instead) {
    hook_options options = all();
    options.queue.max_bytes = 2000;
    options.refuses_when_full = true;
    begin(options);
    test_client c(*home_);
    c({"SET", "a", std::string(2000, 'x')});
    EXPECT_TRUE(c("SET b 1").starts_with("-ERR too many changes wait"));
    EXPECT_EQ(c("EXISTS b"), ":0\r\n");
    const std::string job = next();
    give_none(job);
    EXPECT_EQ(c("SET b 1"), "+OK\r\n");
}

TEST_F(HooksTest, one_command_fills_the_queue_to_its_last_limit_at_most) {
    hook_options options = all();
    options.queue.max_bytes = 1000;
    begin(options);
    test_client c(*home_);
    std::vector<std::string> words = {"MSET"};
    for (int i = 0; i < 100; ++i) {
        words.push_back("key" + std::to_string(i));
        words.push_back("value");
    }
    EXPECT_EQ(c.ask(words), "+OK\r\n");
    const hook_counts now = hooks_->counts();
    EXPECT_LE(now.queued_bytes, 1000 * write_behind::slack + 1000);
    EXPECT_EQ(now.queued_keys + now.changes.lost, 100);
    EXPECT_GT(now.changes.lost, 0);
}

TEST_F(HooksTest, a_key_that_never_stays_is_not_asked_for_without_end) {
    begin();
    test_client c(*home_);
    c("GET a");
    for (int i = 0; i < read_through::max_rounds; ++i) {
        ASSERT_EQ(next(), "miss a") << i;
        give("miss a", "1");
        keyspace& keys = home_->internals().data.database(0);
        keys.remove("a", keys.hash("a"));
        const std::string got = c.pushed();
        if (i + 1 < read_through::max_rounds)
            EXPECT_EQ(got, "");
        else
            EXPECT_TRUE(got.starts_with("-ERR a key of this command was removed")) << got;
    }
    EXPECT_EQ(next(), "");
}

TEST_F(HooksTest, what_was_brought_is_passed_on) {
    hook_options options = all();
    options.fallback = hook_fallback::stale;
    begin(options);
    testing::kept_changes sink;
    add_sink(home_->internals(), sink);
    test_client c(*home_);
    using lines = std::vector<std::string>;
    c("INCR n");
    next();
    give("miss n", "41");
    EXPECT_EQ(c.pushed(), ":42\r\n");
    EXPECT_EQ(sink.lines(), (lines{"SET n 41", "INCR n"}));
    EXPECT_EQ(next(), "write n=42");
    give_none("write n=42");
    c("GET a");
    EXPECT_EQ(next(), "miss a");
    give("miss a", "old", 1000);
    EXPECT_EQ(c.pushed(), "$3\r\nold\r\n");
    const auto at = [this](std::int64_t ms) { return std::to_string(now_us_ / 1000 + ms); };
    EXPECT_EQ(sink.lines(), lines{"SET a old PXAT " + at(1000)});
    pass_ms(1001);
    c("GET a");
    while (!next().empty()) {
    }
    give_none("expire a");
    EXPECT_EQ(next(), "miss a");
    give_failure("miss a");
    EXPECT_EQ(c.pushed(), "$3\r\nold\r\n");
    EXPECT_EQ(sink.lines(), (lines{"DEL a", "SET a old PXAT " + at(read_through::stale_retry_ms)}));
    c("APPEND a x");
    EXPECT_EQ(sink.lines(), lines{"DEL a"}) << "a stale value is taken away before a write";
    remove_sink(home_->internals(), sink);
}

TEST_F(HooksTest, they_rest_while_the_server_follows_another) {
    begin(all());
    test_client c(*home_), waiting(*home_);
    c("SET a 1");
    waiting("GET b");
    home_->internals().clients.slow_path |= slow_path::replica;
    EXPECT_EQ(c("GET missing"), "$-1\r\n");
    c("SET d 1");
    c("DEL e");
    EXPECT_EQ(next(), "miss b");
    EXPECT_EQ(next(), "write a=1") << "what was changed before is told";
    EXPECT_EQ(next(), "");
    give("miss b", "2");
    EXPECT_EQ(waiting.pushed(), "$-1\r\n");
    EXPECT_EQ(c("EXISTS b"), ":0\r\n");
    home_->internals().clients.slow_path &= static_cast<std::uint16_t>(~slow_path::replica);
    EXPECT_EQ(c("GET missing"), "");
    EXPECT_EQ(hooks_->counts().waiting, 1);
}

TEST_F(HooksTest, a_stale_value_that_was_replaced_unseen_is_not_taken_away) {
    hook_options options;
    options.fallback = hook_fallback::stale;
    begin(options);
    test_client c(*home_);
    c("SET a old PX 1000");
    pass_ms(1001);
    c("GET a");
    next();
    give_failure("miss a");
    EXPECT_EQ(c.pushed(), "$3\r\nold\r\n");
    test_client other(*home_);
    other("SELECT 1");
    other("SET a new");
    other("SWAPDB 0 1");
    EXPECT_EQ(c("APPEND a x"), ":4\r\n");
    EXPECT_EQ(c("GET a"), "$4\r\nnewx\r\n");
}

TEST_F(HooksTest, info_tells_of_them) {
    begin(all());
    test_client c(*home_);
    c("SET a 1");
    const std::string text = c("INFO hooks");
    EXPECT_NE(text.find("# Hooks\r\nhook_misses:0\r\n"), std::string::npos);
    EXPECT_NE(text.find("hook_queued_keys:1\r\n"), std::string::npos);
    engine plain;
    EXPECT_EQ(test_client(plain)("INFO hooks"), "$0\r\n\r\n");
}

TEST_F(HooksTest, loaded_values_do_not_disturb_a_transaction) {
    begin();
    test_client c(*home_), reader(*home_);
    c("WATCH a");
    reader("GET a");
    next();
    give("miss a", "1");
    reader.pushed();
    c("MULTI");
    c("GET a");
    EXPECT_EQ(c("EXEC"), "*1\r\n$1\r\n1\r\n");
}

TEST(stale_values, are_bounded) {
    stale_values kept(10'000, 1'000'000);
    for (int i = 0; i < 1000; ++i) {
        kept.keep("key" + std::to_string(i), std::string(100, 'x'), 0);
        EXPECT_LE(kept.bytes(), 10'000);
    }
    EXPECT_EQ(kept.find("key0"), nullptr);
    EXPECT_NE(kept.find_usable("key999", 999'999), nullptr);
    EXPECT_EQ(kept.find_usable("key999", 1'000'000), nullptr);
    kept.keep("large", std::string(20'000, 'x'), 0);
    EXPECT_EQ(kept.find("large"), nullptr);
    for (int i = 0; i < 1000; ++i) kept.forget("key" + std::to_string(i));
    EXPECT_EQ(kept.bytes(), 0);
}

TEST(absent_keys, are_bounded) {
    absent_keys known(1000);
    for (int i = 0; i < 100; ++i) known.add("key" + std::to_string(i), 10);
    EXPECT_FALSE(known.has("key0", 5));
    EXPECT_TRUE(known.has("key99", 5));
    EXPECT_FALSE(known.has("key99", 10));
    EXPECT_FALSE(known.has("key99", 5)) << "it is forgotten";
}

}  // namespace
}  // namespace eddy::cache
