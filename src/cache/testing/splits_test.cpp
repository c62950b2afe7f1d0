// Tests of split input: in whatever pieces commands arrive, the replies are the same.
//
// The scripts are those of the differential tests, as bytes through the parser and the engine.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>
#include <eddy/wire/resp/reply_writer.hpp>
#include <eddy/wire/resp/request.hpp>

#include "base/test_seed.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/engine/engine.hpp"
#include "cache/testing/differential_access.hpp"
#include "cache/testing/differential_commands.hpp"
#include "cache/testing/differential_newest.hpp"
#include "cache/testing/differential_persistence.hpp"
#include "cache/testing/differential_scripts.hpp"
#include "cache/testing/differential_streams.hpp"
#include "cache/testing/differential_watching.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::arguments;
/// Length of the next piece, at least 1.
using piece_size = std::function<std::size_t()>;

engine_options admin_options() {
    engine_options made;
    made.mode = access_mode::admin;  // for DEBUG
    made.seed = 7;
    return made;
}

// A server at which nothing is left to chance or to the time that it takes.
class fed_engine : public engine {
public:
    fed_engine() : engine(admin_options()) {
        set_slice_clock(nullptr);
        pass(0);
    }
    void pass(int milliseconds) {
        now_ += std::chrono::milliseconds(milliseconds);
        set_time(now_);
    }

private:
    std::chrono::microseconds now_ = std::chrono::seconds(1'700'000'000);
};

// A client whose bytes are parsed and executed as they come.
class fed_client {
public:
    explicit fed_client(engine& home) : home_(home), session_(home) {}

    /// Feeds it in pieces.
    void feed(std::string_view bytes, const piece_size& size) {
        while (!bytes.empty()) {
            const std::size_t piece = std::min(size(), bytes.size());
            unread_ += bytes.substr(0, piece);
            bytes.remove_prefix(piece);
            go_on();
        }
    }
    void feed(std::string_view bytes) {
        feed(bytes, [&] { return bytes.size(); });
    }
    /// Takes output that other clients caused, and continues where a wait has ended.
    void collect() {
        home_.take_output(session_, replies_);
        go_on();
    }
    void end_wait() { home_.end_wait(session_); }

    std::string_view replies() const noexcept { return replies_.text(); }
    std::string take_replies() {
        std::string taken(replies_.text());
        replies_.clear();
        return taken;
    }
    std::string id() const { return std::to_string(session_.id); }
    bool is_blocked() const noexcept { return session_.blocked; }

private:
    struct own_session final : client_session {
        explicit own_session(engine& home) : client_session(home, "test:1", "test:0") {}
    };

    bool may_run() const noexcept { return !session_.closing && !session_.blocked; }

    void go_on() {
        while (may_run()) {
            while (!behind_.empty() && may_run()) {
                const std::vector<std::string_view> views(behind_[0].begin(), behind_[0].end());
                const resp::command one{views.data(), views.size()};
                if (home_.execute(session_, {&one, 1}, replies_) == 1) behind_.pop_front();
            }
            if (!may_run()) return;
            const resp::batch_outcome parsed =
                batch_.parse(parser_, unread_, !session_.authenticated);
            std::span<const resp::command> left = parsed.commands;
            while (!left.empty() && may_run())
                left = left.subspan(home_.execute(session_, left, replies_));
            for (const resp::command& each : left)
                behind_.emplace_back(each.argv, each.argv + each.argc);
            unread_.erase(0, parsed.consumed);
            if (parsed.status == resp::parse_status::error) {
                resp::reply_writer(replies_, session_.protocol).error(parsed.error);
                session_.closing = true;
            }
            if (parsed.status != resp::parse_status::complete) return;
        }
    }

