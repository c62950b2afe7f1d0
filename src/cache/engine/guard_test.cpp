// Tests of the cache's protections: renamed commands, the ACL file, limits on clients' buffers, and
// clocks that jump. The runtime's part of them is tested there.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/log.hpp>

#include "cache/acl/acl_file.hpp"
#include "cache/catalog/command_names.hpp"
#include "cache/clients/client_memory.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/replication/migration.hpp"
#include "cache/testing/test_client.hpp"
#include "cache/testing/test_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::test_client;

engine_options renamed(std::vector<std::pair<std::string, std::string>> names) {
    engine_options made;
    made.renamed_commands = std::move(names);
    return made;
}

TEST(renamed_commands, only_the_new_names_are_known) {
    engine home(renamed({{"GET", "fetch"}, {"flushall", ""}}));
    test_client client(home);
    EXPECT_EQ(client("SET a 1"), "+OK\r\n");
    EXPECT_EQ(client("GET a"), "-ERR unknown command 'GET', with args beginning with: 'a' \r\n");
    EXPECT_EQ(client("Fetch a"), "$1\r\n1\r\n");
    EXPECT_THAT(client("FLUSHALL"), StartsWith("-ERR unknown command"));
    EXPECT_EQ(client("DBSIZE"), ":1\r\n");
    // All other texts have the original name, as in Redis.
    EXPECT_EQ(client("FETCH"), "-ERR wrong number of arguments for 'get' command\r\n");
    EXPECT_EQ(client("COMMAND GETKEYS fetch a"), "*1\r\n$1\r\na\r\n");
    EXPECT_EQ(client("COMMAND GETKEYS get a"), "-ERR Invalid command specified\r\n");
    EXPECT_THAT(client("COMMAND INFO fetch"), HasSubstr("$3\r\nget\r\n"));
    EXPECT_EQ(client("COMMAND INFO get"), "*1\r\n$-1\r\n");
    const std::string list = client("COMMAND LIST");
    EXPECT_THAT(list, HasSubstr("\r\nget\r\n"));
    EXPECT_THAT(list, Not(HasSubstr("\r\nflushall\r\n")));
    engine plain;
    test_client other(plain);
    const auto count = [](test_client& of) { return std::stoi(of("COMMAND COUNT").substr(1)); };
    EXPECT_EQ(count(client), count(other) - 1);
}

TEST(renamed_commands, pipelines_transactions_and_users_follow) {
    engine home(renamed({{"GET", "fetch"}}));
    test_client client(home);
    client("SET a 1");
    client("MULTI");
    EXPECT_THAT(client("GET a"), StartsWith("-ERR unknown"));
    EXPECT_THAT(client("EXEC"), StartsWith("-EXECABORT"));
    client("MULTI");
    EXPECT_EQ(client("FETCH a"), "+QUEUED\r\n");
    EXPECT_EQ(client("EXEC"), "*1\r\n$1\r\n1\r\n");
    // Rules have the old names.
    EXPECT_THAT(client("ACL SETUSER eve +fetch"), HasSubstr("Unknown command"));
    EXPECT_EQ(client("ACL SETUSER bob on nopass ~* +get"), "+OK\r\n");
    EXPECT_EQ(client("ACL DRYRUN bob fetch a"), "+OK\r\n");
    EXPECT_EQ(client("ACL DRYRUN bob get a"), "-ERR Command 'get' not found\r\n");
    EXPECT_EQ(client("AUTH bob x"), "+OK\r\n");
    EXPECT_EQ(client("FETCH a"), "$1\r\n1\r\n");
    EXPECT_THAT(client("SET a 2"), StartsWith("-NOPERM"));
}

