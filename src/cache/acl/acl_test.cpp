// Tests of users and permissions beyond the comparison with Redis: categories of all commands, ACL
// LOG, texts of 7.2, limits. Permissions themselves are compared with Redis in
// differential_clients_test.cpp.
#include "cache/acl/acl.hpp"

#include "cache/engine/engine.hpp"
#include "cache/testing/redis_process.hpp"
#include "cache/testing/test_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::arguments;
using ::testing::HasSubstr;
using testing::parse_reply;
using testing::redis_process;
using testing::reply_tree;
using ::testing::StartsWith;
using testing::test_client;

std::set<std::string> texts(const reply_tree& list) {
    std::set<std::string> all;
    for (const reply_tree& each : list.children) all.insert(each.text);
    return all;
}

const reply_tree& field(const reply_tree& of, std::string_view name) {
    static const reply_tree none;
    for (std::size_t i = 0; i + 1 < of.children.size(); i += 2) {
        if (of.children[i].text == name) return of.children[i + 1];
    }
    return none;
}

// Each category has the same commands, as far as both know them.
TEST(acl, categories_are_those_of_redis) {
    std::string why;
    const std::unique_ptr<redis_process> redis = redis_process::start(why);
    if (!redis) GTEST_SKIP() << why;
    if (!redis->is_7()) GTEST_SKIP() << "this redis-server is neither 7.0 nor 7.2";
    engine home;
    test_client client(home);
    const auto theirs_of = [&](arguments args) { return parse_reply(redis->ask(args)); };
    const auto ours_of = [&](arguments args) { return parse_reply(client.ask(args)); };
    const reply_tree categories = theirs_of({"ACL", "CAT"});
    EXPECT_EQ(ours_of({"ACL", "CAT"}).print(), categories.print());
    std::set<std::string> known_to_us;
    std::set<std::string> known_to_them;
    for (const reply_tree& each : categories.children) {
        known_to_us.merge(texts(ours_of({"ACL", "CAT", each.text})));
        known_to_them.merge(texts(theirs_of({"ACL", "CAT", each.text})));
    }
    EXPECT_GT(known_to_us.size(), 250U);
    std::size_t compared = 0;
    for (const reply_tree& each : categories.children) {
        std::set<std::string> ours = texts(ours_of({"ACL", "CAT", each.text}));
        std::set<std::string> theirs = texts(theirs_of({"ACL", "CAT", each.text}));
        std::erase_if(ours, [&](const std::string& name) { return !known_to_them.contains(name); });
        std::erase_if(theirs, [&](const std::string& name) { return !known_to_us.contains(name); });
        // WAIT is in @blocking since 7.2 only.
        ours.erase(each.text == "blocking" ? "wait" : "");
        EXPECT_EQ(ours, theirs) << each.text;
        compared += ours.size();
    }
    EXPECT_GT(compared, 600U);
    // ACL CAT has each command in the categories that Redis's COMMAND INFO shows.
    for (const reply_tree& each : parse_reply(client("COMMAND LIST")).children) {
        const reply_tree info = theirs_of({"COMMAND", "INFO", each.text}).children[0];
        if (info.children.size() < 7) continue;
        for (const reply_tree& category : info.children[6].children) {
            EXPECT_TRUE(texts(ours_of({"ACL", "CAT", category.text.substr(1)})).contains(each.text))
                << each.text << ' ' << category.text;
        }
    }
}

TEST(acl, every_command_can_be_given_and_taken) {
    engine home;
    test_client client(home);
    client("ACL SETUSER u on nopass ~* &* -@all");
    for (const reply_tree& each : parse_reply(client("COMMAND LIST")).children) {
        ASSERT_EQ(client("ACL SETUSER u +" + each.text), "+OK\r\n");
        const std::string commands = field(parse_reply(client("ACL GETUSER u")), "commands").text;
        EXPECT_EQ(commands, "-@all +" + each.text);
        ASSERT_EQ(client("ACL SETUSER u -" + each.text), "+OK\r\n");
        EXPECT_EQ(field(parse_reply(client("ACL GETUSER u")), "commands").text,
                  "-@all -" + each.text);
        ASSERT_EQ(client("ACL SETUSER u nocommands"), "+OK\r\n");
    }
}

