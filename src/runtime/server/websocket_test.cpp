// Tests of WebSocket and HTTP on a server's port, beside raw clients: one audience.
#include <eddy/wire/websocket.hpp>

#include "runtime/server/client.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using eddy::websocket::close_code;
using eddy::websocket::opcode;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(server_websocket);

constexpr std::string_view request =
    "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
/// Bytes of messages that a new client does not get before its request.
constexpr std::size_t most_held = server::most_held;
constexpr eddy::websocket::mask_key test_mask{1, 2, 3, 4};

std::string frame_text(opcode kind, std::string_view payload, bool is_last = true) {
    byte_buffer made;
    eddy::websocket::frame head;
    head.kind = kind;
    head.is_last = is_last;
    head.mask = test_mask;
    eddy::websocket::write_frame(made, head, payload);
    return std::string(made.text());
}

std::string close_text(close_code code) {
    byte_buffer made;
    EXPECT_TRUE(eddy::websocket::write_close(made, code, {}, test_mask));
    return std::string(made.text());
}

/// A client over WebSocket.
class web_talker {
public:
    static task<web_talker> to(subject& server) {
        web_talker made;
        made.socket_ = must(co_await loop::current().connect(server->local()));
        must(co_await made.socket_.write_all(request));
        while (made.received_.find("\r\n\r\n") == std::string::npos) co_await made.more();
        EXPECT_THAT(made.received_, StartsWith("HTTP/1.1 101 "));
        made.received_.erase(0, made.received_.find("\r\n\r\n") + 4);
        co_return made;
    }

    task<void> send(std::string bytes) { must(co_await socket_.write_all(bytes)); }

    /// The next frame: "text:hello", "binary:…", "pong:…", "close:1000"; "end" when there is none.
    task<std::string> next() {
        for (;;) {
            const auto step = parser_.collect(received_, message_);
            received_.erase(0, step.consumed);
            switch (step.what) {
                case eddy::websocket::event::need_more: break;
                case eddy::websocket::event::message_end: {
                    const bool is_text = parser_.message().kind == opcode::text;
                    std::string made =
                        (is_text ? "text:" : "binary:") + std::string(message_.text());
                    message_.clear();
                    co_return made;
                }
                case eddy::websocket::event::pong: co_return "pong:" + std::string(step.data);
                case eddy::websocket::event::close:
                    co_return "close:" + std::to_string(static_cast<unsigned>(step.code));
                default: co_return "error";
            }
            auto got = co_await socket_.read();
            if (!got) co_return "end";
            received_ += got->text();
        }
    }

private:
    task<void> more() {
        auto got = must(co_await socket_.read());
        received_ += got.text();
    }

    stream socket_;
    std::string received_;
    byte_buffer message_;
    eddy::websocket::parser parser_{eddy::websocket::role::client};
};

/// A raw client that the server knows of.
task<talker> join(subject& server) {
    const std::uint64_t before = server->count().connections_now;
    talker made = co_await talker::to(server->local());
    co_await until([&] { return server->count().connections_now > before; });
    co_return made;
}

TEST_P(server_websocket, raw_and_web_clients_are_one_audience) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker raw = co_await join(server);
        web_talker a = co_await web_talker::to(server);
        web_talker b = co_await web_talker::to(server);
        EXPECT_EQ(sample_of(*server, "websocket_clients"), 2.0);
        EXPECT_EQ(sample_of(*server, "http_requests_total"), 2.0);
        co_await raw.say("from raw\nand \xff\n");
        for (web_talker* const each : {&a, &b}) {
            EXPECT_EQ(co_await each->next(), "text:from raw");
            EXPECT_EQ(co_await each->next(), "binary:and \xff");
        }
        co_await a.send(frame_text(opcode::text, "from ", false) + frame_text(opcode::ping, "p") +
                        frame_text(opcode::continuation, "web"));
        EXPECT_EQ(co_await raw.line(), "from web");
        EXPECT_EQ(co_await b.next(), "text:from web");
        EXPECT_EQ(co_await a.next(), "pong:p");
        co_await a.send(frame_text(opcode::binary, "line\n") + close_text(close_code{4000}));
        EXPECT_EQ(co_await raw.line(), "line");
        EXPECT_EQ(co_await b.next(), "text:line");
        EXPECT_EQ(co_await a.next(), "close:4000");
        EXPECT_EQ(co_await a.next(), "end");
        co_await until([&] { return sample_of(*server, "websocket_clients") == 1.0; });
        const metrics counted = server->count();
        EXPECT_EQ(counted.messages_in, 4U);
        EXPECT_EQ(counted.messages_out, 8U);
        co_await server->stop(0s);
        EXPECT_EQ(co_await b.next(), "close:1001");
        EXPECT_EQ(co_await b.next(), "end");
    });
}

