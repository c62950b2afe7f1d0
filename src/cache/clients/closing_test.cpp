// Tests of clients that are closed while they wait, subscribe, track or watch: later commands, also
// of the same pipeline or transaction, do not find them.
#include "cache/clients/engine_clients.hpp"
#include "cache/engine/engine.hpp"
#include "cache/testing/test_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::test_client;

class closed_clients : public ::testing::Test {
protected:
    struct wait {
        const char* command;
        const char* push;
        const char* left;  // asked behind it
        const char* all;   // the reply to that where nothing was taken
    };
    static constexpr wait waits[] = {
        // command, push, question, reply
        {"BLPOP l 0", "RPUSH l 1", "LLEN l", ":1\r\n"},
        {"BRPOP m l 0", "LPUSH l 1", "LLEN l", ":1\r\n"},
        {"BLMOVE l m LEFT RIGHT 0", "RPUSH l 1", "LLEN l", ":1\r\n"},
        {"BRPOPLPUSH l m 0", "RPUSH l 1", "LLEN l", ":1\r\n"},
        {"BLMPOP 0 2 m l LEFT COUNT 2", "RPUSH l 1 2", "LLEN l", ":2\r\n"},
        {"BZPOPMIN z 0", "ZADD z 1 a", "ZCARD z", ":1\r\n"},
        {"BZPOPMAX z 0", "ZADD z 1 a", "ZCARD z", ":1\r\n"},
        {"BZMPOP 0 1 z MIN", "ZADD z 1 a", "ZCARD z", ":1\r\n"},
        {"XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "XADD s 1-1 f v", "XPENDING s g",
         "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n"},
    };
    static std::string id_of(test_client& of) { return std::to_string(of.who().id); }

    std::string field(const std::string& name) {
        const std::string info = b_("INFO");
        const std::size_t value = info.find("\n" + name + ":") + name.size() + 2;
        return info.substr(value, info.find('\r', value) - value);
    }

    // All commands in one call, as a worker has the engine execute a pipeline.
    std::string pipeline(test_client& by, const std::vector<std::string>& lines) {
        std::vector<testing::arguments> words;
        for (const std::string& each : lines) words.push_back(testing::split(each));
        std::vector<std::vector<std::string_view>> views;
        std::vector<resp::command> commands;
        for (const testing::arguments& each : words) views.emplace_back(each.begin(), each.end());
        for (const auto& each : views) commands.push_back({each.data(), each.size()});
        byte_buffer out;
        EXPECT_EQ(engine_.execute(by.who(), commands, out), commands.size());
        return std::string(out.text());
    }

    engine engine_;
    test_client a_{engine_};
    test_client b_{engine_};
};

TEST_F(closed_clients, the_rest_of_a_pipeline_gives_them_nothing) {
    for (const wait& each : waits) {
        b_("FLUSHALL");
        b_("XGROUP CREATE s g $ MKSTREAM");
        test_client waiting(engine_);
        EXPECT_EQ(waiting(each.command), "") << each.command;
        const std::string replies = pipeline(
            b_, {"CLIENT KILL ID " + id_of(waiting), each.push, each.left, "INFO clients"});
        EXPECT_THAT(replies, StartsWith(":1\r\n")) << each.command;
        EXPECT_THAT(replies, HasSubstr(each.all)) << each.command;
        EXPECT_THAT(replies, HasSubstr("connected_clients:2\r\n")) << each.command;
        EXPECT_THAT(replies, HasSubstr("blocked_clients:0\r\n")) << each.command;
        EXPECT_TRUE(waiting.closed());
        EXPECT_EQ(waiting.pushed(), "");
    }
}

TEST_F(closed_clients, the_rest_of_a_transaction_gives_them_nothing) {
    for (const wait& each : waits) {
        b_("FLUSHALL");
        b_("XGROUP CREATE s g $ MKSTREAM");
        test_client waiting(engine_);
        EXPECT_EQ(waiting(each.command), "") << each.command;
        for (const std::string& line : {std::string("MULTI"), "CLIENT KILL ID " + id_of(waiting),
                                        std::string(each.push), std::string(each.left)})
            b_(line);
        const std::string replies = b_("EXEC");
        EXPECT_THAT(replies, StartsWith("*3\r\n:1\r\n")) << each.command;
        EXPECT_THAT(replies, HasSubstr(each.all)) << each.command;
        EXPECT_EQ(waiting.pushed(), "");
    }
}

