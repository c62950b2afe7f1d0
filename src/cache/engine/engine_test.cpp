// Tests of the engine through its interface to servers: batches, limits, modes, upkeep.
#include "cache/engine/engine.hpp"

#include <eddy/base/random.hpp>
#include <eddy/wire/resp/reply_counter.hpp>

#include "base/test_seed.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/testing/test_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::arguments;
using testing::test_client;

// Commands with stable addresses while they are executed.
class pipeline {
public:
    void add(arguments args) { commands_.push_back(std::move(args)); }
    void add(std::string_view line) { add(testing::split(line)); }

    std::span<const resp::command> commands() {
        views_.clear();
        parsed_.clear();
        for (const arguments& each : commands_) views_.emplace_back(each.begin(), each.end());
        for (const auto& each : views_) parsed_.push_back({each.data(), each.size()});
        return parsed_;
    }

private:
    std::vector<arguments> commands_;
    std::vector<std::vector<std::string_view>> views_;
    std::vector<resp::command> parsed_;
};

std::string run(engine& on, client_session& who, pipeline& what) {
    byte_buffer out;
    EXPECT_EQ(on.execute(who, what.commands(), out), what.commands().size());
    return std::string(out.text());
}

TEST(engine, answers_a_batch_in_order_with_errors_inside) {
    engine e;
    client_session who(e);
    pipeline p;
    p.add("SET a 1");
    p.add("NOSUCH x");
    p.add("INCR a");
    p.add("LPUSH a x");
    p.add("GET");
    p.add("GET a");
    EXPECT_EQ(run(e, who, p),
              "+OK\r\n-ERR unknown command 'NOSUCH', with args beginning with: 'x' \r\n:2\r\n"
              "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
              "-ERR wrong number of arguments for 'get' command\r\n$1\r\n2\r\n");
    EXPECT_EQ(e.stats().commands, 6U);
    EXPECT_EQ(e.stats().errors, 3U);
}

TEST(engine, executes_batches_of_any_length_the_same_with_and_without_fetching_ahead) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    engine small;
    engine large;
    client_session small_who(small);
    client_session large_who(large);
    pipeline filler;
    for (std::size_t i = 0; i < engine::min_prefetch_keys * 2; ++i) {
        filler.add(arguments{"SET", "filler" + std::to_string(i), "x"});
    }
    run(large, large_who, filler);
    random_generator random(seed);
    for (const std::size_t size : {1U, 3U, 4U, 127U, 128U, 129U, 1'000U}) {
        pipeline p;
        for (std::size_t i = 0; i < size; ++i) {
            const std::string key = "k" + std::to_string(random.below(30));
            switch (random.below(9)) {
                case 0: p.add("SELECT 1"); break;
                case 1: p.add("SELECT 0"); break;
                case 2: p.add("SET " + key + " " + std::to_string(random.below(100))); break;
                case 3: p.add("INCR " + key); break;
                case 4: p.add("DEL " + key); break;
                case 5: p.add("LPUSH " + key + " x"); break;
                case 6: p.add("LPOP " + key); break;
                case 7: p.add("bad" + key); break;
                default: p.add("GET " + key); break;
            }
        }
        EXPECT_EQ(run(small, small_who, p), run(large, large_who, p));
    }
}

TEST(engine, upkeep_ends_where_nothing_is_left_to_evict) {
    engine_options options;
    options.max_memory = 1;
    options.policy = eviction::allkeys_lru;
    engine e(options);
    int turns = 0;
    while (e.upkeep() && turns < 1000) ++turns;
    EXPECT_LT(turns, 1000);
}

