// Tests that HTTP clients of a server are answered or closed, and that no other client gets their
// bytes as messages, however these come.
#include "runtime/server/request_lines.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using server::foreign_starts;
using server::is_of_unknown_method;
using server::request_lines;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(server_requests);

constexpr std::string_view fields =
    "Host: x\r\nConnection: close\r\nCookie: secret\r\nContent-Length: 7\r\n\r\nsecret\n";

/// A client that the server knows of.
task<talker> join(subject& server) {
    const std::uint64_t before = server->count().connections_total;
    talker made = co_await talker::to(server->local());
    co_await until([&] { return server->count().connections_total > before; });
    co_return made;
}

/// A client that gets messages; it has sent its first line.
task<talker> audience(subject& server) {
    const std::uint64_t before = server->count().messages_in;
    talker made = co_await join(server);
    co_await made.say("here\n");
    co_await until([&] { return server->count().messages_in > before; });
    co_return made;
}

/// Expects that nothing comes before the next line of `speaker`.
task<void> expect_silence(talker& listener, talker& speaker, std::string_view about) {
    co_await speaker.say("marker\n");
    EXPECT_EQ(co_await listener.line(), "marker") << about;
}

/// Sends two pieces of a request with a pause between them, and yields all that comes back.
task<std::string> ask_in_two(subject& server, std::string_view text, std::size_t split,
                             duration pause, talker* speaker = nullptr) {
    talker asks = co_await join(server);
    must(co_await asks.socket.write_all(text.substr(0, split)));
    if (speaker != nullptr) co_await speaker->say("meanwhile\n");
    if (pause > duration{}) must(co_await loop::current().sleep_for(pause));
    // The server may have closed the connection meanwhile.
    static_cast<void>(co_await asks.socket.write_all(text.substr(split)));
    co_return co_await asks.rest();
}

/// The options of servers that must not differ in what they forward.
std::vector<json> kinds(const temporary_folder& folder) {
    std::vector<json> all;
    for (const char* framing : {"line", "raw"}) {
        all.push_back(with({{"framing", framing}}));
        all.push_back(with({{"framing", framing}, {"http", folder.path()}}));
    }
    return all;
}

TEST_P(server_requests, no_request_reaches_another_client) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        for (const json& options : kinds(folder)) {
            subject server("server", options);
            co_await server.start();
            talker speaker = co_await audience(server);
            talker listener = co_await audience(server);
            EXPECT_EQ(co_await speaker.line(), "here");
            for (const std::string& line : request_lines) {
                const std::string got =
                    co_await ask_in_two(server, line + std::string(fields), 0, {});
                EXPECT_THAT(got, StartsWith("HTTP/1.1 ")) << line;
                co_await expect_silence(listener, speaker, line);
            }
            const std::string path(20'000, 'x');
            EXPECT_THAT(co_await ask_in_two(
                            server, "GET /" + path + " HTTP/1.1\r\n" + std::string(fields), 0, {}),
                        StartsWith("HTTP/1.1 414 "));
            co_await expect_silence(listener, speaker, "a long path");
            co_await server->stop(0s);
        }
    });
}

TEST_P(server_requests, no_request_in_pieces_reaches_another_client) {
    if (!simulated()) GTEST_SKIP() << "pauses for hours";
    run_with_threads([&]() -> task<void> {
        const temporary_folder folder;
        for (const json& options : kinds(folder)) {
            subject server("server", options);
            co_await server.start();
            talker speaker = co_await audience(server);
            talker listener = co_await audience(server);
            EXPECT_EQ(co_await speaker.line(), "here");
            const bool is_raw = options["framing"] == "raw";
            for (const std::string& line : request_lines) {
                for (std::size_t split = 1; split <= line.size(); ++split) {
                    if (is_raw && is_of_unknown_method(line.substr(0, split))) continue;
                    for (const duration pause : {duration(1ms), duration(200ms), duration(5s)}) {
                        const std::string got =
                            co_await ask_in_two(server, line + std::string(fields), split, pause);
                        EXPECT_THAT(got, StartsWith("HTTP/1.1 ")) << line << split;
                    }
                    // After it has got messages it cannot be answered.
                    const std::string got = co_await ask_in_two(server, line + std::string(fields),
                                                                split, 5s, &speaker);
                    EXPECT_EQ(co_await listener.line(), "meanwhile") << line << split;
                    EXPECT_TRUE(got == "meanwhile\n" || got.starts_with("HTTP/1.1 ")) << got;
                }
                co_await expect_silence(listener, speaker, line);
            }
            co_await server->stop(0s);
        }
    });
}

TEST_P(server_requests, a_request_that_ends_early_reaches_no_other_client) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker speaker = co_await audience(server);
        talker listener = co_await audience(server);
        EXPECT_EQ(co_await speaker.line(), "here");
        for (const std::string text :
             {"GET ", "GET /", "get / HTTP/1.1", "FOO / HTTP/1.1", "GET / HTTP/1.1\r\nCookie: a",
              "FOO /x?token=secret", "FOO /x?token=secret HTT",
              "FOO / HTTP/1.1\rCookie: secret\r\r"}) {
            talker asks = co_await join(server);
            co_await asks.say(text);
            must(asks.socket.shutdown_write());
            EXPECT_THAT(co_await asks.rest(), StartsWith("HTTP/1.1 400 ")) << text;
            co_await expect_silence(listener, speaker, text);
        }
        co_await server->stop(0s);
    });
}

