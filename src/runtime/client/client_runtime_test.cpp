// Tests of the client: connections that end, the queue while there is none, a stop, and followers.
#include "runtime/client/client_runtime.hpp"

#include "runtime/client/testing.hpp"
#include "runtime/serving/inherited_listeners.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

namespace eddy::runtime::client {
namespace {

using namespace client::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(client_runtime_test);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(client_runtime_kernel);

TEST_P(client_runtime_test, a_stop_ends_an_attempt) {
    run([]() -> task<void> {
        listen_options short_queue;
        short_queue.backlog = loop::current().kind() == io_backend_kind::sim ? 1 : 0;
        const listener server = any_server(short_queue);
        const stream in_queue = must(co_await loop::current().connect(server.local()));
        subject client("client", to(server, {{"connect_timeout", "1h"}}));
        co_await client.start();
        EXPECT_EQ(must_do(co_await client->send("early")), 0U);
        co_await client->stop(1h);
        EXPECT_EQ(client->count().errors, 0U);
        EXPECT_EQ(client->lost(), "1 message that waited for tcp://" + server.local().to_string());
    });
}

TEST_P(client_runtime_test, connects_again) {
    run([]() -> task<void> {
        listener server = any_server();
        const endpoint where = server.local();
        subject client("client", to(server));
        server.close();
        co_await client.start();
        co_await disconnected(client);
        EXPECT_THAT(client->fault(), HasSubstr("it tries again"));
        server = server_on(where);
        for (std::uint64_t i = 1; i <= 3; ++i) {
            talker peer = co_await accept(server);
            co_await until([&] { return client->count().connections_total == i; });
        }
        EXPECT_EQ(sample_of(*client, "reconnects_total"), 2.0);
        co_await client->stop(1h);
        co_await client.start();
        talker peer = co_await accept(server);
        co_await connected(client);
        EXPECT_EQ(sample_of(*client, "reconnects_total"), 2.0) << "a start makes no reconnect";
        co_await client->stop(1h);
        EXPECT_EQ(client->count().connections_now, 0U);
        EXPECT_EQ(sample_of(*client, "connected"), 0.0);
    });
}

TEST_P(client_runtime_test, what_waits_is_sent_in_order_once_it_is_connected_again) {
    run([]() -> task<void> {
        listener server = any_server();
        const endpoint where = server.local();
        subject client("client", to(server));
        co_await client.start();
        talker peer = co_await accept(server);
        co_await connected(client);
        EXPECT_EQ(must_do(co_await client->send("first")), 1U);
        EXPECT_EQ(co_await peer.line(), "first");
        server.close();
        peer.socket.close();
        co_await disconnected(client);
        EXPECT_EQ(must_do(co_await client->send("second")), 0U);
        EXPECT_EQ(must_do(co_await client->send("third\nfourth")), 0U);
        EXPECT_EQ(sample_of(*client, "queued_bytes"), 20.0);
        server = server_on(where);
        peer = co_await accept(server);
        EXPECT_LE(must_do(co_await client->send("last")), 1U);
        for (const char* each : {"second", "third", "fourth", "last"})
            EXPECT_EQ(co_await peer.line(), each);
        co_await until([&] { return sample_of(*client, "queued_bytes") == 0.0; });
        EXPECT_EQ(client->count().messages_out, 5U);
        EXPECT_EQ(client->count().dropped, 0U);
        co_await client->stop(1h);
        EXPECT_EQ(co_await peer.rest(), "");
    });
}

// The simulator takes bytes for an end that is gone, until its reset arrives.
TEST_P(client_runtime_kernel, what_may_have_been_sent_is_not_repeated) {
    run([]() -> task<void> {
        listener server = any_server();
        subject client("client", to(server, {{"queue", "64M"}, {"framing", "raw"}}));
        co_await client.start();
        talker peer = co_await accept(server);
        co_await connected(client);
        // More than the sockets hold: the server has a part of it when the connection ends.
        must_do(co_await client->send(std::string(16 << 20, 'x')));
        must_do(co_await client->send("whole"));
        EXPECT_EQ(co_await peer.bytes(3), "xxx");
        EXPECT_EQ(sample_of(*client, "queued_messages"), 1.0);
        peer.socket.abort();
        peer = co_await accept(server);
        EXPECT_EQ(co_await peer.bytes(5), "whole");
        EXPECT_EQ(client->count().dropped, 1U);
        EXPECT_EQ(client->count().messages_out, 1U);
        co_await client->stop(1h);
        EXPECT_EQ(co_await peer.rest(), "");
    });
}

TEST_P(client_runtime_test, what_waits_for_a_slow_server_is_limited) {
    run([]() -> task<void> {
        listener server = any_server();
        subject client("client", to(server));
        co_await client.start();
        const talker peer = co_await accept(server);
        co_await connected(client);
        const std::string message(100'000, 'x');
        std::uint64_t sent = 0;
        auto last = co_await client->send(message);
        for (; last; ++sent) {
            last = co_await client->send(message);
            co_await loop::current().yield();
        }
        EXPECT_EQ(last.error().status, 503);
        EXPECT_THAT(last.error().message, HasSubstr("at most 1048576 may"));
        EXPECT_EQ(client->count().connections_now, 1U);
        co_await client->stop(0s);
        EXPECT_THAT(client->lost(), HasSubstr("messages that waited for"));
        EXPECT_EQ(client->count().messages_out + client->count().dropped, sent);
    });
}

TEST_P(client_runtime_test, a_stop_sends_what_waits) {
    run([]() -> task<void> {
        listener server = any_server();
        subject client("client", to(server, {{"queue", "64M"}}));
        co_await client.start();
        talker peer = co_await accept(server);
        co_await connected(client);
        std::string all(16 << 20, 'x');
        must_do(co_await client->send(all));
        must_do(co_await client->send("last"));
        scope stopping;
        stopping.spawn(client->stop(1h));
        EXPECT_THAT((co_await client->send("late")).error().message, HasSubstr("not running"));
        EXPECT_EQ((co_await peer.rest()).size(), all.size() + 6);
        co_await stopping.join();
        EXPECT_EQ(client->lost(), "");
        EXPECT_EQ(client->count().dropped, 0U);
    });
}

TEST_P(client_runtime_test, the_end_of_the_drain_ends_a_stop) {
    run([]() -> task<void> {
        listener server = any_server();
        subject client("client", to(server, {{"queue", "64M"}}));
        co_await client.start();
        const talker peer = co_await accept(server);
        co_await connected(client);
        must_do(co_await client->send(std::string(16 << 20, 'x')));
        scope stopping;
        stopping.spawn(client->stop(1h));
        client->end_drain();
        co_await stopping.join();
        EXPECT_EQ(client->count().dropped, 1U);
    });
}

/// The queue of a client, as a restart gets it.
task<std::shared_ptr<inherited_listeners>> queue_of(subject& client, json next) {
    must_do(co_await client->hand_over(client.parse(next), std::make_shared<handover>(), 1h));
    co_return co_await client->hand_over_listeners();
}

TEST_P(client_runtime_test, the_next_instance_gets_what_waits) {
    run([]() -> task<void> {
        subject first("client", {{"target", closed_address().to_string()}});
        co_await first.start();
        co_await disconnected(first);
        must_do(co_await first->send("one\ntwo"));
        must_do(co_await first->send("three"));
        listener server = any_server();
        auto queue = co_await queue_of(first, to(server));
        EXPECT_EQ((co_await first->send("late")).error().status, 503);
        co_await first->stop(1h);
        EXPECT_EQ(first->lost(), "");
        EXPECT_EQ(first->count().dropped, 0U);
        successor next("client", to(server), std::move(queue));
        must_do(co_await next->start());
        talker peer = co_await accept(server);
        must_do(co_await next->send("four"));
        for (const char* each : {"one", "two", "three", "four"})
            EXPECT_EQ(co_await peer.line(), each);
        co_await next->stop(1h);
        EXPECT_EQ(next->count().dropped, 0U);
        must_do(co_await next->start());
        peer = co_await accept(server);
        must_do(co_await next->send("five"));
        EXPECT_EQ(co_await peer.line(), "five") << "they are queued once";
        co_await next->stop(1h);
    });
}

TEST_P(client_runtime_test, a_restart_sends_first_if_there_is_a_connection) {
    run([]() -> task<void> {
        listener server = any_server();
        subject client("client", to(server));
        co_await client.start();
        talker peer = co_await accept(server);
        co_await connected(client);
        must_do(co_await client->send("one\ntwo"));
        const auto queue = co_await queue_of(client, to(server));
        EXPECT_EQ(sample_of(*client, "queued_messages"), 0.0);
        for (const char* each : {"one", "two"}) EXPECT_EQ(co_await peer.line(), each);
        EXPECT_EQ(client->count().messages_out, 2U);
        co_await client->stop(1h);
    });
}

TEST_P(client_runtime_test, a_restart_that_does_not_come_leaves_the_queue) {
    run([]() -> task<void> {
        listener server = any_server();
        const endpoint where = server.local();
        subject client("client", to(server));
        server.close();
        co_await client.start();
        co_await disconnected(client);
        must_do(co_await client->send("one\ntwo"));
        const auto queue = co_await queue_of(client, to(server));
        must_do(client->take_back(*queue));
        must_do(co_await client->send("three"));
        server = server_on(where);
        talker peer = co_await accept(server);
        for (const char* each : {"one", "two", "three"}) EXPECT_EQ(co_await peer.line(), each);
        co_await client->stop(1h);
        EXPECT_EQ(client->count().dropped, 0U);
    });
}

TEST_P(client_runtime_test, what_the_next_options_do_not_allow_is_dropped) {
    run([]() -> task<void> {
        subject first("client", {{"target", closed_address().to_string()}});
        co_await first.start();
        for (const char* each : {"much too long", "one", "two", "three"})
            must_do(co_await first->send(each));
        listener server = any_server();
        auto queue = co_await queue_of(first, to(server));
        co_await first->stop(1h);
        successor next("client", to(server, {{"queue", "8"}}), std::move(queue));
        must_do(co_await next->start());
        talker peer = co_await accept(server);
        for (const char* each : {"one", "two"}) EXPECT_EQ(co_await peer.line(), each);
        EXPECT_EQ(next->count().dropped, 2U);
        EXPECT_TRUE(next.events.has("2 messages that waited before the restart are dropped"));
        co_await next->stop(1h);
    });
}

/// A host with a follower of messages.
class followed_host final : public host {
public:
    bool has_followers() const noexcept override { return is_followed; }
    void show_received(std::string_view message) override { shown += message; }
    bool is_followed = false;
    std::string shown;
};

TEST_P(client_runtime_test, followers_get_messages_as_they_are) {
    run([]() -> task<void> {
        listener server = any_server();
        const auto with = std::make_shared<followed_host>();
        subject client("client", to(server, {{"max_line", 4}, {"journal", "no"}}), "subject", with);
        co_await client.start();
        talker peer = co_await accept(server);
        co_await peer.say("zero\n");
        co_await until([&] { return client->count().messages_in == 1U; });
        with->is_followed = true;
        co_await peer.say("\x1b\r\nlonger\n");
        co_await until([&] { return client->count().messages_in == 3U; });
        EXPECT_EQ(with->shown, "\x1b\nlong... (longer than --max-line)\n");
        co_await client->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime::client
