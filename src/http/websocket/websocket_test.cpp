// WebSockets of a server: the handshake of a request, messages in any cut, violations and their
// close codes, the closing handshake, slow readers, pings, shutdown.
#include <eddy/http/websocket.hpp>

#include <eddy/http/router.hpp>
#include <eddy/io/timeout.hpp>

#include "http/testing.hpp"
#include "http/websocket/message_deflate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using eddy::websocket::close_code;
using eddy::websocket::opcode;
using testing::error_of;

constexpr eddy::websocket::mask_key test_mask{0x12, 0x34, 0x56, 0x78};

std::string request_text(std::string_view more = {}, std::string_view path = "/") {
    return "GET " + std::string(path) +
           " HTTP/1.1\r\nHost: x\r\nuPGRADE: WebSocket\r\nconnection: keep-alive, UPGRADE\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" +
           std::string(more) + "\r\n";
}

std::string frame_text(opcode kind, std::string_view payload, bool is_last = true,
                       bool is_compressed = false) {
    byte_buffer made;
    eddy::websocket::frame head;
    head.kind = kind;
    head.is_last = is_last;
    head.is_compressed = is_compressed;
    head.mask = test_mask;
    eddy::websocket::write_frame(made, head, payload);
    return std::string(made.text());
}

std::string close_text(close_code code) {
    byte_buffer made;
    EXPECT_TRUE(eddy::websocket::write_close(made, code, {}, test_mask));
    return std::string(made.text());
}

/// A client's received frames as one line: "text:abc ping: close:1000".
std::string transcript(std::string received) {
    const std::size_t head = received.find("\r\n\r\n");
    if (head != std::string::npos && received.starts_with("HTTP/")) received.erase(0, head + 4);
    eddy::websocket::parser parser(eddy::websocket::role::client);
    parser.allow_compressed(true);
    byte_buffer message;
    std::string line;
    for (std::string_view left = received;;) {
        const auto step = parser.collect(left, message);
        switch (step.what) {
            case eddy::websocket::event::need_more: return line;
            case eddy::websocket::event::error: return line + "error";
            case eddy::websocket::event::ping: line += "ping:" + std::string(step.data); break;
            case eddy::websocket::event::pong: line += "pong:" + std::string(step.data); break;
            case eddy::websocket::event::close:
                line += "close:" + std::to_string(static_cast<unsigned>(step.code));
                break;
            default:
                line += parser.message().kind == opcode::text ? "text:" : "binary:";
                if (parser.message().is_compressed) line += "compressed:";
                if (message.size() < 100)
                    line += message.text();
                else
                    line += std::to_string(message.size());
                message.clear();
        }
        line += ' ';
        left.remove_prefix(step.consumed);
    }
}

class websocket_session : public testing::with_server {
protected:
    websocket_session() {
        handler_.answer = [this](request& incoming) { return answer(incoming); };
        options_.close_time = 50ms;
        options_.max_message = 1000;
        options_.idle_time = duration::max();
        service_ = echo;
        pieces_ = [this](websocket peer) { return echo_pieces(std::move(peer)); };
    }

    task<response> answer(request& incoming) {
        co_return upgrade(incoming, options_, incoming.path() == "/pieces" ? pieces_ : service_);
    }

    static task<void> echo(websocket peer) {
        for (;;) {
            auto message = co_await peer.receive();
            if (!message) break;
            const auto sent = co_await peer.send(*message);
            if (!sent) break;
        }
    }

    task<void> echo_pieces(websocket peer) {
        std::string whole;
        for (;;) {
            auto piece = co_await peer.receive_piece();
            if (!piece) break;
            whole += piece->data;
            most_in_a_piece_ = std::max(most_in_a_piece_, piece->data.size());
            if (!piece->is_last) continue;
            const auto sent = co_await peer.send(websocket_message{piece->is_text, true, whole});
            whole.clear();
            if (!sent) break;
        }
    }

    /// Transcript of a client that sends its request and `frames`, and then waits for the end.
    std::string exchange(const std::string& frames, std::string_view path = "/",
                         std::string_view more = {}) {
        return transcript(talk(request_text(more, path) + frames));
    }

    websocket_options options_;
    websocket_service service_;
    websocket_service pieces_;
    std::size_t most_in_a_piece_ = 0;
};

