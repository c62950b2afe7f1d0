// Comparison of several clients at once, of the engine and of a real redis-server 7.0: after each
// command all of them must have received the same bytes. Skipped, with the reason, where
// redis-server is not installed.
#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/engine/engine.hpp"
#include "cache/testing/differential_access.hpp"
#include "cache/testing/differential_kills.hpp"
#include "cache/testing/differential_scripts.hpp"
#include "cache/testing/differential_streams.hpp"
#include "cache/testing/differential_watching.hpp"
#include "cache/testing/redis_process.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using testing::arguments;
using testing::redis_connection;
using testing::redis_process;
using testing::test_client;

// The replies, and the pushes of RESP3, which stand between them or within: a client's own command
// may cause some, and where they stand changed with Redis 7.2.
class push_separator {
public:
    std::pair<std::string, std::vector<std::string>> operator()(std::string_view text) {
        left_ = text;
        while (!left_.empty()) value(false);
        std::ranges::sort(pushes_);
        return {std::move(replies_), std::move(pushes_)};
    }

private:
    void value(bool in_push) {
        while (!in_push && !left_.empty() && left_[0] == '>') {
            pushes_.emplace_back();
            value(true);
        }
        if (left_.empty()) return;
        const std::size_t end = std::min(left_.find('\n'), left_.size() - 1) + 1;
        const char type = left_[0];
        const long long count = std::atoll(std::string(left_.substr(1, end - 1)).c_str());
        in_push = in_push || type == '>';
        const bool is_text = (type == '$' || type == '=') && count >= 0;
        take(is_text ? end + static_cast<std::size_t>(count) + 2 : end, in_push);
        if (type == '*' || type == '~' || type == '>' || type == '%') {
            for (long long i = 0; i < (type == '%' ? 2 * count : count); ++i) value(in_push);
        }
    }
    void take(std::size_t size, bool in_push) {
        (in_push ? pushes_.back() : replies_) += left_.substr(0, size);
        left_.remove_prefix(std::min(size, left_.size()));
    }

    std::string_view left_;
    std::string replies_;
    std::vector<std::string> pushes_;
};

std::pair<std::string, std::vector<std::string>> separate_pushes(std::string_view text) {
    return push_separator()(text);
}

// Hides connections' numbers, in which the sides may differ.
void hide_ids(std::string& text) {
    for (const std::string_view before :
         {"$2\r\nid\r\n:", "redirect\r\n:", "tracking-redir-broken\r\n:"}) {
        for (std::size_t at = 0; (at = text.find(before, at)) != std::string::npos;) {
            at += before.size();
            if (text[at] != '-') text.erase(at, text.find('\r', at) - at);
        }
    }
}

// Hides, in MONITOR's lines, the time and, but for scripts, the address; and the test's own
// commands.
void hide_monitored(std::string& text) {
    static const std::regex head("\\+\\d{10}\\.\\d{6} \\[(\\d+) ((lua)|[^\\]\\r]*)\\]");
    static const std::regex own("\\+\\[0 \\] \"PING\"\\r\\n");
    text = std::regex_replace(text, head, "+[$1 $3]");
    text = std::regex_replace(text, own, "");
}

// Redis 7.2's words where 7.0 has others: texts of refusals, and "sanitize-payload", which only 7.2
// shows. The results serve comparison alone.
void hide_7_2(std::string& text) {
    static const std::regex refused("NOPERM [^\\r]*");
    static const std::regex dry_run("\\$\\d+\\r\\n(This user|User \\S+) has no permissions");
    static const std::regex flags(
        "flags\\r\\n([*~])(\\d)((?:\\r\\n\\$\\d\\r\\n\\w+)*)\\r\\n\\$16\\r\\nsanitize-payload");
    static const std::regex listed("\\$\\d+(\\r\\nuser )");
    static const std::regex sanitizes("(\\r\\nuser [^\\r]*) sanitize-payload");
    static const std::regex hello("HELLO <proto> AUTH");
    text = std::regex_replace(text, refused, "NOPERM");
    text = std::regex_replace(text, dry_run, "refused");
    text = std::regex_replace(text, listed, "$1");
    text = std::regex_replace(text, sanitizes, "$1");
    text = std::regex_replace(text, hello, "HELLO AUTH");
    std::smatch found;
    if (!std::regex_search(text, found, flags)) return;
    const std::string fewer = std::to_string(std::stoi(found[2]) - 1);
    text = found.prefix().str() + "flags\r\n" + found[1].str() + fewer + found[3].str() +
           found.suffix().str();
}