// Its cookies would be the messages of others.
TEST_P(server_websocket, a_request_that_pauses_is_no_message) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker other = co_await join(server);
        std::vector<talker> present;
        for (const std::size_t part : {6U, 30U, 90U}) {
            talker& slow = present.emplace_back(co_await join(server));
            co_await slow.say(std::string(request.substr(0, part)));
            // Messages of other clients do not decide its protocol.
            must(co_await here().sleep_for(200ms));
            co_await other.say("news\n");
            must(co_await here().sleep_for(200ms));
            co_await slow.say(std::string(request.substr(part)));
            EXPECT_THAT(co_await slow.line(), StartsWith("HTTP/1.1 101 "));
        }
        {
            talker gone = co_await join(server);
            co_await gone.say(std::string(request.substr(0, 90)));
            must(gone.socket.shutdown_write());
            EXPECT_THAT(co_await gone.rest(), StartsWith("HTTP/1.1 400 "));
        }
        co_await until([&] { return server->count().connections_now == 4; });
        talker last = co_await join(server);
        co_await last.say("last\n");
        EXPECT_EQ(co_await other.line(), "last");
        co_await server->stop(0s);
    });
}

TEST_P(server_websocket, a_message_that_begins_like_a_request_is_not_held_back) {
    run([&]() -> task<void> {
        temporary_folder folder;
        subject server("server", with({{"framing", "raw"}, {"http", folder.path()}}));
        co_await server.start();
        talker other = co_await join(server);
        // A client that has spoken gets messages at once.
        co_await other.say("1");
        co_await until([&] { return server->count().messages_in == 1; });
        const time_point begun = here().now();
        std::vector<talker> present;
        for (const std::string text : {"PING 17", "HELLO", "get no/end", "cd /tmp"}) {
            present.push_back(co_await join(server));
            co_await present.back().say(text);
            EXPECT_EQ(co_await other.bytes(text.size()), text);
        }
        if (simulated()) EXPECT_LT(here().now() - begun, 100ms);
        co_await server->stop(0s);
    });
}

TEST_P(server_websocket, a_new_client_gets_nothing_before_its_answer) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker sender = co_await join(server);
        co_await sender.say("first\n");
        stream late = std::move((co_await join(server)).socket);
        co_await sender.say("while it connects\n");
        co_await until([&] { return server->count().messages_in == 2; });
        must(co_await late.write_all(request));
        auto got = must(co_await late.read());
        EXPECT_THAT(std::string(got.text()), StartsWith("HTTP/1.1 101 "));
        got.reset();
        // A silent raw client gets what was held back.
        talker silent = co_await join(server);
        co_await sender.say("to all\n");
        EXPECT_EQ(co_await silent.line(), "to all");
        co_await server->stop(0s);
    });
}

TEST_P(server_websocket, a_new_client_is_answered_though_much_is_said_meanwhile) {
    run([&]() -> task<void> {
        for (const std::size_t bytes : {most_held, most_held + 1024}) {
            subject server("server", any_port);
            co_await server.start();
            talker sender = co_await join(server);
            co_await sender.say("first\n");
            stream late = std::move((co_await join(server)).socket);
            const std::uint64_t lines = bytes / 1024;
            for (std::uint64_t i = 0; i < lines; ++i)
                co_await sender.say(std::string(1023, 'x') + "\n");
            co_await until([&] { return server->count().messages_in == 1 + lines; });
            must(co_await late.write_all(request));
            const std::string got(must(co_await late.read()).text());
            // On a machine that is busy its time may be over.
            if (simulated())
                EXPECT_THAT(got, StartsWith(bytes > most_held ? "xxx" : "HTTP/1.1 101 "));
            co_await server->stop(0s);
        }
    });
}