    engine& home_;
    own_session session_;
    resp::request_parser parser_;
    resp::request_batch batch_;
    std::string unread_;
    std::deque<arguments> behind_;  // a command of their batch that waits
    byte_buffer replies_;
};

bool is_plain(const arguments& args) {
    return std::ranges::all_of(args, [](const std::string& each) {
        return !each.empty() && std::ranges::all_of(each, [](char c) {
            return c > ' ' && c <= '~' && c != '"' && c != '\'' && c != '*';
        });
    });
}

// Commands as bytes; every third that can be is one of a terminal.
class encoder {
public:
    std::string operator()(const arguments& args) {
        byte_buffer out;
        const std::vector<std::string_view> views(args.begin(), args.end());
        if (++number_ % 3 != 0 || !is_plain(args)) {
            resp::write_command(out, views);
            return std::string(out.text());
        }
        std::string line;
        for (const std::string& each : args) line += each + ' ';
        return line + "\r\n";
    }

private:
    int number_ = 0;
};

// Commands that the scripts of differential tests leave to clients of their own, or to a version of
// Redis.
constexpr std::string_view more_scripts[] = {
    R"(
MULTI ; SET a 1 ; INCR a ; GET a ; LPUSH a x ; EXEC ; MULTI ; NOSUCH ; SET a 2 ; EXEC ; WATCH a ; MULTI ;
GET a ; EXEC ; MULTI ; DISCARD ; EXEC ; MULTI ; EXEC
)",
    R"(
EVAL return{1,'two',{KEYS[1],ARGV[1]}} 1 k v ; EVAL return(redis.call('SET',KEYS[1],ARGV[1])) 1 k v ;
EVAL return(redis.call('NOSUCH')) 0 ; EVAL return(redis.pcall('LPUSH',KEYS[1],'x')) 1 k ;
EVAL return(redis.error_reply('NO_it_is_not')) 0 ; EVAL return(redis.status_reply('YES')) 0 ; EVAL return{double=1.5} 0 ;
EVAL return 0 ; EVAL return(#ARGV) 0 a b c ; EVAL syntax,error 0 ; EVAL return( 0 ; EVALSHA nosuch 0 ;
SCRIPT LOAD return(1) ; SCRIPT EXISTS 0a 1b ; SCRIPT FLUSH ; EVAL return(1) ; EVAL return(1) x ; EVAL return(1) 5 a ;
FUNCTION LIST ; FCALL nosuch 0 ; FUNCTION LOAD nothing
)",
    R"(
HSET h a 1 b 2 ; HEXPIRE h 100 FIELDS 2 a zz ; HTTL h FIELDS 3 a b zz ; HGETEX h PERSIST FIELDS 1 a ;
HSETEX h EX 10 FIELDS 1 c 3 ; HGETDEL h FIELDS 2 a b ; HGETALL h ; SUBSCRIBE a b ; PING ; PSUBSCRIBE c* ;
UNSUBSCRIBE ; PUNSUBSCRIBE ; SET h x ; RESET
)",
    R"(
HSET h a 1 b 2 ; HPEXPIRE h 100000 FIELDS 1 a ; HEXPIREAT h 1700000100 NX FIELDS 2 a b ; HPTTL h FIELDS 2 a b ;
HPEXPIREAT h 1700000200000 GT FIELDS 1 b ; HEXPIRETIME h FIELDS 2 a zz ; HPEXPIRETIME h FIELDS 1 b ; HPERSIST h FIELDS 2 a zz ;
HPEXPIRE h x FIELDS 1 a ; HEXPIREAT h 1 FIELDS 1 b ; HGETALL h
)",
    R"(
EVAL_RO return(redis.call('GET',KEYS[1])) 1 k ; EVAL_RO return(redis.call('SET',KEYS[1],'v')) 1 k ; SCRIPT LOAD return(7) ;
EVALSHA_RO 3c9bcb5c41ab9e7f1d21c8cf0d8d7a9b0f9a4a5e 0 ; EVALSHA_RO x ; FCALL_RO nosuch 0 ; FCALL_RO nosuch x
)",
    R"(
COMMANDLOG LEN large-request ; COMMANDLOG GET -1 large-reply ; COMMANDLOG RESET slow ; COMMANDLOG GET x slow ;
CLIENT CAPA redirect x ; READONLY ; CLUSTERSCAN 0 ; CLUSTERSCAN 0 SLOT x ; CONFIG SET cluster-enabled yes ; SET {a}b c ;
CLUSTERSCAN 0 SLOT 15495 ; CLUSTERSCAN 0-{a}-0 ; CLUSTERSCAN 0-{a}-0 SLOT 5 ; CONFIG SET cluster-enabled no
)",
    R"(
TIME ; INFO nosuch ; INFO keyspace ; SET k v ; SELECT 1 ; SET k v EX 10 ; INFO keyspace ; INFO KEYSPACE nosuch
)",
    R"(
