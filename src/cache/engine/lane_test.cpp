// Tests of lanes: replies, data and counters equal those of a single thread under concurrent use.
#include "cache/engine/lane.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/catalog/command_names.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/engine/dataset_digest.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/testing/differential_commands.hpp"
#include "cache/testing/mirror.hpp"
#include "cache/testing/random_commands.hpp"
#include "cache/testing/test_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using namespace cache::testing;
using ::testing::HasSubstr;

// Threads that lock the engine as loop_lock and shared_loop_lock do.
class turns {
public:
    explicit turns(engine_options options = {}) : home(std::move(options)) {}

    template <class Work>
    auto alone(Work what) {
        const std::lock_guard only(mutex_);
        home.merge_lanes();
        return what();
    }
    template <class Work>
    auto shared(Work what) {
        const std::shared_lock among_others(mutex_);
        return what();
    }

    engine home;

private:
    std::shared_mutex mutex_;
};

// A client of a thread that has a lane.
class lane_client {
public:
    explicit lane_client(turns& of) : turns_(of) {
        of.alone([&] {
            session_ = std::make_unique<client_session>(of.home, "test:1", "test:0");
            lane_ = std::make_unique<lane>(of.home);
        });
    }
    ~lane_client() {
        turns_.alone([&] {
            lane_.reset();
            session_.reset();
        });
    }
    lane_client(const lane_client&) = delete;
    lane_client& operator=(const lane_client&) = delete;

    /// The replies to all of them.
    std::string ask(const std::vector<arguments>& batch) {
        std::vector<std::vector<std::string_view>> views;
        for (const arguments& each : batch) views.emplace_back(each.begin(), each.end());
        std::vector<resp::command> commands;
        for (const auto& each : views) commands.push_back({each.data(), each.size()});
        byte_buffer out;
        for (std::size_t done = 0; done < commands.size();) {
            const std::span<const resp::command> rest = std::span(commands).subspan(done);
            const lane::outcome by_lane =
                turns_.shared([&] { return lane_->execute(*session_, rest, out); });
            done += by_lane.executed;
            by_lanes += by_lane.executed;
            if (by_lane.is_over) continue;
            done += turns_.alone([&] {
                return turns_.home.execute(*session_, rest.subspan(by_lane.executed), out);
            });
        }
        return std::string(out.text());
    }
    std::string operator()(std::string_view line) { return ask({split(line)}); }

    client_session& who() noexcept { return *session_; }

    std::size_t by_lanes = 0;  // commands

private:
    turns& turns_;
    std::unique_ptr<client_session> session_;
    std::unique_ptr<lane> lane_;
};

// Adds enough keys for the use of lanes.
void fill(engine& home, std::size_t keys = lane::least_keys) {
    test_client ask(home);
    for (std::size_t i = 0; i < keys; ++i) ask("SET fill:" + std::to_string(i) + " x");
}

std::string info(turns& of, std::string_view name) {
    return of.alone([&] {
        test_client ask(of.home);
        const std::string all = ask("INFO everything");
        const std::size_t at = all.find("\r\n" + std::string(name) + ":");
        if (at == std::string::npos) return std::string();
        const std::size_t begin = at + name.size() + 3;
        return all.substr(begin, all.find('\r', begin) - begin);
    });
}

TEST(lane, is_for_commands_of_keys_at_known_places) {
    for (const command_spec& each : all_commands()) {
        if ((each.flags & command_flag::local) == 0) continue;
        EXPECT_EQ(each.first_key, 1) << each.name;
        EXPECT_EQ(each.key_step, 1) << each.name;
        EXPECT_TRUE(each.last_key == 1 || each.last_key == -1) << each.name;
        EXPECT_NE(each.flags & (command_flag::fast | command_flag::brief), 0U) << each.name;
        EXPECT_NE(each.flags & (command_flag::write | command_flag::readonly), 0U) << each.name;
        EXPECT_EQ(each.flags & (command_flag::has_forms | command_flag::blocking), 0U) << each.name;
        // Commands of several keys add none: each would need a slot.
        if (each.last_key != 1) EXPECT_EQ(each.flags & command_flag::denyoom, 0U) << each.name;
    }
}

class lane_with_policy : public ::testing::TestWithParam<eviction> {};