// For a RESP2 client that subscribes within a transaction and is sent a message before its end:
// neither the client nor a test can distinguish the message from a reply.
std::vector<std::string> sorted_lines(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
        lines.push_back(text.substr(at, end - at));
        at = end;
    }
    std::ranges::sort(lines);
    return lines;
}

// The same clients on both sides, each named by a letter.
class both_sides {
public:
    both_sides(redis_process& redis, int protocol) : redis_(redis), protocol_(protocol) {
        control_ = redis_.open();
        control_->ask({"CONFIG", "SET", "notify-keyspace-events", ""});
        control_->ask({"FLUSHALL"});
        tell_time();
    }

    // Restores the server for later tests.
    ~both_sides() {
        control_->ask({"CONFIG", "SET", "requirepass", ""});
        control_->ask({"ACL", "SETUSER", "default", "reset", "on", "nopass", "~*", "&*", "+@all"});
        control_->ask({"ACL", "DELUSER", "u", "U", ""});
    }
    both_sides(const both_sides&) = delete;
    both_sides& operator=(const both_sides&) = delete;

    // One line of a script: "A: GET x", "A: quit", "WAIT 50". False when the sides differ. A line
    // that begins with ~ has its effect at no fixed time, on the one side before the next line and
    // on the other behind it: the output is compared with the next line's.
    bool step(std::string_view line) {
        if (line.starts_with('~')) {
            is_compared_later_ = true;
            const bool same = step(line.substr(1));
            is_compared_later_ = false;
            return same;
        }
        if (line.starts_with("WAIT ")) return wait(std::atoi(line.data() + 5));
        if (line.starts_with("GONE ")) return leave(line[5]);
        const char who = line[0];
        arguments args = testing::split(line.substr(2));
        client& c = find(who);
        arguments theirs = args;
        arguments ours = args;
        for (std::size_t i = 0; i < args.size(); ++i) {
            if (args[i].size() != 2 || args[i][0] != '@') continue;
            client& named = find(args[i][1]);
            theirs[i] = named.their_id;
            ours[i] = named.our_id;
        }
        c.theirs->send(theirs);
        tell_time();
        const std::string reply = c.ours ? c.ours->ask(ours) : std::string();
        collect();
        c.got_ours += reply;
        // Pushes by the command itself stand behind its reply.
        collect_pushes();
        return compare(line);
    }

    bool waits(char who) {
        const client& c = find(who);
        return !c.ours || c.ours->who().blocked;
    }

private:
    struct client {
        std::unique_ptr<redis_connection> theirs;
        std::unique_ptr<test_client> ours;
        std::string their_id;
        std::string our_id;
        std::string got_theirs;
        std::string got_ours;
    };

    client& find(char who) {
        const auto found = clients_.find(who);
        if (found != clients_.end()) return found->second;
        client& made = clients_[who];
        made.theirs = redis_.open();
        made.ours = std::make_unique<test_client>(engine_);
        const arguments hello{"HELLO", std::to_string(protocol_)};
        made.theirs->ask(hello);
        made.ours->ask(hello);
        made.their_id = made.theirs->ask({"CLIENT", "ID"});
        made.our_id = made.ours->ask(arguments{"CLIENT", "ID"});
        for (std::string* id : {&made.their_id, &made.our_id}) *id = id->substr(1, id->size() - 3);
        return made;
    }

    void tell_time() {
        using namespace std::chrono;
        engine_.set_time(duration_cast<microseconds>(system_clock::now().time_since_epoch()));
    }

    // Output of all clients. Redis writes to all before it reads the next command, so the second
    // PING is answered when all output is there.
    void collect() {
        control_->ask({"PING"});
        control_->ask({"PING"});
        for (auto& [name, each] : clients_) each.got_theirs += each.theirs->take_available();
    }
    void collect_pushes() {
        for (auto& [name, each] : clients_) {
            if (!each.ours) continue;
            each.got_ours += each.ours->pushed();
            if (each.ours->who().closing) each.ours.reset();
        }
    }

    /// 7.0 serves a client that waits for several keys by the one that was ready first, and names
    /// another unclosed selector; 7.2 writes payloads of a later version.
    bool differs_by_version(std::string_view line, std::string_view theirs, std::string_view ours) {
        if (!redis_.is_7_0()) return line.contains(" DUMP ");
        constexpr std::string_view unmatched = "-ERR Unmatched parenthesis";
        return (line.substr(2) == " EXEC" && theirs.contains("second") && ours.contains("first")) ||
               (theirs.starts_with(unmatched) && ours.starts_with(unmatched));
    }