REPLCONF ; REPLCONF listening-port ; REPLCONF listening-port x ; REPLCONF nosuch 1 ; REPLICAOF ; REPLICAOF a ; REPLICAOF a x ;
REPLICAOF NO ONE ; SLAVEOF NO ONE ; SLAVEOF a b c ; FAILOVER ABORT ; FAILOVER TO ; FAILOVER TIMEOUT x ; FAILOVER ; ROLE ;
WAITAOF 0 0 0 ; WAITAOF 1 0 0 ; WAITAOF 2 0 0 ; WAITAOF x 0 0 ; WAITAOF 0 0 ; WAIT 0 0 ; BGREWRITEAOF ; BGREWRITEAOF x ;
PSYNC ; PSYNC ? ; SYNC x ; SHUTDOWN x ; SHUTDOWN NOSAVE SAVE ; SHUTDOWN ABORT ; PING
)",
};

template <class... Lists>
std::vector<std::string_view> together(const Lists&... lists) {
    std::vector<std::string_view> all;
    (all.insert(all.end(), std::begin(lists), std::end(lists)), ...);
    return all;
}

// Scripts of one client.
std::vector<std::string_view> all_scripts() {
    return together(testing::edge_scripts, testing::persistence_scripts, testing::stream_scripts,
                    testing::newest_of_redis, testing::newest_of_valkey, testing::newest_of_both,
                    more_scripts);
}

// Scripts of several clients, each line with the letter of its client.
std::vector<std::string_view> all_scenes() {
    return together(testing::client_scripts, testing::sorted_set_wait_scripts,
                    testing::tracking_scripts, testing::acl_scripts, testing::refusal_scripts,
                    testing::monitor_scripts, testing::stream_client_scripts);
}

// The script as a client sends it.
std::string bytes_of(std::string_view script, int protocol) {
    encoder encode;
    std::string bytes = encode({"HELLO", std::to_string(protocol)});
    for (const std::string_view line : testing::separate(script))
        bytes += encode(testing::split(line));
    return bytes;
}

std::string replies_to(std::string_view bytes, const piece_size& size) {
    fed_engine home;
    fed_client client(home);
    client.feed(bytes, size);
    return std::string(client.replies());
}

// The lines of a scene, each in pieces, and the output of all clients after each.
class scene {
public:
    scene(int protocol, const piece_size& size) : protocol_(protocol), size_(size) {}

    std::string operator()(std::string_view script) {
        std::string told;
        for (std::string_view line : testing::separate(script)) {
            if (line.starts_with('~')) line.remove_prefix(1);
            step(line);
            told += std::string(line) + '\n';
            for (auto& [name, client] : clients_) {
                client->collect();
                if (const std::string got = client->take_replies(); !got.empty())
                    told += std::string("to ") + name + ": " + got;
            }
        }
        return told;
    }

private:
    void step(std::string_view line) {
        if (line.starts_with("WAIT ")) {
            home_.pass(std::atoi(line.data() + 5));
            home_.upkeep();
            for (auto& [name, client] : clients_) client->end_wait();
        } else if (line.starts_with("GONE ")) {
            clients_.erase(line[5]);
        } else {
            fed_client& who = find(line[0]);
            arguments args = testing::split(line.substr(2));
            for (std::string& each : args) {
                if (each.size() == 2 && each[0] == '@') each = find(each[1]).id();
            }
            who.feed(encode_(args), size_);
        }
    }

    fed_client& find(char who) {
        std::unique_ptr<fed_client>& found = clients_[who];
        if (!found) {
            found = std::make_unique<fed_client>(home_);
            found->feed(encode_({"HELLO", std::to_string(protocol_)}));
            found->take_replies();
        }
        return *found;
    }

    int protocol_;
    const piece_size& size_;
    fed_engine home_;
    encoder encode_;
    std::map<char, std::unique_ptr<fed_client>> clients_;
};

class splits : public ::testing::TestWithParam<int> {
protected:
    // Whole, byte by byte, and in pieces of any size.
    void expect_the_same(const std::function<std::string(const piece_size&)>& replies) {
        const std::string whole = replies([] { return std::string::npos; });
        ASSERT_FALSE(whole.empty());
        ASSERT_EQ(replies([] { return 1; }), whole);
        for (const std::uint64_t most : {3U, 17U, 300U, 5000U}) {
            ASSERT_EQ(replies([&] { return 1 + random_.below(most); }), whole) << most;
        }
    }

    const std::uint64_t seed_ = eddy::testing::seed_of_this_run();
    random_generator random_{seed_};
};