TEST_P(lane_with_policy, random_commands_have_the_replies_and_effects_of_one_thread) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    engine_options options;
    options.seed = seed + 1;
    options.policy = GetParam();
    if (options.policy != eviction::none) options.max_memory = 1U << 30;
    options.mode = access_mode::readwrite;
    turns beside(options);
    engine alone(options);
    fill(beside.home);
    fill(alone);
    random_commands random(command_templates, seed);
    lane_client one(beside);
    test_client other(alone);
    std::int64_t now_ms = 1'700'000'000'000;
    const auto set_time = [&] {
        beside.alone([&] { beside.home.set_time(std::chrono::milliseconds(now_ms)); });
        alone.set_time(std::chrono::milliseconds(now_ms));
    };
    set_time();
    constexpr std::size_t commands = 15'000;
    for (std::size_t done = 0; done < commands;) {
        std::vector<arguments> batch;
        std::string expected;
        std::string lines;
        for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
            batch.push_back(random.next());
            // Other databases have few keys.
            while (batch.back()[0] == "SELECT" || batch.back()[0] == "SWAPDB")
                batch.back() = random.next();
            for (const std::string& each : batch.back()) lines += each + ' ';
            lines += '\n';
            expected += other.ask(batch.back());
        }
        done += batch.size();
        ASSERT_EQ(one.ask(batch), expected) << lines;
        if (random.chance(20)) {
            now_ms += static_cast<std::int64_t>(random.below(4000));
            set_time();
        }
        if (!random.chance(500)) continue;
        beside.alone([&] {
            ASSERT_EQ(hexadecimal(dataset_digest(beside.home.internals().data)),
                      hexadecimal(dataset_digest(alone.internals().data)))
                << lines;
        });
    }
    EXPECT_GT(one.by_lanes, commands / 20);
    for (int i = 0; i < 9 && GetParam() == eviction::allkeys_lfu; ++i) {
        const std::string line = "OBJECT FREQ k" + std::to_string(i);
        EXPECT_EQ(one(line), other(line)) << line;
    }
    const statistics ours = beside.alone([&] { return beside.home.stats(); });
    const statistics theirs = alone.stats();
    EXPECT_EQ(ours.commands, theirs.commands);
    EXPECT_EQ(ours.parallel_commands, one.by_lanes);
    EXPECT_EQ(theirs.parallel_commands, 0U);
    EXPECT_EQ(ours.errors, theirs.errors);
    EXPECT_EQ(ours.hits, theirs.hits);
    EXPECT_EQ(ours.misses, theirs.misses);
    EXPECT_EQ(ours.keys, theirs.keys);
    EXPECT_EQ(ours.keys_with_expiry, theirs.keys_with_expiry);
    EXPECT_EQ(ours.expired_keys, theirs.expired_keys);
    EXPECT_EQ(ours.used_memory, theirs.used_memory);
    EXPECT_EQ(beside.home.internals().data.changes, alone.internals().data.changes);
    std::vector<std::pair<std::string, std::uint64_t>> calls;
    beside.home.internals().commands.for_each(
        [&](std::string_view name, const command_stats::counts& its) {
            calls.emplace_back(name, its.calls);
        });
    alone.internals().commands.for_each(
        [&](std::string_view name, const command_stats::counts& its) {
            EXPECT_THAT(calls, ::testing::Contains(std::pair(std::string(name), its.calls)));
        });
}

INSTANTIATE_TEST_SUITE_P(policies, lane_with_policy,
                         ::testing::Values(eviction::none, eviction::allkeys_lru,
                                           eviction::allkeys_lfu),
                         [](const auto& p) { return std::to_string(static_cast<int>(p.param)); });

TEST(lane, counts_the_uses_of_a_key_as_one_thread_does) {
    engine_options options;
    options.max_memory = 1U << 30;
    options.policy = eviction::allkeys_lfu;
    turns beside(options);
    engine alone(options);
    fill(beside.home);
    fill(alone);
    lane_client one(beside);
    test_client other(alone);
    for (const std::string_view line :
         {"SET a 1", "MGET a", "OBJECT FREQ a", "GET a", "OBJECT FREQ a", "SET b x", "INCR b",
          "OBJECT FREQ b", "SET c x", "EXISTS c c", "OBJECT FREQ c", "TOUCH c", "OBJECT FREQ c"})
        EXPECT_EQ(one(line), other(line)) << line;
    EXPECT_GT(one.by_lanes, 3U);
}