    bool compare(std::string_view line) {
        if (is_compared_later_) return true;
        bool same = true;
        for (auto& [name, each] : clients_) {
            hide_ids(each.got_theirs);
            hide_ids(each.got_ours);
            hide_monitored(each.got_theirs);
            hide_monitored(each.got_ours);
            each.got_theirs = testing::hide_version(each.got_theirs);
            each.got_ours = testing::hide_version(each.got_ours);
            if (line.find("ACL") != std::string_view::npos ||
                each.got_theirs.find("-NO") != std::string::npos ||
                each.got_theirs.find("-EXECABORT") != std::string::npos) {
                hide_7_2(each.got_theirs);
                hide_7_2(each.got_ours);
            }
            const bool is_exec = line.substr(2) == " EXEC";
            if (each.got_theirs != each.got_ours &&
                !differs_by_version(line, each.got_theirs, each.got_ours) &&
                separate_pushes(each.got_theirs) != separate_pushes(each.got_ours) &&
                !(is_exec && sorted_lines(each.got_theirs) == sorted_lines(each.got_ours))) {
                same = false;
                ADD_FAILURE() << line << "\n to " << name << ", redis: " << each.got_theirs
                              << "\n eddy: " << each.got_ours;
            }
            each.got_theirs.clear();
            each.got_ours.clear();
        }
        return same;
    }

    bool wait(int milliseconds) {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        tell_time();
        engine_.upkeep();
        for (auto& [name, each] : clients_) {
            if (each.ours) engine_.end_wait(each.ours->who());
        }
        collect();
        collect_pushes();
        return compare("WAIT");
    }

    bool leave(char who) {
        clients_.erase(who);
        collect();
        collect_pushes();
        return compare("GONE");
    }

    redis_process& redis_;
    int protocol_;
    bool is_compared_later_ = false;
    std::unique_ptr<redis_connection> control_;
    engine engine_;
    std::map<char, client> clients_;
};

class differential_clients : public ::testing::TestWithParam<int> {
protected:
    static void SetUpTestSuite() { redis_ = redis_process::start(why_not_).release(); }
    static void TearDownTestSuite() {
        delete redis_;
        redis_ = nullptr;
    }
    void SetUp() override {
        if (redis_ == nullptr) GTEST_SKIP() << why_not_;
        if (!redis_->is_7()) GTEST_SKIP() << "this redis-server is neither 7.0 nor 7.2";
    }

    void follow(std::string_view script);

    static redis_process* redis_;
    static std::string why_not_;
};

redis_process* differential_clients::redis_ = nullptr;
std::string differential_clients::why_not_;

void differential_clients::follow(std::string_view script) {
    both_sides sides(*redis_, GetParam());
    for (const std::string_view line : testing::separate(script)) {
        if (!sides.step(line)) {
            ADD_FAILURE() << "in the script: " << script;
            break;
        }
    }
}

TEST_P(differential_clients, those_who_wait_for_sorted_sets_get_the_same) {
    for (const std::string_view script : testing::sorted_set_wait_scripts) follow(script);
}

TEST_P(differential_clients, those_who_track_hear_the_same) {
    for (const std::string_view script : testing::tracking_scripts) follow(script);
}

TEST_P(differential_clients, users_may_do_the_same) {
    for (const std::string_view script : testing::acl_scripts) follow(script);
}

TEST_P(differential_clients, what_no_command_is_called_is_refused_first) {
    for (const std::string_view script : testing::refusal_scripts) follow(script);
}

TEST_P(differential_clients, closed_clients_are_gone_the_same) {
    for (const std::string_view script : testing::kill_scripts) follow(script);
}

TEST_P(differential_clients, who_monitors_sees_the_same) {
    for (const std::string_view script : testing::monitor_scripts) follow(script);
}

// The commands of a reply to SLOWLOG GET with their clients' names, without the test's own.
std::string kept_commands(const std::string& reply) {
    std::string all;
    for (const auto& each : testing::parse_reply(reply).children) {
        std::string text;
        for (const auto& arg : each.children[3].children) text += arg.text + " ";
        if (text != "PING ") all += text + "by " + each.children[5].text + '\n';
    }
    return all;
}

