// Tests of several clients of one engine: transactions, messages, waits, limits. The replies are
// compared with Redis's in differential_clients_test.cpp; here is the rest.
#include "cache/clients/session_extras.hpp"
#include "cache/engine/engine.hpp"
#include "cache/testing/test_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::arguments;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::test_client;

constexpr std::string_view queued = "+QUEUED\r\n";
constexpr std::string_view ok = "+OK\r\n";

class clients : public ::testing::Test {
protected:
    void at(microseconds time) { engine_.set_time(time); }
    std::string field(std::string_view name) {
        const std::string info = b_("INFO");
        const std::size_t begin = info.find("\n" + std::string(name) + ":");
        if (begin == std::string::npos) return "none";
        const std::size_t value = begin + name.size() + 2;
        return info.substr(value, info.find('\r', value) - value);
    }

    engine engine_;
    test_client a_{engine_};
    test_client b_{engine_};
};

TEST_F(clients, a_transaction_has_a_limit_on_its_bytes) {
    engine_options options;
    options.clients.max_transaction = 10'000;
    engine small(options);
    test_client a(small);
    EXPECT_EQ(a("MULTI"), ok);
    const std::string value(1000, 'x');
    std::string reply;
    int taken = 0;
    while ((reply = a({"SET", "k", value})) == queued) ++taken;
    EXPECT_THAT(reply, StartsWith("-ERR the transaction is larger than the limit of 10000 bytes"));
    EXPECT_EQ(taken, 9);
    EXPECT_EQ(a("PING"), queued);  // and is kept no more
    EXPECT_THAT(a("EXEC"), StartsWith("-EXECABORT"));
    EXPECT_EQ(a("EXISTS k"), ":0\r\n");
    EXPECT_EQ(a("MULTI"), ok);
    EXPECT_EQ(a("SET k 1"), queued);
    EXPECT_EQ(a("EXEC"), "*1\r\n+OK\r\n");
}