TEST(acl, refusals_have_the_texts_of_redis_7_2) {
    engine home;
    test_client admin(home);
    test_client client(home);
    admin("ACL SETUSER u on nopass ~k +@all -set -config|set");
    client("AUTH u x");
    EXPECT_EQ(client("SET k x"), "-NOPERM User u has no permissions to run the 'set' command\r\n");
    EXPECT_EQ(client("CONFIG SET port 1"),
              "-NOPERM User u has no permissions to run the 'config|set' command\r\n");
    EXPECT_EQ(client("GET z"), "-NOPERM No permissions to access a key\r\n");
    EXPECT_EQ(client("PUBLISH c x"), "-NOPERM No permissions to access a channel\r\n");
    EXPECT_EQ(parse_reply(admin("ACL DRYRUN u get z")).text,
              "User u has no permissions to access the 'z' key");
    EXPECT_EQ(parse_reply(admin("ACL DRYRUN u publish c x")).text,
              "User u has no permissions to access the 'c' channel");
    EXPECT_EQ(parse_reply(admin("ACL DRYRUN u set k x")).text,
              "User u has no permissions to run the 'set' command");
    client("MULTI");
    client("GET k");
    admin("ACL SETUSER u -get");
    EXPECT_EQ(client("EXEC"),
              "*1\r\n-NOPERM ACLs rules changed between the moment the transaction was accumulated "
              "and the EXEC call. This command is no longer allowed for the following reason: no "
              "permission to execute the command or subcommand\r\n");
}

TEST(acl, later_rules_replace_earlier_ones_about_the_same) {
    engine home;
    test_client client(home);
    const auto commands_after = [&](const std::string& rules) {
        client("ACL SETUSER u reset " + rules);
        return field(parse_reply(client("ACL GETUSER u")), "commands").text;
    };
    EXPECT_EQ(commands_after("+get +set"), "-@all +get +set");
    EXPECT_EQ(commands_after("+set +get -set"), "-@all +get -set");
    EXPECT_EQ(commands_after("+config|get +config|set -config"), "-@all -config");
    EXPECT_EQ(commands_after("+config -config|set +client"), "-@all +config -config|set +client");
    EXPECT_EQ(commands_after("+@read -get +@READ"), "-@all -get +@read");
    EXPECT_EQ(commands_after("+get +getex -get"), "-@all +getex -get");
    EXPECT_EQ(commands_after("+@all -get"), "+@all -get");
    EXPECT_EQ(commands_after("-get +@all"), "+@all");
}

TEST(acl, the_log_tells_what_was_refused) {
    engine home;
    test_client admin(home);
    test_client client(home);
    const auto at = [&](std::int64_t seconds) {
        home.set_time(std::chrono::hours(24 * 365 * 60) + std::chrono::seconds(seconds));
    };
    at(0);
    admin("ACL SETUSER u on >pw ~k* +@all -del");
    client("AUTH u wrong");
    client("AUTH u pw");
    client("DEL k");
    client("DEL k");
    client("GET secret");
    client("PUBLISH news x");
    client("MULTI");
    client("DEL k");
    const reply_tree log = parse_reply(admin("ACL LOG"));
    ASSERT_EQ(log.children.size(), 5U);
    const auto told = [&](std::size_t i, std::string_view name) {
        return field(log.children[i], name).text;
    };
    EXPECT_EQ(told(0, "context"), "multi");
    EXPECT_EQ(told(0, "object"), "del");
    EXPECT_EQ(told(1, "reason"), "channel");
    EXPECT_EQ(told(1, "object"), "news");
    EXPECT_EQ(told(2, "reason"), "key");
    EXPECT_EQ(told(2, "object"), "secret");
    EXPECT_EQ(told(3, "reason"), "command");
    EXPECT_EQ(told(3, "context"), "toplevel");
    EXPECT_EQ(told(3, "count"), "2");
    EXPECT_EQ(told(4, "reason"), "auth");
    EXPECT_EQ(told(4, "object"), "AUTH");
    EXPECT_EQ(told(4, "username"), "u");
    EXPECT_EQ(told(4, "entry-id"), "0");
    EXPECT_NE(told(4, "client-info").find("addr=test:1 "), std::string::npos);
    EXPECT_NE(told(2, "client-info").find(" user=u "), std::string::npos);
    // cmd= in the log's client info is the refused command.
    constexpr std::string_view commands[] = {"del", "publish", "get", "del", "auth"};
    for (std::size_t i = 0; i < std::size(commands); ++i) {
        EXPECT_THAT(told(i, "client-info"), HasSubstr(" cmd=" + std::string(commands[i]) + " "));
    }
    const auto denied = [&](std::string_view what, int times) {
        const std::string line =
            "acl_access_denied_" + std::string(what) + ":" + std::to_string(times) + "\r\n";
        EXPECT_THAT(admin("INFO stats"), HasSubstr(line));
    };
    denied("auth", 1);
    denied("cmd", 3);
    denied("key", 1);
    denied("channel", 1);
    admin("CONFIG RESETSTAT");
    denied("auth", 0);
    denied("cmd", 0);
    client("DISCARD");
    // After a minute it is another entry.
    at(70);
    client("DEL k");
    EXPECT_EQ(parse_reply(admin("ACL LOG")).children.size(), 6U);
    EXPECT_EQ(parse_reply(admin("ACL LOG 2")).children.size(), 2U);
    admin("CONFIG SET acllog-max-len 3");
    client("GET another");
    EXPECT_EQ(parse_reply(admin("ACL LOG 100")).children.size(), 3U);
    admin("ACL LOG RESET");
    EXPECT_EQ(admin("ACL LOG"), "*0\r\n");
}