TEST(renamed_commands, names_can_be_swapped_and_faults_are_told) {
    using list = std::vector<std::pair<std::string, std::string>>;
    const auto why = [](list names) {
        const auto made = command_names::make(names);
        return made ? std::string() : made.error();
    };
    EXPECT_THAT(why({{"nosuch", "x"}}), HasSubstr("no command \"nosuch\""));
    EXPECT_THAT(why({{"get", "set"}}), HasSubstr("\"set\" already"));
    EXPECT_THAT(why({{"get", "a b"}}), HasSubstr("cannot be a command's name"));
    EXPECT_THAT(why({{"get", std::string(24, 'x')}}), HasSubstr("cannot be a command's name"));
    EXPECT_EQ(why({{"get", std::string(23, 'x')}}), "");
    engine home(renamed({{"get", "x"}, {"set", "get"}, {"x", "set"}}));
    test_client client(home);
    EXPECT_EQ(client("GET a 1"), "+OK\r\n");
    EXPECT_EQ(client("SET a"), "$1\r\n1\r\n");
    EXPECT_THAT(client("X a"), StartsWith("-ERR unknown"));
}

class users_file : public ::testing::Test {
protected:
    std::string load(std::string_view text) {
        const auto done = acl::load(home.internals(), text, "/users");
        return done ? std::string() : done.error();
    }
    engine home;
    test_client client{home};
};

TEST_F(users_file, what_is_written_is_read) {
    client("ACL SETUSER bob on >secret ~a* %R~b* &news +@read -get +client|id (+set ~x) (+del ~y)");
    client("ACL SETUSER eve off");
    const std::string text = acl::to_file(home.internals().settings.users);
    EXPECT_THAT(text, HasSubstr("user default on nopass sanitize-payload ~* &* +@all\n"));
    EXPECT_THAT(text, Not(HasSubstr("secret")));
    const std::string before = client("ACL LIST");
    client("ACL DELUSER bob eve");
    client("ACL SETUSER default >other");
    EXPECT_EQ(load(text), "");
    EXPECT_EQ(client("ACL LIST"), before);
    EXPECT_EQ(client("AUTH bob secret"), "+OK\r\n");
}

