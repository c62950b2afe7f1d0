// Tests of INFO beside redis-server's, and of its command statistics: calls, times and failures.
#include "cache/engine/command_stats.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/rdb/crc64.hpp"
#include "cache/replication/migration.hpp"
#include "cache/testing/redis_process.hpp"
#include "cache/testing/test_client.hpp"
#include "cache/testing/test_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <regex>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using testing::redis_process;
using ::testing::StartsWith;
using testing::test_client;

/// The fields of a reply to INFO, whatever they are wrapped in.
std::map<std::string, std::string> fields_of(const std::string& reply) {
    std::map<std::string, std::string> fields;
    std::size_t at = 0;
    while (at < reply.size()) {
        const std::size_t end = std::min(reply.find("\r\n", at), reply.size());
        const std::string line = reply.substr(at, end - at);
        at = end + 2;
        const std::size_t colon = line.find(':');
        if (colon != std::string::npos && colon != 0)
            fields[line.substr(0, colon)] = line.substr(colon + 1);
    }
    return fields;
}

class info : public ::testing::Test {
protected:
    void times(int count, std::string_view line) {
        for (int i = 0; i < count; ++i) client_(line);
    }
    std::string field(std::string_view name, std::string_view section = "everything") {
        const auto fields = fields_of(client_("INFO " + std::string(section)));
        const auto found = fields.find(std::string(name));
        return found == fields.end() ? "" : found->second;
    }

    engine engine_;
    test_client client_{engine_};
};

TEST_F(info, has_the_fields_of_redis) {
    std::string why_not;
    const auto redis = redis_process::start(why_not);
    if (redis == nullptr) GTEST_SKIP() << why_not;
    if (!redis->is_7_0()) GTEST_SKIP() << "this redis-server is newer than 7.0";
    // Fields without a true value here: how Redis was built, its allocator, its forks, its event
    // loop's buffers and its cycles.
    const std::string_view not_ours[] = {"atomicvar_api",
                                         "gcc_version",
                                         "client_recent_max_input_buffer",
                                         "client_recent_max_output_buffer",
                                         "current_cow_peak",
                                         "current_cow_size_age",
                                         "current_fork_perc",
                                         "current_save_keys_processed",
                                         "current_save_keys_total",
                                         "instantaneous_input_repl_kbps",
                                         "instantaneous_output_repl_kbps",
                                         "reply_buffer_expands",
                                         "reply_buffer_shrinks",
                                         "total_net_repl_input_bytes",
                                         "total_net_repl_output_bytes"};
    client_("SET a 1");
    redis->ask(testing::arguments{"SET", "a", "1"});
    auto theirs = fields_of(redis->ask(testing::arguments{"INFO", "everything"}));
    for (const std::string_view name : not_ours)
        EXPECT_EQ(theirs.erase(std::string(name)), 1U) << name;
    const auto ours = fields_of(client_("INFO everything"));
    for (const auto& [name, value] : theirs) {
        // Statistics of other commands depend on Redis's test client.
        if (name.starts_with("cmdstat_") && name != "cmdstat_set") continue;
        if (name.starts_with("latency_percentiles_") && !name.ends_with("_set")) continue;
        EXPECT_THAT(ours, Contains(Key(name)));
    }
}

TEST_F(info, tells_where_the_server_listens) {
    EXPECT_THAT(client_("INFO server"), Not(HasSubstr("listener")));
    using by = listening_place::by;
    engine tcp;
    testing::test_server of_tcp(tcp);
    of_tcp.settings.listening = {{by::tcp, "*", 6379}, {by::tls, "127.0.0.1", 6380}};
    EXPECT_THAT(test_client(tcp)("INFO server"),
                HasSubstr("listener0:name=tcp,bind=*,port=6379\r\n"
                          "listener2:name=tls,bind=127.0.0.1,port=6380\r\n"));
    engine local;
    testing::test_server of_local(local);
    of_local.settings.listening = {{by::unix_socket, "/run/a.sock", 0}};
    EXPECT_THAT(test_client(local)("INFO server"),
                HasSubstr("listener1:name=unix,bind=/run/a.sock\r\n"));
}