TEST(lane, executes_each_of_its_commands) {
    turns beside;
    fill(beside.home);
    lane_client ask(beside);
    std::set<std::uint64_t> tried;
    for (const std::string_view line : separate(R"(
            SET a 1 ; GET a ; GETSET a 2 ; SET a 5 EX 100 ; SET a 7 KEEPTTL GET ; TTL a ; PTTL a ;
            EXPIRETIME a ; PEXPIRETIME a ; PERSIST a ; GETEX a EX 10 ; APPEND a 1 ; STRLEN a ;
            SETNX a 1 ; SETEX a 10 1 ; PSETEX a 10000 1 ; MGET a b c ; INCR a ; DECR a ;
            INCRBY a 5 ; DECRBY a 2 ; INCRBYFLOAT a 1.5 ; GETBIT a 1 ; EXPIRE a 10 ;
            PEXPIRE a 10000 ; EXPIREAT a 99999999999 ; PEXPIREAT a 99999999999999 ; TYPE a ;
            EXISTS a b ; TOUCH a b ; DIGEST a ; DELEX a IFEQ x ; DELIFEQ a x ; GETDEL a ; LPUSH l 1 2 ; RPUSH l 3 ; LPUSHX l 1 ; RPUSHX l 2 ;
            LLEN l ; LPOP l ; RPOP l 2 ; SADD s 1 2 3 ; SREM s 1 ; SISMEMBER s 2 ; SMISMEMBER s 2 9 ;
            SCARD s ; HSET h f v g 1 ; HMSET h i 2 ; HSETNX h f 3 ; HGET h f ; HMGET h f g ;
            HDEL h i ; HLEN h ; HEXISTS h f ; HSTRLEN h f ; HINCRBY h g 5 ; HINCRBYFLOAT h g 0.5 ;
            ZADD z 1 m 2 n 3 o ; ZINCRBY z 1 m ; ZREM z o ; ZSCORE z m ; ZMSCORE z m n ; ZCARD z ;
            ZRANK z m ; ZREVRANK z m ; ZCOUNT z 0 9 ; ZPOPMIN z ; ZPOPMAX z ; DEL l s ; UNLINK h)")) {
        const std::size_t before = ask.by_lanes;
        EXPECT_NE(ask(line).front(), '-') << line;
        EXPECT_EQ(ask.by_lanes, before + 1) << line;
        tried.insert(fold_command_name(split(line)[0]).first);
    }
    for (const command_spec& each : all_commands()) {
        if ((each.flags & command_flag::local) != 0)
            EXPECT_TRUE(tried.contains(fold_command_name(each.name).first))
                << "no line above has " << each.name << ", whose row has the flag `local`";
    }
}

TEST(lane, executes_in_admin_mode_as_in_readwrite_and_not_in_readonly) {
    const auto executed_in = [](access_mode mode) {
        engine_options options;
        options.mode = mode;
        turns beside(options);
        if (mode != access_mode::readonly) fill(beside.home);
        lane_client ask(beside);
        for (const std::string_view line : separate("SET a 1 ; GET a ; INCR a ; MGET a b"))
            ask(line);
        EXPECT_EQ(ask("DEBUG STRINGMATCH-LEN 1 a").starts_with(':'), mode == access_mode::admin);
        return ask.by_lanes;
    };
    EXPECT_EQ(executed_in(access_mode::readwrite), 4U);
    EXPECT_EQ(executed_in(access_mode::admin), 4U);
    EXPECT_EQ(executed_in(access_mode::readonly), 0U);
}