TEST_F(closed_clients, those_behind_them_get_what_they_wait_for) {
    std::vector<std::unique_ptr<test_client>> waiting;
    std::vector<std::string> commands;
    std::string pushed;
    for (int i = 0; i < 40; ++i) {
        test_client& made = *waiting.emplace_back(std::make_unique<test_client>(engine_));
        made("BLPOP l 0");
        if (i % 2 == 0) {
            commands.push_back("CLIENT KILL ID " + id_of(made));
            commands.push_back("RPUSH l " + std::to_string(i));
        }
    }
    pipeline(b_, commands);
    for (int i = 0; i < 40; ++i) {
        const std::string value = std::to_string(i - 1);
        EXPECT_EQ(waiting[static_cast<std::size_t>(i)]->pushed(),
                  i % 2 == 0 ? ""
                             : "*2\r\n$1\r\nl\r\n$" + std::to_string(value.size()) + "\r\n" +
                                   value + "\r\n");
    }
    EXPECT_EQ(b_("EXISTS l"), ":0\r\n");
}

TEST_F(closed_clients, they_are_in_no_list_and_no_count) {
    test_client subscriber(engine_);
    test_client watcher(engine_);
    test_client monitor(engine_);
    test_client tracker(engine_);
    subscriber("SUBSCRIBE c");
    subscriber("PSUBSCRIBE c*");
    watcher("WATCH k");
    watcher("MULTI");
    monitor("MONITOR");
    tracker("HELLO 3");
    tracker("CLIENT TRACKING ON BCAST");
    tracker("SSUBSCRIBE c");
    const std::string replies =
        pipeline(b_, {"CLIENT KILL SKIPME yes", "PUBLISH c 1", "SPUBLISH c 1", "PUBSUB NUMSUB c",
                      "PUBSUB NUMPAT", "PUBSUB CHANNELS", "PUBSUB SHARDCHANNELS", "SET k 1",
                      "CLIENT KILL SKIPME yes"});
    EXPECT_EQ(replies, ":5\r\n:0\r\n:0\r\n*2\r\n$1\r\nc\r\n:0\r\n:0\r\n*0\r\n*0\r\n+OK\r\n:0\r\n");
    EXPECT_EQ(field("connected_clients"), "1");
    EXPECT_EQ(field("tracking_clients"), "0");
    const std::string list = b_("CLIENT LIST");
    EXPECT_EQ(std::ranges::count(list, '\n'), 3);  // the reply's, and one line
    for (test_client* const each : {&subscriber, &watcher, &monitor, &tracker}) {
        EXPECT_TRUE(each->closed());
        EXPECT_EQ(each->pushed(), "");
    }
    EXPECT_THAT(b_("CLIENT TRACKING ON REDIRECT " + id_of(monitor)), HasSubstr("does not exist"));
}

TEST_F(closed_clients, one_over_its_output_limit_is_gone_for_the_next_command) {
    engine_options options;
    options.clients.output[static_cast<std::size_t>(client_class::pubsub)] = {.hard = 1000};
    engine small(options);
    test_client a(small);
    test_client b(small);
    a("SUBSCRIBE c");
    b("MULTI");
    b({"PUBLISH", "c", std::string(2000, 'x')});
    b("PUBLISH c 1");
    b("PUBSUB NUMSUB c");
    b("CLIENT LIST TYPE pubsub");
    EXPECT_EQ(b("EXEC"), "*4\r\n:1\r\n:0\r\n*2\r\n$1\r\nc\r\n:0\r\n$0\r\n\r\n");
    EXPECT_TRUE(a.closed());
}