TEST_F(info, tells_about_how_long_keys_still_have) {
    for (int i = 0; i < 100; ++i) client_("SET k" + std::to_string(i) + " v EX 1000");
    engine_.upkeep();
    const std::string keys = client_("INFO keyspace");
    const std::size_t at = keys.find("avg_ttl=");
    ASSERT_NE(at, std::string::npos);
    EXPECT_NEAR(std::stod(keys.substr(at + 8)), 1'000'000, 10'000);
    client_("FLUSHALL");
    client_("SET a 1");
    EXPECT_THAT(client_("INFO keyspace"), HasSubstr("keys=1,expires=0,avg_ttl=0"));
}

TEST_F(info, counts_each_command) {
    times(300, "SET a 1");
    times(3, "GET a");
    times(2, "LPUSH a 1");
    times(4, "GET");
    times(2, "CONFIG GET maxmemory");
    client_("CONFIG SET maxmemory nonsense");
    client_("CONFIG NOSUCH");
    client_("NOSUCH");
    client_("COMMAND");
    client_("MULTI");
    client_("INCR b");
    client_("EXEC");
    const auto fields = fields_of(client_("INFO commandstats"));
    const auto of = [&](const std::string& name) {
        const auto found = fields.find("cmdstat_" + name);
        return found == fields.end() ? "" : found->second;
    };
    EXPECT_THAT(of("set"), AllOf(StartsWith("calls=300,usec="),
                                 HasSubstr(",rejected_calls=0,failed_calls=0")));
    EXPECT_THAT(of("get"),
                AllOf(StartsWith("calls=3,"), HasSubstr(",rejected_calls=4,failed_calls=0")));
    EXPECT_THAT(of("lpush"),
                AllOf(StartsWith("calls=2,"), HasSubstr(",rejected_calls=0,failed_calls=2")));
    EXPECT_THAT(of("config|get"), StartsWith("calls=2,"));
    EXPECT_THAT(of("config|set"), AllOf(StartsWith("calls=1,"), HasSubstr("failed_calls=1")));
    EXPECT_THAT(of("command"), StartsWith("calls=1,"));
    EXPECT_THAT(of("incr"), StartsWith("calls=1,"));
    EXPECT_THAT(of("exec"), StartsWith("calls=1,"));
    EXPECT_THAT(fields, Not(Contains(Key("cmdstat_config"))));
    EXPECT_THAT(fields, Not(Contains(Key("cmdstat_config|nosuch"))));
    EXPECT_THAT(client_("INFO"), Not(HasSubstr("cmdstat_")));
    client_("CONFIG RESETSTAT");
    EXPECT_THAT(field("cmdstat_set"), IsEmpty());
    EXPECT_THAT(field("cmdstat_config|get"), IsEmpty());
    EXPECT_THAT(field("cmdstat_config|resetstat"), StartsWith("calls=1,"));
    EXPECT_THAT(field("errorstat_ERR"), IsEmpty());
}

TEST_F(info, counts_what_scripts_call) {
    if (client_({"EVAL", "return 1", "0"}).starts_with("-"))
        GTEST_SKIP() << "built without scripts";
    client_({"EVAL", "for i = 1, 5 do redis.call('set', 'a', i) end", "0"});
    EXPECT_THAT(field("cmdstat_set"), StartsWith("calls=5,"));
    EXPECT_THAT(field("cmdstat_eval"), StartsWith("calls=2,"));
    // An error within a script, which then fails the script, counts once.
    client_({"EVAL", "redis.call('lpush', 'a', 1)", "0"});
    client_({"EVAL", "return redis.pcall('lpush', 'a', 1)", "0"});
    EXPECT_EQ(field("errorstat_WRONGTYPE"), "count=2");
    EXPECT_EQ(field("total_error_replies"), "2");
    EXPECT_THAT(field("cmdstat_lpush"), HasSubstr(",failed_calls=2"));
    EXPECT_THAT(field("cmdstat_eval"), HasSubstr(",failed_calls=2"));
    client_({"EVAL", "return redis.error_reply('MINE of a script')", "0"});
    EXPECT_EQ(field("errorstat_MINE"), "count=1");
    // A rejected command does not count as failed.
    client_({"EVAL", "#!lua flags=no-writes\nreturn redis.pcall('lpush', 'a', 1)", "0"});
    EXPECT_THAT(field("cmdstat_lpush"), HasSubstr(",rejected_calls=1,failed_calls=2"));
    EXPECT_EQ(field("errorstat_ERR"), "count=1");
    EXPECT_EQ(field("total_error_replies"), "4");
    // A rejection counts once, also when it ends the script or is caught.
    client_("CONFIG RESETSTAT");
    client_({"EVAL", "#!lua flags=no-writes\nredis.call('lpush', 'a', 1)", "0"});
    client_({"EVAL", "local t = redis.pcall('nosuch') return 1", "0"});
    EXPECT_EQ(field("errorstat_ERR"), "count=2");
    EXPECT_EQ(field("total_error_replies"), "2");
}

TEST_F(info, counts_what_comes_of_commands_that_waited) {
    test_client waiting(engine_);
    const std::string id = std::to_string(waiting.who().id);
    EXPECT_EQ(waiting("BLPOP l 0"), "");
    EXPECT_EQ(client_({"CLIENT", "UNBLOCK", id, "ERROR"}), ":1\r\n");
    EXPECT_THAT(waiting.pushed(), StartsWith("-UNBLOCKED"));
    EXPECT_EQ(field("errorstat_UNBLOCKED"), "count=1");
    EXPECT_EQ(field("total_error_replies"), "1");
    EXPECT_THAT(field("cmdstat_blpop"),
                AllOf(StartsWith("calls=1,"), HasSubstr(",rejected_calls=0,failed_calls=1")));
    client_("CONFIG RESETSTAT");
    EXPECT_EQ(waiting("BLPOP l 0"), "");
    EXPECT_EQ(client_({"CLIENT", "UNBLOCK", id, "TIMEOUT"}), ":1\r\n");
    EXPECT_EQ(waiting.pushed(), "*-1\r\n");
    EXPECT_THAT(field("cmdstat_blpop"),
                AllOf(StartsWith("calls=1,"), HasSubstr(",rejected_calls=0,failed_calls=0")));
    client_("CONFIG RESETSTAT");
    client_("XGROUP CREATE s g $ MKSTREAM");
    EXPECT_EQ(waiting("XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), "");
    client_("DEL s");
    EXPECT_THAT(waiting.pushed(), StartsWith("-NOGROUP"));
    EXPECT_THAT(field("cmdstat_xreadgroup"),
                AllOf(StartsWith("calls=1,"), HasSubstr(",rejected_calls=0,failed_calls=1")));
    client_("ACL SETUSER u on nopass ~* +@all");
    waiting("AUTH u x");
    EXPECT_EQ(waiting("BLPOP l 0"), "");
    client_("ACL SETUSER u -blpop");
    client_("RPUSH l x");
    EXPECT_THAT(waiting.pushed(), StartsWith("-NOPERM"));
    EXPECT_THAT(field("cmdstat_blpop"), HasSubstr(",rejected_calls=1,failed_calls=0"));
}

TEST_F(info, counts_what_is_freed_in_slices) {
    testing::arguments add{"SADD", "set"};
    testing::arguments push{"RPUSH", "list"};
    for (int i = 0; i < 1000; ++i) {
        add.push_back(std::to_string(i));
        push.push_back(std::to_string(i));
    }
    client_.ask(add);
    client_.ask(push);
    times(1, "SET text x");
    EXPECT_EQ(client_("UNLINK set list text"), ":3\r\n");
    while (engine_.upkeep()) {
    }
    EXPECT_EQ(field("lazyfree_pending_objects"), "0");
    EXPECT_EQ(field("lazyfreed_objects"), "2");
    for (int i = 0; i < 500; ++i) client_("SET k" + std::to_string(i) + " v");
    client_("FLUSHALL");
    EXPECT_EQ(field("lazyfreed_objects"), "502");
    client_("CONFIG RESETSTAT");
    EXPECT_EQ(field("lazyfreed_objects"), "0");
}

// A clock that advances a millisecond with each call.
std::int64_t slow_clock() noexcept {
    static std::int64_t now_ns = 0;
    return now_ns += 1'000'000;
}

TEST_F(info, tells_about_sweeps_for_expired_keys) {
    engine_.set_time(std::chrono::seconds(1'000'000));
    EXPECT_EQ(field("expired_stale_perc"), "0.00");
    for (int i = 0; i < 1000; ++i) client_("SET k" + std::to_string(i) + " v EX 10");
    engine_.set_time(std::chrono::seconds(1'000'011));
    engine_.set_slice_clock(slow_clock);
    engine_.upkeep();
    EXPECT_GE(std::stoul(field("expired_time_cap_reached_count")), 1U);
    EXPECT_GE(std::stoul(field("expire_cycle_cpu_milliseconds")), 1U);
    EXPECT_EQ(field("expired_stale_perc"), "5.00");
    client_("CONFIG RESETSTAT");
    EXPECT_EQ(field("expired_time_cap_reached_count"), "0");
    EXPECT_EQ(field("expire_cycle_cpu_milliseconds"), "0");
    EXPECT_EQ(field("expired_stale_perc"), "0.00");
}

TEST_F(info, tells_how_long_memory_was_above_its_limit) {
    engine_.set_time(std::chrono::seconds(1'000'000));
    client_("CONFIG SET maxmemory 1");
    EXPECT_THAT(client_("SET a 1"), StartsWith("-OOM"));
    EXPECT_EQ(field("current_eviction_exceeded_time"), "0");
    engine_.set_time(std::chrono::seconds(1'000'005));
    EXPECT_EQ(field("current_eviction_exceeded_time"), "5000");
    EXPECT_EQ(field("total_eviction_exceeded_time"), "5000");
    client_("CONFIG SET maxmemory 0");
    engine_.set_time(std::chrono::seconds(1'000'007));
    EXPECT_EQ(field("current_eviction_exceeded_time"), "0");
    EXPECT_EQ(field("total_eviction_exceeded_time"), "5000");
}

TEST_F(info, counts_errors_that_no_client_expects) {
    client_("SET a x");
    EXPECT_THAT(client_("LPUSH a 1"), StartsWith("-WRONGTYPE"));
    EXPECT_EQ(field("unexpected_error_replies"), "0");
    struct master final : client_session {
        explicit master(engine& at) : client_session(at) { special |= client_session::master; }
    } from(engine_);
    const std::string_view words[] = {"LPUSH", "a", "1"};
    const resp::command one{words, 3};
    byte_buffer out;
    engine_.execute(from, {&one, 1}, out);
    EXPECT_EQ(field("unexpected_error_replies"), "1");
    EXPECT_EQ(field("total_error_replies"), "2");
}

TEST_F(info, counts_the_payloads_that_redis_would_check) {
    // A set of one number, packed; as redis-server 7.0 dumps it.
    std::string payload("\x0b\x0a\x02\0\0\0\x01\0\0\0\x07\0\x0a\0", 14);
    const std::uint64_t sum = rdb::crc64(0, payload);
    payload.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    const auto checked = [&](std::string_view when) {
        client_({"CONFIG", "SET", "sanitize-dump-payload", std::string(when)});
        EXPECT_EQ(client_({"RESTORE", "s", "0", payload, "REPLACE"}), "+OK\r\n");
        return field("dump_payload_sanitizations");
    };
    EXPECT_EQ(checked("no"), "0");
    EXPECT_EQ(checked("yes"), "1");
    EXPECT_EQ(checked("clients"), "2");
    client_("ACL SETUSER default skip-sanitize-payload");
    EXPECT_EQ(checked("clients"), "2");
    EXPECT_EQ(client_("SMEMBERS s"), "*1\r\n$1\r\n7\r\n");
}

TEST_F(info, counts_clients_whose_wait_has_an_end) {
    test_client a(engine_);
    test_client b(engine_);
    a("BLPOP l 5");
    b("BLPOP l 0");
    EXPECT_EQ(field("blocked_clients"), "2");
    EXPECT_EQ(field("clients_in_timeout_table"), "1");
    client_("RPUSH l 1 2");
    EXPECT_EQ(field("clients_in_timeout_table"), "0");
}

TEST_F(info, tells_errors_apart) {
    client_("SET a 1");
    times(3, "LPUSH a 1");
    times(2, "NOSUCH");
    EXPECT_EQ(field("errorstat_WRONGTYPE"), "count=3");
    EXPECT_EQ(field("errorstat_ERR"), "count=2");
    EXPECT_EQ(field("total_error_replies"), "5");
    // An unlimited word, and text that would look like other fields.
    engine_.internals().count_error(std::string(100'000, 'x') + " y");
    engine_.internals().count_error("a:b\r\n# c");
    EXPECT_EQ(field("errorstat_ERR"), "count=3");
    EXPECT_EQ(field("errorstat_a_b___"), "count=1");
    test_client waiting(engine_);
    waiting("BLPOP l 0");
    client_({"CLIENT", "UNBLOCK", std::to_string(waiting.who().id), "ERROR"});
    EXPECT_EQ(field("errorstat_UNBLOCKED"), "count=1");
}

TEST_F(info, the_time_of_commands_only_grows) {
    const auto spent_us = [&] {
        const std::string text = field("cmdstat_set", "commandstats");
        return std::stoull(text.substr(text.find("usec=") + 5));
    };
    std::uint64_t before = 0;
    for (int i = 0; i < 2'000; ++i) {
        client_("SET a 1");
        if (i % 50 != 0) continue;
        const std::uint64_t now = spent_us();
        ASSERT_GE(now, before) << i;
        before = now;
    }
}

TEST_F(info, keeps_no_more_codes_of_errors_than_its_limit) {
    command_stats stats;
    for (int i = 0; i < 1'000; ++i) stats.count_error("CODE" + std::to_string(i) + " of a script");
    EXPECT_EQ(stats.errors().size(), command_stats::max_error_codes);
    EXPECT_EQ(stats.errors().find(command_stats::other_errors)->second,
              1'000 - (command_stats::max_error_codes - 1));
}

TEST_F(info, tells_how_long_commands_took) {
    client_("SET a 1");
    EXPECT_THAT(field("latency_percentiles_usec_set"),
                AllOf(HasSubstr("p50="), HasSubstr(",p99="), HasSubstr(",p99.9=")));
    const std::string histogram = client_("LATENCY HISTOGRAM set");
    EXPECT_THAT(histogram, AllOf(StartsWith("*2\r\n$3\r\nset\r\n*4\r\n$5\r\ncalls\r\n:1\r\n"),
                                 HasSubstr("$14\r\nhistogram_usec\r\n*2\r\n:")));
    EXPECT_EQ(client_("LATENCY HISTOGRAM get nosuch"), "*0\r\n");
    client_("CONFIG GET port");
    EXPECT_THAT(client_("LATENCY HISTOGRAM config"), HasSubstr("config|get"));
}

TEST_F(info, keeps_no_times_of_commands_without_latency_tracking) {
    client_("SET a 1");
    client_("KEYS *");
    EXPECT_EQ(client_("CONFIG SET latency-tracking no"), "+OK\r\n");
    times(static_cast<int>(command_stats::timed_share), "SET a 1");
    client_("KEYS *");
    client_("HGETALL h");
    const auto told = fields_of(client_("INFO latencystats"));
    EXPECT_THAT(told, IsEmpty());
    // Times recorded before stay available.
    EXPECT_THAT(client_("LATENCY HISTOGRAM set"), HasSubstr("$5\r\ncalls\r\n:1\r\n"));
    EXPECT_THAT(client_("LATENCY HISTOGRAM keys"), HasSubstr("$5\r\ncalls\r\n:1\r\n"));
    EXPECT_EQ(client_("LATENCY HISTOGRAM hgetall"), "*0\r\n");
    // Calls and their total time are still counted.
    EXPECT_THAT(field("cmdstat_keys"), StartsWith("calls=2,"));
    client_("CONFIG SET latency-tracking yes");
    client_("KEYS *");
    EXPECT_THAT(client_("LATENCY HISTOGRAM keys"), HasSubstr("$5\r\ncalls\r\n:2\r\n"));
    EXPECT_THAT(field("latency_percentiles_usec_keys"), StartsWith("p50="));
    EXPECT_THAT(field("latency_percentiles_usec_hgetall"), IsEmpty());
}

TEST_F(info, tells_no_more_percentiles_than_its_limit) {
    std::string many = "1";
    for (std::size_t i = 1; i < latency_options::max_percentiles; ++i) many += " 1";
    EXPECT_EQ(client_({"CONFIG", "SET", "latency-tracking-info-percentiles", many}), "+OK\r\n");
    EXPECT_THAT(client_({"CONFIG", "SET", "latency-tracking-info-percentiles", many + " 1"}),
                AllOf(StartsWith("-ERR CONFIG SET failed"), HasSubstr("128 at most")));
    client_("KEYS *");
    const std::string told = field("latency_percentiles_usec_keys");
    EXPECT_EQ(std::ranges::count(told, '='), latency_options::max_percentiles);
}

/// The fields of INFO latencystats, with the letter x for each time.
std::map<std::string, std::string> without_times(const std::string& reply) {
    return fields_of(std::regex_replace(reply, std::regex("=[0-9.]+"), "=x"));
}

TEST_F(info, differential_latency_parameters) {
    std::string why_not;
    const auto redis = redis_process::start(why_not);
    if (redis == nullptr) GTEST_SKIP() << why_not;
    const auto same = [&](const testing::arguments& args) {
        EXPECT_EQ(client_.ask(args), redis->ask(args)) << args.back();
    };
    const auto same_info = [&] {
        const testing::arguments args{"INFO", "latencystats"};
        EXPECT_EQ(without_times(client_.ask(args)), without_times(redis->ask(args)));
    };
    const auto reset = [&] {
        const testing::arguments args{"CONFIG", "RESETSTAT"};
        client_.ask(args);
        redis->ask(args);
    };
    const std::string percentiles = "latency-tracking-info-percentiles";
    for (const std::string name : {"latency-tracking", "latency-tracking-info-percentiles"})
        same({"CONFIG", "GET", name});
    for (const std::string value : {"",
                                    " ",
                                    "50",
                                    "50 99",
                                    "50  99",
                                    " 50",
                                    "50 ",
                                    "100 0",
                                    "0.1 99.99 99.9",
                                    "99.123456789",
                                    "33.3333333",
                                    "1e1",
                                    "0x10",
                                    "+5",
                                    "5.",
                                    ".5",
                                    "50 100.5",
                                    "-0.5",
                                    "101",
                                    "abc",
                                    "50 x",
                                    "inf",
                                    "1e400",
                                    "1e-400",
                                    "50\t99",
                                    "0.0000001",
                                    "99.99999999",
                                    "50 50"}) {
        same({"CONFIG", "SET", percentiles, value});
        same({"CONFIG", "GET", percentiles});
        reset();
        same({"KEYS", "*"});
        same_info();
    }
    for (const std::string value : {"no", "NO", "maybe", "", "1", "yes"}) {
        same({"CONFIG", "SET", "latency-tracking", value});
        same({"CONFIG", "GET", "latency-tracking"});
        reset();
        same({"KEYS", "*"});
        same_info();
    }
    // Times recorded before tracking is switched off.
    same({"CONFIG", "SET", "latency-tracking", "no"});
    same_info();
    const testing::arguments histogram{"LATENCY", "HISTOGRAM", "keys"};
    const auto calls = [](const std::string& reply) { return reply.substr(0, reply.find("hist")); };
    same({"KEYS", "*"});
    EXPECT_EQ(calls(client_.ask(histogram)), calls(redis->ask(histogram)));
}

/// Server with adjustable traffic counters.
struct moving_host final : testing::test_server {
    using test_server::test_server;
    traffic moved() const noexcept override { return now; }

    traffic now;
};

TEST_F(info, tells_how_far_a_load_has_come) {
    engine_state& s = engine_.internals();
    EXPECT_EQ(field("loading_total_bytes"), "");
    engine_.set_time(std::chrono::seconds(5000), std::chrono::seconds(70));
    s.clients.slow_path |= slow_path::loading;
    note_load_began(s, 1000);
    const auto fields = [this] { return fields_of(client_("INFO persistence")); };
    auto now = fields();
    EXPECT_EQ(now.at("loading"), "1");
    EXPECT_EQ(now.at("loading_start_time"), "5000");
    EXPECT_EQ(now.at("loading_loaded_perc"), "0.00");
    EXPECT_EQ(now.at("loading_eta_seconds"), "1");
    // The system's clock is set back meanwhile.
    engine_.set_time(std::chrono::seconds(50), std::chrono::seconds(80));
    s.persistence.load.loaded_bytes = 249;
    now = fields();
    EXPECT_EQ(now.at("loading_start_time"), "5000");
    EXPECT_EQ(now.at("loading_total_bytes"), "1000");
    EXPECT_EQ(now.at("loading_rdb_used_mem"), "0");
    EXPECT_EQ(now.at("loading_loaded_bytes"), "249");
    EXPECT_EQ(now.at("loading_loaded_perc"), "24.90");
    EXPECT_EQ(now.at("loading_eta_seconds"), "30");
    s.persistence.load.loaded_bytes = 1000;
    EXPECT_EQ(fields().at("loading_loaded_perc"), "100.00");
    EXPECT_EQ(fields().at("loading_eta_seconds"), "0");
    // A copy of unknown size.
    note_load_began(s, 0);
    EXPECT_EQ(fields().at("loading_loaded_perc"), "0.00");
    s.persistence.load.used_memory = 500;
    s.persistence.load.loaded_bytes = 250;
    EXPECT_EQ(fields().at("loading_loaded_perc"), "50.00");
    s.persistence.load.loaded_bytes = 5000;
    EXPECT_EQ(fields().at("loading_loaded_perc"), "99.99");
    s.clients.slow_path = 0;
    EXPECT_EQ(fields().count("loading_total_bytes"), 0U);
}

TEST_F(info, tells_rates_of_the_last_moments) {
    moving_host host(engine_);
    std::chrono::milliseconds now(1'000'000);
    engine_.set_time(now);
    client_("PING");
    for (int tenth = 0; tenth < 40; ++tenth) {
        now += std::chrono::milliseconds(100);
        host.now.bytes_in += 1024;
        host.now.bytes_out += 10'240;
        engine_.set_time(now);
        times(50, "PING");
    }
    const auto fields = fields_of(client_("INFO stats"));
    EXPECT_EQ(fields.at("instantaneous_ops_per_sec"), "500");
    EXPECT_EQ(fields.at("instantaneous_input_kbps"), "10.00");
    EXPECT_EQ(fields.at("instantaneous_output_kbps"), "100.00");
    EXPECT_EQ(fields.at("total_net_input_bytes"), "40960");
    EXPECT_EQ(fields.at("eventloop_cycles"), "41");
    EXPECT_EQ(fields.at("instantaneous_eventloop_cycles_per_sec"), "10");
    client_("CONFIG RESETSTAT");
    EXPECT_EQ(field("eventloop_cycles"), "0");
    // An hour without a query.
    engine_.set_time(now + std::chrono::hours(1));
    EXPECT_EQ(field("instantaneous_ops_per_sec"), "0");
    // The clock is set back.
    engine_.set_time(std::chrono::seconds(5));
    EXPECT_EQ(field("instantaneous_ops_per_sec"), "0");
    engine_.internals().server = nullptr;
}

}  // namespace
}  // namespace eddy::cache