TEST_F(users_file, all_faults_are_told_with_their_lines_and_nothing_changes) {
    const std::string before = client("ACL LIST");
    const std::string end =
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";
    EXPECT_EQ(load("user a on\n\nuser b on +nosuch +@nowhere &* &x ~* ~y\n"),
              "/users:3: Error in applying operation '+nosuch': Unknown command or category name "
              "in ACL. /users:3: Error in applying operation '+@nowhere': Unknown command or "
              "category name in ACL. /users:3: Adding a pattern after the * pattern (or the "
              "'allchannels' flag) is not valid and does not have any effect. Try "
              "'resetchannels' to start with an empty list of channels. " +
                  end);
    EXPECT_EQ(load("users a on"),
              "/users:1 should start with user keyword followed by the username. " + end);
    EXPECT_EQ(load("user"),
              "/users:1 should start with user keyword followed by the username. " + end);
    EXPECT_EQ(load("user a on\r\nuser a off\r\n"),
              "WARNING: Duplicate user 'a' found on line 2. " + end);
    EXPECT_EQ(load("user a\tb on"),
              "'/users:1: username 'a\tb' contains invalid characters. " + end);
    EXPECT_EQ(load("user a on (+get ~x"),
              "/users:1: Unmatched parenthesis in selector definition." + end);
    EXPECT_EQ(client("ACL LIST"), before);
    // Also with a long list of faults.
    std::string many;
    for (int i = 0; i < 100'000; ++i) many += "nonsense\n";
    EXPECT_LT(load(many).size(), 128U * 1024);
    EXPECT_EQ(client("ACL LIST"), before);
}

TEST_F(users_file, who_is_gone_is_disconnected_and_the_others_stay) {
    client("ACL SETUSER gone on nopass +@all ~* &*");
    client("ACL SETUSER kept on nopass +@all ~* &*");
    test_client gone(home);
    test_client kept(home);
    test_client listener(home);
    gone("AUTH gone x");
    kept("AUTH kept x");
    listener("AUTH kept x");
    listener("SUBSCRIBE news");
    EXPECT_EQ(load("user kept on nopass ~* +get\n"), "");
    EXPECT_TRUE(gone.closed());
    EXPECT_FALSE(kept.closed());
    EXPECT_TRUE(listener.closed()) << "it may not hear that any more";
    EXPECT_THAT(kept("SET a 1"), StartsWith("-NOPERM"));
    EXPECT_EQ(kept("GET a"), "$-1\r\n");
    EXPECT_EQ(client("PING"), "+PONG\r\n");
    EXPECT_EQ(client("ACL USERS"), "*2\r\n$7\r\ndefault\r\n$4\r\nkept\r\n");
    EXPECT_EQ(load("user default on >secret ~* &* +@all\n"), "");
    EXPECT_EQ(client("PING"), "+PONG\r\n") << "it was there before";
    test_client late(home);
    EXPECT_THAT(late("PING"), StartsWith("-NOAUTH"));
    EXPECT_EQ(load(""), "");
    test_client later(home);
    EXPECT_EQ(later("PING"), "+PONG\r\n");
}

TEST_F(users_file, there_can_be_none) {
    EXPECT_THAT(client("ACL SAVE"), StartsWith("-ERR This Redis instance is not configured to "
                                               "use an ACL file."));
    EXPECT_THAT(client("ACL LOAD"), StartsWith("-ERR This Redis instance is not configured"));
}

// A server that records requests and answers on demand.
struct noting_host final : testing::test_server {
    using test_server::test_server;
    void save_users(std::uint64_t session, std::string text) override {
        who = session;
        users = std::move(text);
    }
    void load_users(std::uint64_t session) override { who = session; }
    void keep_config(std::uint64_t session) override { who = session; }
    void shut_down(std::uint64_t session, shutdown_request how) override {
        who = session;
        asked = how;
    }
    bool can_shut_down() const noexcept override { return true; }
    bool abort_shutdown() override { return std::exchange(in_progress, false); }
    bool can_keep_config() const noexcept override { return true; }

    std::uint64_t who = 0;
    std::string users;
    shutdown_request asked;
    bool in_progress = false;
};

TEST(server_requests, a_client_waits_for_the_answer_and_goes_on) {
    engine_options options;
    options.mode = access_mode::admin;
    engine home(options);
    noting_host host(home);
    host.settings.acl_file = "/users";
    {
        test_client client(home);
        test_client other(home);
        EXPECT_EQ(client("ACL SAVE"), "");
        EXPECT_TRUE(client.who().blocked);
        EXPECT_EQ(host.who, client.who().id);
        EXPECT_THAT(host.users, StartsWith("user default on"));
        EXPECT_EQ(client("PING"), "") << "what is behind it waits, too";
        EXPECT_EQ(other("PING"), "+PONG\r\n");
        answer(home.internals(), host.who, "");
        EXPECT_TRUE(client.woken());
        EXPECT_EQ(client.pushed(), "+OK\r\n+PONG\r\n");
        EXPECT_EQ(client("CONFIG REWRITE"), "");
        answer(home.internals(), host.who, "the disk is full");
        EXPECT_EQ(client.pushed(), "-ERR the disk is full\r\n");
        answer(home.internals(), host.who, "");
        EXPECT_EQ(client.pushed(), "") << "nobody waits for it";
        // In a transaction no command waits.
        client("MULTI");
        client("ACL SAVE");
        client("CONFIG REWRITE");
        EXPECT_THAT(client("EXEC"), StartsWith("*2\r\n-ERR a transaction does not wait"));
        client("CLIENT REPLY OFF");
        client("ACL LOAD");
        answer(home.internals(), host.who, "");
        EXPECT_EQ(client.pushed(), "");
        {
            test_client leaving(home);
            EXPECT_EQ(leaving("ACL SAVE"), "");
        }
        answer(home.internals(), host.who, "");
    }
}

TEST(server_requests, shutdown_takes_redis_s_words) {
    engine_options options;
    options.mode = access_mode::admin;
    engine home(options);
    noting_host host(home, testing::with_folder());
    {
        test_client client(home);
        using saving = shutdown_request::saving;
        const auto asks = [&](std::string_view line, saving wanted, bool forced) {
            EXPECT_EQ(client(line), "") << line;
            EXPECT_EQ(host.asked.saves, wanted) << line;
            EXPECT_EQ(host.asked.forced, forced) << line;
            answer(home.internals(), host.who, "no");
            EXPECT_EQ(client.pushed(), "-ERR no\r\n");
        };
        asks("SHUTDOWN", saving::by_points, false);
        asks("SHUTDOWN NOSAVE", saving::never, false);
        asks("SHUTDOWN save NOW FORCE", saving::always, true);
        EXPECT_EQ(client("SHUTDOWN SAVE NOSAVE"), "-ERR syntax error\r\n");
        EXPECT_EQ(client("SHUTDOWN ABORT NOW"), "-ERR syntax error\r\n");
        EXPECT_EQ(client("SHUTDOWN LATER"), "-ERR syntax error\r\n");
        EXPECT_EQ(client("SHUTDOWN ABORT"), "-ERR No shutdown in progress.\r\n");
        host.in_progress = true;
        EXPECT_EQ(client("SHUTDOWN ABORT"), "+OK\r\n");
        client("MULTI");
        EXPECT_EQ(client("SHUTDOWN"), "-ERR Command not allowed inside a transaction\r\n");
    }
}

TEST(server_requests, the_end_of_what_is_in_the_way_is_notified_of) {
    engine home;
    noting_host host(home);
    const auto ended = [&host] { return std::exchange(host.obstacles_ended, 0); };
    test_client client(home);
    home.set_time(1000us, 1000us);
    EXPECT_EQ(client("CLIENT PAUSE 1000 WRITE"), "+OK\r\n");
    EXPECT_EQ(ended(), 0);
    EXPECT_EQ(client("CLIENT UNPAUSE"), "+OK\r\n");
    EXPECT_EQ(ended(), 1);
    // A pause that ends by its deadline is noticed by the next command.
    EXPECT_EQ(client("CLIENT PAUSE 1 WRITE"), "+OK\r\n");
    home.set_time(5000us, 5000us);
    EXPECT_EQ(client("SET a 1"), "+OK\r\n");
    EXPECT_EQ(ended(), 1);
    hold_writes(home.internals(), write_hold::stop);
    EXPECT_EQ(ended(), 0);
    let_write(home.internals(), write_hold::stop);
    EXPECT_EQ(ended(), 1);
    let_write(home.internals(), write_hold::stop);
    EXPECT_EQ(ended(), 0) << "nothing was held";
    // A snapshot whose end leaves no work, and one that is freed in slices.
    EXPECT_EQ(client("DEL a"), ":1\r\n");
    rdb::snapshot::begin(home)->end();
    EXPECT_EQ(ended(), 1);
    EXPECT_EQ(client("SET a 1"), "+OK\r\n");
    rdb::snapshot::begin(home)->end();
    ASSERT_TRUE(rdb::snapshot::is_clearing(home));
    EXPECT_EQ(ended(), 0);
    while (rdb::snapshot::is_clearing(home)) static_cast<void>(home.upkeep());
    EXPECT_EQ(ended(), 1);
}

TEST(client_buffers, those_who_hold_most_are_closed_first) {
    engine_options options;
    options.clients.max_memory = 1 << 20;
    engine home(options);
    test_client publisher(home);
    std::vector<std::unique_ptr<test_client>> listeners;
    for (int i = 0; i < 8; ++i) {
        listeners.push_back(std::make_unique<test_client>(home));
        (*listeners.back())("SUBSCRIBE c" + std::to_string(i));
        listeners.back()->pushed();
    }
    (*listeners[0])("UNSUBSCRIBE");
    (*listeners[0])("CLIENT NO-EVICT ON");
    (*listeners[0])("SUBSCRIBE c0");
    listeners[0]->pushed();
    // No listener takes its output: 0 is kept, and 7 has more than most of the others.
    const std::string text(40'000, 'x');
    for (int i = 0; i < 8; ++i) {
        for (int n = 0; n <= i; ++n) publisher({"PUBLISH", "c" + std::to_string(i), text});
    }
    EXPECT_TRUE(listeners[7]->closed());
    EXPECT_FALSE(listeners[1]->closed());
    EXPECT_FALSE(listeners[2]->closed());
    for (int n = 0; n < 30; ++n) publisher({"PUBLISH", "c0", text});
    EXPECT_FALSE(listeners[0]->closed()) << "it holds more than all may";
    EXPECT_THAT(publisher("INFO stats"), Not(HasSubstr("evicted_clients:0\r\n")));
    EXPECT_EQ(home.stats().evicted_clients,
              static_cast<std::uint64_t>(std::ranges::count_if(
                  listeners, [](const auto& each) { return each->closed(); })));
    // A percentage of maxmemory.
    EXPECT_EQ(publisher("CONFIG SET maxmemory-clients 5%"), "+OK\r\n");
    EXPECT_THAT(publisher("CONFIG GET maxmemory-clients"), HasSubstr("$2\r\n5%\r\n"));
    EXPECT_THAT(publisher("CONFIG SET maxmemory-clients 101%"), StartsWith("-ERR CONFIG SET"));
    EXPECT_EQ(publisher("CONFIG SET maxmemory-clients 1gb"), "+OK\r\n");
    EXPECT_THAT(publisher("CONFIG GET maxmemory-clients"), HasSubstr("1073741824"));
    EXPECT_EQ(publisher("CONFIG SET maxmemory-clients 0"), "+OK\r\n");
    EXPECT_EQ(home.internals().clients.memory, nullptr);
}

TEST(client_buffers, a_transaction_counts_and_a_lower_limit_holds_at_once) {
    engine home;
    test_client hoarder(home);
    test_client other(home);
    hoarder("MULTI");
    for (int i = 0; i < 10; ++i) hoarder({"SET", "a", std::string(100'000, 'x')});
    EXPECT_THAT(other("CLIENT LIST"), HasSubstr("tot-mem=10"));
    EXPECT_FALSE(hoarder.closed());
    EXPECT_EQ(other("CONFIG SET maxmemory-clients 512kb"), "+OK\r\n");
    EXPECT_TRUE(hoarder.closed());
    EXPECT_FALSE(other.closed());
    EXPECT_EQ(other("PING"), "+PONG\r\n");
}

TEST(client_buffers, what_clients_call_themselves_counts) {
    engine home;
    test_client other(home);
    const std::string long_name(200'000, 'x');
    const testing::arguments namings[] = {
        {"CLIENT", "SETNAME", long_name},
        {"HELLO", "3", "SETNAME", long_name},
        {"CLIENT", "SETINFO", "LIB-NAME", long_name},
        {"CLIENT", "SETINFO", "LIB-VER", long_name},
    };
    for (const testing::arguments& each : namings) {
        test_client hoarder(home);
        hoarder.ask(each);
        EXPECT_THAT(other("CLIENT LIST"), HasSubstr("tot-mem=20")) << each[1];
    }
    EXPECT_EQ(other("CONFIG SET maxmemory-clients 500kb"), "+OK\r\n");
    for (const testing::arguments& each : namings) {
        // It is unspecified which of them is closed.
        test_client several[] = {test_client(home), test_client(home), test_client(home)};
        for (test_client& one : several) one.ask(each);
        EXPECT_EQ(std::ranges::count_if(several, [](auto& one) { return one.who().closing; }), 1)
            << each[1];
    }
    EXPECT_FALSE(other.closed());
}

// A web page can send any text to any port of its reader's machine.
TEST(browsers, are_closed_before_the_commands_in_their_requests_run) {
    for (const std::string head :
         {"POST / HTTP/1.1", "post / HTTP/1.1", "Host: localhost:6379", "HOST: localhost:6379"}) {
        engine home;
        test_client owner(home);
        owner("SET a 1");
        test_client page(home);
        EXPECT_EQ(page(head), "");
        EXPECT_TRUE(page.who().closing) << head;
        EXPECT_EQ(page("FLUSHALL"), "");
        EXPECT_EQ(owner("DBSIZE"), ":1\r\n");
    }
    engine home(renamed({{"GET", "post"}}));
    test_client client(home);
    EXPECT_EQ(client("POST a"), "$-1\r\n") << "a command that is called so";
    client("MULTI");
    EXPECT_EQ(client("Host: x"), "");
    EXPECT_TRUE(client.who().closing);
}

TEST(browsers, are_logged_once_a_minute) {
    engine home;
    std::vector<std::string> lines;
    set_log_sink([&lines](log_level, std::string_view line) { lines.emplace_back(line); });
    const auto visit = [&home] {
        test_client page(home);
        page("POST / HTTP/1.1");
    };
    visit();
    visit();
    EXPECT_EQ(lines.size(), 1U);
    EXPECT_THAT(lines[0], HasSubstr("closed a connection from test:1 that speaks HTTP"));
    using namespace std::chrono;
    home.set_time(duration_cast<microseconds>(system_clock::now().time_since_epoch()) + 61s);
    visit();
    EXPECT_EQ(lines.size(), 2U);
    set_log_sink({});
}

// The machine's clock is set, forwards and back, while clients are connected.
TEST(clocks, that_jump_lose_no_key_before_its_time_and_end_waits) {
    using namespace std::chrono_literals;
    engine home;
    const auto at = [&home](std::chrono::microseconds when) { home.set_time(when); };
    constexpr auto start = std::chrono::microseconds(1'700'000'000'000'000);
    at(start);
    test_client client(home);
    test_client waiter(home);
    client("SET kept 1");
    client("SET a 1 EX 100");
    EXPECT_EQ(waiter("BLPOP list 50"), "");
    at(start - 24h);
    EXPECT_EQ(client("GET a"), "$1\r\n1\r\n");
    EXPECT_THAT(client("CLIENT LIST"), HasSubstr("age=-86400"));
    EXPECT_THAT(client("INFO"), HasSubstr("# Server"));
    client("SET b 1 EX 100");
    client("CLIENT PAUSE 1000 WRITE");
    client("SLOWLOG GET");
    EXPECT_FALSE(home.upkeep());
    home.end_wait(waiter.who());
    EXPECT_TRUE(waiter.who().blocked);
    at(start + 99s);
    EXPECT_EQ(client("GET a"), "$1\r\n1\r\n");
    EXPECT_EQ(client("GET b"), "$-1\r\n") << "its time was that of the other clock";
    home.end_wait(waiter.who());
    EXPECT_EQ(waiter.pushed(), "*-1\r\n");
    EXPECT_EQ(client("SET c 1"), "+OK\r\n") << "the pause is over";
    at(start + 24h * 365 * 100);
    EXPECT_EQ(client("GET a"), "$-1\r\n");
    EXPECT_EQ(client("GET kept"), "$1\r\n1\r\n");
    EXPECT_THAT(client("XADD s * f v"), StartsWith("$"));
    at(start);
    // IDs continue from the last one.
    EXPECT_THAT(client("XADD s * f v"), HasSubstr("-1\r\n"));
    EXPECT_EQ(client("XLEN s"), ":2\r\n");
    EXPECT_EQ(client("SET d 1 PX 1"), "+OK\r\n");
    at(std::chrono::microseconds(0));
    EXPECT_EQ(client("GET d"), "$1\r\n1\r\n");
    EXPECT_EQ(client("PING"), "+PONG\r\n");
}

}  // namespace
}  // namespace eddy::cache