TEST_P(server_websocket, a_request_that_comes_too_late_is_no_message) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker sender = co_await join(server);
        talker late = co_await join(server);
        co_await sender.say("to all\n");
        EXPECT_EQ(co_await late.line(), "to all");
        co_await late.say(std::string(request));
        EXPECT_EQ(co_await late.rest(), "");
        talker other = co_await join(server);
        co_await other.say("next\n");
        EXPECT_EQ(co_await sender.line(), "next") << "the request was passed on";
        co_await server->stop(0s);
    });
}

TEST_P(server_websocket, messages_that_a_request_comes_before_count_as_dropped) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker sender = co_await join(server);
        stream late = std::move((co_await join(server)).socket);
        co_await sender.say("while it connects\n");
        co_await until([&] { return server->count().messages_in == 1; });
        must(co_await late.write_all(request));
        auto got = must(co_await late.read());
        EXPECT_THAT(std::string(got.text()), StartsWith("HTTP/1.1 101 "));
        const metrics counted = server->count();
        EXPECT_EQ(counted.messages_out + counted.dropped, 1U);
        got.reset();
        co_await server->stop(0s);
    });
}

TEST_P(server_websocket, violations_end_a_client_with_their_codes) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_line", 100}}));
        co_await server.start();
        web_talker unmasked = co_await web_talker::to(server);
        co_await unmasked.send(std::string("\x81\x02hi", 4));
        EXPECT_EQ(co_await unmasked.next(), "close:1002");
        EXPECT_EQ(co_await unmasked.next(), "end");
        web_talker wrong = co_await web_talker::to(server);
        co_await wrong.send(frame_text(opcode::text, "\xff"));
        EXPECT_EQ(co_await wrong.next(), "close:1007");
        web_talker large = co_await web_talker::to(server);
        co_await large.send(frame_text(opcode::text, std::string(101, 'x')));
        EXPECT_EQ(co_await large.next(), "close:1009");
        EXPECT_TRUE(server.events.has("longer than 100"));
        co_await server->stop(0s);
    });
}

TEST_P(server_websocket, raw_framing_keeps_messages_apart) {
    run([&]() -> task<void> {
        subject server("server", with({{"framing", "raw"}}));
        co_await server.start();
        web_talker a = co_await web_talker::to(server);
        web_talker b = co_await web_talker::to(server);
        co_await a.send(frame_text(opcode::text, "one\ntwo") + frame_text(opcode::text, "three"));
        EXPECT_EQ(co_await b.next(), "text:one\ntwo");
        EXPECT_EQ(co_await b.next(), "text:three");
        co_await server->stop(0s);
    });
}

TEST_P(server_websocket, a_web_client_that_never_reads_is_disconnected) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_queue", "256k"}, {"slow_reader", "disconnect"}}));
        co_await server.start();
        web_talker slow = co_await web_talker::to(server);
        talker sender = co_await join(server);
        for (int sent = 0; sample_of(*server, "websocket_clients") == 1.0; ++sent) {
            if (sent > 100'000) throw std::runtime_error("it stays");
            co_await sender.say(std::string(1000, 'x') + "\n");
            co_await here().yield();
        }
        web_talker next = co_await web_talker::to(server);
        co_await sender.say("end\n");
        EXPECT_EQ(co_await next.next(), "text:end");
        co_await server->stop(0s);
    });
}

task<void> say_numbers(talker& sender, int count) {
    for (int i = 0; i < count; ++i)
        co_await sender.say(std::to_string(i) + " " + std::string(4000, 'x') + "\n");
}

