// SLOWLOG, LATENCY, CLUSTER, COMMAND, CONFIG, MEMORY, DEBUG and the like.
#include "cache/command_docs.hpp"
#include "cache/command_keys.hpp"
#include "cache/command_table.hpp"
#include "cache/dataset_digest.hpp"
#include "cache/engine.hpp"
#include "cache/test_client.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using testing::parse_reply;
using testing::test_client;

engine_options admin_options() {
    engine_options options;
    options.mode = access_mode::admin;
    return options;
}

class server_commands : public ::testing::Test {
protected:
    void expect(std::string_view line, std::string_view reply) {
        EXPECT_EQ(client_(line), reply) << line;
    }

    // DEBUG SLEEP, and its end.
    void sleep(const std::string& seconds) {
        const std::int64_t now_us = engine_.internals().env.now_us;
        EXPECT_EQ(client_({"DEBUG", "SLEEP", seconds}), "");
        const std::int64_t until_us = engine::deadline_us(client_.who());
        EXPECT_EQ(until_us - now_us, static_cast<std::int64_t>(std::stod(seconds) * 1e6));
        engine_.set_time(std::chrono::microseconds(until_us));
        engine_.end_wait(client_.who());
        EXPECT_EQ(client_.pushed(), "+OK\r\n");
    }

    engine engine_{admin_options()};
    test_client client_{engine_};
};

