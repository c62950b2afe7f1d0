// Tests of the client's transports: datagrams, WebSocket and Unix sockets.
#include <eddy/net/udp.hpp>
#include <eddy/net/unix.hpp>
#include <eddy/wire/websocket.hpp>

#include "runtime/client/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::client {
namespace {

using namespace client::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(client_transports);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(client_transports_kernel);

datagram any_socket() {
    return must(loop::current().bind_datagram(must(endpoint::ip("127.0.0.1", 0))));
}

TEST_P(client_transports, a_message_is_a_datagram) {
    run([]() -> task<void> {
        datagram server = any_socket();
        subject client("client",
                       {{"target", "udp://" + server.local().to_string()}, {"max_line", 4}});
        co_await client.start();
        co_await connected(client);
        EXPECT_EQ(must_do(co_await client->send("two\nlines")), 1U);
        must_do(co_await client->send(""));
        auto got = must(co_await server.receive());
        EXPECT_EQ(got.payload.text(), "two\nlines");
        const endpoint peer = got.from;
        got = must(co_await server.receive());
        EXPECT_EQ(got.payload.text(), "");
        must(server.send_to(as_bytes(std::string_view("abcd")), peer));
        must(server.send_to(as_bytes(std::string_view("longer")), peer));
        co_await until([&] { return client->count().messages_in == 2U; });
        EXPECT_TRUE(client.events.has("received: abcd"));
        EXPECT_TRUE(client.events.has("received: long... (longer than --max-line)"));
        const auto large = co_await client->send(std::string(udp::max_payload + 1, 'x'));
        EXPECT_EQ(large.error().status, 400);
        EXPECT_THAT(large.error().message, HasSubstr("a datagram carries at most 65507"));
        co_await client->stop(0s);
    });
}

TEST_P(client_transports_kernel, a_closed_port_ends_no_datagrams) {
    run([]() -> task<void> {
        datagram server = any_socket();
        const endpoint where = server.local();
        subject client("client", {{"target", "udp://" + where.to_string()}});
        server.close();
        co_await client.start();
        co_await connected(client);
        for (int i = 0; i < 2; ++i) {
            const std::uint64_t before = client->count().errors;
            must_do(co_await client->send("lost"));
            co_await until([&] { return client->count().errors > before; });
        }
        EXPECT_EQ(client.events.lines.size(), 2U) << "connected, and the first of equal errors";
        server = must(loop::current().bind_datagram(where));
        must_do(co_await client->send("there"));
        EXPECT_EQ(must(co_await server.receive()).payload.text(), "there");
        EXPECT_EQ(client->count().connections_total, 1U);
        co_await client->stop(0s);
    });
}

std::string websocket_of(subject& server, std::string_view path) {
    return "ws://" + server->local().to_string() + std::string(path);
}

TEST_P(client_transports, messages_are_texts_of_a_websocket) {
    run([]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        subject client("client",
                       {{"target", websocket_of(server, "/chat?token=secret")}, {"max_line", 8}});
        co_await client.start();
        co_await connected(client);
        EXPECT_TRUE(client.events.has("connected to ws://"));
        EXPECT_FALSE(client.events.has("secret"));
        talker other = co_await talker::to(server->local());
        co_await until([&] { return server->count().connections_now == 2U; });
        EXPECT_EQ(must_do(co_await client->send("from the client")), 1U);
        EXPECT_EQ(co_await other.line(), "from the client");
        co_await other.say("fits\nlonger than that\n");
        co_await until([&] { return client->count().messages_in == 2U; });
        EXPECT_TRUE(client.events.has("received: fits"));
        EXPECT_TRUE(client.events.has("received: longer t... (longer than --max-line)"));
        const auto binary = co_await client->send("\xff");
        EXPECT_EQ(binary.error().status, 400);
        EXPECT_THAT(binary.error().message, HasSubstr("UTF-8"));
        const auto large = co_await client->send(std::string((1 << 20) + 1, 'x'));
        EXPECT_THAT(large.error().message, HasSubstr("carries at most 1048576"));
        co_await server->stop(0s);
        co_await disconnected(client);
        EXPECT_EQ(must_do(co_await client->send("later")), 0U);
        co_await client->stop(0s);
    });
}

/// The server's half of the handshake.
task<talker> accept_websocket(listener& at) {
    talker peer = co_await accept(at);
    std::string key;
    for (std::string line = co_await peer.line(); line != "\r"; line = co_await peer.line()) {
        constexpr std::string_view name = "Sec-WebSocket-Key: ";
        if (line.starts_with(name)) key = line.substr(name.size(), line.size() - name.size() - 1);
    }
    co_await peer.say(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: " +
        eddy::websocket::accept_of(key) + "\r\n\r\n");
    co_return peer;
}

TEST_P(client_transports, a_silent_websocket_server_gets_pings) {
    run([]() -> task<void> {
        listener server = any_server();
        subject client("client",
                       {{"target", "ws://" + server.local().to_string()}, {"ping", "20ms"}});
        co_await client.start();
        talker peer = co_await accept_websocket(server);
        constexpr char masked_empty_ping[] = "\x89\x80";
        EXPECT_EQ(co_await peer.bytes(2), masked_empty_ping);
        co_await client->stop(0s);
    });
}

TEST_P(client_transports, a_refused_handshake_is_an_attempt_that_failed) {
    run([]() -> task<void> {
        listener server = any_server();
        subject client("client",
                       {{"target", "ws://" + server.local().to_string()}, {"reconnect", 0}});
        co_await client.start();
        talker peer = co_await accept(server);
        EXPECT_THAT(co_await peer.line(), StartsWith("GET / HTTP/1.1"));
        co_await peer.say("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        co_await until([&] { return client.events.has("it gives up"); });
        EXPECT_EQ(client->count().connections_total, 0U);
        EXPECT_THAT(client->fault(), HasSubstr("not connected"));
        co_await client->stop(0s);
    });
}

TEST_P(client_transports_kernel, unix_sockets_are_reached) {
    run([]() -> task<void> {
        const temporary_folder folder;
        listener server = must(unix_socket::listen(folder.file("s")));
        subject client("client", {{"target", "unix://" + folder.file("s")}});
        co_await client.start();
        talker peer = co_await accept(server);
        must_do(co_await client->send("hello"));
        EXPECT_EQ(co_await peer.line(), "hello");
        co_await client->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime::client