TEST_P(splits, pieces_of_any_size_are_answered_as_the_whole) {
    SCOPED_TRACE(seed_);
    for (const std::string_view script : all_scripts()) {
        SCOPED_TRACE(script);
        const std::string bytes = bytes_of(script, GetParam());
        expect_the_same([&](const piece_size& size) { return replies_to(bytes, size); });
        if (HasFatalFailure()) return;
    }
}

// Also for clients that wait, subscribe, watch or monitor.
TEST_P(splits, clients_hear_the_same_of_each_other_whatever_the_pieces) {
    SCOPED_TRACE(seed_);
    for (const std::string_view script : all_scenes()) {
        SCOPED_TRACE(script);
        expect_the_same([&](const piece_size& size) { return scene(GetParam(), size)(script); });
        if (HasFatalFailure()) return;
    }
}

// Wherever the bytes of a command that waits, and of those behind it, are cut: another client's
// change comes there, so that the command waits for it, finds it, or is not yet whole.
TEST_P(splits, a_wait_may_be_cut_anywhere) {
    struct wait {
        std::string_view command, ended_by;
    };
    constexpr wait waits[] = {
        {"BLPOP none l 0", "RPUSH l x"},
        {"BRPOP l none 0", "RPUSH l x"},
        {"BLMOVE l m LEFT RIGHT 0", "RPUSH l x"},
        {"BRPOPLPUSH l m 0", "RPUSH l x"},
        {"BLMPOP 0 2 none l LEFT COUNT 3", "RPUSH l x"},
        {"BZPOPMIN z 0", "ZADD z 1 x"},
        {"BZPOPMAX none z 0", "ZADD z 1 x"},
        {"BZMPOP 0 1 z MIN COUNT 3", "ZADD z 1 x"},
        {"XREAD BLOCK 0 STREAMS s 0", "XADD s 1-1 f v"},
        {"XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "XADD s 1-1 f v"},
    };
    for (const auto& [command, ended_by] : waits) {
        encoder encode;
        std::string bytes;
        for (const std::string_view line :
             {std::string_view("SET before 1"), command, std::string_view("INCR before"), command,
              std::string_view("ECHO behind")})
            bytes += encode(testing::split(line));
        std::set<std::string> replies;
        for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
            fed_engine home;
            fed_client client(home), other(home);
            const auto tell = [](fed_client& who, std::string_view line) {
                who.feed(encoder()(testing::split(line)));
            };
            tell(other, "XGROUP CREATE s g 0 MKSTREAM");
            tell(client, "HELLO " + std::to_string(GetParam()));
            client.take_replies();
            client.feed(std::string_view(bytes).substr(0, cut));
            // The first ends the first wait; XREAD reads on from the beginning, and needs no more.
            tell(other, ended_by);
            client.collect();
            client.feed(std::string_view(bytes).substr(cut));
            if (client.is_blocked()) {
                tell(other, command.starts_with('X') ? "XADD s 2-1 f v" : ended_by);
                client.collect();
            }
            EXPECT_FALSE(client.is_blocked()) << command << " cut at " << cut;
            replies.insert(client.take_replies());
        }
        EXPECT_EQ(replies.size(), 1U) << command << ::testing::PrintToString(replies);
        EXPECT_TRUE(replies.begin()->ends_with("$6\r\nbehind\r\n")) << *replies.begin();
    }
}

TEST(all_splits, every_command_comes_in_pieces) {
    std::set<std::string> named;
    const auto name = [&](std::string_view line) {
        std::string word = testing::split(line)[0];
        std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
        named.insert(word);
    };
    for (const std::string_view script : all_scripts())
        std::ranges::for_each(testing::separate(script), name);
    for (const std::string_view script : all_scenes()) {
        for (const std::string_view line : testing::separate(script)) {
            if (const std::size_t who = line.find(": "); who <= 2) name(line.substr(who + 2));
        }
    }
    for (const command_spec& each : all_commands())
        EXPECT_TRUE(named.contains(std::string(each.name)))
            << "no script has " << each.name << ": add it to edge_scripts of "
            << "src/cache/testing/differential_commands.hpp, or to more_scripts here if Redis 7.0 "
            << "does not have it";
}

INSTANTIATE_TEST_SUITE_P(cache, splits, ::testing::Values(2, 3));

}  // namespace
}  // namespace eddy::cache