TEST_F(server_commands, slowlog_keeps_what_took_long) {
    expect("SLOWLOG LEN", ":0\r\n");
    expect("GET a", "$-1\r\n");
    sleep("0.02");
    const auto log = parse_reply(client_("SLOWLOG GET"));
    ASSERT_EQ(log.children.size(), 1U);
    ASSERT_EQ(log.children[0].children.size(), 6U);
    EXPECT_GE(std::stoi(log.children[0].children[2].text), 20'000);
    EXPECT_EQ(log.children[0].children[3].children[1].text, "SLEEP");
    EXPECT_EQ(log.children[0].children[4].text, "test:1");
    expect("SLOWLOG RESET", "+OK\r\n");
    expect("SLOWLOG LEN", ":0\r\n");
}

TEST_F(server_commands, slowlog_has_a_threshold_and_a_length) {
    expect("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3", "+OK\r\n");
    for (int i = 0; i < 10; ++i) client_({"SET", "key", std::to_string(i)});
    const auto log = parse_reply(client_("SLOWLOG GET -1"));
    ASSERT_EQ(log.children.size(), 3U);
    EXPECT_EQ(log.children[0].children[3].children[2].text, "9");
    expect("CONFIG SET slowlog-max-len 1", "+OK\r\n");
    EXPECT_EQ(parse_reply(client_("SLOWLOG GET 100")).children.size(), 1U);
    expect("CONFIG SET slowlog-log-slower-than -1 slowlog-max-len 100", "+OK\r\n");
    client_("SLOWLOG RESET");
    sleep("1");
    expect("SLOWLOG LEN", ":0\r\n");
    expect("SLOWLOG GET -2", "-ERR count should be greater than or equal to -1\r\n");
}

TEST_F(server_commands, slowlog_shortens_arguments_and_hides_passwords) {
    client_("CONFIG SET slowlog-log-slower-than 0");
    testing::arguments many{"SADD", "s", std::string(200, 'x')};
    for (int i = 0; i < 97; ++i) many.push_back(std::to_string(i));
    client_.ask(many);
    client_("AUTH user password");
    const auto log = parse_reply(client_("SLOWLOG GET 2"));
    ASSERT_EQ(log.children.size(), 2U);
    EXPECT_EQ(log.children[0].children[3].children[2].text, "(redacted)");
    const auto& args = log.children[1].children[3].children;
    ASSERT_EQ(args.size(), 32U);
    EXPECT_EQ(args[2].text, std::string(128, 'x') + "... (72 more bytes)");
    EXPECT_EQ(args[31].text, "... (69 more arguments)");
}

TEST_F(server_commands, latency_keeps_samples_by_the_second) {
    expect("LATENCY LATEST", "*0\r\n");
    sleep("1");
    expect("LATENCY LATEST", "*0\r\n");
    expect("CONFIG SET latency-monitor-threshold 10", "+OK\r\n");
    std::chrono::seconds now{1'700'000'000};
    for (int i = 0; i < 200; ++i) {
        engine_.set_time(now + std::chrono::seconds(i));
        sleep("0.02");
    }
    sleep("0.5");
    EXPECT_EQ(parse_reply(client_("LATENCY HISTORY command")).children.size(), 160U);
    const auto latest = parse_reply(client_("LATENCY LATEST"));
    ASSERT_EQ(latest.children.size(), 1U);
    EXPECT_EQ(latest.children[0].children[0].text, "command");
    EXPECT_EQ(latest.children[0].children[1].text, "1700000199");
    EXPECT_GE(std::stoi(latest.children[0].children[3].text), 500);
    EXPECT_NE(client_("LATENCY GRAPH command").find('#'), std::string::npos);
    EXPECT_NE(client_("LATENCY DOCTOR").find("command"), std::string::npos);
    expect("LATENCY RESET nosuch", ":0\r\n");
    expect("LATENCY RESET command", ":1\r\n");
    expect("LATENCY HISTORY command", "*0\r\n");
    expect("LATENCY GRAPH command", "-ERR No samples available for event 'command'\r\n");
}

TEST_F(server_commands, cluster_of_one_node_is_there_for_those_who_insist) {
    expect("CLUSTER INFO", "-ERR This instance has cluster support disabled\r\n");
    expect("READONLY", "-ERR This instance has cluster support disabled\r\n");
    expect("CONFIG SET cluster-enabled yes", "+OK\r\n");
    EXPECT_NE(client_("CLUSTER INFO").find("cluster_state:ok"), std::string::npos);
    EXPECT_NE(client_("INFO cluster").find("cluster_enabled:1"), std::string::npos);
    // The values of the Redis Cluster specification.
    expect("CLUSTER KEYSLOT 123456789", ":12739\r\n");
    expect("CLUSTER KEYSLOT foo{hash_tag}", ":2515\r\n");
    expect("CLUSTER KEYSLOT {hash_tag}", ":2515\r\n");
    expect("CLUSTER KEYSLOT foo{}{bar}", ":8363\r\n");
    expect("SET 123456789 x", "+OK\r\n");
    expect("CLUSTER COUNTKEYSINSLOT 12739", ":1\r\n");
    expect("CLUSTER COUNTKEYSINSLOT 12738", ":0\r\n");
    expect("CLUSTER COUNTKEYSINSLOT 16384", "-ERR Invalid slot\r\n");
    expect("CLUSTER GETKEYSINSLOT 12739 10", "*1\r\n$9\r\n123456789\r\n");
    const auto slots = parse_reply(client_("CLUSTER SLOTS"));
    ASSERT_EQ(slots.children.size(), 1U);
    EXPECT_EQ(slots.children[0].children[1].text, "16383");
    EXPECT_EQ(slots.children[0].children[2].children[2].text,
              parse_reply(client_("CLUSTER MYID")).text);
    EXPECT_EQ(parse_reply(client_("CLUSTER SHARDS")).children.size(), 1U);
    EXPECT_NE(client_("CLUSTER NODES").find("myself,master - 0 0 1 connected 0-16383"),
              std::string::npos);
    expect("READONLY", "+OK\r\n");
    EXPECT_TRUE(client_("CLUSTER ADDSLOTS 1").starts_with("-ERR this cache answers as"));
}

TEST_F(server_commands, keys_are_found_in_all_forms_of_commands) {
    const auto expect_keys = [&](std::string line, const std::string& keys) {
        std::string found;
        for (const auto& each : parse_reply(client_("COMMAND GETKEYS " + line)).children) {
            found += (found.empty() ? "" : " ") + each.text;
        }
        EXPECT_EQ(found, keys) << line;
    };
    expect_keys("GET a", "a");
    expect_keys("MSET a 1 b 2", "a b");
    expect_keys("LMPOP 2 a b LEFT", "a b");
    expect_keys("SINTERCARD 3 a b c LIMIT 1", "a b c");
    expect_keys("BITOP AND d a b", "d a b");
    expect_keys("OBJECT ENCODING a", "a");
    expect_keys("MEMORY USAGE a", "a");
    expect_keys("SORT a BY x GET y STORE d", "a d");
    expect_keys("COPY a b DB 1", "a b");
    expect("COMMAND GETKEYS PING a", "-ERR The command has no key arguments\r\n");
    expect("COMMAND GETKEYS NOSUCH a", "-ERR Invalid command specified\r\n");
    expect("COMMAND GETKEYS GET a b", "-ERR Invalid number of arguments specified for command\r\n");
    expect("COMMAND GETKEYS LMPOP 9 a LEFT", "-ERR Invalid arguments specified for command\r\n");
    expect("COMMAND GETKEYSANDFLAGS GET a", "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+RO\r\n+access\r\n");
}

TEST_F(server_commands, a_slow_exec_is_logged_as_such) {
    expect("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    expect("MULTI", "+OK\r\n");
    expect("SET key " + std::string(100, 'v'), "+QUEUED\r\n");
    expect("EXEC", "*1\r\n+OK\r\n");
    const auto log = parse_reply(client_("SLOWLOG GET 1"));
    ASSERT_EQ(log.children.size(), 1U);
    ASSERT_EQ(log.children[0].children[3].children.size(), 1U);
    EXPECT_EQ(log.children[0].children[3].children[0].text, "EXEC");
}

TEST_F(server_commands, commands_tell_what_they_are_for) {
    for (const command_spec& each : all_commands()) {
        const command_facts* const facts = find_facts(each.name);
        if (facts == nullptr) continue;  // one that is newer than 7.0
        EXPECT_FALSE(facts->summary.empty()) << each.name;
        EXPECT_FALSE(facts->group.empty()) << each.name;
    }
    const auto docs = parse_reply(client_("COMMAND DOCS get nosuch get"));
    ASSERT_EQ(docs.children.size(), 2U);
    EXPECT_EQ(docs.children[0].text, "get");
    EXPECT_EQ(docs.children[1].children.size(), 6U);
}

TEST_F(server_commands, config_takes_several_and_what_has_no_effect) {
    expect("CONFIG SET hash-max-listpack-entries 10 slowlog-max-len 5", "+OK\r\n");
    expect("CONFIG GET hash-max-listpack-entries slowlog-max-len",
           "*4\r\n$15\r\nslowlog-max-len\r\n$1\r\n5\r\n$25\r\nhash-max-listpack-entries\r\n"
           "$2\r\n10\r\n");
    expect("CONFIG SET slowlog-max-len 6 slowlog-max-len 7",
           "-ERR CONFIG SET failed (possibly related to argument 'slowlog-max-len') - duplicate "
           "parameter\r\n");
    expect("CONFIG SET slowlog-max-len x",
           "-ERR CONFIG SET failed (possibly related to argument 'slowlog-max-len') - argument "
           "couldn't be parsed into an integer\r\n");
    expect("CONFIG REWRITE", "-ERR The server is running without a config file\r\n");
}

TEST_F(server_commands, memory_has_reports) {
    client_("SET a 1");
    const auto stats = parse_reply(client_("MEMORY STATS"));
    EXPECT_EQ(stats.children.size(), 2 * 26U);
    expect("MEMORY PURGE", "+OK\r\n");
    EXPECT_TRUE(client_("MEMORY DOCTOR").starts_with("$"));
    EXPECT_TRUE(client_("MEMORY MALLOC-STATS").starts_with("$"));
}

TEST_F(server_commands, debug_digests_values_whatever_their_order) {
    EXPECT_EQ(hexadecimal(sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
    EXPECT_EQ(hexadecimal(sha1(std::string(119, 'a'))), "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56");
    expect("DEBUG DIGEST", "+" + std::string(40, '0') + "\r\n");
    client_("SADD s a b c 1 2");
    const std::string one = client_("DEBUG DIGEST-VALUE s");
    client_("DEL s");
    client_("SADD s 2 c 1 a b");
    EXPECT_EQ(client_("DEBUG DIGEST-VALUE s"), one);
    client_("SREM s a");
    EXPECT_NE(client_("DEBUG DIGEST-VALUE s"), one);
}

TEST_F(server_commands, odds_and_ends) {
    expect("ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    expect("WAIT 0 0", ":0\r\n");
    expect("MODULE LIST", "*0\r\n");
    EXPECT_NE(client_("LOLWUT").find("Redis ver."), std::string::npos);
    expect("DEBUG STRINGMATCH-LEN 10 a*", ":1\r\n");
    expect("DEBUG CHANGE-REPL-ID", "+OK\r\n");
    for (const char* const section :
         {"# Server", "# Clients", "# Memory", "# Persistence", "# Stats", "# Replication", "# CPU",
          "# Modules", "# Errorstats", "# Cluster"}) {
        EXPECT_NE(client_("INFO").find(section), std::string::npos) << section;
    }
}

}  // namespace
}  // namespace eddy::cache
