// Commands come in pieces: whatever the pieces are, the replies are the same.
//
// The scripts are those of the differential tests, as bytes through the parser and the engine.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>
#include <eddy/wire/resp/reply_writer.hpp>
#include <eddy/wire/resp/request.hpp>

#include "base/test_seed.hpp"
#include "cache/differential_commands.hpp"
#include "cache/differential_persistence.hpp"
#include "cache/differential_streams.hpp"
#include "cache/engine.hpp"
#include "cache/test_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::arguments;

// A client whose bytes are parsed and executed as they come, of an engine that is the same each
// time.
class fed_engine {
public:
    fed_engine() { engine_.set_time(std::chrono::seconds(1'700'000'000)); }

    void feed(std::string_view piece) {
        unread_ += piece;
        while (!session_.closing && !session_.blocked) {
            const resp::batch_outcome parsed =
                batch_.parse(parser_, unread_, !session_.authenticated);
            std::span<const resp::command> left = parsed.commands;
            while (!left.empty() && !session_.closing && !session_.blocked)
                left = left.subspan(engine_.execute(session_, left, replies_));
            ASSERT_FALSE(session_.blocked) << "no script of these waits";
            unread_.erase(0, parsed.consumed);
            if (parsed.status == resp::parse_status::error) {
                resp::reply_writer(replies_, session_.protocol).error(parsed.error);
                session_.closing = true;
            }
            if (parsed.status != resp::parse_status::complete) return;
        }
    }
    std::string_view replies() const noexcept { return replies_.text(); }

private:
    struct own_session final : session {
        explicit own_session(engine& home) : session(home, "test:1", "test:0") {}
    };
    static engine_options options() {
        engine_options made;
        made.mode = access_mode::admin;  // for DEBUG
        made.seed = 7;
        return made;
    }

    engine engine_{options()};
    own_session session_{engine_};
    resp::request_parser parser_;
    resp::request_batch batch_;
    std::string unread_;
    byte_buffer replies_;
};

bool is_plain(const arguments& args) {
    return std::ranges::all_of(args, [](const std::string& each) {
        return !each.empty() && std::ranges::all_of(each, [](char c) {
            return c > ' ' && c <= '~' && c != '"' && c != '\'' && c != '*';
        });
    });
}

// The script as a client sends it; every third command that can be is one of a terminal.
std::string bytes_of(std::string_view script, int protocol) {
    byte_buffer out;
    int number = 0;
    const auto add = [&](const arguments& args) {
        const std::vector<std::string_view> views(args.begin(), args.end());
        if (++number % 3 != 0 || !is_plain(args)) return resp::write_command(out, views);
        for (const std::string& each : args) {
            out.append(each);
            out.append(' ');
        }
        out.append("\r\n");
    };
    add({"HELLO", std::to_string(protocol)});
    // What tells how much memory, and how long something took.
    for (const std::string_view line : testing::separate(script)) {
        if (!line.starts_with("INFO") && !line.starts_with("MEMORY")) add(testing::split(line));
    }
    return std::string(out.text());
}

// What the scripts of differential tests leave to clients of their own.
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
};  // namespace

std::vector<std::string_view> all_scripts() {
    std::vector<std::string_view> all(std::begin(testing::edge_scripts),
                                      std::end(testing::edge_scripts));
    all.insert(all.end(), std::begin(testing::persistence_scripts),
               std::end(testing::persistence_scripts));
    all.insert(all.end(), std::begin(testing::stream_scripts), std::end(testing::stream_scripts));
    all.insert(all.end(), std::begin(more_scripts), std::end(more_scripts));
    return all;
}

// The replies to the script when it comes in pieces of which `size` tells how long each is.
std::string replies_to(std::string_view bytes, const std::function<std::size_t()>& size) {
    fed_engine fed;
    while (!bytes.empty() && !::testing::Test::HasFatalFailure()) {
        const std::size_t piece = std::min(size(), bytes.size());
        fed.feed(bytes.substr(0, piece));
        bytes.remove_prefix(piece);
    }
    return std::string(fed.replies());
}

class splits : public ::testing::TestWithParam<int> {};

TEST_P(splits, pieces_of_any_size_are_answered_as_the_whole) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    for (const std::string_view script : all_scripts()) {
        const std::string bytes = bytes_of(script, GetParam());
        const std::string whole = replies_to(bytes, [&] { return bytes.size(); });
        ASSERT_FALSE(whole.empty());
        ASSERT_EQ(replies_to(bytes, [] { return 1; }), whole) << script;
        for (const std::uint64_t most : {3U, 17U, 300U, 5000U}) {
            ASSERT_EQ(replies_to(bytes, [&] { return 1 + random.below(most); }), whole) << script;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(cache, splits, ::testing::Values(2, 3));

}  // namespace
}  // namespace eddy::cache
