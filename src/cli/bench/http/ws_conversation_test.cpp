// Tests of the WebSocket side of a load: handshake, echoes at any split, and wrong ones.
#include "cli/bench/http/ws_conversation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::cli::bench {
namespace {

using ::testing::HasSubstr;
using websocket::opcode;
using state = scan_result::state;

std::string frame(std::string_view payload, opcode kind, bool is_last = true) {
    byte_buffer out;
    websocket::write_frame(out, {.kind = kind, .is_last = is_last}, payload);
    return std::string(out.text());
}

class ws_load : public ::testing::Test {
protected:
    ws_load() { EXPECT_TRUE(work.headers.add("Host", "h")); }

    /// Opens a WebSocket; the response has this status.
    void open(ws_conversation& talk, tally& counts, std::size_t split = 20) {
        http1::request_parser parser;
        const std::string request(talk.open());
        ASSERT_EQ(parser.parse(request).what, http1::event::head);
        const auto agreed = websocket::check_request(parser.head(), {});
        ASSERT_TRUE(agreed);
        http1::header_list fields;
        ASSERT_TRUE(websocket::add_response_fields(fields, *agreed));
        byte_buffer out;
        http1::head_writer writer(out);
        writer.response(101).fields(fields);
        ASSERT_TRUE(writer.end(http1::body_framing::none()));
        EXPECT_FALSE(talk.is_open());
        static_cast<void>(talk.scan(out.text().substr(0, split), 0, counts));
        static_cast<void>(talk.scan(out.text().substr(split), 0, counts));
        ASSERT_TRUE(talk.is_open());
    }

    scan_result scan(std::string_view text, std::size_t split, tally& counts,
                     std::size_t awaited = 3) {
        ws_conversation talk(work, 1, false);
        open(talk, counts);
        scan_result made = talk.scan(text.substr(0, split), awaited, counts);
        if (made.then == state::open) {
            const scan_result rest = talk.scan(text.substr(split), awaited - made.replies, counts);
            made.replies += rest.replies;
            made.then = rest.then;
        }
        answers = talk.take_answers();
        return made;
    }

    ws_work work{20, opcode::text, 3, 1};
    std::string answers;
};

TEST_F(ws_load, sends_masked_frames) {
    ws_conversation talk(work, 1, false);
    EXPECT_EQ(talk.requests(1).size() * 3, talk.requests(3).size());
    websocket::parser server(websocket::role::server);
    byte_buffer message;
    std::string_view input = talk.requests(3);
    for (int i = 0; i < 3; ++i) {
        const websocket::step step = server.collect(input, message);
        ASSERT_EQ(step.what, websocket::event::message_end);
        input.remove_prefix(step.consumed);
        EXPECT_EQ(message.text(), work.message);
        message.clear();
    }
    EXPECT_TRUE(input.empty());
}

TEST_F(ws_load, counts_echoes_at_any_split) {
    const std::string one = frame(work.message, opcode::text);
    const std::string cut = frame(work.message.substr(0, 7), opcode::text, false) +
                            frame(work.message.substr(7), opcode::continuation);
    const std::string ping = frame("are you there", opcode::ping);
    for (const std::string& text : {one + one + one, one + cut + one, one + ping + one + one}) {
        for (std::size_t split = 0; split <= text.size(); ++split) {
            tally counts;
            const scan_result made = scan(text, split, counts);
            EXPECT_EQ(made.replies, 3U);
            EXPECT_EQ(made.then, state::open);
            EXPECT_EQ(counts.errors(), 0U) << counts.first_fault;
            // Six bytes of head with the mask.
            EXPECT_EQ(answers.size(), text.contains(ping) ? 6 + 13U : 0U);
        }
    }
}

TEST_F(ws_load, finds_wrong_echoes) {
    const std::string one = frame(work.message, opcode::text);
    std::string wrong = one;
    wrong.back() ^= 1;
    const std::string text = one + wrong + frame(work.message, opcode::binary);
    for (std::size_t split = 0; split <= text.size(); ++split) {
        tally counts;
        EXPECT_EQ(scan(text, split, counts).replies, 3U);
        EXPECT_EQ(counts.faults[static_cast<std::size_t>(fault::content)], 2U);
    }
}

TEST_F(ws_load, counts_what_ends_a_connection) {
    const std::string one = frame(work.message, opcode::text);
    tally counts;
    EXPECT_EQ(scan(one + one, 5, counts, 1).then, state::broken);
    EXPECT_EQ(counts.faults[static_cast<std::size_t>(fault::malformed)], 1U);
    EXPECT_EQ(scan("\xff\xff", 1, counts).then, state::broken);
    EXPECT_EQ(counts.faults[static_cast<std::size_t>(fault::malformed)], 2U);
    byte_buffer close;
    ASSERT_TRUE(websocket::write_close(close, websocket::close_code::going_away, "bye"));
    EXPECT_EQ(scan(close.text(), 1, counts).then, state::broken);
    EXPECT_EQ(counts.faults[static_cast<std::size_t>(fault::closed)], 1U);
}

TEST_F(ws_load, counts_a_refusal) {
    for (const std::string_view answer :
         {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"}) {
        tally counts;
        ws_conversation talk(work, 1, false);
        talk.open();
        EXPECT_EQ(talk.scan(answer, 0, counts).then, state::broken);
        EXPECT_EQ(counts.faults[static_cast<std::size_t>(fault::connect)], 1U);
        EXPECT_THAT(counts.first_fault, HasSubstr("opens no WebSocket"));
    }
}

TEST_F(ws_load, the_first_pass_compares_every_byte) {
    ws_work large(repeated_reply::compared_limit * 2, opcode::binary, 1, 1);
    ASSERT_TRUE(large.headers.add("Host", "h"));
    std::string echo = frame(large.message, opcode::binary);
    echo.back() ^= 1;
    for (const bool is_first : {true, false}) {
        tally counts;
        ws_conversation talk(large, 1, is_first);
        open(talk, counts);
        EXPECT_EQ(talk.scan(echo, 1, counts).replies, 1U);
        EXPECT_EQ(counts.errors(), is_first ? 1U : 0U);
    }
}

}  // namespace
}  // namespace eddy::cli::bench