TEST_F(closed_clients, one_whose_buffers_are_evicted_gets_nothing_more) {
    engine_options options;
    options.clients.max_memory = 256 * 1024;
    engine small(options);
    test_client big(small);
    test_client b(small);
    big("MULTI");
    for (int i = 0; i < 3; ++i) big({"SET", "k", std::string(50'000, 'x')});
    b("MULTI");
    for (int i = 0; i < 100 && !big.closed(); ++i) b({"SET", "k", std::string(10'000, 'x')});
    EXPECT_TRUE(big.closed());
    EXPECT_THAT(b("DISCARD"), StartsWith("+OK"));
    EXPECT_EQ(b("CLIENT KILL SKIPME yes"), ":0\r\n");
    EXPECT_THAT(b("INFO clients"), HasSubstr("connected_clients:1\r\n"));
}

TEST_F(closed_clients, one_that_quits_acts_no_more_while_its_replies_are_sent) {
    a_("HELLO 3");
    a_("SUBSCRIBE c");
    a_("CLIENT TRACKING ON BCAST");
    a_("QUIT");
    EXPECT_EQ(b_("PUBLISH c 1"), ":0\r\n");
    b_("SET k 1");
    EXPECT_EQ(a_.pushed(), "");
    // It can still be closed, where it takes no replies.
    EXPECT_THAT(b_("CLIENT LIST"), HasSubstr("flags=c "));
    EXPECT_EQ(b_("CLIENT KILL ID " + id_of(a_)), ":1\r\n");
    EXPECT_TRUE(a_.closed());
}

TEST_F(closed_clients, an_end_of_a_user_is_one_of_its_clients) {
    b_({"ACL", "SETUSER", "u", "on", "nopass", "+@all", "~*", "&*"});
    a_("AUTH u x");
    EXPECT_EQ(a_("BLPOP l 0"), "");
    b_("MULTI");
    b_("ACL DELUSER u");
    b_("RPUSH l 1");
    EXPECT_EQ(b_("EXEC"), "*2\r\n:1\r\n:1\r\n");
    EXPECT_EQ(b_("LLEN l"), ":1\r\n");
    EXPECT_TRUE(a_.closed());
}

// The reply of a wait that was served before the kill stays in the outbox: the popped value is in
// no list any more, and the connection may still send it.
TEST_F(closed_clients, what_one_was_given_before_is_kept_for_its_connection) {
    EXPECT_EQ(a_("BLPOP l 0"), "");
    EXPECT_EQ(pipeline(b_, {"RPUSH l 1", "CLIENT KILL ID " + id_of(a_)}), ":1\r\n:1\r\n");
    EXPECT_TRUE(a_.closed());
    EXPECT_EQ(a_.pushed(), "*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
    // A message is dropped, as in Redis.
    test_client subscriber(engine_);
    subscriber("SUBSCRIBE c");
    pipeline(b_, {"PUBLISH c 1", "CLIENT KILL ID " + id_of(subscriber)});
    EXPECT_EQ(subscriber.pushed(), "");
}

TEST_F(closed_clients, one_that_closes_itself_is_gone_behind_its_batch) {
    a_("HELLO 3");
    a_("SUBSCRIBE c");
    EXPECT_EQ(pipeline(a_, {"CLIENT KILL ID " + id_of(a_) + " SKIPME no"}), ":1\r\n");
    EXPECT_EQ(b_("PUBLISH c 1"), ":0\r\n");
    EXPECT_EQ(b_("PUBSUB NUMSUB c"), "*2\r\n$1\r\nc\r\n:0\r\n");
}

TEST_F(closed_clients, one_that_closes_itself_in_a_transaction_gets_the_replies_up_to_that) {
    for (const std::string& line :
         {std::string("MULTI"), std::string("SET k v"), "CLIENT KILL SKIPME no ID " + id_of(a_),
          std::string("SET k w")})
        a_(line);
    EXPECT_EQ(a_("EXEC"), "*3\r\n+OK\r\n:1\r\n");
    EXPECT_TRUE(a_.who().closing);
    EXPECT_EQ(b_("GET k"), "$1\r\nw\r\n");
}

TEST_F(closed_clients, a_connection_that_has_ended_is_given_nothing) {
    EXPECT_EQ(a_("BLPOP l 0"), "");
    engine_clients(engine_).retire(a_.who());
    EXPECT_EQ(b_("RPUSH l 1"), ":1\r\n");
    EXPECT_EQ(b_("LLEN l"), ":1\r\n");
    EXPECT_EQ(a_.pushed(), "");
}

}  // namespace
}  // namespace eddy::cache