TEST_P(differential_clients, slow_commands_are_kept_the_same) {
    engine home;
    const auto control = redis_->open();
    std::map<char, std::unique_ptr<redis_connection>> theirs;
    std::map<char, std::unique_ptr<test_client>> ours;
    for (const std::string_view line : testing::separate(testing::slow_script)) {
        const char who = line[0];
        if (!theirs.contains(who)) {
            theirs[who] = redis_->open();
            ours[who] = std::make_unique<test_client>(home);
        }
        arguments args = testing::split(line.substr(2));
        for (std::string& each : args) {
            if (each == "LONG") each.assign(200, 'x');
        }
        theirs[who]->send(args);
        control->ask({"PING"});
        ours[who]->ask(args);
    }
    const arguments ask{"SLOWLOG", "GET", "-1"};
    EXPECT_EQ(kept_commands(test_client(home).ask(ask)), kept_commands(control->ask(ask)));
    control->ask({"CONFIG", "SET", "slowlog-log-slower-than", "10000"});
}

// "name=value" of a client's line, in its order; each of them has all.
std::vector<std::pair<std::string, std::string>> fields_of(std::string line) {
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    std::vector<std::pair<std::string, std::string>> fields;
    for (const std::string& each : testing::split(line)) {
        const std::size_t end = std::min(each.find('='), each.size() - 1);
        fields.emplace_back(each.substr(0, end), each.substr(end + 1));
    }
    return fields;
}

TEST_P(differential_clients, clients_are_told_of_in_the_same_fields) {
    engine home;
    const auto theirs = redis_->open();
    test_client ours(home);
    ours.who().address = "/by/a/socket:0";
    std::vector<arguments> before = {{"HELLO", std::to_string(GetParam())},
                                     {"CLIENT", "SETNAME", "me"},
                                     {"SELECT", "3"},
                                     {"CLIENT", "NO-EVICT", "ON"},
                                     {"SUBSCRIBE", "channel"},
                                     {"UNSUBSCRIBE", "channel"}};
    if (redis_->is_7_2()) {
        before.push_back({"CLIENT", "SETINFO", "LIB-NAME", "lib"});
        before.push_back({"CLIENT", "SETINFO", "lib-ver", "1.2"});
    }
    for (const arguments& each : before) {
        theirs->ask(each);
        ours.ask(each);
    }
    // Fields that must be equal on both sides.
    constexpr std::string_view equal[] = {"name", "flags",    "db",     "sub",  "psub",
                                          "ssub", "multi",    "cmd",    "user", "redir",
                                          "resp", "lib-name", "lib-ver"};
    const auto told = [&](const std::string& reply) {
        std::string text = testing::parse_reply(reply).text;
        text.erase(0, text.find("id="));
        return fields_of(text.substr(0, text.find('\n')));
    };
    for (const arguments& ask :
         {arguments{"CLIENT", "INFO"}, arguments{"CLIENT", "LIST", "ID", "@"}}) {
        arguments at_theirs = ask;
        arguments at_ours = ask;
        if (ask.back() == "@") {
            const std::string id = theirs->ask({"CLIENT", "ID"});
            at_theirs.back() = id.substr(1, id.size() - 3);
            at_ours.back() = std::to_string(ours.who().id);
        }
        const auto wanted = told(theirs->ask(at_theirs));
        auto got = told(ours.ask(at_ours));
        if (redis_->is_7_0()) {
            std::erase_if(got, [](const auto& each) { return each.first.starts_with("lib-"); });
        }
        ASSERT_EQ(got.size(), wanted.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            EXPECT_EQ(got[i].first, wanted[i].first);
            if (std::ranges::find(equal, wanted[i].first) != std::end(equal))
                EXPECT_EQ(got[i].second, wanted[i].second) << wanted[i].first;
        }
    }
}

TEST_P(differential_clients, libraries_introduce_themselves_the_same) {
    if (!redis_->is_7_2()) GTEST_SKIP() << "Redis 7.0 has no CLIENT SETINFO";
    engine home;
    const auto theirs = redis_->open();
    test_client ours(home);
    for (const arguments& each :
         {arguments{"CLIENT", "SETINFO", "lib-name", "redis-py(upper_v1.0.0)"},
          arguments{"CLIENT", "SETINFO", "LIB-VER", "5.0.1"},
          arguments{"CLIENT", "SETINFO", "lib-name", ""},
          arguments{"CLIENT", "SETINFO", "lib-ver", ""},
          arguments{"CLIENT", "SETINFO", "lib-name", "with space"},
          arguments{"CLIENT", "SETINFO", "lib-ver", "with space"},
          arguments{"CLIENT", "SETINFO", "lib-ver", "new\nline"},
          arguments{"CLIENT", "SETINFO", "lib-name", "\x7f"},
          arguments{"CLIENT", "SETINFO", "lib-other", "x"},
          arguments{"CLIENT", "SETINFO", "lib-name"}, arguments{"CLIENT", "SETINFO"},
          arguments{"CLIENT", "SETINFO", "lib-name", "x", "lib-ver", "1"}}) {
        EXPECT_EQ(ours.ask(each), theirs->ask(each)) << ::testing::PrintToString(each);
    }
}

