// Tests of the client: lines both ways, connections that end, and limits.
#include "runtime/client/client_runtime.hpp"

#include "runtime/options/option_effects.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(client_runtime);

listener server_on(endpoint where, const listen_options& options = {}) {
    return must(loop::current().listen(where, options));
}
listener any_server(const listen_options& options = {}) {
    return server_on(must(endpoint::ip("127.0.0.1", 0)), options);
}
json to(const listener& server, json more = json::object()) {
    more["target"] = server.local().to_string();
    return more;
}
task<talker> accept(listener& at) { co_return talker(must(co_await at.accept())); }

task<void> lines_go_both_ways(std::string type) {
    listener server = any_server();
    subject client(type, to(server));
    co_await client.start();
    talker peer = co_await accept(server);
    co_await peer.say("one\ntw");
    co_await peer.say("o\x1b\r\nthree");
    co_await until([&] { return client.events.has("received: two\\x1b"); });
    EXPECT_EQ(must_do(co_await client->send("hello")), 1U);
    EXPECT_EQ(must_do(co_await client->send("a\nb\n")), 1U);
    EXPECT_EQ(co_await peer.bytes(10), "hello\na\nb\n");
    const metrics counted = client->count();
    EXPECT_EQ(counted.connections_now, 1U);
    EXPECT_EQ(counted.messages_in, 2U);
    EXPECT_EQ(counted.messages_out, 3U);
    EXPECT_EQ(counted.bytes_out, 10U);
    must(peer.socket.shutdown_write());
    co_await until([&] { return client.events.has("received: three"); });
    EXPECT_EQ(co_await peer.rest(), "");
    EXPECT_EQ(client->count().errors, 0U);
    co_await client->stop(1h);
    EXPECT_EQ((co_await client->send("late")).error().status, 409);
}
TEST_P(client_runtime, lines_go_both_ways) {
    run([] { return lines_go_both_ways("client"); });
}

task<void> long_lines_are_cut(std::string type) {
    listener server = any_server();
    subject client(type, to(server, {{"max_line", 4}}));
    co_await client.start();
    talker peer = co_await accept(server);
    co_await peer.say("abcd\r\n" + std::string(100'000, 'x') + "\nnext\n");
    co_await until([&] { return client.events.has("received: next"); });
    EXPECT_TRUE(client.events.has("received: xxxx... (longer than --max-line)"));
    EXPECT_EQ(client->count().errors, 1U);
    must_do(client->apply(client.parse(to(server, {{"max_line", 5}}))));
    co_await peer.say("abcde\n");
    co_await until([&] { return client.events.has("received: abcde"); });
    EXPECT_EQ(client->count().errors, 1U);
    co_await client->stop(1h);
}
TEST_P(client_runtime, long_lines_are_cut) {
    run([] { return long_lines_are_cut("client"); });
}

/// A server whose queue is full answers nothing.
struct full_server {
    static listen_options short_queue() {
        listen_options made;
        made.backlog = loop::current().kind() == io_backend_kind::sim ? 1 : 0;
        return made;
    }
    listener server = any_server(short_queue());
    stream in_queue;
};
task<full_server> filled() {
    full_server made;
    made.in_queue = must(co_await loop::current().connect(made.server.local()));
    co_return made;
}

task<void> attempts_have_a_time(std::string type) {
    full_server full = co_await filled();
    subject client(type, to(full.server, {{"connect_timeout", "50ms"}}));
    co_await client.start();
    co_await until([&] { return client->count().errors >= 2; });
    EXPECT_EQ(client->count().connections_total, 0U);
    EXPECT_EQ(client.events.lines.size(), 1U);  // the second failed for the same reason
    co_await client->stop(1h);
}
TEST_P(client_runtime, attempts_have_a_time) {
    run([] { return attempts_have_a_time("client"); });
}

TEST_P(client_runtime, a_stop_ends_an_attempt) {
    run([]() -> task<void> {
        full_server full = co_await filled();
        subject client("client", to(full.server, {{"connect_timeout", "1h"}}));
        co_await client.start();
        EXPECT_EQ((co_await client->send("early")).error().status, 503);
        co_await client->stop(1h);
        EXPECT_EQ(client->count().errors, 0U);
    });
}

TEST_P(client_runtime, connects_again) {
    run([]() -> task<void> {
        listener server = any_server();
        const endpoint where = server.local();
        subject client("client", to(server));
        server.close();
        co_await client.start();
        co_await until([&] { return client->count().errors >= 1; });
        server = server_on(where);
        for (std::uint64_t i = 1; i <= 3; ++i) {
            talker peer = co_await accept(server);
            co_await until([&] { return client->count().connections_total == i; });
        }
        co_await client->stop(1h);
        co_await client.start();
        talker peer = co_await accept(server);
        co_await client->stop(1h);
        EXPECT_EQ(client->count().connections_now, 0U);
    });
}

TEST_P(client_runtime, what_waits_for_a_slow_server_is_limited) {
    run([]() -> task<void> {
        listener server = any_server();
        subject client("client", to(server));
        co_await client.start();
        const talker peer = co_await accept(server);
        co_await until([&] { return client->count().connections_now == 1; });
        const std::string message(100'000, 'x');
        std::uint64_t sent = 0;
        auto last = co_await client->send(message);
        for (; last; ++sent) last = co_await client->send(message);
        EXPECT_EQ(last.error().status, 503);
        EXPECT_THAT(last.error().message, HasSubstr("at most 1048576 may"));
        EXPECT_EQ(client->count().connections_now, 1U);
        co_await client->stop(1h);
        EXPECT_GT(client->count().dropped, 0U);
        EXPECT_EQ(client->count().messages_out + client->count().dropped, sent);
    });
}

}  // namespace

effect_table testing::client_effects() {
    return {{{"client", "target"}, {lines_go_both_ways}},
            {{"client", "connect-timeout"}, {attempts_have_a_time}},
            {{"client", "max-line"}, {long_lines_are_cut}}};
}

}  // namespace eddy::runtime