TEST_F(clients, the_replies_of_a_transaction_have_a_limit_together) {
    engine_options options;
    options.max_reply = 10'000;
    engine small(options);
    test_client a(small);
    EXPECT_EQ(a({"SET", "k", std::string(4000, 'x')}), ok);
    EXPECT_EQ(a("MULTI"), ok);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(a("GET k"), queued);
    EXPECT_EQ(a("INCR n"), queued);
    const std::string reply = a("EXEC");
    EXPECT_LT(reply.size(), 16'000U);
    EXPECT_THAT(reply, StartsWith("*6\r\n$4000\r\n"));
    EXPECT_THAT(reply, EndsWith("x\r\n-ERR not run: this transaction's replies are larger than the "
                                "limit of 10000 bytes\r\n-ERR not run either\r\n-ERR not run "
                                "either\r\n"));
    EXPECT_EQ(a("EXISTS n"), ":0\r\n");
    // The next one begins anew.
    EXPECT_EQ(a("MULTI"), ok);
    EXPECT_EQ(a("INCR n"), queued);
    EXPECT_EQ(a("EXEC"), "*1\r\n:1\r\n");
}

TEST_F(clients, nothing_is_taken_in_a_transaction_that_is_not_replied) {
    engine_options options;
    options.max_reply = 10'000;
    engine small(options);
    test_client a(small);
    const std::string value(4000, 'x');
    const std::string bulk = "$4000\r\n" + value + "\r\n";
    for (int i = 0; i < 7; ++i) a({"RPUSH", "list", value});
    EXPECT_EQ(a("MULTI"), ok);
    EXPECT_EQ(a("LPOP list"), queued);
    EXPECT_EQ(a("LPOP list"), queued);
    EXPECT_EQ(a("LPOP list 3"), queued);  // more than one reply may have
    EXPECT_EQ(a("LPOP list 2"), queued);  // begins below the limit
    EXPECT_EQ(a("LPOP list"), queued);
    EXPECT_EQ(a("RPOPLPUSH list other"), queued);
    const std::string reply = a("EXEC");
    EXPECT_THAT(reply, StartsWith("*6\r\n" + bulk + bulk + "-ERR the reply is larger"));
    EXPECT_THAT(reply, HasSubstr("\r\n*2\r\n" + bulk + bulk + "-ERR not run: "));
    EXPECT_EQ(a("LLEN list"), ":3\r\n");
    EXPECT_EQ(a("EXISTS other"), ":0\r\n");
}

TEST_F(clients, a_transaction_without_replies_runs_as_a_whole) {
    engine_options options;
    options.max_reply = 10'000;
    engine small(options);
    test_client a(small);
    EXPECT_EQ(a({"SET", "k", std::string(4000, 'x')}), ok);
    EXPECT_EQ(a("CLIENT REPLY OFF"), "");
    EXPECT_EQ(a("MULTI"), "");
    for (int i = 0; i < 5; ++i) EXPECT_EQ(a("GET k"), "");
    EXPECT_EQ(a("INCR n"), "");
    EXPECT_EQ(a("EXEC"), "");
    EXPECT_EQ(a("CLIENT REPLY ON"), ok);
    EXPECT_EQ(a("GET n"), "$1\r\n1\r\n");
    // Commands after the switch are answered, without an array around the replies.
    for (const char* const line :
         {"CLIENT REPLY OFF", "MULTI", "INCR n", "CLIENT REPLY ON", "INCR n"})
        EXPECT_EQ(a(line), "");
    EXPECT_EQ(a("EXEC"), "+OK\r\n:3\r\n");
}

TEST_F(clients, out_of_memory_refuses_to_queue_and_to_execute) {
    engine_options options;
    options.max_memory = 1 << 20;
    engine small(options);
    test_client a(small);
    test_client b(small);
    EXPECT_EQ(a("MULTI"), ok);
    EXPECT_EQ(a("SET x 1"), queued);
    while (b({"RPUSH", "l", std::string(10'000, 'x')})[0] == ':') {
    }
    EXPECT_THAT(a("EXEC"), StartsWith("-EXECABORT Transaction discarded because of: OOM"));
    EXPECT_EQ(a("MULTI"), ok);
    EXPECT_THAT(a("GET x"), StartsWith("-OOM"));
    EXPECT_THAT(a("EXEC"), StartsWith("-EXECABORT Transaction discarded because of previous"));
}

TEST_F(clients, names_that_a_client_asks_for_have_a_limit) {
    engine_options options;
    options.clients.max_names = 10'000;
    engine small(options);
    test_client a(small);
    const std::string long_name(5'000, 'x');
    EXPECT_EQ(a({"WATCH", long_name}), ok);
    EXPECT_THAT(a({"WATCH", long_name + "y"}), StartsWith("-ERR too many watched keys"));
    EXPECT_EQ(a("UNWATCH"), ok);
    EXPECT_EQ(a({"WATCH", long_name + "y"}), ok);
    EXPECT_THAT(a({"SUBSCRIBE", long_name}), StartsWith("*3\r\n"));
    EXPECT_THAT(a({"PSUBSCRIBE", long_name}), StartsWith("-ERR too many subscriptions"));
    EXPECT_THAT(a({"SSUBSCRIBE", long_name}), StartsWith("-ERR too many subscriptions"));
    EXPECT_EQ(a("RESET"), "+RESET\r\n");
    EXPECT_THAT(a({"BLPOP", long_name + "y", "0"}), StartsWith("-ERR too many keys to wait for"));
    EXPECT_FALSE(a.who().blocked);
    EXPECT_EQ(a({"BLPOP", std::string(4'000, 'x'), "0"}), "");
    EXPECT_TRUE(a.who().blocked);
}

TEST_F(clients, a_session_that_goes_leaves_nothing_behind) {
    {
        test_client gone(engine_);
        gone("WATCH x y");
        gone("MULTI");
        gone("SET x 1");
    }
    {
        test_client gone(engine_);
        gone("SUBSCRIBE c d");
        gone("PSUBSCRIBE c* d*");
        gone("SSUBSCRIBE s");
    }
    {
        test_client gone(engine_);
        gone("BLPOP l m 0");
        EXPECT_EQ(field("blocked_clients"), "1");
    }
    {
        test_client gone(engine_);
        gone("MONITOR");
    }
    EXPECT_EQ(field("blocked_clients"), "0");
    EXPECT_EQ(field("pubsub_channels"), "0");
    EXPECT_EQ(field("pubsub_patterns"), "0");
    EXPECT_EQ(a_("PUBLISH c x"), ":0\r\n");
    EXPECT_EQ(a_("SPUBLISH s x"), ":0\r\n");
    EXPECT_EQ(a_("SET x 1"), ok);
    EXPECT_EQ(a_("RPUSH l 1"), ":1\r\n");
    EXPECT_EQ(a_("LLEN l"), ":1\r\n");
}

TEST_F(clients, a_message_wakes_who_gets_it_once) {
    a_("SUBSCRIBE c");
    EXPECT_FALSE(a_.woken());
    EXPECT_EQ(b_("PUBLISH c 1"), ":1\r\n");
    EXPECT_TRUE(a_.woken());
    EXPECT_EQ(b_("PUBLISH c 2"), ":1\r\n");
    EXPECT_EQ(a_.pushed(),
              "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n1\r\n"
              "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n2\r\n");
    EXPECT_EQ(a_.pushed(), "");
    // Earlier messages are sent before a command's reply.
    b_("PUBLISH c 3");
    EXPECT_EQ(a_("PING"),
              "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n3\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n");
}

TEST_F(clients, subscribers_get_what_their_protocol_has_for_messages) {
    a_("HELLO 3");
    a_("SUBSCRIBE c");
    EXPECT_EQ(a_("PUBLISH c x"), ":1\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n");
    EXPECT_EQ(a_("GET x"), "_\r\n");  // RESP3 allows all commands
    EXPECT_EQ(a_("UNSUBSCRIBE nosuch"), ">3\r\n$11\r\nunsubscribe\r\n$6\r\nnosuch\r\n:1\r\n");
}

TEST_F(clients, a_subscriber_over_the_hard_limit_is_closed) {
    a_("SUBSCRIBE c");
    EXPECT_EQ(b_({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 100kb 0 0"}), ok);
    const std::string message(10'000, 'x');
    int sent = 0;
    while (!a_.closed() && sent < 100) {
        EXPECT_EQ(b_({"PUBLISH", "c", message}), ":1\r\n");
        ++sent;
    }
    EXPECT_EQ(sent, 11);
    EXPECT_EQ(a_.pushed(), "");  // dropped
    EXPECT_EQ(field("client_output_buffer_limit_disconnections"), "1");
    EXPECT_EQ(b_("PING"), "+PONG\r\n");
}

TEST_F(clients, bytes_that_are_being_sent_count_for_the_limit) {
    a_("SUBSCRIBE c");
    b_({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 100kb 0 0"});
    const std::string message(60'000, 'x');
    b_({"PUBLISH", "c", message});
    EXPECT_GT(a_.pushed().size(), message.size());
    engine_.set_unsent(a_.who(), message.size());
    EXPECT_FALSE(a_.closed());
    b_({"PUBLISH", "c", message});
    EXPECT_TRUE(a_.closed());
}

TEST_F(clients, a_subscriber_may_be_over_the_soft_limit_for_a_while) {
    at(seconds(1000));
    b_({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 10kb 5"});
    a_("SUBSCRIBE c");
    const std::string message(8'000, 'x');
    b_({"PUBLISH", "c", message});
    b_({"PUBLISH", "c", message});
    at(seconds(1004));
    b_({"PUBLISH", "c", message});
    EXPECT_FALSE(a_.closed());
    // It catches up, and may fall behind anew.
    EXPECT_GT(a_.pushed().size(), 3 * message.size());
    engine_.set_unsent(a_.who(), 0);
    at(seconds(1006));
    b_({"PUBLISH", "c", message});
    b_({"PUBLISH", "c", message});
    EXPECT_FALSE(a_.closed());
    at(seconds(1012));
    b_({"PUBLISH", "c", message});
    EXPECT_TRUE(a_.closed());
}

TEST_F(clients, the_soft_limit_ends_a_subscriber_that_is_sent_nothing_more) {
    const auto due = [this] { return microseconds(engine_.outputs_due_us()); };
    const auto never = microseconds(client_session::no_deadline);
    at(seconds(1000));
    b_({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 10kb 5"});
    engine_.check_outputs();
    a_("SUBSCRIBE c");
    test_client slow(engine_);
    slow("SUBSCRIBE c");
    b_({"PUBLISH", "c", std::string(9'000, 'x')});
    EXPECT_EQ(due(), never);
    b_({"PUBLISH", "c", std::string(9'000, 'x')});
    EXPECT_EQ(due(), seconds(1005) + microseconds(1));
    // One of them takes all in time, the other one a part.
    at(seconds(1004));
    EXPECT_GT(a_.pushed().size(), 18'000U);
    engine_.set_unsent(a_.who(), 0);
    EXPECT_GT(slow.pushed().size(), 18'000U);
    engine_.set_unsent(slow.who(), 10'240);
    at(seconds(1005));
    engine_.check_outputs();
    EXPECT_FALSE(slow.closed());
    at(due());
    engine_.check_outputs();
    EXPECT_TRUE(slow.closed());
    EXPECT_FALSE(a_.closed());
    EXPECT_EQ(field("client_output_buffer_limit_disconnections"), "1");
    // No check of a client is pending.
    EXPECT_EQ(due(), never);
    // The soft limit's time starts again, by the engine's clock, not the system's.
    b_({"PUBLISH", "c", std::string(20'000, 'x')});
    EXPECT_EQ(due(), seconds(1010) + microseconds(2));
    engine_.set_time(seconds(9000), due() - microseconds(1));
    engine_.check_outputs();
    EXPECT_FALSE(a_.closed());
    engine_.set_time(seconds(9000), due());
    engine_.check_outputs();
    EXPECT_TRUE(a_.closed());
}

TEST_F(clients, the_soft_limit_ends_a_normal_client_that_does_not_take_a_reply) {
    at(seconds(1000));
    b_({"CONFIG", "SET", "client-output-buffer-limit", "normal 0 10kb 5"});
    engine_.check_outputs();
    engine_.set_unsent(a_.who(), 10'239);
    EXPECT_EQ(engine_.outputs_due_us(), client_session::no_deadline);
    engine_.set_unsent(a_.who(), 10'240);
    at(seconds(1002));
    engine_.set_unsent(b_.who(), 1'000'000'000);
    at(seconds(1004));
    engine_.set_unsent(b_.who(), 10'000);
    at(seconds(1006));
    engine_.check_outputs();
    EXPECT_TRUE(a_.closed());
    EXPECT_FALSE(b_.closed());
    EXPECT_EQ(engine_.outputs_due_us(), client_session::no_deadline);
    EXPECT_EQ(b_("PING"), "+PONG\r\n");
}

TEST_F(clients, a_new_limit_holds_for_what_waits_already) {
    struct holder final : client_session {
        using client_session::client_session;
        buffers held() const noexcept override { return {0, 50'000}; }
        void close_now() noexcept override { closed = true; }
        bool closed = false;
    };
    at(seconds(1000));
    holder sending(engine_);
    a_("SUBSCRIBE c");
    b_({"PUBLISH", "c", std::string(50'000, 'x')});
    EXPECT_EQ(engine_.outputs_due_us(), client_session::no_deadline);
    b_({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 10kb 5 normal 0 10kb 8"});
    EXPECT_EQ(microseconds(engine_.outputs_due_us()), seconds(1000));
    engine_.check_outputs();
    EXPECT_EQ(microseconds(engine_.outputs_due_us()), seconds(1005) + microseconds(1));
    at(seconds(1006));
    engine_.check_outputs();
    EXPECT_TRUE(a_.closed());
    EXPECT_FALSE(sending.closed);
    at(seconds(1009));
    engine_.check_outputs();
    EXPECT_TRUE(sending.closed);
}

// Replies in flight have limits of their own; the output buffer limit does not count them.
TEST_F(clients, a_reply_that_is_being_sent_is_not_what_others_sent) {
    engine_options options;
    options.clients.max_outbox = 100'000;
    engine small(options);
    test_client a(small);
    test_client b(small);
    a("SUBSCRIBE c");
    a("UNSUBSCRIBE c");
    small.set_unsent(a.who(), 200'000);
    EXPECT_FALSE(a.closed());
    EXPECT_EQ(a("PING"), "+PONG\r\n");
}

TEST_F(clients, without_a_limit_by_class_there_is_one_for_all) {
    engine_options options;
    options.clients.max_outbox = 100'000;
    options.clients.output = {};
    engine small(options);
    test_client a(small);
    test_client b(small);
    a("MONITOR");
    int sent = 0;
    while (!a.closed() && sent < 100) {
        b({"SET", "k", std::string(10'000, 'x')});
        ++sent;
    }
    EXPECT_EQ(sent, 10);
    // Also for what a client sends to itself.
    test_client self(small);
    self("HELLO 3");
    self("PSUBSCRIBE c* *1 c?");
    EXPECT_FALSE(self.who().closing);
    self({"PUBLISH", "c1", std::string(50'000, 'x')});
    EXPECT_TRUE(self.who().closing);
}

TEST_F(clients, a_normal_client_is_closed_over_its_limit) {
    b_({"CONFIG", "SET", "client-output-buffer-limit", "normal 10kb 0 0"});
    a_({"SET", "k", std::string(9'000, 'x')});
    EXPECT_GT(a_("GET k").size(), 9'000U);
    a_({"SET", "k", std::string(11'000, 'x')});
    EXPECT_EQ(a_("GET k"), "");
    EXPECT_TRUE(a_.closed());
}

TEST_F(clients, monitor_shows_what_others_execute) {
    at(microseconds(1'700'000'000'000'042));
    EXPECT_EQ(a_("MONITOR"), ok);
    EXPECT_EQ(a_("MONITOR"), "");
    b_("SELECT 3");
    b_({"SET", "k", "a \"b\"\n\x01\xff\\"});
    b_("CONFIG GET port");
    b_("NOSUCH");
    b_("GET");
    b_("AUTH x");
    b_("MULTI");
    b_("GET k");
    b_("EXEC");
    const std::string head = "+1700000000.000042 [3 test:1] ";
    EXPECT_EQ(a_.pushed(), head + "\"SELECT\" \"3\"\r\n" + head +
                               R"("SET" "k" "a \"b\"\n\x01\xff\\")" + "\r\n" + head +
                               "\"AUTH\" \"(redacted)\"\r\n" + head + "\"MULTI\"\r\n" + head +
                               "\"GET\" \"k\"\r\n" + head + "\"EXEC\"\r\n");
    EXPECT_THAT(a_("PING"), HasSubstr("[0 test:1] \"PING\""));
    EXPECT_EQ(a_("RESET"), "+RESET\r\n");
    b_("GET k");
    EXPECT_EQ(a_.pushed(), "");
}

TEST_F(clients, those_of_a_unix_socket_are_shown_by_its_path) {
    b_.who().address = "/run/cache.sock:0";
    a_("MONITOR");
    b_("GET k");
    EXPECT_THAT(a_.pushed(), HasSubstr(" [0 unix:/run/cache.sock] \"GET\" \"k\"\r\n"));
    EXPECT_THAT(b_("CLIENT INFO"), HasSubstr(" flags=U "));
}

TEST_F(clients, who_waits_first_is_served_first_however_many_there_are) {
    constexpr int waiting = 500;
    std::vector<std::unique_ptr<test_client>> all;
    for (int i = 0; i < waiting; ++i) {
        all.push_back(std::make_unique<test_client>(engine_));
        EXPECT_EQ((*all.back())(i % 2 == 0 ? "BLPOP l k 0" : "BRPOP k l 0"), "");
    }
    EXPECT_EQ(field("blocked_clients"), "500");
    for (int i = 0; i < waiting; ++i) {
        b_("RPUSH l " + std::to_string(i));
        EXPECT_TRUE(all[static_cast<std::size_t>(i)]->woken());
        EXPECT_THAT(all[static_cast<std::size_t>(i)]->pushed(),
                    HasSubstr("\r\n" + std::to_string(i) + "\r\n"));
    }
    EXPECT_EQ(field("blocked_clients"), "0");
}

TEST_F(clients, what_comes_behind_a_wait_waits_too) {
    EXPECT_EQ(a_("BLPOP l 0"), "");
    EXPECT_EQ(a_("SET x 1"), "");
    EXPECT_EQ(a_("GET x"), "");
    EXPECT_EQ(b_("EXISTS x"), ":0\r\n");
    EXPECT_EQ(b_("RPUSH l v"), ":1\r\n");
    EXPECT_EQ(a_.pushed(), "*2\r\n$1\r\nl\r\n$1\r\nv\r\n+OK\r\n$1\r\n1\r\n");
}

TEST_F(clients, a_wait_ends_at_its_time) {
    at(seconds(1000));
    a_("BLPOP l 1.5");
    EXPECT_EQ(engine::deadline_us(a_.who()), microseconds(milliseconds(1'001'500)).count());
    at(milliseconds(1'001'499));
    engine_.end_wait(a_.who());
    EXPECT_TRUE(a_.who().blocked);
    at(milliseconds(1'001'500));
    engine_.end_wait(a_.who());
    EXPECT_FALSE(a_.who().blocked);
    EXPECT_EQ(a_.pushed(), "*-1\r\n");
    a_("BLPOP l 0");
    EXPECT_EQ(engine::deadline_us(a_.who()), client_session::no_deadline);
}

TEST_F(clients, a_pause_holds_up_all_commands_and_ends_by_itself) {
    at(seconds(1000));
    EXPECT_EQ(b_("CLIENT PAUSE 2000 WRITE"), ok);
    EXPECT_EQ(b_("CLIENT PAUSE 1000 ALL"), ok);
    EXPECT_EQ(a_("GET x"), "");
    EXPECT_EQ(a_("SET x 1"), "");
    EXPECT_TRUE(a_.who().blocked);
    EXPECT_EQ(engine::deadline_us(a_.who()), microseconds(seconds(1002)).count());
    at(seconds(1001));
    engine_.end_wait(a_.who());
    EXPECT_EQ(a_.pushed(), "");
    at(seconds(1002));
    engine_.end_wait(a_.who());
    EXPECT_EQ(a_.pushed(), "$-1\r\n+OK\r\n");
    EXPECT_EQ(b_("GET x"), "$1\r\n1\r\n");
    EXPECT_EQ(field("blocked_clients"), "0");
}

TEST_F(clients, who_waits_for_the_end_of_a_pause_is_counted_as_blocked) {
    EXPECT_EQ(b_("CLIENT PAUSE 100000 WRITE"), ok);
    EXPECT_EQ(a_("SET x 1"), "");
    {
        test_client gone(engine_);
        EXPECT_EQ(gone("SET x 2"), "");
        EXPECT_EQ(field("blocked_clients"), "2");
    }
    EXPECT_EQ(field("blocked_clients"), "1");
    EXPECT_EQ(b_("CLIENT PAUSE 200000 WRITE"), ok);
    EXPECT_EQ(field("blocked_clients"), "1");
    EXPECT_EQ(b_("CLIENT UNPAUSE"), ok);
    EXPECT_EQ(a_.pushed(), ok);
    EXPECT_EQ(field("blocked_clients"), "0");
}

TEST_F(clients, a_count_that_is_kept_with_the_key_is_a_change) {
    a_("PFADD h a");
    for (const char* const result : {"*-1\r\n", "*1\r\n+PONG\r\n"}) {
        EXPECT_EQ(a_("WATCH h"), ok);
        EXPECT_EQ(b_("PFCOUNT h"), ":1\r\n");
        EXPECT_EQ(a_("MULTI"), ok);
        EXPECT_EQ(a_("PING"), "+QUEUED\r\n");
        EXPECT_EQ(a_("EXEC"), result) << "it is kept by the first PFCOUNT alone";
    }
}

TEST_F(clients, a_pause_of_writes_holds_up_what_reads_and_changes) {
    at(seconds(1000));
    a_("PFADD h a");
    a_("SET short v EX 1");
    EXPECT_EQ(b_("CLIENT PAUSE 100000 WRITE"), ok);
    EXPECT_EQ(a_("PFCOUNT h"), "") << "it may keep the count with the key";
    at(seconds(1030));
    EXPECT_EQ(b_("GET short"), "$-1\r\n");
    EXPECT_EQ(b_("DBSIZE"), ":2\r\n") << "nothing ends meanwhile";
    EXPECT_EQ(b_("CLIENT UNPAUSE"), ok);
    EXPECT_EQ(a_.pushed(), ":1\r\n");
    EXPECT_EQ(b_("GET short"), "$-1\r\n");
    EXPECT_EQ(b_("DBSIZE"), ":1\r\n");
}

TEST_F(clients, a_random_key_is_told_though_all_are_over_and_none_may_go) {
    at(seconds(1000));
    for (const std::string key : {"k1", "k2", "k3"}) a_({"SET", key, "v", "EX", "1"});
    EXPECT_EQ(b_("CLIENT PAUSE 100000 WRITE"), ok);
    at(seconds(1030));
    EXPECT_THAT(b_("RANDOMKEY"), StartsWith("$2\r\nk"));
    EXPECT_EQ(b_("DBSIZE"), ":3\r\n");
    EXPECT_EQ(b_("CLIENT UNPAUSE"), ok);
    EXPECT_EQ(b_("RANDOMKEY"), "$-1\r\n");
    EXPECT_EQ(b_("DBSIZE"), ":0\r\n");
}

TEST_F(clients, a_random_key_is_one_that_lasts_among_many_that_are_over) {
    at(seconds(1000));
    a_("SET lasting v");
    for (int i = 0; i < 50; ++i) a_({"SET", "k" + std::to_string(i), "v", "EX", "1"});
    EXPECT_EQ(b_("CLIENT PAUSE 100000 WRITE"), ok);
    at(seconds(1030));
    for (int i = 0; i < 20; ++i) ASSERT_EQ(b_("RANDOMKEY"), "$7\r\nlasting\r\n");
    EXPECT_EQ(b_("CLIENT UNPAUSE"), ok);
    EXPECT_EQ(b_("RANDOMKEY"), "$7\r\nlasting\r\n");
    // More than it looks for at a time.
    for (int i = 0; i < 5'000; ++i) a_({"SET", "k" + std::to_string(i), "v", "EX", "1"});
    a_("DEL lasting");
    at(seconds(1060));
    EXPECT_THAT(b_("RANDOMKEY"), HasSubstr("\r\nk"));
}

TEST_F(clients, a_pause_of_writes_lets_scripts_go_on_that_say_they_do_not_write) {
    if (a_({"EVAL", "return 1", "0"}).starts_with("-")) GTEST_SKIP() << "there are no scripts";
    test_client c(engine_);
    a_("CLIENT PAUSE 100000 WRITE");
    EXPECT_EQ(b_({"EVAL", "#!lua flags=no-writes\nreturn 1", "0"}), ":1\r\n");
    EXPECT_EQ(b_({"EVAL", "return 1", "0"}), "") << "it may write";
    EXPECT_EQ(c({"EVAL", "#!lua\nreturn 1", "0"}), "");
    a_("CLIENT UNPAUSE");
    EXPECT_EQ(b_.pushed(), ":1\r\n");
    EXPECT_EQ(c.pushed(), ":1\r\n");
}

TEST_F(clients, an_earlier_key_of_a_wrong_type_ends_the_wait) {
    constexpr std::string_view wrong_type =
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    for (const std::string_view wait :
         {"BLPOP a b 0", "BRPOP a b 0", "BLMPOP 0 2 a b LEFT", "BZPOPMIN a b 0", "BZPOPMAX a b 0",
          "BZMPOP 0 2 a b MIN", "XREAD BLOCK 0 STREAMS a b 0 0"}) {
        const bool is_list = wait.find('L') == 1 || wait.find('R') == 1;
        const std::string fill = wait.starts_with("X") ? "XADD b 1-1 f v"
                                 : is_list             ? "RPUSH b v"
                                                       : "ZADD b 1 v";
        a_("FLUSHALL");
        EXPECT_EQ(b_(std::string(wait)), "") << wait;
        EXPECT_EQ(a_("SET a x"), ok);
        EXPECT_EQ(b_.pushed(), "") << wait;
        a_("SET b x");
        EXPECT_EQ(b_.pushed(), "") << wait << ": nothing is there that it waits for";
        a_("DEL b");
        a_(fill);
        EXPECT_EQ(b_.pushed(), wrong_type) << wait;
        EXPECT_EQ(a_("EXISTS b"), ":1\r\n") << wait << " took it";
        EXPECT_EQ(field("blocked_clients"), "0") << wait;
    }
}

TEST_F(clients, an_earlier_key_that_is_there_is_served_first) {
    EXPECT_EQ(b_("BLPOP a b c 0"), "");
    a_("MULTI");
    a_("RPUSH c 3");
    a_("RPUSH b 2");
    a_("SET c x");
    EXPECT_THAT(a_("EXEC"), StartsWith("*3"));
    EXPECT_EQ(b_.pushed(), "*2\r\n$1\r\nb\r\n$1\r\n2\r\n");
}

TEST_F(clients, timeouts_beyond_the_clock_are_refused) {
    at(seconds(1'700'000'000));
    for (const std::string_view command :
         {"WAIT 2 9223372036854775807", "WAITAOF 0 1 9223372036854775807",
          "XREAD BLOCK 9223372036854775807 STREAMS s 0", "CLIENT PAUSE 9223372036854775807"}) {
        EXPECT_EQ(a_(std::string(command)), "-ERR timeout is out of range\r\n") << command;
    }
}

TEST_F(clients, blocking_keys_are_counted) {
    a_("BLPOP l m 0");
    b_("XGROUP CREATE s g $ MKSTREAM");
    b_("XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
    test_client c(engine_);
    EXPECT_THAT(c("INFO clients"),
                HasSubstr("total_blocking_keys:3\r\ntotal_blocking_keys_on_nokey:1\r\n"));
}

TEST_F(clients, a_killed_client_executes_nothing_more) {
    a_("SUBSCRIBE c");
    b_("PUBLISH c x");
    EXPECT_EQ(b_("CLIENT KILL TYPE pubsub"), ":1\r\n");
    EXPECT_TRUE(a_.closed());
    EXPECT_EQ(a_.pushed(), "");
    EXPECT_EQ(a_("RESET"), "");
    EXPECT_EQ(b_("CLIENT KILL ADDR test:1 SKIPME no"), ":1\r\n");  // the other one is gone already
    EXPECT_TRUE(b_.who().closing);
    EXPECT_FALSE(b_.closed());  // its reply is sent before
}

TEST_F(clients, client_list_tells_what_they_do) {
    a_("MULTI");
    a_("PING");
    EXPECT_THAT(b_("CLIENT LIST"), HasSubstr("flags=x db=0 sub=0 psub=0 ssub=0 multi=1"));
    a_("DISCARD");
    a_("SUBSCRIBE c d");
    a_("PSUBSCRIBE p");
    EXPECT_THAT(b_("CLIENT LIST TYPE pubsub"),
                HasSubstr("flags=P db=0 sub=2 psub=1 ssub=0 multi=-1"));
    a_("RESET");
    a_("BLPOP l 0");
    EXPECT_THAT(b_("CLIENT LIST"), HasSubstr("flags=b "));
    // The command that runs is in the query buffer.
    EXPECT_THAT(b_("CLIENT LIST"), HasSubstr(" qbuf=26 "));
    EXPECT_THAT(b_("CLIENT INFO"), HasSubstr("cmd=client|info user=default redir=-1 resp=2"));
    const std::string id = std::to_string(b_.who().id);
    EXPECT_THAT(b_({"CLIENT", "LIST", "ID", id}), HasSubstr("\r\nid=" + id + " "));
    test_client other(engine_);
    for (const std::string command :
         {"CONFIG GET", "SLOWLOG LEN", "SCRIPT EXISTS", "MEMORY USAGE", "FUNCTION STATS",
          "LATENCY LATEST", "Cluster Info", "OBJECT FREQ"}) {
        const bool is_whole = command == "CONFIG GET" || command == "SCRIPT EXISTS" ||
                              command.starts_with("MEMORY") || command.starts_with("OBJECT");
        other(command + (is_whole ? " x" : ""));
        std::string name = command;
        for (char& each : name) each = each == ' ' ? '|' : static_cast<char>(std::tolower(each));
        EXPECT_THAT(b_("CLIENT LIST"), HasSubstr(" cmd=" + name + " "));
    }
    // Also of what is queued, and of what is refused.
    other("MULTI");
    other("CONFIG GET x");
    EXPECT_THAT(b_("CLIENT LIST"), HasSubstr(" cmd=config|get "));
    other("EXEC");
    EXPECT_THAT(b_("CLIENT LIST"), HasSubstr(" cmd=exec "));
    other("GET");
    EXPECT_THAT(b_("CLIENT LIST"), HasSubstr(" cmd=get "));
    other("NOSUCH");
    EXPECT_THAT(b_("CLIENT LIST"), HasSubstr(" cmd=NULL "));
    other("SUBSCRIBE c");
    EXPECT_THAT(other("CONFIG GET x"), StartsWith("-ERR Can't execute 'config|get': "));
    EXPECT_THAT(other("Slowlog Len"), StartsWith("-ERR Can't execute 'slowlog|len': "));
}

TEST_F(clients, changes_are_counted) {
    EXPECT_EQ(field("rdb_changes_since_last_save"), "0");
    a_("SET a 1");
    a_("RPUSH l a b c");
    a_("SADD s 1 2 1");
    a_("SADD s 1");
    a_("DEL nosuch");
    a_("HSET h a 1 b 2");
    EXPECT_EQ(field("rdb_changes_since_last_save"), "8");
    a_("FLUSHALL");
    EXPECT_EQ(field("rdb_changes_since_last_save"), "12");
}

TEST_F(clients, evicted_and_expired_keys_are_events_and_break_transactions) {
    engine_options options;
    options.max_memory = 1 << 20;
    options.policy = eviction::allkeys_lru;
    engine small(options);
    small.set_time(seconds(1000));
    test_client a(small);
    test_client b(small);
    test_client watching(small);
    EXPECT_EQ(b("CONFIG SET notify-keyspace-events Eex"), ok);
    a("PSUBSCRIBE *");
    EXPECT_EQ(b("SET soon 1 PX 10"), ok);
    small.set_time(seconds(1001));
    small.upkeep();
    EXPECT_THAT(a.pushed(), HasSubstr("$22\r\n__keyevent@0__:expired\r\n$4\r\nsoon\r\n"));
    EXPECT_EQ(b("SET k 1"), ok);
    watching("WATCH k");
    for (int i = 0; i < 20'000; ++i) {
        b({"SET", "key" + std::to_string(i), std::string(1000, 'x')});
    }
    EXPECT_NE(a.pushed().find("__keyevent@0__:evicted\r\n$1\r\nk\r\n"), std::string::npos);
    watching("MULTI");
    EXPECT_EQ(watching("EXEC"), "*-1\r\n");
}

TEST_F(clients, who_is_not_to_touch_keys_leaves_their_use_as_it_was) {
    engine_options options;
    options.max_memory = 100U << 20;
    options.policy = eviction::allkeys_lfu;
    engine home(options);
    test_client user(home);
    test_client looker(home);
    EXPECT_EQ(looker("CLIENT NO-TOUCH maybe"), "-ERR syntax error\r\n");
    EXPECT_EQ(looker("CLIENT NO-TOUCH ON"), ok);
    EXPECT_THAT(looker("CLIENT INFO"), HasSubstr(" flags=T "));
    EXPECT_EQ(user("SET k v"), ok);
    const std::string before = looker("OBJECT FREQ k");
    for (int i = 0; i < 10; ++i) EXPECT_EQ(looker("GET k"), "$1\r\nv\r\n");
    EXPECT_EQ(looker("OBJECT FREQ k"), before);
    // Other clients' commands still count as uses, and so does TOUCH of this one.
    EXPECT_EQ(looker("TOUCH k"), ":1\r\n");
    const std::string touched = looker("OBJECT FREQ k");
    EXPECT_GT(touched, before);
    EXPECT_EQ(user("GET k"), "$1\r\nv\r\n");
    const std::string used = looker("OBJECT FREQ k");
    EXPECT_GT(used, touched);
    EXPECT_EQ(looker("CLIENT NO-TOUCH off"), ok);
    EXPECT_EQ(looker("GET k"), "$1\r\nv\r\n");
    EXPECT_GT(looker("OBJECT FREQ k"), used);
    // RESET ends it.
    EXPECT_EQ(looker("CLIENT NO-TOUCH on"), ok);
    EXPECT_EQ(looker("RESET"), "+RESET\r\n");
    EXPECT_THAT(looker("CLIENT INFO"), HasSubstr(" flags=N "));
}

TEST_F(clients, a_session_that_does_nothing_special_stays_small) {
    a_("SET x 1");
    a_("GET x");
    EXPECT_EQ(a_.who().extras, nullptr);
    EXPECT_LE(sizeof(client_session), 288U);
    a_("MULTI");
    EXPECT_NE(a_.who().extras, nullptr);
}

}  // namespace
}  // namespace eddy::cache