TEST_P(server_requests, a_request_that_stalls_is_ended) {
    if (!simulated()) GTEST_SKIP() << "takes 15 seconds";
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker stalled = co_await join(server);
        const time_point begun = here().now();
        co_await stalled.say("GET /");
        EXPECT_THAT(co_await stalled.rest(), StartsWith("HTTP/1.1 408 "));
        EXPECT_LT(here().now() - begun, 20s);
        co_await server->stop(0s);
    });
}

TEST_P(server_requests, lines_that_are_no_requests_are_messages) {
    run([&]() -> task<void> {
        for (const char* framing : {"line", "raw"}) {
            subject server("server", with({{"framing", framing}}));
            co_await server.start();
            talker listener = co_await audience(server);
            for (const std::string text :
                 {"hello\n", "Get well soon\n", "post it\n", "HELLO world\n", "GET\n", "PING 17\n",
                  "cd /tmp\n", "{\"GET\": 1}\n"}) {
                talker speaker = co_await join(server);
                co_await speaker.say(text + "GET / HTTP/1.1\n");
                EXPECT_EQ(co_await listener.line() + "\n", text);
                // Only the first line is judged.
                EXPECT_EQ(co_await listener.line(), "GET / HTTP/1.1");
            }
            co_await server->stop(0s);
        }
    });
}

TEST_P(server_requests, a_first_line_in_pieces_is_a_message) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker listener = co_await audience(server);
        talker speaker = co_await join(server);
        for (const std::string piece : {"\n", "G", "et ", "w", "ell soon", "\n"}) {
            co_await speaker.say(piece);
            must(co_await here().sleep_for(simulated() ? duration(5s) : duration(1ms)));
        }
        EXPECT_EQ(co_await listener.line(), "");
        EXPECT_EQ(co_await listener.line(), "Get well soon");
        co_await server->stop(0s);
    });
}

TEST_P(server_requests, what_a_client_ends_with_is_a_message) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker listener = co_await audience(server);
        for (const std::string text : {"G", "GET", "get well", "\n"}) {
            talker speaker = co_await join(server);
            co_await speaker.say(text);
            must(speaker.socket.shutdown_write());
            EXPECT_EQ(co_await speaker.rest(), "");
            EXPECT_EQ(co_await listener.line(), text == "\n" ? "" : text);
        }
        talker last = co_await join(server);
        co_await last.say("last\n");
        EXPECT_EQ(co_await listener.line(), "last");
        co_await server->stop(0s);
    });
}

TEST_P(server_requests, a_client_in_its_first_line_gets_messages_after_a_while) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker speaker = co_await audience(server);
        talker types = co_await join(server);
        co_await types.say("Good");
        co_await speaker.say("news\n");
        const time_point begun = here().now();
        EXPECT_EQ(co_await types.line(), "news");
        if (simulated()) EXPECT_LE(here().now() - begun, 3s);
        co_await types.say("bye\n");
        EXPECT_EQ(co_await speaker.line(), "Goodbye");
        co_await server->stop(0s);
    });
}

// A client that keeps its connection open by empty lines.
TEST_P(server_requests, empty_lines_without_end_are_messages) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker listener = co_await audience(server);
        talker alive = co_await join(server);
        for (int i = 0; i < 100; ++i) co_await alive.say("\n");
        EXPECT_EQ(co_await listener.line(), "");
        co_await alive.say("GET / HTTP/1.1\r\n\r\n");
        EXPECT_THAT(co_await alive.rest(), StartsWith("HTTP/1.1 "));
        talker speaker = co_await join(server);
        co_await speaker.say("marker\n");
        std::string got;
        while (got.empty()) got = co_await listener.line();
        EXPECT_EQ(got, "marker");
        co_await server->stop(0s);
    });
}

TEST_P(server_requests, no_request_is_written_to_the_journal_or_the_log) {
    run_with_threads([&]() -> task<void> {
        const temporary_folder folder;
        for (const char* mode : {"in", "out", "inout"}) {
            const std::string log = folder.file(mode);
            json options = with({{"mode", mode}});
            if (std::string_view(mode) != "out")
                options.update({{"log", log}, {"log_traffic", true}});
            if (std::string_view(mode) == "in") options.erase("log_traffic");
            subject server("server", options);
            co_await server.start();
            for (const std::string& line : request_lines)
                EXPECT_THAT(co_await ask_in_two(server, line + std::string(fields), 0, {}),
                            StartsWith("HTTP/1.1 "));
            co_await server->stop(0s);
            EXPECT_FALSE(server.events.has("secret"));
            EXPECT_EQ(content(log), "");
        }
    });
}