TEST_P(differential_clients, who_is_connected_there_is_killed_the_same) {
    engine home;
    const auto theirs = redis_->open();
    test_client ours(home);
    const auto their_other = redis_->open();
    test_client our_other(home);
    our_other.who().local_address = "127.0.0.1:6379";
    std::string told = testing::parse_reply(their_other->ask({"CLIENT", "INFO"})).text;
    told.erase(0, told.find(" laddr=") + 7);
    const std::string their_place = told.substr(0, told.find(' '));
    const std::string id = their_other->ask({"CLIENT", "ID"});
    const std::string their_id = id.substr(1, id.size() - 3);
    const std::string our_id = std::to_string(our_other.who().id);
    const auto kill = [&](const std::string& at_theirs, const std::string& at_ours) {
        const std::string reply = ours({"CLIENT", "KILL", "LADDR", at_ours, "ID", our_id});
        EXPECT_EQ(reply, theirs->ask({"CLIENT", "KILL", "LADDR", at_theirs, "ID", their_id}));
        return reply;
    };
    EXPECT_EQ(kill("127.0.0.1:1", "127.0.0.1:1"), ":0\r\n");
    EXPECT_FALSE(our_other.who().closing);
    EXPECT_EQ(kill(their_place, "127.0.0.1:6379"), ":1\r\n");
    EXPECT_TRUE(our_other.who().closing);
    EXPECT_EQ(their_other->ask({"PING"}), "");
}

TEST_P(differential_clients, scripts_end_the_same) {
    for (const std::string_view script : testing::client_scripts) follow(script);
}

TEST_P(differential_clients, scripts_of_streams_end_the_same) {
    for (const std::string_view script : testing::stream_client_scripts) follow(script);
}

// Three clients that do at random what makes them act on each other.
TEST_P(differential_clients, random_commands_of_several_clients_have_the_same_effects) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    random_generator random(seed);
    std::vector<std::string_view> commands = testing::separate(testing::client_command_templates);
    const std::vector<std::string_view> more = testing::separate(testing::access_command_templates);
    commands.insert(commands.end(), more.begin(), more.end());
    // In one round clients wait and in the next they track: Redis 7.0 does not notify tracking
    // clients of keys taken by a waiting client, and notifies of a transaction's changes only at
    // its end. Nor does it check a waiting client's permissions again, as 7.2 does. Redirected
    // messages cannot be distinguished from other ones in RESP2; the scripts have them.
    const auto fits = [](std::string_view command, bool tracks) {
        if (!tracks) {
            return !command.starts_with("CLIENT TRACKING") && !command.starts_with("ACL SETUSER");
        }
        return !command.starts_with("BL") && !command.starts_with("BZ") && command != "EXEC" &&
               command.find("REDIRECT") == std::string_view::npos;
    };
    constexpr int rounds = 12;
    constexpr int steps = 250;
    for (int round = 0; round < rounds; ++round) {
        both_sides sides(*redis_, GetParam());
        ASSERT_TRUE(sides.step("A: CONFIG SET notify-keyspace-events KEA"));
        // A client that always tracks: when the last one stops, Redis keeps its tracking table.
        if (round % 2 == 1) ASSERT_TRUE(sides.step("D: CLIENT TRACKING ON"));
        for (int i = 0; i < steps; ++i) {
            std::string line(1, static_cast<char>('A' + random.below(3)));
            // If several waits end, Redis executes the commands behind them in another order.
            if (sides.waits(line[0])) continue;
            const std::string_view command = commands[random.below(commands.size())];
            if (!fits(command, round % 2 == 1)) continue;
            line += ": ";
            line += command;
            for (std::size_t at; (at = line.find('%')) != std::string::npos;) {
                line.replace(at, 2, std::string(1, line[at + 1]) + std::to_string(random.below(3)));
            }
            ASSERT_TRUE(sides.step(line)) << "round " << round << ", seed " << seed;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(protocols, differential_clients, ::testing::Values(2, 3),
                         [](const auto& p) { return "resp" + std::to_string(p.param); });

}  // namespace
}  // namespace eddy::cache
