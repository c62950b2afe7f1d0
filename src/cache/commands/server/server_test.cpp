// Tests of SLOWLOG, LATENCY, CLUSTER, COMMAND, CONFIG, MEMORY, DEBUG and the like.
#include "cache/catalog/command_keys.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/config/config.hpp"
#include "cache/engine/engine.hpp"
#include "cache/testing/test_client.hpp"
#include "cache/testing/test_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using ::testing::HasSubstr;
using testing::parse_reply;
using ::testing::StartsWith;
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
        const std::int64_t now_us = engine_.internals().data.env.now_us;
        EXPECT_EQ(client_({"DEBUG", "SLEEP", seconds}), "");
        const std::int64_t until_us = engine::deadline_us(client_.who());
        EXPECT_EQ(until_us - now_us, static_cast<std::int64_t>(std::stod(seconds) * 1e6));
        engine_.set_time(std::chrono::microseconds(until_us));
        engine_.end_wait(client_.who());
        EXPECT_EQ(client_.pushed(), "+OK\r\n");
    }

    engine engine_{admin_options()};
    testing::test_server server_{engine_};
    test_client client_{engine_};
};

TEST_F(server_commands, debug_sleep_within_a_transaction_lets_time_pass) {
    using namespace std::chrono;
    test_client other(engine_);
    expect("CONFIG SET busy-reply-threshold 1", "+OK\r\n");
    const auto begin = steady_clock::now();
    expect("MULTI", "+OK\r\n");
    for (const char* const each : {"SET k v", "DEBUG SLEEP 0.05", "GET k"})
        expect(each, "+QUEUED\r\n");
    EXPECT_EQ(client_.begin(testing::arguments{"EXEC"}), "");
    EXPECT_EQ(other.begin(testing::arguments{"GET", "k"}), "");
    while (engine_.is_behind()) engine_.go_on();
    EXPECT_GE(steady_clock::now() - begin, 50ms);
    EXPECT_EQ(client_.pushed(), "*3\r\n+OK\r\n+OK\r\n$1\r\nv\r\n");
    EXPECT_EQ(other.pushed(), "$1\r\nv\r\n");
    // The sleep of a disconnected client ends.
    {
        test_client gone(engine_);
        gone("MULTI");
        gone("DEBUG SLEEP 60");
        EXPECT_EQ(gone.begin(testing::arguments{"EXEC"}), "");
    }
    EXPECT_FALSE(engine_.is_behind());
    expect("GET k", "$1\r\nv\r\n");
}

TEST_F(server_commands, debug_object_shows_a_key_that_has_expired_and_is_still_there) {
    client_("DEBUG SET-ACTIVE-EXPIRE 0");
    client_("SET a 1 PX 10");
    engine_.set_time(std::chrono::hours(1'000'000));
    EXPECT_EQ(client_("DEBUG OBJECT a").substr(0, 9), "+Value at");
    expect("EXISTS a", ":0\r\n");
    expect("DEBUG OBJECT a", "-ERR no such key\r\n");
}

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