TEST_P(server_requests, without_files_a_browser_is_refused) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        for (const std::string method : {"GET", "POST"}) {
            talker browser = co_await join(server);
            co_await browser.say(method +
                                 " / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"
                                 "Content-Length: 6\r\n\r\nhello\n");
            const std::string got = co_await browser.rest();
            EXPECT_THAT(got, StartsWith("HTTP/1.1 426 Upgrade Required\r\n"));
            EXPECT_THAT(got, HasSubstr("Upgrade: websocket\r\n"));
            EXPECT_THAT(got, HasSubstr("Connection: close\r\n"));
        }
        // Once a minute is enough.
        EXPECT_EQ(std::ranges::count_if(server.events.lines,
                                        [](const std::string& line) {
                                            return line.contains("sent an HTTP request");
                                        }),
                  1);
        EXPECT_TRUE(server.events.has("--raw-http"));
        EXPECT_EQ(server->count().messages_in, 0U);
        co_await server->stop(0s);
    });
}

TEST_P(server_requests, no_foreign_protocol_reaches_another_client) {
    run_with_threads([&]() -> task<void> {
        const temporary_folder folder;
        for (const json& options : kinds(folder)) {
            subject server("server", options);
            co_await server.start();
            talker speaker = co_await audience(server);
            talker listener = co_await audience(server);
            EXPECT_EQ(co_await speaker.line(), "here");
            for (const auto& start : foreign_starts()) {
                // In two pieces, too, the first of which may not be recognised yet.
                for (const std::size_t split : {0U, 1U, 5U}) {
                    if (split > 0 && !start.waits) continue;
                    EXPECT_EQ(co_await ask_in_two(server, start.bytes, split, 1ms), "")
                        << start.name;
                    // Once a minute.
                    EXPECT_TRUE(server.events.has(start.name)) << start.name;
                    EXPECT_FALSE(server.events.has("secret")) << start.name;
                    co_await expect_silence(listener, speaker, start.name);
                }
            }
            co_await server->stop(0s);
        }
    });
}

TEST_P(server_requests, a_long_first_line_is_a_message) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker listener = co_await audience(server);
        for (const std::string start : {"see /", "- * ", "log http://", "see "}) {
            const std::string line = start + std::string(20'000, 'u');
            talker speaker = co_await join(server);
            must(co_await speaker.socket.write_all(line));
            co_await speaker.say("\n");
            EXPECT_EQ(co_await listener.line(), line);
        }
        co_await server->stop(0s);
    });
}

TEST_P(server_requests, raw_http_makes_them_messages) {
    run([&]() -> task<void> {
        subject server("server", with({{"raw_http", true}}));
        co_await server.start();
        talker listener = co_await audience(server);
        talker browser = co_await join(server);
        co_await browser.say("GET / HTTP/1.1\r\nUpgrade: websocket\r\n");
        EXPECT_EQ(co_await listener.line(), "GET / HTTP/1.1\r");
        EXPECT_EQ(co_await listener.line(), "Upgrade: websocket\r");
        // It gets messages at once, and sends them piece by piece.
        co_await listener.say("hi\n");
        EXPECT_EQ(co_await browser.line(), "hi");
        co_await server->stop(0s);
    });
}

TEST_P(server_requests, pages_of_other_hosts_may_not_open_a_websocket) {
    run([&]() -> task<void> {
        const auto upgrade = [](std::string_view origin) {
            return "GET / HTTP/1.1\r\nHost: x:9000\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                   "Sec-WebSocket-Version: 13\r\nOrigin: " +
                   std::string(origin) + "\r\n\r\n";
        };
        const auto status_for = [&](subject& server, std::string_view origin) -> task<std::string> {
            talker page = co_await join(server);
            co_await page.say(upgrade(origin));
            co_return co_await page.line();
        };
        subject server("server", any_port);
        co_await server.start();
        EXPECT_THAT(co_await status_for(server, "http://x:9000"), StartsWith("HTTP/1.1 101 "));
        EXPECT_THAT(co_await status_for(server, "https://x:9000"), StartsWith("HTTP/1.1 101 "));
        EXPECT_THAT(co_await status_for(server, "http://evil.example"),
                    StartsWith("HTTP/1.1 403 "));
        EXPECT_THAT(co_await status_for(server, "http://x"), StartsWith("HTTP/1.1 403 "));
        EXPECT_THAT(co_await status_for(server, "null"), StartsWith("HTTP/1.1 403 "));
        EXPECT_TRUE(server.events.has("a page of http://evil.example, which may not connect"));
        must_do(server->apply(server.parse(with({{"origins", "https://a.example,null"}}))));
        EXPECT_THAT(co_await status_for(server, "https://a.example"), StartsWith("HTTP/1.1 101 "));
        EXPECT_THAT(co_await status_for(server, "null"), StartsWith("HTTP/1.1 101 "));
        EXPECT_THAT(co_await status_for(server, "http://evil.example"),
                    StartsWith("HTTP/1.1 403 "));
        must_do(server->apply(server.parse(with({{"origins", "*"}}))));
        EXPECT_THAT(co_await status_for(server, "http://evil.example"),
                    StartsWith("HTTP/1.1 101 "));
        co_await server->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