TEST(engine, stops_when_enough_replies_wait_and_goes_on_later) {
    engine_options options;
    options.max_pending_reply = 1'000;
    engine e(options);
    client_session who(e);
    pipeline p;
    p.add(arguments{"SET", "big", std::string(600, 'x')});
    for (int i = 0; i < 9; ++i) p.add("GET big");
    const auto commands = p.commands();
    byte_buffer out;
    EXPECT_EQ(e.execute(who, commands, out), 3U);
    EXPECT_GE(out.size(), 1'000U);
    // At least one command is executed each time, even into a full buffer.
    EXPECT_EQ(e.execute(who, commands.subspan(3), out), 1U);
    out.clear();
    EXPECT_EQ(e.execute(who, commands.subspan(4), out), 2U);
    EXPECT_EQ(e.execute(who, {}, out), 0U);
}

TEST(engine, refuses_a_reply_that_grows_over_its_limit) {
    engine_options options;
    options.max_reply = 10'000;
    engine e(options);
    test_client c(e);
    c({"SET", "big", std::string(5'000, 'x')});
    c("RPUSH list a");
    c("SADD set a");
    c("HSET hash a b");
    EXPECT_TRUE(c("MGET big").starts_with("*1\r\n$5000\r\n"));
    const std::string refused = c("MGET big big big big");
    EXPECT_TRUE(refused.starts_with("-ERR the reply is larger than the limit of 10000 bytes"))
        << refused;
    EXPECT_EQ(refused.find("\r\n"), refused.size() - 2);
    EXPECT_TRUE(c("SRANDMEMBER set -1000000000").starts_with("-ERR the reply is larger"));
    EXPECT_TRUE(
        c("HRANDFIELD hash -1000000000 WITHVALUES").starts_with("-ERR the reply is larger"));
    for (int i = 0; i < 3'000; ++i) {
        c({"RPUSH", "list", std::to_string(i)});
        c({"SADD", "set", std::to_string(i)});
        c({"HSET", "hash", std::to_string(i), "v"});
        c({"SET", "key" + std::to_string(i), "v"});
    }
    for (const char* const line :
         {"LRANGE list 0 -1", "SMEMBERS set", "HGETALL hash", "HKEYS hash", "HVALS hash",
          "SUNION set", "SINTER set", "SDIFF set", "KEYS *", "SCAN 0 COUNT 100000",
          "SSCAN set 0 COUNT 100000", "HSCAN hash 0 COUNT 100000", "SRANDMEMBER set 2900"}) {
        EXPECT_TRUE(c(line).starts_with("-ERR the reply is larger")) << line;
    }
    EXPECT_EQ(c("GET big").size(), 5'009U);
    for (const char* const field : {"a", "b", "c"})
        c({"HSET", "values", field, std::string(4'000, 'v')});
    for (const char* const line :
         {"LPOP list 3000", "RPOP list 3000", "LMPOP 1 list LEFT COUNT 3000",
          "BLMPOP 0 1 list RIGHT COUNT 3000", "SPOP set 4000", "SPOP set 2900",
          "HGETDEL values FIELDS 3 a b c"})
        EXPECT_TRUE(c(line).starts_with("-ERR the reply is larger")) << line;
    EXPECT_EQ(c("LLEN list"), ":3001\r\n") << "nothing is taken that is not told";
    EXPECT_EQ(c("SCARD set"), ":3001\r\n");
    EXPECT_EQ(c("HLEN values"), ":3\r\n");
    EXPECT_EQ(c("HGETDEL values FIELDS 3 a b zz").size(), 8'027U);
    EXPECT_EQ(c("LPOP list 2"), "*2\r\n$1\r\na\r\n$1\r\n0\r\n");
    EXPECT_EQ(c("RPOP list 2"), "*2\r\n$4\r\n2999\r\n$4\r\n2998\r\n");
    EXPECT_EQ(c("LLEN list"), ":2997\r\n");
}

TEST(engine, quit_ends_the_batch) {
    engine e;
    client_session who(e);
    pipeline p;
    p.add("SET a 1");
    p.add("QUIT");
    p.add("SET a 2");
    byte_buffer out;
    EXPECT_EQ(e.execute(who, p.commands(), out), 2U);
    EXPECT_EQ(out.text(), "+OK\r\n+OK\r\n");
    EXPECT_TRUE(who.closing);
    EXPECT_EQ(e.execute(who, p.commands(), out), 0U);
    test_client other(e);
    EXPECT_EQ(other("GET a"), "$1\r\n1\r\n");
}

TEST(engine, commands_of_many_keys_find_them_in_a_large_database) {
    engine e;
    test_client c(e);
    arguments mset{"MSET"};
    arguments mget{"MGET"};
    arguments del{"DEL"};
    std::string values = "*20000\r\n";
    for (std::size_t i = 0; i < 20'000; ++i) {
        const std::string key = "key" + std::to_string(i);
        const std::string value = std::to_string(i * 7);
        mset.push_back(key);
        mset.push_back(value);
        mget.push_back(key);
        del.push_back(key);
        values += "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
    }
    EXPECT_EQ(c.ask(mset), "+OK\r\n");
    EXPECT_EQ(c.ask(mget), values);
    mget[0] = "EXISTS";
    EXPECT_EQ(c.ask(mget), ":20000\r\n");
    del.emplace_back("nosuch");
    del.emplace_back("key1");
    EXPECT_EQ(c.ask(del), ":20000\r\n");
}

TEST(engine, big_values_are_freed_in_slices) {
    engine e;
    test_client c(e);
    arguments push{"RPUSH", "list"};
    arguments add{"SADD", "set"};
    for (int i = 0; i < 100'000; ++i) {
        push.push_back(std::to_string(i));
        add.push_back(std::to_string(i));
    }
    c.ask(push);
    c.ask(add);
    const std::size_t used = e.stats().used_memory;
    EXPECT_EQ(c("DEL list set"), ":2\r\n");
    EXPECT_GT(e.stats().used_memory, used / 2);
    int slices = 0;
    while (e.upkeep(1'000)) ++slices;
    EXPECT_GE(slices, 50);
    EXPECT_EQ(e.stats().used_memory, engine_state::startup_bytes);
}

TEST(engine, tells_how_much_of_the_keys_a_sweep_has_passed) {
    engine e;
    e.set_slice_clock(nullptr);
    test_client c(e);
    EXPECT_FALSE(e.upkeep());
    EXPECT_EQ(e.swept_share(), 1);
    c("SET few 1 EX 1000");
    EXPECT_FALSE(e.upkeep());
    EXPECT_EQ(e.swept_share(), 1);
    constexpr int keys = 100'000;
    for (int i = 0; i < keys; ++i) c({"SET", std::to_string(i), "v", "EX", "1000"});
    for (const std::size_t steps : {100U, 1'000U}) {
        EXPECT_FALSE(e.upkeep(steps));
        EXPECT_GT(e.swept_share(), static_cast<double>(steps) * 9 / keys);
        EXPECT_LT(e.swept_share(), static_cast<double>(steps) * 12 / keys);
    }
}

TEST(engine, one_command_evicts_for_a_short_time_only) {
    engine_options options;
    options.policy = eviction::allkeys_random;
    engine e(options);
    test_client c(e);
    for (int i = 0; i < 10'000; ++i) c({"SET", std::to_string(i), "v"});
    // 50 microseconds pass between two readings of the clock.
    e.set_slice_clock([]() noexcept -> std::int64_t {
        static std::int64_t now_ns = 0;
        return now_ns += 50'000;
    });
    EXPECT_EQ(c("CONFIG SET maxmemory 1"), "+OK\r\n");
    const std::uint64_t before = e.stats().evicted_keys;
    EXPECT_EQ(c("SET x 1"), "+OK\r\n") << "what was evicted makes room for it";
    const std::uint64_t evicted = e.stats().evicted_keys - before;
    EXPECT_GT(evicted, 0U);
    EXPECT_LT(evicted, static_cast<std::uint64_t>(engine::max_evictions) / 2);
    c("GET x");
    EXPECT_GT(e.stats().evicted_keys, before + evicted) << "the next command goes on";
}

TEST(engine, readonly_mode_refuses_what_changes_anything) {
    engine_options options;
    options.mode = access_mode::readonly;
    engine e(options);
    for (const command_spec& each : all_commands()) {
        test_client c(e);
        arguments args(static_cast<std::size_t>(std::abs(each.arity)), "1");
        args[0] = each.name;
        const bool refused = c.ask(args).starts_with("-READONLY ");
        // Some forms may write, others not, and "1" is none of them. Dangerous commands are refused
        // with another error.
        using namespace command_flag;
        const bool changes = (each.flags & (write | alters)) != 0;
        const bool is_asked = (each.flags & (has_forms | dangerous)) == 0;
        EXPECT_EQ(refused, changes && is_asked) << each.name;
    }
    EXPECT_EQ(e.stats().keys, 0U);
}

TEST(engine, readonly_mode_looks_at_what_a_subcommand_does) {
    engine_options options;
    options.mode = access_mode::readonly;
    engine e(options);
    test_client c(e);
    const auto refused = [&](std::string_view line) { return c(line).starts_with("-READONLY "); };
    for (const char* const line :
         {"FUNCTION LOAD x", "FUNCTION DELETE x", "FUNCTION FLUSH", "FUNCTION RESTORE x",
          "XGROUP CREATE k g $ MKSTREAM", "CONFIG SET maxmemory 1", "CONFIG REWRITE",
          "ACL SETUSER u on", "ACL DELUSER u", "ACL LOAD", "ACL SAVE"})
        EXPECT_TRUE(refused(line)) << line;
    for (const char* const line :
         {"FUNCTION LIST", "FUNCTION STATS", "XGROUP HELP", "CONFIG GET maxmemory",
          "CONFIG RESETSTAT", "ACL LIST", "ACL LOG RESET", "SLOWLOG RESET", "SCRIPT FLUSH"})
        EXPECT_FALSE(refused(line)) << line;
    EXPECT_EQ(c("MULTI"), "+OK\r\n");
    EXPECT_TRUE(refused("CONFIG SET maxmemory 1"));
    EXPECT_TRUE(c("EXEC").starts_with("-EXECABORT "));
}

// Loaded keys stay, even above the limit, also when it was lowered.
TEST(engine, readonly_mode_evicts_nothing_and_counts_without_a_change) {
    engine_options options;
    options.mode = access_mode::readonly;
    engine e(options);
    test_client c(e);
    engine_state& s = e.internals();
    s.settings.options.mode = access_mode::readwrite;
    for (int i = 0; i < 1'000; ++i)
        c.ask(arguments{"SET", "k" + std::to_string(i), std::string(100, 'v')});
    c("PFADD counter a b c");
    const std::string counter = c("GET counter");
    s.settings.options.mode = access_mode::readonly;
    s.settings.options.max_memory = 1;
    s.settings.options.policy = eviction::allkeys_random;
    s.data.env.set_policy(s.settings.options.policy);
    EXPECT_TRUE(c("SET k0 1").starts_with("-READONLY "));
    EXPECT_TRUE(c("EVAL return redis.call('SET','k0','1') 0").starts_with("-"));
    while (e.upkeep()) {
    }
    EXPECT_EQ(c("DBSIZE"), ":1001\r\n");
    EXPECT_EQ(c("PFCOUNT counter"), ":3\r\n");
    EXPECT_EQ(c("GET counter"), counter);
    s.settings.options.mode = access_mode::readwrite;
    c("PING");
    EXPECT_LT(e.stats().keys, 1'001U);
}

TEST(engine, only_admin_mode_allows_what_stops_or_debugs_it) {
    for (const access_mode mode :
         {access_mode::readonly, access_mode::readwrite, access_mode::admin}) {
        engine_options options;
        options.mode = mode;
        engine e(options);
        test_client c(e);
        const bool allowed = mode == access_mode::admin;
        EXPECT_EQ(c("DEBUG ERROR MINE"), allowed
                                             ? "-MINE\r\n"
                                             : "-ERR this command is refused, as it can stop or "
                                               "debug the cache: create the cache with --mode "
                                               "admin to allow it\r\n");
        EXPECT_EQ(c("SHUTDOWN NOSAVE"),
                  allowed
                      ? "-ERR a cache is stopped by its daemon: run `eddy stop` with its name\r\n"
                      : "-ERR this command is refused, as it can stop or debug the cache: "
                        "create the cache with --mode admin to allow it\r\n");
    }
}

TEST(engine, a_password_is_asked_for) {
    engine_options options;
    options.password = "secret";
    engine e(options);
    test_client c(e);
    EXPECT_FALSE(c.who().authenticated);
    EXPECT_EQ(c("GET a"), "-NOAUTH Authentication required.\r\n");
    EXPECT_EQ(c("PING"), "-NOAUTH Authentication required.\r\n");
    EXPECT_TRUE(c("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    for (const char* const bad : {"AUTH wrong", "AUTH ''", "AUTH secretsecret", "AUTH secre",
                                  "AUTH other secret", "HELLO 2 AUTH default wrong"}) {
        EXPECT_EQ(c(bad), "-WRONGPASS invalid username-password pair or user is disabled.\r\n")
            << bad;
    }
    EXPECT_EQ(c("AUTH secret"), "+OK\r\n");
    EXPECT_TRUE(c.who().authenticated);
    EXPECT_EQ(c("GET a"), "$-1\r\n");
    EXPECT_EQ(c("RESET"), "+RESET\r\n");
    EXPECT_EQ(c("GET a"), "-NOAUTH Authentication required.\r\n");
    EXPECT_TRUE(c("HELLO 3 AUTH default secret").starts_with("%7\r\n"));
    EXPECT_EQ(c("GET a"), "_\r\n");
}

TEST(engine, refuses_writes_over_max_memory) {
    engine_options options;
    options.max_memory = 1U << 20;
    engine e(options);
    test_client c(e);
    std::string reply;
    int stored = 0;
    for (; stored < 100'000; ++stored) {
        reply = c({"SET", "key" + std::to_string(stored), std::string(100, 'v')});
        if (reply != "+OK\r\n") break;
    }
    EXPECT_EQ(reply, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    EXPECT_GT(stored, 5'000);
    EXPECT_EQ(c("GET key1").size(), 108U);
    EXPECT_EQ(c("LPUSH list x"), reply);
    EXPECT_EQ(c("DEL key1 key2 key3 key4"), ":4\r\n");
    EXPECT_EQ(c({"SET", "key1", "v"}), "+OK\r\n");
    // Flushed keys no longer count, though their memory is freed in slices.
    EXPECT_EQ(c("FLUSHALL"), "+OK\r\n");
    EXPECT_EQ(c({"SET", "key1", std::string(100, 'v')}), "+OK\r\n");
}

TEST(engine, without_keys_counts_for_max_memory) {
    engine e;
    test_client c(e);
    EXPECT_EQ(c("CONFIG SET maxmemory 1"), "+OK\r\n");
    constexpr std::string_view refused =
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    EXPECT_EQ(c("SET a 1"), refused);
    EXPECT_EQ(c("CONFIG SET maxmemory-policy allkeys-lru"), "+OK\r\n");
    EXPECT_EQ(c("SET a 1"), refused);
    EXPECT_EQ(c("GET a"), "$-1\r\n");
    EXPECT_EQ(c("CONFIG SET maxmemory 1mb"), "+OK\r\n");
    EXPECT_EQ(c("SET a 1"), "+OK\r\n");
}

TEST(engine, evicts_the_unused_below_max_memory) {
    engine_options options;
    options.max_memory = 1U << 20;
    options.policy = eviction::allkeys_lru;
    engine e(options);
    test_client c(e);
    for (int i = 0; i < 50'000; ++i) {
        ASSERT_EQ(c({"SET", "key" + std::to_string(i), std::string(100, 'v')}), "+OK\r\n");
        ASSERT_NE(c({"GET", "key" + std::to_string(i % 10)}), i < 10 ? "" : "$-1\r\n") << i;
        ASSERT_LE(e.stats().used_memory, options.max_memory + 64 * 1024);
    }
    EXPECT_GT(e.stats().evicted_keys, 40'000U);
    c("CONFIG SET maxmemory 100kb");
    while (e.upkeep()) {
    }
    EXPECT_LE(e.stats().used_memory, 100'000U + 64 * 1024);
}

// Five of a million keys may be evicted, and a search for one of them is bounded.
TEST(engine, finds_the_few_keys_with_an_expiry_before_it_refuses) {
    engine_options options;
    options.mode = access_mode::admin;
    engine e(options);
    test_client c(e);
    ASSERT_EQ(c("DEBUG POPULATE 1000000 key"), "+OK\r\n");
    while (e.upkeep()) {
    }
    for (const char* const policy :
         {"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"}) {
        SCOPED_TRACE(policy);
        c({"CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", policy});
        for (int i = 0; i < 5; ++i)
            ASSERT_EQ(c({"SET", "timed" + std::to_string(i), "v", "EX", "1000"}), "+OK\r\n");
        const std::uint64_t before = e.stats().evicted_keys;
        const std::string limit = std::to_string(e.stats().used_memory - 10'000);
        ASSERT_EQ(c({"CONFIG", "SET", "maxmemory", limit}), "+OK\r\n");
        for (int written = 0; e.stats().keys_with_expiry > 0; ++written) {
            const std::string reply = c("SET another v");
            // While such keys exist, no command is refused because none was found yet.
            if (e.stats().keys_with_expiry > 0) ASSERT_EQ(reply, "+OK\r\n") << "after " << written;
            // The number of writes before that is bounded by a pass over the table.
            ASSERT_LT(written, 50'000);
        }
        EXPECT_EQ(e.stats().evicted_keys, before + 5);
        EXPECT_THAT(c("SET another v"), ::testing::StartsWith("-OOM"));
    }
}

TEST(engine, upkeep_goes_on_looking_for_the_few_keys_that_may_go) {
    engine_options options;
    options.mode = access_mode::admin;
    options.policy = eviction::volatile_ttl;
    engine e(options);
    e.set_slice_clock([]() noexcept -> std::int64_t {
        static std::int64_t now_ns = 0;
        return now_ns += 50'000;
    });
    test_client c(e);
    ASSERT_EQ(c("DEBUG POPULATE 100000 key"), "+OK\r\n");
    for (int i = 0; i < 5; ++i) c({"SET", "timed" + std::to_string(i), "v", "EX", "1000"});
    c({"CONFIG", "SET", "maxmemory", std::to_string(e.stats().used_memory - 10'000)});
    while (e.upkeep()) {
    }
    EXPECT_EQ(e.stats().keys_with_expiry, 0U);
    EXPECT_THAT(c("SET another v"), ::testing::StartsWith("-OOM"));
}

TEST(engine, evicts_nothing_else_while_a_huge_value_is_freed) {
    engine_options options;
    options.policy = eviction::volatile_random;
    options.seed = 7;
    engine e(options);
    test_client c(e);
    for (int i = 0; i < 200'000; i += 100) {
        std::vector<std::string> fields{"HSET", "huge"};
        for (int n = i; n < i + 100; ++n) {
            fields.push_back("field" + std::to_string(n));
            fields.push_back("value");
        }
        ASSERT_EQ(c.ask(fields), ":100\r\n");
    }
    c("EXPIRE huge 1000");
    for (int i = 0; i < 500; ++i) {
        ASSERT_EQ(c({"SET", "small" + std::to_string(i), "v", "EX", "1000"}), "+OK\r\n");
    }
    const std::size_t limit = e.stats().used_memory / 2;
    c("CONFIG SET maxmemory " + std::to_string(limit));
    while (c("EXISTS huge") == ":1\r\n") {
    }
    const std::uint64_t evicted = e.stats().evicted_keys;
    ASSERT_LT(evicted, 400U);
    while (e.stats().used_memory > limit) ASSERT_EQ(c("SET another v"), "+OK\r\n");
    EXPECT_EQ(e.stats().evicted_keys, evicted);
}

TEST(engine, keys_expire_when_time_passes) {
    engine e;
    e.set_time(milliseconds(1'000'000));
    test_client c(e);
    c("SET a 1 PX 1500");
    c("SET b 1 EX 10");
    c("SET c 1");
    EXPECT_EQ(c("PTTL a"), ":1500\r\n");
    EXPECT_EQ(c("TTL a"), ":2\r\n");
    EXPECT_EQ(c("PEXPIRETIME b"), ":1010000\r\n");
    e.set_time(milliseconds(1'001'501));
    EXPECT_EQ(c("GET a"), "$-1\r\n");
    EXPECT_EQ(c("MGET a b c"), "*3\r\n$-1\r\n$1\r\n1\r\n$1\r\n1\r\n");
    e.set_time(milliseconds(1'010'001));
    // Not accessed, so still there; then swept.
    EXPECT_EQ(c("DBSIZE"), ":2\r\n");
    EXPECT_EQ(c("KEYS *"), "*1\r\n$1\r\nc\r\n");
    EXPECT_EQ(c("SCAN 0"), "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nc\r\n");
    EXPECT_FALSE(e.upkeep());
    EXPECT_EQ(c("DBSIZE"), ":1\r\n");
    EXPECT_EQ(e.stats().expired_keys, 2U);
    // A clock that is set back does no harm.
    e.set_time(milliseconds(5));
    EXPECT_EQ(c("SET d 1 PX 10"), "+OK\r\n");
    EXPECT_EQ(c("PTTL d"), ":10\r\n");
    EXPECT_EQ(c("TIME"), "*2\r\n$1\r\n0\r\n$4\r\n5000\r\n");
}

TEST(engine, upkeep_sweeps_all_databases_and_says_when_there_is_more) {
    engine e;
    e.set_time(milliseconds(1'000));
    test_client c(e);
    for (const char* const database : {"0", "3", "15"}) {
        c({"SELECT", database});
        for (int i = 0; i < 5'000; ++i) c({"SET", "key" + std::to_string(i), "v", "PX", "10"});
    }
    EXPECT_EQ(e.stats().keys_with_expiry, 15'000U);
    e.set_time(milliseconds(2'000));
    EXPECT_TRUE(e.upkeep(10));
    for (int i = 0; i < 2'000 && e.stats().keys > 0; ++i) e.upkeep(10);
    EXPECT_EQ(e.stats().keys, 0U);
    EXPECT_FALSE(e.upkeep(10));
}

// A clock that advances 50 microseconds with each reading.
std::int64_t slow_clock() noexcept {
    static std::int64_t now_ns = 0;
    return now_ns += 50'000;
}

TEST(engine, upkeep_bounds_the_time_of_a_sweep_and_goes_on_with_it) {
    engine e;
    e.set_slice_clock(slow_clock);
    e.set_time(milliseconds(1'000));
    test_client c(e);
    for (int i = 0; i < 5'000; ++i) c({"SET", "key" + std::to_string(i), "v", "PX", "10"});
    c("SET stays v");
    e.set_time(milliseconds(2'000));
    constexpr std::size_t steps = 1'000'000;
    EXPECT_TRUE(e.upkeep(steps));
    std::size_t slices = 1;
    for (std::uint64_t before = 5'001; before > 1; ++slices) {
        const std::uint64_t now = e.stats().keys;
        // Four readings of the clock are 200 microseconds.
        ASSERT_LE(before - now, 4 * slice_limit::a_look);
        before = now;
        ASSERT_LT(slices, 1'000U);
        e.upkeep(steps);
    }
    EXPECT_FALSE(e.upkeep(steps));
    EXPECT_EQ(e.stats().expired_keys, 5'000U);
}

// All parts of upkeep share one slice of time, and none starves the others.
TEST(engine, upkeep_shares_its_time) {
    static std::int64_t now_ns;
    now_ns = 0;
    engine_options options;
    options.mode = access_mode::admin;
    engine e(options);
    e.set_slice_clock([]() noexcept -> std::int64_t { return now_ns += 50'000; });
    e.set_time(milliseconds(1'000));
    test_client c(e);
    ASSERT_EQ(c("DEBUG POPULATE 50000 gone"), "+OK\r\n");
    EXPECT_EQ(c("SELECT 1"), "+OK\r\n");
    ASSERT_EQ(c("DEBUG POPULATE 50000 stays"), "+OK\r\n");
    for (int i = 0; i < 20'000; ++i) {
        const std::string number = std::to_string(i);
        c({"SET", "timed" + number, "v", "PX", "10"});
        c({"HSET", "hash", number, "v"});
        c({"HPEXPIRE", "hash", "10", "FIELDS", "1", number});
    }
    EXPECT_EQ(c("SWAPDB 0 1"), "+OK\r\n");
    EXPECT_EQ(c("FLUSHDB ASYNC"), "+OK\r\n");
    e.set_time(milliseconds(2'000));
    const statistics full = e.stats();
    const auto fields = [&] {
        return elements_of(*e.internals().data.database(0).look_at("hash"));
    };
    ASSERT_EQ(fields(), 20'000U);
    const auto keep_up = [&] {
        const std::int64_t before = now_ns;
        const bool more = e.upkeep(1'000'000);
        // The first reading is the slice's beginning.
        EXPECT_LE(now_ns - before, longest_slice_ns + 50'000);
        return more;
    };
    for (int turn = 0; turn < 3; ++turn) EXPECT_TRUE(keep_up());
    EXPECT_LT(e.stats().used_memory, full.used_memory);
    EXPECT_LT(e.stats().keys_with_expiry, full.keys_with_expiry);
    EXPECT_LT(fields(), 20'000U);
    while (keep_up()) {
    }
    const statistics kept = e.stats();
    EXPECT_EQ(kept.keys_with_expiry + kept.fields_with_expiry, 0U);
    EXPECT_EQ(kept.keys, 50'000U);
    c({"CONFIG", "SET", "maxmemory-policy", "allkeys-random", "maxmemory",
       std::to_string(kept.used_memory / 2)});
    while (keep_up()) {
    }
    EXPECT_LE(e.stats().used_memory, kept.used_memory / 2);
}

TEST(engine, counts_hits_and_misses_and_memory) {
    engine e;
    test_client c(e);
    c("SET a 1");
    c("GET a");
    c("GET b");
    c("EXISTS a b");
    const statistics s = e.stats();
    EXPECT_EQ(s.hits, 2U);
    EXPECT_EQ(s.misses, 2U);
    EXPECT_EQ(s.keys, 1U);
    EXPECT_EQ(s.sessions, 1U);
    EXPECT_GT(s.used_memory, 0U);
    EXPECT_GE(s.peak_memory, s.used_memory);
    EXPECT_GE(s.reserved_memory, s.used_memory);
    c("CONFIG RESETSTAT");
    EXPECT_EQ(e.stats().hits, 0U);
    EXPECT_EQ(e.stats().sessions, 1U);
}

TEST(engine, strings_end_at_their_limit) {
    engine_options options;
    options.max_text = 100;
    engine e(options);
    test_client c(e);
    const std::string refused = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    EXPECT_EQ(c("SETRANGE a 99 x"), ":100\r\n");
    EXPECT_EQ(c("SETRANGE a 100 x"), refused);
    EXPECT_EQ(c("SETRANGE new 100 x"), refused);
    EXPECT_EQ(c("APPEND a x"), refused);
    EXPECT_EQ(c("STRLEN a"), ":100\r\n");
    EXPECT_EQ(c("EXISTS new"), ":0\r\n");
}

TEST(engine, an_empty_one_holds_little) {
    engine e;
    test_client c(e);
    c("GET a");
    EXPECT_EQ(e.stats().used_memory, engine_state::startup_bytes);
    EXPECT_LE(sizeof(client_session), 400U);
}

// For any arguments, a command replies once and completely.
TEST(engine, every_command_replies_exactly_once_to_anything) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    engine_options options;
    options.max_text = 1U << 20;
    options.max_reply = 1U << 20;
    engine e(options);
    client_session who(e);
    const auto commands = all_commands();
    const std::string words[] = {"",
                                 "a",
                                 "b",
                                 "list",
                                 "set",
                                 "hash",
                                 "0",
                                 "1",
                                 "-1",
                                 "2",
                                 "100",
                                 "-9223372036854775808",
                                 "9223372036854775807",
                                 "1.5",
                                 "nan",
                                 "inf",
                                 "*",
                                 "[",
                                 "MATCH",
                                 "COUNT",
                                 "LIMIT",
                                 "NX",
                                 "XX",
                                 "GT",
                                 "LT",
                                 "EX",
                                 "PX",
                                 "GET",
                                 "LEFT",
                                 "RIGHT",
                                 "BEFORE",
                                 "AFTER",
                                 "WITHVALUES",
                                 "RANK",
                                 "MAXLEN",
                                 "TYPE",
                                 "string",
                                 "REPLACE",
                                 "DB",
                                 "AUTH",
                                 "SETNAME",
                                 "ENCODING",
                                 "USAGE",
                                 "SAMPLES",
                                 "LIST",
                                 "INFO",
                                 "DOCS",
                                 "SET",
                                 "ID",
                                 "maxmemory",
                                 "KEEPTTL",
                                 "PERSIST",
                                 std::string("\0\r\n", 3),
                                 std::string(300, 'x'),
                                 std::string(5'000, 'y')};
    for (int i = 0; i < 200'000; ++i) {
        const command_spec& spec = commands[random.below(commands.size())];
        // These reply several times, later, or to others.
        if ((spec.flags & (command_flag::pubsub | command_flag::blocking)) != 0 ||
            spec.name == "monitor" || spec.name.starts_with("wait") ||
            spec.name.ends_with("sync")) {
            continue;
        }
        arguments args{std::string(spec.name)};
        const auto least = static_cast<std::size_t>(std::abs(spec.arity));
        while (args.size() < least || random.below(3) == 0) {
            args.push_back(words[random.below(std::size(words))]);
        }
        const std::vector<std::string_view> views(args.begin(), args.end());
        const resp::command one{views.data(), views.size()};
        byte_buffer out;
        ASSERT_EQ(e.execute(who, {&one, 1}, out), 1U);
        resp::reply_counter counter;
        ASSERT_EQ(counter.count(out.text()), 1U) << args[0] << ": " << out.text();
        ASSERT_TRUE(counter.at_boundary()) << args[0];
        who.closing = false;
        who.authenticated = true;
        if (random.below(50) == 0) e.upkeep(100);
        if (random.below(5'000) == 0) {
            pipeline p;
            p.add("CONFIG SET maxmemory 0 requirepass ''");
            p.add("RPUSH list a b c");
            p.add("SADD set a b c");
            p.add("HSET hash a 1 b 2");
            run(e, who, p);
        }
    }
}

}  // namespace
}  // namespace eddy::cache