TEST_P(websocket_session, answers_the_handshake_whatever_the_case_of_names) {
    const std::string answer = talk(request_text() + close_text(close_code::normal));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << answer;
    EXPECT_NE(answer.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
              std::string::npos)
        << answer;
    EXPECT_EQ(answer.find("Content-Length"), std::string::npos) << answer;
    EXPECT_EQ(answer.find("Connection: close"), std::string::npos) << answer;
}

TEST_P(websocket_session, refuses_what_is_no_valid_upgrade) {
    const std::string plain = talk("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(plain.starts_with("HTTP/1.1 426 ")) << plain;
    EXPECT_NE(plain.find("Sec-WebSocket-Version: 13\r\n"), std::string::npos) << plain;
    const std::string no_key = talk(
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n",
        true);
    EXPECT_TRUE(no_key.starts_with("HTTP/1.1 400 ")) << no_key;
    const std::string old = talk(
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n\r\n",
        true);
    EXPECT_TRUE(old.starts_with("HTTP/1.1 426 ")) << old;
    EXPECT_NE(old.find("Sec-WebSocket-Version: 13\r\n"), std::string::npos) << old;
}

TEST_P(websocket_session, takes_pages_of_its_origins_alone) {
    options_.origins = {"https://example.org"};
    const std::string foreign = talk(request_text("Origin: https://evil.example\r\n"), true);
    EXPECT_TRUE(foreign.starts_with("HTTP/1.1 403 ")) << foreign;
    EXPECT_EQ(exchange(close_text(close_code::normal), "/", "Origin: https://EXAMPLE.org\r\n"),
              "close:1000 ");
    EXPECT_EQ(exchange(close_text(close_code::normal)), "close:1000 ");
}

TEST_P(websocket_session, chooses_a_subprotocol) {
    options_.protocols = {"chat.v1", "chat.v2"};
    std::string chosen;
    service_ = [&chosen](websocket peer) -> task<void> {
        chosen = peer.protocol();
        co_return;
    };
    talk(request_text("Sec-WebSocket-Protocol: other, chat.v2, chat.v1\r\n") +
         close_text(close_code::normal));
    EXPECT_EQ(chosen, "chat.v2");
}

TEST_P(websocket_session, echoes_messages_in_any_cut) {
    const std::string frames =
        frame_text(opcode::text, "one") + frame_text(opcode::binary, "tw", false) +
        frame_text(opcode::ping, "p") + frame_text(opcode::continuation, "o") +
        frame_text(opcode::text, "gr\xc3\xbc\xc3\x9f") + close_text(close_code{4001});
    const std::string all = request_text() + frames;
    const std::string expected = "text:one pong:p binary:two text:gr\xc3\xbc\xc3\x9f close:4001 ";
    for (const std::size_t step : {1U, 2U, 3U, 7U, 50U, 1000U}) {
        std::string answer;
        with_session([&](stream& client) -> task<void> {
            for (std::size_t at = 0; at < all.size(); at += step) {
                const std::string piece = all.substr(at, step);
                static_cast<void>(co_await client.write_all(piece));
                if (step < 50) co_await loop::current().yield();
            }
            co_await read_all(client, answer);
        });
        EXPECT_EQ(transcript(answer), expected) << step;
        answer.clear();
        with_session([&](stream& client) -> task<void> {
            const std::string pieces = request_text({}, "/pieces") + frames;
            static_cast<void>(co_await client.write_all(pieces));
            co_await read_all(client, answer);
        });
        EXPECT_EQ(transcript(answer), expected) << step;
    }
}

TEST_P(websocket_session, answers_violations_with_their_codes) {
    const std::string unmasked("\x81\x02hi", 4);
    const struct {
        std::string frames;
        std::string_view answer;
    } cases[] = {
        {unmasked, "close:1002 "},
        {frame_text(opcode::continuation, "x"), "close:1002 "},
        {frame_text(opcode::text, "x", true, true), "close:1002 "},
        {frame_text(opcode::text, "a") + frame_text(opcode::text, "\xff"), "text:a close:1007 "},
        // At the first wrong byte, before the message's end.
        {frame_text(opcode::text, "ab\xff", false), "close:1007 "},
        {frame_text(opcode::text, std::string(1001, 'x')), "close:1009 "},
        {frame_text(opcode::text, std::string(600, 'x'), false) +
             frame_text(opcode::continuation, std::string(600, 'x')),
         "close:1009 "},
        {std::string("\x88\x81\x12\x34\x56\x78\x00", 7), "close:1002 "},
    };
    for (const auto& each : cases) EXPECT_EQ(exchange(each.frames), each.answer);
}

TEST_P(websocket_session, refuses_binary_messages_where_it_takes_none) {
    options_.takes_binary = false;
    EXPECT_EQ(exchange(frame_text(opcode::text, "a") + frame_text(opcode::binary, "b")),
              "text:a close:1003 ");
}

TEST_P(websocket_session, takes_messages_of_the_greatest_size) {
    EXPECT_EQ(
        exchange(frame_text(opcode::text, std::string(1000, 'x')) + close_text(close_code::normal)),
        "text:1000 close:1000 ");
    EXPECT_EQ(exchange(frame_text(opcode::binary, std::string(300'000, 'x')) +
                           close_text(close_code::normal),
                       "/pieces"),
              "binary:300000 close:1000 ");
    EXPECT_LT(most_in_a_piece_, 200'000U);
}

TEST_P(websocket_session, echoes_messages_as_long_as_its_queue) {
    options_.max_message = options_.queue.max_queued_bytes = 256 * 1024;
    options_.compressed_from = 1;
    std::string noise;
    std::mt19937 dice(1);
    while (noise.size() < options_.max_message) noise += static_cast<char>(dice() & 0xff);
    const std::string close = close_text(close_code::normal);
    for (const bool is_deflated : {false, true}) {
        options_.deflate.reset();
        if (is_deflated) options_.deflate.emplace();
        const std::string_view offer =
            is_deflated ? "Sec-WebSocket-Extensions: permessage-deflate\r\n" : "";
        for (const std::size_t less : {0U, 1U, 9U, 15U}) {
            const std::string_view sent = std::string_view(noise).substr(less);
            const std::string line = exchange(frame_text(opcode::binary, sent) + close, "/", offer);
            EXPECT_TRUE(line.starts_with("binary:")) << line;
            EXPECT_TRUE(line.ends_with(" close:1000 ")) << line;
            if (!is_deflated)
                EXPECT_EQ(line, "binary:" + std::to_string(sent.size()) + " close:1000 ");
        }
    }
    // One byte more is no message of this queue.
    options_.deflate.reset();
    ++options_.max_message;
    EXPECT_EQ(exchange(frame_text(opcode::binary, noise + "x") + close), "close:1000 ");
}

TEST_P(websocket_session, closes_when_its_service_returns_throws_or_is_cancelled) {
    service_ = [](websocket) -> task<void> { co_return; };
    EXPECT_EQ(exchange(close_text(close_code::normal)), "close:1000 ");
    service_ = [](websocket) -> task<void> {
        co_await loop::current().yield();
        throw std::runtime_error("no more");
    };
    EXPECT_EQ(exchange(close_text(close_code::normal)), "close:1011 ");

    service_ = echo;
    std::string answer;
    run([&]() -> task<void> {
        eddy::testing::connection both = co_await connect();
        cancel_source stop;
        co_await join_scope([&](scope& serving) -> task<void> {
            serving.spawn(serve(std::move(both.server), handler_, limits_).under(stop));
            const std::string asking = request_text();
            static_cast<void>(co_await both.client.write_all(asking));
            EXPECT_TRUE(co_await read_until(both.client, answer, "\r\n\r\n"));
            stop.request();
            co_await read_all(both.client, answer);
        });
    });
    EXPECT_EQ(transcript(answer), "close:1001 ");
}

TEST_P(websocket_session, closes_with_a_code_and_awaits_the_peers) {
    websocket_close seen;
    service_ = [&](websocket peer) -> task<void> {
        EXPECT_EQ(error_of(co_await peer.close(close_code::none, "a reason without a code")),
                  errc::malformed);
        const auto closed = co_await peer.close(close_code{4000}, "enough");
        EXPECT_TRUE(closed.has_value());
        EXPECT_EQ(error_of(co_await peer.send("late")), errc::closed);
        seen = peer.closed_with();
    };
    // Messages before the client's answer are dropped.
    EXPECT_EQ(exchange(frame_text(opcode::text, "unread") + close_text(close_code{4000})),
              "close:4000 ");
    EXPECT_EQ(seen.code, close_code{4000});

    service_ = [&](websocket peer) -> task<void> {
        EXPECT_EQ(error_of(co_await peer.close()), errc::timed_out);
    };
    EXPECT_EQ(exchange(frame_text(opcode::text, "never closes")), "close:1000 ");
}

task<void> receive_all(websocket& peer, std::error_code& end) {
    for (;;) {
        const auto got = co_await peer.receive();
        if (got) continue;
        end = got.error();
        co_return;
    }
}

task<void> close_one(websocket& peer) { EXPECT_TRUE(co_await peer.close(close_code::going_away)); }

TEST_P(websocket_session, closes_while_another_coroutine_receives) {
    std::error_code end;
    bool receives_first = true;
    service_ = [&](websocket peer) -> task<void> {
        const auto answered = co_await peer.send("ready");
        EXPECT_TRUE(answered);
        co_await join_scope([&](scope& both) -> task<void> {
            if (receives_first) both.spawn(receive_all(peer, end));
            both.spawn(close_one(peer));
            if (!receives_first) both.spawn(receive_all(peer, end));
            co_return;
        });
    };
    for (const bool first : {true, false}) {
        receives_first = first;
        std::string answer;
        with_session([&](stream& client) -> task<void> {
            const std::string asking = request_text();
            static_cast<void>(co_await client.write_all(asking));
            EXPECT_TRUE(co_await read_until(client, answer, "ready"));
            const std::string closing = close_text(close_code::normal);
            static_cast<void>(co_await client.write_all(closing));
            co_await read_all(client, answer);
        });
        EXPECT_EQ(transcript(answer), "text:ready close:1001 ");
        EXPECT_TRUE(end == errc::end_of_stream || end == errc::closed) << end.message();
    }
}

TEST_P(websocket_session, notes_an_end_without_a_close_frame) {
    std::error_code ended;
    service_ = [&](websocket peer) -> task<void> {
        ended = error_of(co_await peer.receive());
        EXPECT_EQ(peer.closed_with().code, close_code::abnormal);
    };
    talk(request_text(), true);
    EXPECT_EQ(ended, errc::truncated);
}

TEST_P(websocket_session, pings_a_silent_peer_and_cuts_one_that_does_not_answer) {
    options_.idle_time = 20ms;
    options_.pong_time = 20ms;
    std::error_code ended;
    service_ = [&](websocket peer) -> task<void> { ended = error_of(co_await peer.receive()); };
    EXPECT_EQ(exchange({}), "ping: ");
    EXPECT_EQ(ended, errc::timed_out);
}

TEST_P(websocket_session, waits_for_a_peer_that_never_reads_and_cuts_it) {
    options_.write_time = 50ms;
    options_.queue.max_queued_bytes = 64 * 1024;
    socket_buffer_ = 4096;
    std::error_code ended;
    std::size_t most_queued = 0;
    service_ = [&](websocket peer) -> task<void> {
        const std::string piece(8000, 'x');
        for (;;) {
            const auto sent = co_await peer.send(piece);
            most_queued = std::max(most_queued, peer.queued_bytes());
            if (sent) continue;
            ended = sent.error();
            co_return;
        }
    };
    with_session([&](stream& client) -> task<void> {
        const std::string asking = request_text();
        static_cast<void>(co_await client.write_all(asking));
        static_cast<void>(co_await loop::current().sleep_for(400ms));
    });
    EXPECT_EQ(ended, errc::timed_out);
    EXPECT_LE(most_queued, 64U * 1024);
}

TEST_P(websocket_session, drops_or_disconnects_as_the_policy_says) {
    options_.queue.max_queued_bytes = 64 * 1024;
    socket_buffer_ = 4096;
    options_.queue.policy = slow_reader_policy::disconnect;
    std::error_code ended;
    std::uint64_t dropped = 0;
    service_ = [&](websocket peer) -> task<void> {
        const std::string piece(8000, 'x');
        for (int i = 0; i < 2000; ++i) {
            const auto sent = co_await peer.send(piece);
            dropped = peer.dropped();
            if (sent) continue;
            ended = sent.error();
            co_return;
        }
    };
    const auto never_read = [&](stream& client) -> task<void> {
        const std::string asking = request_text();
        static_cast<void>(co_await client.write_all(asking));
        static_cast<void>(co_await loop::current().sleep_for(100ms));
    };
    with_session(never_read);
    EXPECT_EQ(ended, errc::limit_reached);
    options_.queue.policy = slow_reader_policy::drop_oldest;
    ended = {};
    with_session(never_read);
    EXPECT_EQ(ended, std::error_code());
    EXPECT_GT(dropped, 100U);
}

TEST_P(websocket_session, answers_no_more_pings_than_the_queue_holds) {
    options_.queue.max_queued_bytes = 16 * 1024;
    socket_buffer_ = 4096;
    std::size_t most_queued = 0;
    service_ = [&](websocket peer) -> task<void> {
        for (;;) {
            const auto got = co_await peer.receive();
            most_queued = std::max(most_queued, peer.queued_bytes());
            if (!got) co_return;
        }
    };
    with_session([&](stream& client) -> task<void> {
        std::string flood = request_text();
        for (int i = 0; i < 2000; ++i) flood += frame_text(opcode::ping, std::string(125, 'p'));
        flood += frame_text(opcode::text, "end");
        static_cast<void>(co_await client.write_all(flood));
        static_cast<void>(co_await loop::current().sleep_for(50ms));
        client.close();
    });
    EXPECT_LE(most_queued, 16U * 1024);
}

/// The client's compressed form of a message.
std::string deflated(std::string_view text) {
    eddy::websocket::deflate_terms terms;
    terms.client_no_context_takeover = true;
    message_compressor by(terms, eddy::websocket::role::client);
    byte_buffer made;
    EXPECT_TRUE(by.add(text, true, made));
    return std::string(made.text());
}

constexpr std::string_view deflate_offer =
    "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";

TEST_P(websocket_session, inflates_and_compresses) {
    options_.deflate = frugal_deflate;
    options_.compressed_from = 10;
    const std::string text = deflated(std::string(500, 'a'));
    const std::string frames =
        frame_text(opcode::text, text, true, true) + frame_text(opcode::text, "plain") +
        frame_text(opcode::text, text.substr(0, 3), false, true) +
        frame_text(opcode::continuation, text.substr(3)) + close_text(close_code::normal);
    for (const std::string_view path : {"/", "/pieces"}) {
        const std::string answer = exchange(frames, path, deflate_offer);
        EXPECT_TRUE(answer.starts_with("text:compressed:")) << answer;
        EXPECT_NE(answer.find(" text:plain text:compressed:"), std::string::npos) << answer;
        EXPECT_TRUE(answer.ends_with(" close:1000 ")) << answer;
    }
}

TEST_P(websocket_session, bounds_what_compressed_messages_become) {
    options_.deflate = frugal_deflate;
    EXPECT_EQ(
        exchange(frame_text(opcode::binary, deflated(std::string(1'000'000, '\0')), true, true),
                 "/", deflate_offer),
        "close:1009 ");
    EXPECT_EQ(
        exchange(frame_text(opcode::text, "no deflate stream", true, true), "/", deflate_offer),
        "close:1007 ");
    EXPECT_EQ(exchange(frame_text(opcode::text, deflated("\xff"), true, true), "/", deflate_offer),
              "close:1007 ");
}

// Incompressible content takes more than its size.
TEST_P(websocket_session, bounds_the_content_of_messages_in_any_form) {
    options_.deflate = frugal_deflate;
    std::minstd_rand random(1);
    std::string content(1000, ' ');
    for (char& each : content) each = static_cast<char>(random() >> 8);
    const std::string packed = deflated(content);
    EXPECT_GT(packed.size(), content.size());
    const std::string end = close_text(close_code::normal);
    for (const bool is_compressed : {false, true}) {
        const auto answer_to = [&](const std::string& text) {
            const std::string payload = is_compressed ? deflated(text) : text;
            return exchange(frame_text(opcode::binary, payload, true, is_compressed) + end, "/",
                            deflate_offer);
        };
        EXPECT_TRUE(answer_to(content).ends_with(" close:1000 "));
        EXPECT_EQ(answer_to(content + "x"), "close:1009 ");
    }
}

TEST_P(websocket_session, switches_no_request_with_a_body) {
    const std::string answer = talk(
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        "Content-Length: 3\r\n\r\nabc",
        true);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
}

TEST_P(websocket_session, answers_pipelined_requests_before_it_switches) {
    handler_.answer = [this](request& incoming) -> task<response> {
        if (incoming.path() == "/plain") co_return text("first");
        co_return upgrade(incoming, options_, service_);
    };
    const std::string answer = talk("GET /plain HTTP/1.1\r\nHost: x\r\n\r\n" + request_text() +
                                    close_text(close_code::normal));
    EXPECT_LT(answer.find("first"), answer.find("HTTP/1.1 101 ")) << answer;
}

EDDY_HTTP_ON_EVERY_BACKEND(websocket_session);

}  // namespace
}  // namespace eddy::http