TEST_P(server_websocket, senders_wait_for_a_web_client_that_does_not_read) {
    run([&]() -> task<void> {
        // More than all sockets and queues hold.
        constexpr int messages = 10'000;
        subject server("server", with({{"max_queue", "256k"}, {"slow_reader", "wait"}}));
        co_await server.start();
        web_talker slow = co_await web_talker::to(server);
        talker sender = co_await join(server);
        co_await join_scope([&](scope& sending) -> task<void> {
            sending.spawn(say_numbers(sender, messages));
            co_await until([&] { return server->count().messages_in >= 20; });
            must(co_await here().sleep_for(20ms));
            EXPECT_LT(server->count().messages_in, static_cast<std::uint64_t>(messages));
            for (int i = 0; i < messages; ++i) {
                const std::string got = co_await slow.next();
                if (!got.starts_with("text:" + std::to_string(i) + " "))
                    throw std::runtime_error("out of order at " + std::to_string(i));
            }
        });
        EXPECT_EQ(server->count().dropped, 0U);
        co_await server->stop(0s);
    });
}

TEST_P(server_websocket, files_are_served_beside) {
    run([&]() -> task<void> {
        temporary_folder folder;
        std::ofstream(folder.path() + "/index.html") << "<p>hello";
        subject server("server", with({{"http", folder.path()}}));
        co_await server.start();
        talker raw = co_await join(server);
        web_talker web = co_await web_talker::to(server);
        talker browser = co_await join(server);
        co_await raw.say("to the web\n");
        EXPECT_EQ(co_await web.next(), "text:to the web");
        co_await browser.say("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        const std::string answer = co_await browser.rest();
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
        EXPECT_THAT(answer, HasSubstr("<p>hello"));
        talker lost = co_await join(server);
        co_await lost.say("POST /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        EXPECT_THAT(co_await lost.rest(), StartsWith("HTTP/1.1 405 "));
        EXPECT_EQ(sample_of(*server, "http_requests_total"), 3.0);
        co_await server->stop(0s);
    });
}

/// A folder with a file that is longer than sockets hold.
class large_file {
public:
    static constexpr std::size_t size = 32U << 20U;
    large_file() { std::ofstream(folder_.path() + "/large") << std::string(size, 'x'); }
    const std::string& folder() const noexcept { return folder_.path(); }

private:
    temporary_folder folder_;
};

TEST_P(server_websocket, a_stop_finishes_the_response_at_hand) {
    run([&]() -> task<void> {
        const large_file file;
        subject server("server", with({{"http", file.folder()}}));
        co_await server.start();
        talker raw = co_await join(server);
        talker idle = co_await join(server);
        co_await idle.say("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_THAT(co_await idle.line(), StartsWith("HTTP/1.1 404 "));
        talker busy = co_await join(server);
        co_await busy.say("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_THAT(co_await busy.line(), StartsWith("HTTP/1.1 200 "));
        co_await join_scope([&](scope& stopping) -> task<void> {
            stopping.spawn([](subject& of) -> task<void> { co_await of->stop(30s); }(server));
            EXPECT_THAT(co_await idle.rest(), HasSubstr("Not Found\n"));
            EXPECT_EQ(co_await raw.rest(), "");
            const std::string rest = co_await busy.rest();
            EXPECT_EQ(rest.size() - rest.find("\r\n\r\n") - 4, large_file::size);
        });
    });
}

TEST_P(server_websocket, a_stop_cuts_a_response_that_takes_longer_than_it_may) {
    run([&]() -> task<void> {
        const large_file file;
        subject server("server", with({{"http", file.folder()}}));
        co_await server.start();
        talker busy = co_await join(server);
        co_await busy.say("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_THAT(co_await busy.line(), StartsWith("HTTP/1.1 200 "));
        co_await server->stop(20ms);
        EXPECT_LT((co_await busy.rest()).size(), large_file::size);
    });
}

TEST_P(server_websocket, a_web_client_that_does_not_read_meets_the_policy) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_queue", "256k"}, {"slow_reader", "drop-oldest"}}));
        co_await server.start();
        web_talker slow = co_await web_talker::to(server);
        talker sender = co_await join(server);
        int sent = 0;
        while (server->count().dropped < 100) {
            if (sent > 100'000) throw std::runtime_error("nothing is ever dropped");
            co_await sender.say(std::to_string(sent++) + " " + std::string(1000, 'x') + "\n");
            co_await here().yield();
        }
        co_await sender.say("end\n");
        // Only whole frames arrive.
        std::string got = co_await slow.next();
        while (got != "text:end") {
            EXPECT_EQ(got.size(), got.find(' ') + 1001);
            got = co_await slow.next();
        }
        co_await server->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