TEST(lane, leaves_what_touches_more_than_its_keys_to_who_is_alone) {
    turns beside;
    beside.home.set_time(std::chrono::seconds(1'700'000'000));
    fill(beside.home);
    lane_client ask(beside);
    ask("SET text x");
    ask("SET ends x PX 1");
    ask("HSETEX timed EX 100 FIELDS 1 f v");
    beside.alone([&] { beside.home.set_time(std::chrono::seconds(1'700'000'001)); });
    std::vector<arguments> large{{"SADD", "large"}};
    for (int i = 0; i < 600; ++i) large[0].push_back(std::to_string(i));
    ask.ask(large);
    for (const std::string_view line : separate(R"(
            PING ; NOSUCH ; GET ; SELECT 0 ; RENAME text text ; KEYS x ; MSET a 1 b 2 ; INCR text ;
            LPUSH text 1 ; GET ends ; HGET timed f ; DEL large ; EVAL return(1) 0 ; SPOP text ;
            FLUSHALL ; DBSIZE)")) {
        const std::size_t before = ask.by_lanes;
        ask(line);
        EXPECT_EQ(ask.by_lanes, before) << line;
    }
    // Few keys are left.
    ask("SET a 1");
    ask("GET a");
    EXPECT_EQ(info(beside, "parallel_commands"), std::to_string(ask.by_lanes));
}

TEST(lane, leaves_changes_to_who_is_alone_while_somebody_wants_to_hear_of_them) {
    turns beside;
    fill(beside.home);
    lane_client ask(beside);
    test_client other(beside.home);
    const auto by_lanes = [&](std::string_view line) {
        const std::size_t before = ask.by_lanes;
        ask(line);
        return ask.by_lanes > before;
    };
    const auto told = [&](std::string_view line) {
        return beside.alone([&] { return other(line); });
    };
    const auto expect = [&](bool reads, bool writes, std::string_view why) {
        EXPECT_EQ(by_lanes("GET a"), reads) << why;
        EXPECT_EQ(by_lanes("SET a 1"), writes) << why;
    };
    expect(true, true, "at first");
    told("WATCH b");
    expect(true, false, "while a key is watched");
    told("UNWATCH");
    expect(true, true, "after UNWATCH");
    told("CONFIG SET notify-keyspace-events KEA");
    expect(true, false, "with notifications");
    told("CONFIG SET notify-keyspace-events Km");
    expect(false, false, "with notifications of misses");
    told("CONFIG SET notify-keyspace-events ''");
    expect(true, true, "without them");
    told("BLPOP nothing 0");
    EXPECT_FALSE(by_lanes("LPUSH nothing 1"));
    EXPECT_THAT(beside.alone([&] { return other.pushed(); }), HasSubstr("nothing"));
    EXPECT_TRUE(by_lanes("LPUSH nothing 1"));
    told("CLIENT PAUSE 1000 WRITE");
    EXPECT_FALSE(by_lanes("GET a"));
    told("CLIENT UNPAUSE");
    told("MONITOR");
    expect(false, false, "with MONITOR");
    told("RESET");
    told("CONFIG SET slowlog-log-slower-than 0");
    expect(false, false, "where each is timed");
    told("CONFIG SET slowlog-log-slower-than 10000");
    expect(true, true, "after all");
    told("CONFIG SET commandlog-request-larger-than 24 commandlog-reply-larger-than 5");
    expect(true, true, "where sizes are logged");
    EXPECT_EQ(told("COMMANDLOG LEN large-request"), ":2\r\n") << "CONFIG SET, SET";
    EXPECT_EQ(told("COMMANDLOG LEN large-reply"), ":3\r\n");
    // More than a lane keeps at a time.
    std::vector<arguments> many(100, {"GET", "a"});
    ask.ask(many);
    EXPECT_EQ(told("COMMANDLOG LEN large-reply"), ":103\r\n");
    told("CONFIG SET commandlog-request-larger-than -1 commandlog-reply-larger-than -1");
    {
        kept_changes sink;
        beside.alone([&] { add_sink(beside.home.internals(), sink); });
        expect(true, false, "with replicas or a file");
        beside.alone([&] {
            EXPECT_THAT(sink.take(), HasSubstr("SET"));
            remove_sink(beside.home.internals(), sink);
        });
    }
    expect(true, true, "without them");
    // State of the session itself.
    ask("MULTI");
    EXPECT_FALSE(by_lanes("GET a"));
    ask("EXEC");
    expect(true, true, "after a transaction");
    ask("CLIENT REPLY SKIP");
    EXPECT_FALSE(by_lanes("GET a"));
}

TEST(lane, takes_turns_for_a_while_where_batches_keep_meeting_others) {
    using namespace std::chrono_literals;
    turns beside;
    fill(beside.home);
    test_client fills(beside.home);
    fills("SET wanted x");
    client_session who(beside.home, "test:1", "test:0");
    lane mine(beside.home);
    lane another(beside.home);
    const auto ask = [&](std::string_view key) {
        const std::string_view args[] = {"GET", key};
        const resp::command commands[] = {{args, 2}, {args, 2}};
        byte_buffer out;
        return mine.execute(who, commands, out).is_over;
    };
    EXPECT_TRUE(mine.is_of_use(1s));
    EXPECT_TRUE(ask("wanted"));
    const auto while_held = [&](auto work) {
        std::atomic<bool> is_held{false};
        std::atomic<bool> ends{false};
        std::thread other([&] {
            dictionary::holding held;
            const keyspace& keys = beside.home.internals().data.database(0);
            EXPECT_TRUE(held.take(keys.table(), keys.hash("wanted")));
            is_held = true;
            while (!ends) std::this_thread::yield();
        });
        while (!is_held) std::this_thread::yield();
        work();
        ends = true;
        other.join();
    };
    // Rare contention does not count.
    for (int i = 0; i < 100; ++i) {
        if (i % 40 == 0) while_held([&] { EXPECT_FALSE(ask("wanted")); });
        EXPECT_TRUE(mine.is_of_use(1s));
        EXPECT_TRUE(ask("fill:" + std::to_string(i)));
    }
    while_held([&] {
        int tries = 0;
        while (mine.is_of_use(2s) && tries < 100) {
            EXPECT_FALSE(ask("wanted"));
            ++tries;
        }
        EXPECT_LT(tries, 10);
    });
    EXPECT_FALSE(another.is_of_use(2s));
    EXPECT_FALSE(mine.is_of_use(2s + 10ms));
    EXPECT_TRUE(mine.is_of_use(2s + 100ms));
    EXPECT_TRUE(ask("wanted"));
    beside.home.merge_lanes();
}

TEST(lane, is_left_alone_for_a_while_where_no_batch_is_for_it) {
    using namespace std::chrono_literals;
    turns beside;
    fill(beside.home);
    client_session who(beside.home, "test:1", "test:0");
    lane mine(beside.home);
    // True when the lane took a command.
    const auto tries = [&](std::vector<std::string_view> words) {
        const resp::command commands[] = {{words.data(), words.size()}};
        byte_buffer out;
        return mine.execute(who, commands, out).executed > 0;
    };
    const auto left_alone = [&] {
        int batches = 0;
        while (!mine.is_of_use(1s)) ++batches;
        return batches;
    };
    for (int i = 0; i < 100; ++i) {
        // One of ten suffices for the lane to stay in use.
        EXPECT_EQ(tries({i % 10 == 0 ? "GET" : "RENAME", "a"}), i % 10 == 0);
        EXPECT_EQ(left_alone(), 0);
    }
    int useless = 0;
    while (left_alone() == 0) {
        EXPECT_FALSE(tries({"RENAME", "a"}));
        ++useless;
    }
    EXPECT_LT(useless, 20);
    // Here a single useless batch suffices.
    EXPECT_FALSE(tries({"RENAME", "a"}));
    EXPECT_GT(left_alone(), 10);
    EXPECT_TRUE(tries({"GET", "a"}));
    EXPECT_FALSE(tries({"RENAME", "a"}));
    EXPECT_EQ(left_alone(), 0);
    beside.home.merge_lanes();
}

// In a full table the command needs more buckets than a thread may lock.
TEST(lane, a_command_of_too_many_keys_is_no_reason_to_take_turns) {
    using namespace std::chrono_literals;
    constexpr std::size_t keys = 46'000;
    turns beside;
    fill(beside.home, keys);
    client_session who(beside.home, "test:1", "test:0");
    lane mine(beside.home);
    random_generator random(7);
    std::chrono::milliseconds now = 1s;
    int left_alone = 0;
    for (int i = 0; i < 1000; ++i, now += 1ms) {
        arguments words{"MGET"};
        for (int k = 0; k < 31; ++k) words.push_back("fill:" + std::to_string(random.below(keys)));
        const std::vector<std::string_view> views(words.begin(), words.end());
        const resp::command commands[] = {{views.data(), views.size()}};
        byte_buffer out;
        ASSERT_TRUE(mine.is_of_use(now));
        left_alone += mine.execute(who, commands, out).is_over ? 0 : 1;
    }
    EXPECT_GT(left_alone, 0);
    EXPECT_LT(left_alone, 500);
    beside.home.merge_lanes();
}

TEST(lane, counts_an_error_once_and_changes_nothing_for_it) {
    turns beside;
    fill(beside.home);
    lane_client ask(beside);
    EXPECT_EQ(ask.ask({{"SET", "a", "x"}, {"INCR", "a"}, {"GET", "a"}, {"LPUSH", "a", "1"}}),
              "+OK\r\n-ERR value is not an integer or out of range\r\n$1\r\nx\r\n"
              "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    EXPECT_EQ(info(beside, "keyspace_hits"), "1");
    EXPECT_EQ(info(beside, "total_error_replies"), "2");
    EXPECT_THAT(info(beside, "cmdstat_incr"), HasSubstr("calls=1,"));
    EXPECT_THAT(info(beside, "cmdstat_incr"), HasSubstr("failed_calls=1"));
}

TEST(lane, stays_below_maxmemory) {
    engine_options options;
    options.max_memory = 4U << 20;
    turns beside(options);
    fill(beside.home);
    constexpr int threads = 3;
    std::vector<std::unique_ptr<lane_client>> clients;
    for (int i = 0; i < threads; ++i) clients.push_back(std::make_unique<lane_client>(beside));
    std::atomic<int> refused{0};
    std::vector<std::thread> running;
    for (int number = 0; number < threads; ++number) {
        running.emplace_back([&, number] {
            for (int i = 0; i < 20'000; ++i) {
                const std::string key = std::to_string(number) + ":" + std::to_string(i);
                const std::string reply = clients[static_cast<std::size_t>(number)]->ask(
                    {{"SET", key, std::string(200, 'v')}});
                if (reply.starts_with("-OOM")) ++refused;
            }
        });
    }
    for (std::thread& each : running) each.join();
    EXPECT_GT(refused, 0);
    const statistics now = beside.alone([&] { return beside.home.stats(); });
    EXPECT_GT(now.parallel_commands, 5000U);
    // At most one command of each thread exceeds it, and one segment of the table, which has 32
    // KiB.
    EXPECT_LE(now.peak_memory, options.max_memory + (64U << 10));
}

TEST(lane, what_many_threads_change_at_once_adds_up) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    turns beside;
    beside.home.set_time(std::chrono::seconds(1'700'000'000));
    fill(beside.home);
    const std::size_t used_before = beside.alone([&] { return beside.home.stats().used_memory; });
    constexpr int threads = 4;
    constexpr int rounds = 3000;
    constexpr int keys = 40;
    std::vector<std::unique_ptr<lane_client>> clients;
    for (int i = 0; i < threads; ++i) clients.push_back(std::make_unique<lane_client>(beside));
    // Over all threads: increments of each key, and the number of added keys that stay.
    std::array<std::atomic<int>, keys> sums{};
    std::atomic<std::size_t> stayed{0};
    std::vector<std::thread> running;
    for (int number = 0; number < threads; ++number) {
        running.emplace_back([&, number] {
            random_generator random(seed + static_cast<std::uint64_t>(number));
            lane_client& ask = *clients[static_cast<std::size_t>(number)];
            for (int i = 0; i < rounds; ++i) {
                const auto which = random.below(keys);
                const std::string k = std::to_string(which);
                const std::string own = std::to_string(number) + ":" + std::to_string(i);
                std::vector<arguments> batch{
                    {"INCR", "sum" + k},
                    {"HINCRBY", "hash" + k, "f", "2"},
                    {"ZINCRBY", "zset" + k, "1", "m"},
                    {"SADD", "set" + k, own},
                    {"RPUSH", "list" + k, own},
                    {"SET", "own:" + own, std::string(random.below(600), 'v')},
                    {"GET", "own:" + own},
                    {"SET", "both", own + own + own}};
                const bool goes = random.below(2) == 0;
                if (goes) batch.push_back({"DEL", "own:" + own, "nothing"});
                if (random.below(100) == 0) batch.push_back({"DBSIZE"});
                const std::string value = batch[5][2];
                const std::string replies = ask.ask(batch);
                const std::string read =
                    "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
                // The replies are its own, in order.
                EXPECT_THAT(replies,
                            HasSubstr("+OK\r\n" + read + "+OK\r\n" + (goes ? ":1\r\n" : "")));
                ++sums[which];
                if (!goes) ++stayed;
                const std::string both = ask("GET both");
                const std::size_t third = (both.size() - both.find('\n') - 3) / 3;
                const std::string text = both.substr(both.find('\n') + 1, third * 3);
                // A whole value, by any thread.
                EXPECT_EQ(text.substr(0, third) + text.substr(0, third) + text.substr(0, third),
                          text);
            }
        });
    }
    for (std::thread& each : running) each.join();
    std::size_t by_lanes = 0;
    for (const auto& each : clients) by_lanes += each->by_lanes;
    EXPECT_GT(by_lanes, static_cast<std::size_t>(threads * rounds));
    clients.clear();
    test_client ask(beside.home);
    beside.home.merge_lanes();
    for (std::size_t i = 0; i < keys; ++i) {
        const std::string k = std::to_string(i);
        const std::string sum = std::to_string(sums[i]);
        if (sums[i] == 0) continue;
        EXPECT_EQ(ask("GET sum" + k), "$" + std::to_string(sum.size()) + "\r\n" + sum + "\r\n");
        const std::string twice = std::to_string(2 * sums[i]);
        EXPECT_THAT(ask("HGET hash" + k + " f"), HasSubstr("\r\n" + twice + "\r\n"));
        EXPECT_THAT(ask("ZSCORE zset" + k + " m"), HasSubstr("\r\n" + sum + "\r\n"));
        EXPECT_EQ(ask("SCARD set" + k), ":" + sum + "\r\n");
        EXPECT_EQ(ask("LLEN list" + k), ":" + sum + "\r\n");
    }
    EXPECT_EQ(info(beside, "parallel_commands"), std::to_string(by_lanes));
    std::size_t own = 0;
    std::uint64_t cursor = 0;
    std::vector<keyspace::slot> found;
    std::vector<keyspace::slot> over;
    do {
        cursor = beside.home.internals().data.database(0).scan(cursor, found, over);
        for (const keyspace::slot each : found)
            own += keyspace::at(&each)->key().starts_with("own:");
        found.clear();
    } while (cursor != 0);
    EXPECT_EQ(own, stayed);
    EXPECT_EQ(ask("FLUSHALL"), "+OK\r\n");
    while (beside.home.upkeep()) {
    }
    EXPECT_EQ(beside.home.stats().used_memory, engine_state::startup_bytes);
    EXPECT_GT(used_before, 0U);
}

// Keys expire, and a snapshot begins and is aborted, between the commands.
TEST(lane, many_threads_may_execute_each_of_its_commands_at_once) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    turns beside;
    std::chrono::milliseconds now{1'700'000'000'000};
    beside.home.set_time(now);
    fill(beside.home);
    std::string templates;
    for (const std::string_view line : separate(command_templates)) {
        const command_spec* const what = find_named(nullptr, fold_command_name(split(line)[0]));
        if (what != nullptr && (what->flags & command_flag::local) != 0)
            templates += std::string(line) + ";";
    }
    templates += "TOUCH %k %k";
    constexpr int threads = 4;
    constexpr int rounds = 3000;
    std::vector<std::unique_ptr<lane_client>> clients;
    for (int i = 0; i < threads; ++i) clients.push_back(std::make_unique<lane_client>(beside));
    std::atomic<int> left{threads};
    std::vector<std::thread> running;
    for (int number = 0; number < threads; ++number) {
        running.emplace_back([&, number] {
            random_commands random(templates, seed + static_cast<std::uint64_t>(number));
            for (int i = 0; i < rounds; ++i) {
                std::vector<arguments> batch;
                for (std::uint64_t n = 1 + random.below(6); n > 0; --n) {
                    batch.push_back(random.next());
                    // Three hundred variants of each of the few names.
                    for (std::string& word : batch.back()) {
                        if (word.size() == 2 && word[0] == 'k')
                            word += std::to_string(random.below(300));
                    }
                }
                clients[static_cast<std::size_t>(number)]->ask(batch);
            }
            --left;
        });
    }
    rdb::snapshot* image = nullptr;
    int steps = 0;
    while (left > 0) {
        beside.alone([&] {
            now += std::chrono::milliseconds(7);
            beside.home.set_time(now);
            beside.home.upkeep();
            if (image == nullptr && rdb::snapshot::may_begin(beside.home)) {
                image = rdb::snapshot::begin(beside.home);
                steps = 6;
            } else if (image != nullptr) {
                byte_buffer out;
                if (--steps > 0 && image->step(out, 1000) == rdb::snapshot::status::writing) return;
                image->end();
                image = nullptr;
            }
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (std::thread& each : running) each.join();
    if (image != nullptr) image->end();
    std::size_t by_lanes = 0;
    for (const auto& each : clients) by_lanes += each->by_lanes;
    EXPECT_GT(by_lanes, static_cast<std::size_t>(threads * rounds) / 2);
    clients.clear();
    beside.home.merge_lanes();
    while (beside.home.upkeep()) {
    }
    keyspace& keys = beside.home.internals().data.database(0);
    std::size_t seen = 0;
    std::size_t expiring = 0;
    dictionary::iterator all(keys.table());
    while (keyspace::slot* const place = all.next()) {
        const entry& its = *keyspace::at(place);
        const bool ends = (*place & dictionary::expires_bit) != 0;
        ++seen;
        expiring += ends;
        EXPECT_EQ(ends, its.expiry() != no_expiry);
        EXPECT_EQ(keys.table().find(its.key(), keys.hash(its.key())), place);
    }
    EXPECT_EQ(seen, keys.size());
    EXPECT_EQ(expiring, keys.expiring());
    test_client ask(beside.home);
    EXPECT_EQ(ask("FLUSHALL"), "+OK\r\n");
    while (beside.home.upkeep()) {
    }
    EXPECT_EQ(beside.home.stats().used_memory, engine_state::startup_bytes);
}

TEST(lane, tables_grow_and_shrink_beside_it) {
    turns beside;
    fill(beside.home);
    constexpr int threads = 3;
    constexpr int each_adds = 30'000;
    std::vector<std::unique_ptr<lane_client>> clients;
    for (int i = 0; i < threads; ++i) clients.push_back(std::make_unique<lane_client>(beside));
    const auto in_all = [&](const std::string& name) {
        std::vector<std::thread> running;
        for (int number = 0; number < threads; ++number) {
            running.emplace_back([&, number] {
                for (int i = 0; i < each_adds; i += 100) {
                    std::vector<arguments> batch;
                    for (int k = i; k < i + 100; ++k) {
                        batch.push_back({name, std::to_string(number) + ":" + std::to_string(k)});
                        if (name == "SET") batch.back().emplace_back("v");
                    }
                    clients[static_cast<std::size_t>(number)]->ask(batch);
                    // As in a server, for the clock.
                    if (i % 500 == 0) beside.alone([] {});
                }
            });
        }
        for (std::thread& each : running) each.join();
    };
    const auto now = [&] { return beside.alone([&] { return beside.home.stats(); }); };
    const auto segments = [&] {
        return beside.alone(
            [&] { return beside.home.internals().data.database(0).table_bytes() >> 15; });
    };
    in_all("SET");
    EXPECT_EQ(now().keys, lane::least_keys + threads * each_adds);
    EXPECT_GT(now().parallel_commands, threads * each_adds / 2U);
    EXPECT_GT(segments(), 30U);  // some 2,000 keys each
    const std::size_t largest = segments();
    in_all("EXISTS");
    EXPECT_EQ(now().misses, 0U);
    in_all("DEL");
    EXPECT_EQ(now().keys, lane::least_keys);
    // The exclusive path merges nearly empty segments.
    for (int i = 0; i < 5; ++i) {
        in_all("SET");
        in_all("DEL");
    }
    EXPECT_LT(segments(), largest * 3 / 4);
    test_client ask(beside.home);
    EXPECT_EQ(ask("GET fill:1"), "$1\r\nx\r\n");
}

}  // namespace
}  // namespace eddy::cache