TEST(acl, the_log_tells_what_scripts_were_refused) {
    engine home;
    test_client admin(home);
    test_client client(home);
    admin("ACL SETUSER u on nopass ~k* +@all -del resetchannels");
    client("AUTH u x");
    client("CLIENT SETNAME caller");
    client({"EVAL", "return redis.pcall('del', 'k')", "0"});
    client({"EVAL", "return redis.pcall('get', 'x')", "0"});
    client({"EVAL", "return redis.pcall('get', KEYS[1])", "1", "y"});
    client("MULTI");
    client({"EVAL", "return redis.pcall('publish', 'c', 'x')", "0"});
    client("EXEC");
    const reply_tree log = parse_reply(admin("ACL LOG"));
    ASSERT_EQ(log.children.size(), 4U);
    const auto told = [&](std::size_t i) {
        EXPECT_THAT(field(log.children[i], "client-info").text, HasSubstr(" name=caller "));
        EXPECT_THAT(field(log.children[i], "client-info").text, HasSubstr("addr=test:1 "));
        return field(log.children[i], "reason").text + " " +
               field(log.children[i], "context").text + " " + field(log.children[i], "object").text;
    };
    EXPECT_EQ(told(0), "channel lua c");
    EXPECT_EQ(told(1), "key toplevel y");
    EXPECT_EQ(told(2), "key lua x");
    EXPECT_EQ(told(3), "command lua del");
}

TEST(acl, hello_logs_in_only_when_all_of_it_is_understood) {
    engine_options options;
    options.password = "secret";
    engine home(options);
    test_client client(home);
    EXPECT_EQ(client("HELLO 3 AUTH default secret FOO"),
              "-ERR Syntax error in HELLO option 'FOO'\r\n");
    EXPECT_THAT(client("GET a"), StartsWith("-NOAUTH"));
    EXPECT_THAT(client({"HELLO", "3", "AUTH", "default", "secret", "SETNAME", "a b"}),
                StartsWith("-ERR Client names"));
    EXPECT_THAT(client("GET a"), StartsWith("-NOAUTH"));
    EXPECT_THAT(client("HELLO 3 SETNAME x AUTH default wrong"), StartsWith("-WRONGPASS"));
    EXPECT_THAT(client("HELLO 3 SETNAME x AUTH default secret"), StartsWith("%7"));
    EXPECT_THAT(client("INFO stats"), HasSubstr("acl_access_denied_auth:1\r\n"));
    client("ACL SETUSER eve on nopass +get +info ~k");
    test_client eve(home);
    eve("AUTH eve x");
    eve("SET k 1");
    eve("GET other");
    eve("GET other");
    const std::string stats = client("INFO stats");
    EXPECT_THAT(stats, HasSubstr("acl_access_denied_cmd:1\r\n"));
    EXPECT_THAT(stats, HasSubstr("acl_access_denied_key:2\r\n"));
    EXPECT_THAT(stats, HasSubstr("acl_access_denied_channel:0\r\n"));
}