TEST_F(server_commands, slowlog_keeps_a_command_that_waits_when_it_has_waited) {
    client_("CONFIG SET slowlog-log-slower-than 0");
    test_client waiter(engine_);
    // The recorded commands, the newest first.
    const auto kept = [this] {
        std::string all;
        for (const auto& each : parse_reply(client_("SLOWLOG GET -1")).children) {
            all += each.children[3].children[0].text + " ";
            EXPECT_LT(std::stoi(each.children[2].text), 1'000'000) << "the wait does not count";
        }
        client_("SLOWLOG RESET");
        return all;
    };
    const auto at = [this](std::int64_t s) { engine_.set_time(std::chrono::seconds(s)); };
    at(1000);
    EXPECT_EQ(kept(), "CONFIG ");
    waiter("BLPOP l 0");
    EXPECT_EQ(kept(), "SLOWLOG ");
    at(1010);
    client_("RPUSH l 1");
    EXPECT_EQ(kept(), "BLPOP RPUSH SLOWLOG ");
    EXPECT_EQ(waiter.pushed(), "*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
    waiter("BZPOPMIN z 5");
    at(1020);
    engine_.end_wait(waiter.who());
    EXPECT_EQ(kept(), "BZPOPMIN SLOWLOG ");
    waiter.pushed();
    client_("ACL SETUSER u on nopass ~l +blpop");
    waiter("AUTH u x");
    waiter("BLPOP l 0");
    client_("ACL SETUSER u -blpop");
    client_("RPUSH l 1");
    EXPECT_EQ(kept(), "RPUSH ACL AUTH ACL SLOWLOG ") << "it was refused";
    EXPECT_TRUE(waiter.pushed().starts_with("-NOPERM"));
}

TEST_F(server_commands, slowlog_keeps_no_password_of_any_parameter_or_name) {
    engine_options options;
    options.renamed_commands = {{"AUTH", "login"}};
    options.slow_log.slower_than_us = 0;
    engine home(options);
    test_client client(home);
    const auto kept = [&client](std::string_view line) {
        client(line);
        std::string all;
        for (const auto& each :
             parse_reply(client("SLOWLOG GET 1")).children[0].children[3].children)
            all += each.text + " ";
        return all;
    };
    EXPECT_EQ(kept("LOGIN eve secret"), "LOGIN (redacted) (redacted) ");
    EXPECT_EQ(kept("CONFIG SET masterauth secret"), "CONFIG SET masterauth (redacted) ");
    EXPECT_EQ(kept("CONFIG SET maxmemory 0 MasterUser eve timeout 0 requirepass ''"),
              "CONFIG SET maxmemory 0 MasterUser (redacted) timeout 0 requirepass (redacted) ");
    EXPECT_EQ(kept("CONFIG SET tls-key-file-pass x"), "CONFIG SET tls-key-file-pass (redacted) ");
    EXPECT_EQ(kept("CONFIG GET requirepass"), "CONFIG GET requirepass ");
    EXPECT_EQ(kept("CONFIG GET masterauth requirepass"), "CONFIG GET masterauth requirepass ");
    EXPECT_EQ(kept("ACL SETUSER eve >secret"), "ACL SETUSER (redacted) (redacted) ");
    test_client monitor(home);
    monitor("MONITOR");
    client("LOGIN eve secret");
    client("CONFIG SET masterauth secret");
    client("ACL SETUSER eve >secret");
    EXPECT_EQ(monitor.pushed().find("secret"), std::string::npos);
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
    const std::string graph = client_("LATENCY GRAPH command");
    EXPECT_NE(graph.find('#'), std::string::npos);
    EXPECT_NE(graph.find("command - high 500 ms, low 20 ms (all time high "), std::string::npos);
    EXPECT_NE(client_("LATENCY DOCTOR").find("command"), std::string::npos);
    expect("LATENCY RESET nosuch", ":0\r\n");
    expect("LATENCY RESET command", ":1\r\n");
    expect("LATENCY HISTORY command", "*0\r\n");
    expect("LATENCY GRAPH command", "-ERR No samples available for event 'command'\r\n");
    // A fast command has an event of its own: this one has many keys.
    client_("DEBUG POPULATE 1000000 k 10");
    expect("CONFIG SET latency-monitor-threshold 1", "+OK\r\n");
    std::vector<std::string> many{"EXISTS"};
    for (int i = 0; i < 200'000; ++i) many.push_back("k:" + std::to_string(i));
    EXPECT_EQ(client_.ask(many), ":200000\r\n");
    EXPECT_GE(parse_reply(client_("LATENCY HISTORY fast-command")).children.size(), 1U);
}

// COMMAND shows the flags that are in effect.
TEST_F(server_commands, commands_have_the_flags_that_they_say) {
    constexpr std::pair<std::string_view, std::uint64_t> flags[] = {
        {"write", command_flag::write},       {"readonly", command_flag::readonly},
        {"denyoom", command_flag::denyoom},   {"admin", command_flag::admin},
        {"pubsub", command_flag::pubsub},     {"noscript", command_flag::noscript},
        {"loading", command_flag::loading},   {"stale", command_flag::stale},
        {"fast", command_flag::fast},         {"no_auth", command_flag::noauth},
        {"no_multi", command_flag::no_multi},
    };
    for (const command_spec& each : all_commands()) {
        if ((each.flags & command_flag::has_forms) != 0) continue;
        const auto told = parse_reply(client_("COMMAND INFO " + std::string(each.name)));
        const auto& names = told.children[0].children[2].children;
        for (const auto& [name, flag] : flags) {
            // A script's own flags decide.
            if (flag == command_flag::readonly && (each.flags & command_flag::runs_script) != 0)
                continue;
            const bool is_told =
                std::ranges::any_of(names, [&](const auto& n) { return n.text == name; });
            EXPECT_EQ((each.flags & flag) != 0, is_told) << each.name << ' ' << name;
        }
    }
}

TEST_F(server_commands, cluster_of_one_node_is_there_for_those_who_insist) {
    expect("CLUSTER INFO", "-ERR This instance has cluster support disabled\r\n");
    expect("READONLY", "-ERR This instance has cluster support disabled\r\n");
    expect("CONFIG SET cluster-enabled yes", "+OK\r\n");
    client_session far(engine_, "[2001:db8::2]:4711", "[2001:db8::1]:6379");
    const std::string_view ask_words[] = {"CLUSTER", "SLOTS"};
    const resp::command ask_slots{ask_words, 2};
    byte_buffer told;
    engine_.execute(far, {&ask_slots, 1}, told);
    EXPECT_NE(told.text().find("$11\r\n2001:db8::1\r\n:6379\r\n"), std::string_view::npos);
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
    const std::string shard = parse_reply(client_("CLUSTER MYSHARDID")).text;
    EXPECT_EQ(shard.size(), 40U);
    EXPECT_EQ(shard.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_NE(shard, parse_reply(client_("CLUSTER MYID")).text);
    EXPECT_EQ(parse_reply(client_("CLUSTER MYSHARDID")).text, shard);
    expect("CLUSTER MYSHARDID x",
           "-ERR wrong number of arguments for 'cluster|myshardid' command\r\n");
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

TEST_F(server_commands, slowlog_keeps_the_commands_of_a_transaction_instead_of_exec) {
    expect("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    expect("MULTI", "+OK\r\n");
    expect("SET key " + std::string(100, 'v'), "+QUEUED\r\n");
    expect("EXEC", "*1\r\n+OK\r\n");
    const auto log = parse_reply(client_("SLOWLOG GET 1"));
    ASSERT_EQ(log.children.size(), 1U);
    ASSERT_EQ(log.children[0].children[3].children.size(), 3U);
    EXPECT_EQ(log.children[0].children[3].children[0].text, "SET");
}

TEST_F(server_commands, commands_tell_what_they_are_for) {
    const auto docs = parse_reply(client_("COMMAND DOCS get nosuch get"));
    ASSERT_EQ(docs.children.size(), 2U);
    EXPECT_EQ(docs.children[0].text, "get");
    EXPECT_EQ(docs.children[1].children.size(), 8U);
}

TEST_F(server_commands, arguments_are_told_of_in_full) {
    // summary, since, group, arguments
    const auto arguments_of = [&](const std::string& command) {
        const std::string reply = client_("COMMAND DOCS " + command);
        const std::size_t at = reply.find("$9\r\narguments\r\n");
        return at == std::string::npos ? reply : reply.substr(at + 15);
    };
    const std::string key =
        "$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n$12\r\ndisplay_text\r\n$3\r\nkey\r\n"
        "$14\r\nkey_spec_index\r\n:0\r\n";
    const std::string member =
        "$4\r\nname\r\n$6\r\nmember\r\n$4\r\ntype\r\n$6\r\nstring\r\n$12\r\ndisplay_text\r\n"
        "$6\r\nmember\r\n";
    EXPECT_EQ(arguments_of("geohash"), "*2\r\n*8\r\n" + key + "*8\r\n" + member +
                                           "$5\r\nflags\r\n*2\r\n+optional\r\n+multiple\r\n");
    EXPECT_EQ(arguments_of("zrank"),
              "*3\r\n*8\r\n" + key + "*6\r\n" + member +
                  "*10\r\n$4\r\nname\r\n$9\r\nwithscore\r\n$4\r\ntype\r\n$10\r\npure-token\r\n"
                  "$12\r\ndisplay_text\r\n$9\r\nwithscore\r\n$5\r\ntoken\r\n$9\r\nWITHSCORE\r\n"
                  "$5\r\nflags\r\n*1\r\n+optional\r\n");
    EXPECT_EQ(arguments_of("config|set"),
              "*1\r\n*8\r\n$4\r\nname\r\n$4\r\ndata\r\n$4\r\ntype\r\n$5\r\nblock\r\n"
              "$5\r\nflags\r\n*1\r\n+multiple\r\n$9\r\narguments\r\n*2\r\n*6\r\n"
              "$4\r\nname\r\n$9\r\nparameter\r\n$4\r\ntype\r\n$6\r\nstring\r\n"
              "$12\r\ndisplay_text\r\n$9\r\nparameter\r\n*6\r\n"
              "$4\r\nname\r\n$5\r\nvalue\r\n$4\r\ntype\r\n$6\r\nstring\r\n"
              "$12\r\ndisplay_text\r\n$5\r\nvalue\r\n");
    client_("HELLO 3");
    EXPECT_EQ(arguments_of("geohash"), "*2\r\n%4\r\n" + key + "%4\r\n" + member +
                                           "$5\r\nflags\r\n~2\r\n+optional\r\n+multiple\r\n");
}

TEST_F(server_commands, docs_say_what_should_not_be_used_any_more) {
    const std::string old = client_("COMMAND DOCS quit");
    EXPECT_TRUE(
        old.ends_with("$9\r\ndoc_flags\r\n*1\r\n+deprecated\r\n"
                      "$16\r\ndeprecated_since\r\n$5\r\n7.2.0\r\n"));
    EXPECT_TRUE(client_("COMMAND DOCS debug").ends_with("$9\r\ndoc_flags\r\n*1\r\n+syscmd\r\n"));
}

TEST_F(server_commands, forms_of_commands_have_docs) {
    EXPECT_NE(client_("COMMAND DOCS Config|Get").find("config|get"), std::string::npos);
    expect("COMMAND DOCS config|nosuch", "*0\r\n");
    expect("COMMAND DOCS xinfo|help",
           "*2\r\n$10\r\nxinfo|help\r\n*6\r\n$7\r\nsummary\r\n$21\r\nExplains the command.\r\n"
           "$5\r\nsince\r\n$5\r\n5.0.0\r\n$5\r\ngroup\r\n$6\r\nstream\r\n");
    EXPECT_NE(client_("COMMAND DOCS xgroup|destroy").find("$16\r\nRemoves a group.\r\n"),
              std::string::npos);
    const auto docs = parse_reply(client_("COMMAND DOCS xinfo"));
    const auto& its = docs.children.at(1).children;
    ASSERT_EQ(its.size(), 8U);
    EXPECT_EQ(its[6].text, "subcommands");
    ASSERT_EQ(its[7].children.size(), 8U);
    EXPECT_EQ(its[7].children[0].text, "xinfo|consumers");
}

TEST_F(server_commands, forms_of_commands_are_told_of) {
    const auto config = parse_reply(client_("COMMAND INFO config")).children[0];
    ASSERT_EQ(config.children.size(), 10U);
    const auto& forms = config.children[9].children;
    ASSERT_EQ(forms.size(), 5U);
    // name, arity, flags, first key, last key, step, categories, tips, keys, forms
    const std::string get =
        "*10\r\n$10\r\nconfig|get\r\n:-3\r\n*4\r\n+admin\r\n+noscript\r\n+loading\r\n+stale\r\n"
        ":0\r\n:0\r\n:0\r\n*3\r\n+@admin\r\n+@slow\r\n+@dangerous\r\n*0\r\n*0\r\n*0\r\n";
    EXPECT_NE(client_("COMMAND INFO config").find(get), std::string::npos);
    expect("COMMAND INFO Config|GET", "*1\r\n" + get);
    const auto keyed = parse_reply(client_("COMMAND INFO object|encoding")).children[0];
    EXPECT_EQ(keyed.children[3].text, "2");
    EXPECT_EQ(keyed.children[5].text, "1");
    EXPECT_EQ(keyed.children[8].children.size(), 1U);
    for (const char* const none : {"get|x", "config|nosuch", "config|", "|get", "config|get|x"})
        EXPECT_EQ(client_({"COMMAND", "INFO", none}), "*1\r\n$-1\r\n") << none;
    EXPECT_TRUE(parse_reply(client_("COMMAND INFO get")).children[0].children[9].children.empty());
}

TEST_F(server_commands, forms_of_commands_are_listed_but_not_counted) {
    const auto names = [&](std::string_view line) {
        std::set<std::string> found;
        for (const auto& each : parse_reply(client_(line)).children) found.insert(each.text);
        return found;
    };
    const std::set<std::string> all = names("COMMAND LIST");
    EXPECT_TRUE(all.contains("config") && all.contains("config|get"));
    const std::size_t forms = static_cast<std::size_t>(
        std::ranges::count_if(all, [](const std::string& name) { return name.contains('|'); }));
    expect("COMMAND COUNT", ":" + std::to_string(all.size() - forms) + "\r\n");
    EXPECT_EQ(names("COMMAND LIST FILTERBY PATTERN Config|*"),
              (std::set<std::string>{"config|get", "config|help", "config|resetstat",
                                     "config|rewrite", "config|set"}));
    const std::set<std::string> admin = names("COMMAND LIST FILTERBY ACLCAT admin");
    EXPECT_TRUE(admin.contains("config|set"));
    EXPECT_FALSE(admin.contains("config|help") || admin.contains("config"));
}

TEST_F(server_commands, hello_tells_the_mode_and_the_role) {
    const auto field = [&](std::string_view name) -> std::string {
        const auto reply = parse_reply(client_("HELLO 2"));
        for (std::size_t i = 0; i + 1 < reply.children.size(); i += 2) {
            if (reply.children[i].text == name) return reply.children[i + 1].text;
        }
        return {};
    };
    EXPECT_EQ(field("mode"), "standalone");
    EXPECT_EQ(field("role"), "master");
    expect("REPLICAOF 127.0.0.1 1", "+OK\r\n");
    EXPECT_EQ(field("role"), "replica");
    expect("REPLICAOF NO ONE", "+OK\r\n");
    EXPECT_EQ(field("role"), "master");
    expect("CONFIG SET cluster-enabled yes", "+OK\r\n");
    EXPECT_EQ(field("mode"), "cluster");
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

TEST_F(server_commands, config_knows_what_redis_takes_at_its_start_only) {
    expect("CONFIG GET tcp-backlog", "*2\r\n$11\r\ntcp-backlog\r\n$3\r\n511\r\n");
    for (const char* const name : {"logfile", "pidfile", "daemonize", "unixsocket", "tcp-backlog",
                                   "always-show-logo", "set-proc-title", "port"}) {
        EXPECT_EQ(client_({"CONFIG", "SET", name, "1"}),
                  "-ERR CONFIG SET failed (possibly related to argument '" + std::string(name) +
                      "') - can't set immutable config\r\n");
        engine_options options;
        server_settings settings;
        EXPECT_FALSE(set_parameter({options, settings}, name, "1")) << name;
    }
    // Parameters that can be set keep their values.
    EXPECT_EQ(client_({"CONFIG", "SET", "oom-score-adj-values", "0 1 2", "shutdown-timeout", "5"}),
              "+OK\r\n");
    expect("CONFIG GET shutdown-timeout oom-score-adj-values",
           "*4\r\n$16\r\nshutdown-timeout\r\n$1\r\n5\r\n"
           "$20\r\noom-score-adj-values\r\n$5\r\n0 1 2\r\n");
    // All of them, or none.
    expect("CONFIG SET shutdown-timeout 6 logfile x",
           "-ERR CONFIG SET failed (possibly related to argument 'logfile') - can't set immutable "
           "config\r\n");
    expect("CONFIG GET shutdown-timeout", "*2\r\n$16\r\nshutdown-timeout\r\n$1\r\n5\r\n");
}

TEST_F(server_commands, limits_of_connections_are_parameters) {
    server_settings& settings = server_.settings;
    expect("CONFIG GET maxclients timeout",
           "*4\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n$7\r\ntimeout\r\n$1\r\n0\r\n");
    expect("CONFIG SET maxclients 7 timeout 90", "+OK\r\n");
    EXPECT_EQ(settings.max_clients, 7U);
    EXPECT_EQ(settings.client_timeout, std::chrono::seconds(90));
    EXPECT_NE(client_("INFO clients").find("\r\nmaxclients:7\r\n"), std::string::npos);
    // Less than a second is not zero.
    settings.client_timeout = std::chrono::milliseconds(50);
    expect("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n1\r\n");
    const auto refused = [&](const std::string& name, const char* value, const std::string& why) {
        EXPECT_EQ(client_({"CONFIG", "SET", name, value}),
                  "-ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why +
                      "\r\n");
    };
    refused("maxclients", "0", "argument must be between 1 and 10000000 inclusive");
    refused("maxclients", "many", "argument couldn't be parsed into an integer");
    refused("timeout", "-1", "argument must be between 0 and 2147483647 inclusive");
    refused("timeout", "1.5", "argument couldn't be parsed into an integer");
    EXPECT_EQ(settings.max_clients, 7U);
}

TEST_F(server_commands, config_set_changes_the_engine_and_its_server_together_or_not_at_all) {
    EXPECT_THAT(client_("CONFIG SET maxclients 8 maxmemory x"),
                StartsWith("-ERR CONFIG SET failed"));
    EXPECT_THAT(client_("CONFIG SET maxmemory 1mb maxclients x"),
                StartsWith("-ERR CONFIG SET failed"));
    EXPECT_EQ(server_.settings.max_clients, server_settings().max_clients);
    EXPECT_EQ(engine_.options().max_memory, 0U);
    expect("CONFIG SET maxclients 8 maxmemory 1mb", "+OK\r\n");
    EXPECT_EQ(server_.settings.max_clients, 8U);
    EXPECT_EQ(engine_.options().max_memory, 1U << 20);
}

TEST(config, shows_defaults_of_the_server_s_settings_where_there_is_no_server) {
    engine home;
    test_client client(home);
    const std::string usual = "*2\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n";
    EXPECT_EQ(client("CONFIG GET maxclients"), usual);
    EXPECT_EQ(client("CONFIG SET maxclients 8"), "+OK\r\n");
    EXPECT_EQ(client("CONFIG GET maxclients"), usual);
    EXPECT_THAT(client("INFO clients"), HasSubstr("\r\nmaxclients:10000\r\n"));
    EXPECT_THAT(client("ACL SAVE"), StartsWith("-ERR This Redis instance is not configured"));
}

TEST_F(server_commands, memory_has_reports) {
    client_("SET a 1");
    const auto stats = parse_reply(client_("MEMORY STATS"));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < stats.children.size(); i += 2)
        names.push_back(stats.children[i].text);
    EXPECT_THAT(
        names,
        ::testing::ElementsAre(
            "peak.allocated", "total.allocated", "startup.allocated", "replication.backlog",
            "clients.slaves", "clients.normal", "cluster.links", "aof.buffer", "lua.caches",
            "functions.caches", "db.0", "overhead.total", "keys.count", "keys.bytes-per-key",
            "dataset.bytes", "dataset.percentage", "peak.percentage", "allocator.allocated",
            "allocator.active", "allocator.resident", "allocator-fragmentation.ratio",
            "allocator-fragmentation.bytes", "allocator-rss.ratio", "allocator-rss.bytes",
            "rss-overhead.ratio", "rss-overhead.bytes", "fragmentation", "fragmentation.bytes"));
    const auto figure = [&](std::string_view name) -> std::string {
        const auto now = parse_reply(client_("MEMORY STATS"));
        for (std::size_t i = 0; i + 1 < now.children.size(); i += 2) {
            if (now.children[i].text == name) return now.children[i + 1].text;
        }
        return {};
    };
    EXPECT_EQ(figure("lua.caches"), "0");
    if (client_({"SCRIPT", "LOAD", "return 1"}).starts_with('$')) {
        EXPECT_GT(std::stoi(figure("lua.caches")), 0);
    }
    EXPECT_EQ(figure("replication.backlog"), "0");
    EXPECT_EQ(figure("clients.slaves"), "0");
    test_client replica(engine_);
    replica("REPLCONF capa eof capa psync2");
    replica("PSYNC ? -1");
    client_("SET a 2");
    EXPECT_GT(std::stoi(figure("replication.backlog")), 0);
    EXPECT_GE(std::stoul(figure("clients.slaves")), sizeof(client_session));
    EXPECT_NE(client_("INFO memory").find("mem_clients_slaves:" + figure("clients.slaves")),
              std::string::npos);
    expect("MEMORY PURGE", "+OK\r\n");
    EXPECT_TRUE(client_("MEMORY DOCTOR").starts_with("$"));
    EXPECT_TRUE(client_("MEMORY MALLOC-STATS").starts_with("$"));
}

TEST_F(server_commands, debug_digests_values_whatever_their_order) {
    expect("DEBUG DIGEST", "+" + std::string(40, '0') + "\r\n");
    client_("SADD s a b c 1 2");
    const std::string one = client_("DEBUG DIGEST-VALUE s");
    client_("DEL s");
    client_("SADD s 2 c 1 a b");
    EXPECT_EQ(client_("DEBUG DIGEST-VALUE s"), one);
    client_("SREM s a");
    EXPECT_NE(client_("DEBUG DIGEST-VALUE s"), one);
}

TEST_F(server_commands, debug_takes_the_settings_that_test_suites_make) {
    for (const char* const line :
         {"DEBUG LOG x", "DEBUG LISTPACK-THRESHOLD", "DEBUG LISTPACK-THRESHOLD 1 2",
          "DEBUG SET-DISABLE-DENY-SCRIPTS 1", "DEBUG PAUSE-CRON 0", "DEBUG DICT-RESIZING 1",
          "DEBUG QUICKLIST-PACKED-THRESHOLD 200b", "DEBUG QUICKLIST-PACKED-THRESHOLD 3gb"}) {
        expect(line, "+OK\r\n");
    }
    for (const char* const size : {"4gb", "x", "1x", "-1"}) {
        expect(std::string("DEBUG QUICKLIST-PACKED-THRESHOLD ") + size,
               "-ERR argument must be a memory value bigger than 1 and smaller than 4gb\r\n");
    }
    client_("HSET h a 1");
    client_("SADD s a");
    client_("SADD intset 1");
    client_("RPUSH l a");
    client_({"RPUSH", "long", std::string(10'000, 'x')});
    for (const char* const key : {"h", "s", "l"})
        expect(std::string("DEBUG LISTPACK ") + key, "+Listpack structure printed on stdout\r\n");
    expect("DEBUG LISTPACK intset", "-ERR Not a listpack encoded object.\r\n");
    expect("DEBUG LISTPACK long", "-ERR Not a listpack encoded object.\r\n");
    expect("DEBUG LISTPACK none", "-ERR no such key\r\n");
    expect("DEBUG QUICKLIST long", "+Quicklist structure printed on stdout\r\n");
    expect("DEBUG QUICKLIST l", "-ERR Not a quicklist encoded object.\r\n");
    expect("DEBUG QUICKLIST h", "-ERR Not a quicklist encoded object.\r\n");
    expect("DEBUG QUICKLIST none", "-ERR no such key\r\n");
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