TEST(acl, long_keys_do_not_fill_the_log) {
    engine home;
    test_client client(home);
    client("ACL SETUSER u on nopass ~k +@all");
    client("AUTH u x");
    for (int i = 0; i < 200; ++i) {
        client.ask(arguments{"GET", std::to_string(i) + std::string(100'000, 'x')});
    }
    const std::string log = client("ACL LOG 1000");
    EXPECT_EQ(parse_reply(log).children.size(), 128U);
    EXPECT_LT(log.size(), 128U * 3'000U);
}

TEST(acl, a_users_rules_are_limited) {
    engine home;
    test_client client(home);
    client("ACL SETUSER u on");
    const std::string before = client("ACL GETUSER u");
    arguments many{"ACL", "SETUSER", "u"};
    for (int i = 0; i < 50'000; ++i) many.push_back("~" + std::to_string(i) + "0123456789");
    EXPECT_TRUE(client.ask(many).ends_with("the user's rules are too many\r\n"));
    EXPECT_TRUE(client.ask(arguments{"ACL", "SETUSER", "u", ">" + std::string(2'000'000, 'x')})
                    .ends_with("the rule is too long\r\n"));
    EXPECT_EQ(client("ACL GETUSER u"), before);
}

TEST(acl, passwords_are_generated) {
    engine home;
    test_client client(home);
    const std::string one = parse_reply(client("ACL GENPASS")).text;
    EXPECT_EQ(one.size(), 64U);
    EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_NE(parse_reply(client("ACL GENPASS")).text, one);
    EXPECT_EQ(parse_reply(client("ACL GENPASS 5")).text.size(), 2U);
    EXPECT_EQ(parse_reply(client("ACL GENPASS 4096")).text.size(), 1024U);
}

TEST(acl, client_list_and_kill_know_users) {
    engine home;
    test_client admin(home);
    test_client client(home);
    admin("ACL SETUSER u on nopass +@all");
    client("AUTH u x");
    EXPECT_NE(admin("CLIENT LIST ID 2").find(" user=u "), std::string::npos);
    EXPECT_NE(admin("CLIENT LIST ID 1").find(" user=default "), std::string::npos);
    EXPECT_EQ(admin("CLIENT KILL USER u"), ":1\r\n");
    EXPECT_TRUE(client.closed());
}

// The password of the options is the default user's, and it is not kept as it was given.
TEST(acl, a_password_of_the_options_is_that_of_the_default_user) {
    engine_options options;
    options.password = "secret";
    engine home(options);
    test_client client(home);
    EXPECT_EQ(client("GET x"), "-NOAUTH Authentication required.\r\n");
    EXPECT_EQ(client("ACL WHOAMI"), "-NOAUTH Authentication required.\r\n");
    EXPECT_EQ(client("AUTH secret"), "+OK\r\n");
    const std::string user = client("ACL GETUSER default");
    EXPECT_EQ(user.find("secret"), std::string::npos);
    EXPECT_NE(user.find(to_hex(sha256("secret"))), std::string::npos);
}

// Where the search for a word would find another one than the command does.
TEST(acl, no_word_hides_a_key) {
    engine home;
    test_client admin(home);
    test_client client(home);
    admin("ACL SETUSER u on nopass ~mine* +@all");
    admin("XADD secret 1-1 f v");
    admin("XGROUP CREATE secret g 0");
    client("AUTH u x");
    for (const char* const line :
         {"GEORADIUS mine 1 1 1 km STORE mine STORE secret",
          "GEORADIUS mine 1 1 1 km STOREDIST mine STORE secret",
          "GEORADIUSBYMEMBER mine m 1 km STORE mine2 STOREDIST secret",
          "XREADGROUP GROUP g streams STREAMS secret >",
          "XREADGROUP COUNT 1 GROUP streams mine STREAMS secret >", "XREAD STREAMS secret 0",
          "XREAD COUNT 1 STREAMS mine secret 0 0"})
        EXPECT_THAT(client(line), StartsWith("-NOPERM")) << line;
    EXPECT_EQ(client("GEORADIUS mine 1 1 1 km STORE mine2 STOREDIST mine3"), ":0\r\n");
    EXPECT_EQ(client("XREAD STREAMS mine mine2 0 0"), "*-1\r\n");
    EXPECT_THAT(client("XREADGROUP GROUP g streams STREAMS mine >"), StartsWith("-NOGROUP"));
}

TEST(acl, a_waiting_client_that_loses_its_permission_takes_nothing) {
    engine home;
    test_client admin(home);
    test_client client(home);
    admin("ACL SETUSER u on nopass ~* +@all");
    client("AUTH u x");
    client("BLPOP l 0");
    admin("ACL SETUSER u -blpop");
    EXPECT_EQ(admin("RPUSH l x"), ":1\r\n");
    EXPECT_EQ(client.pushed(), "-NOPERM User u has no permissions to run the 'blpop' command\r\n");
    EXPECT_EQ(admin("LLEN l"), ":1\r\n");
}

}  // namespace
}  // namespace eddy::cache
