// Frames and messages, what is refused with which code, limits, and input cut anywhere.
#include "base/test_rounds.hpp"
#include "wire/websocket/transcript.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::websocket {
namespace {

using namespace std::string_literals;

// Memory that an idle connection holds for its parser.
static_assert(sizeof(parser) <= 128);

constexpr mask_key key{0x37, 0xfa, 0x21, 0x3d};

struct setting {
    role reads = role::server;
    limits bounds = {};
    bool may_be_compressed = false;
};

std::string run(std::string_view input, const std::vector<std::size_t>& cuts, const setting& s,
                reading how) {
    parser reader(s.reads, s.bounds);
    reader.allow_compressed(s.may_be_compressed);
    return transcript(reader, input, cuts, how);
}

// Reads the input whole, cut at each single position and cut everywhere, in place and collected:
// always the same.
std::string read_cut(std::string_view input, const setting& s = {}) {
    const std::string whole = run(input, {}, s, reading::in_place);
    EXPECT_EQ(run(input, {}, s, reading::collected), whole);
    std::vector<std::size_t> everywhere;
    for (std::size_t at = 1; at < input.size(); ++at) {
        everywhere.push_back(at);
        EXPECT_EQ(run(input, {at}, s, reading::in_place), whole) << "cut at " << at;
        EXPECT_EQ(run(input, {at}, s, reading::collected), whole) << "cut at " << at;
    }
    EXPECT_EQ(run(input, everywhere, s, reading::in_place), whole) << "cut everywhere";
    EXPECT_EQ(run(input, everywhere, s, reading::collected), whole) << "cut everywhere";
    return whole;
}

// A frame byte by byte, with a first byte and a length as they are given.
std::string raw(unsigned first_byte, const std::string& length, std::string payload,
                bool is_masked = true) {
    std::string out{static_cast<char>(first_byte)};
    out += length;
    if (!is_masked) return out + payload;
    out[1] = static_cast<char>(out[1] | '\x80');
    for (const std::uint8_t byte : key) out += static_cast<char>(byte);
    for (std::size_t i = 0; i < payload.size(); ++i)
        payload[i] = static_cast<char>(payload[i] ^ key[i % 4]);
    return out + payload;
}

// The same with the length that fits, at most 125.
std::string short_frame(unsigned first_byte, const std::string& payload, bool is_masked = true) {
    return raw(first_byte, {static_cast<char>(payload.size())}, payload, is_masked);
}

std::string close_frame(unsigned code, const std::string& reason = {}) {
    return short_frame(0x88,
                       std::string{static_cast<char>(code >> 8), static_cast<char>(code)} + reason);
}

TEST(websocket_parser, reads_the_examples_of_the_standard) {
    const setting client{.reads = role::client};
    EXPECT_EQ(read_cut("\x81\x05Hello", client), "message text 'Hello'\nidle\n");
    EXPECT_EQ(read_cut("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
              "message text 'Hello'\nidle\n");
    EXPECT_EQ(read_cut("\x01\x03Hel\x80\x02lo"s, client), "message text 'Hello'\nidle\n");
    EXPECT_EQ(read_cut("\x89\x05Hello", client), "ping 'Hello'\nidle\n");
    EXPECT_EQ(read_cut("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "pong 'Hello'\nidle\n");
    const std::string some(256, 'b');
    EXPECT_EQ(run("\x82\x7e\x01\x00"s + some, {}, client, reading::in_place),
              "message binary '" + some + "'\nidle\n");
    const std::string many(65536, 'b');
    EXPECT_EQ(
        run("\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"s + many, {}, client, reading::collected),
        "message binary '" + many + "'\nidle\n");
}

TEST(websocket_parser, reads_messages_without_data) {
    EXPECT_EQ(read_cut(short_frame(0x81, "") + short_frame(0x82, "")),
              "message text ''\nmessage binary ''\nidle\n");
    EXPECT_EQ(read_cut(short_frame(0x01, "") + short_frame(0x00, "") + short_frame(0x80, "")),
              "message text ''\nidle\n");
    EXPECT_EQ(read_cut(short_frame(0x89, "") + short_frame(0x8a, "") + short_frame(0x88, "")),
              "ping ''\npong ''\nclose 1005 ''\nclosed\n");
}

TEST(websocket_parser, reads_control_frames_between_those_of_a_message) {
    EXPECT_EQ(read_cut(short_frame(0x02, "ab") + short_frame(0x89, "1") + short_frame(0x00, "cd") +
                       short_frame(0x8a, std::string(125, 'x')) + short_frame(0x80, "ef") +
                       short_frame(0x81, "next")),
              "ping '1'\npong '" + std::string(125, 'x') +
                  "'\nmessage binary 'abcdef'\nmessage text 'next'\nidle\n");
}

TEST(websocket_parser, says_where_it_stands) {
    EXPECT_EQ(read_cut(""), "idle\n");
    EXPECT_EQ(read_cut("\x81"), "unfinished\n");
    EXPECT_EQ(read_cut(short_frame(0x01, "ab")), "open text 'ab'\nunfinished\n");
    EXPECT_EQ(read_cut(short_frame(0x82, "abcdef").substr(0, 9)),
              "open binary 'abc'\nunfinished\n");
}

TEST(websocket_parser, drops_what_follows_a_close_frame) {
    EXPECT_EQ(read_cut(close_frame(1000, "bye") + short_frame(0x81, "late") + "\xff\xff"),
              "close 1000 'bye'\nclosed\n");
    EXPECT_EQ(read_cut(short_frame(0x01, "half") + close_frame(1001)),
              "close 1001 ''\nopen text 'half'\nclosed\n");
}

TEST(websocket_parser, judges_the_end_of_the_connection) {
    parser reader(role::server);
    EXPECT_EQ(reader.finish(), fail(errc::truncated)) << "no close frame";
    byte_buffer message;
    const std::string frame = close_frame(1000);
    EXPECT_EQ(reader.collect(frame, message).what, event::close);
    EXPECT_TRUE(reader.finish());
    parser broken(role::server);
    EXPECT_EQ(broken.collect("\xff", message).what, event::error);
    EXPECT_EQ(broken.finish(), fail(errc::malformed));
    EXPECT_EQ(broken.collect(frame, message).what, event::error) << "an error is final";
}

TEST(websocket_parser, refuses_violations_with_their_code) {
    struct violation {
        std::string what;
        std::string input;
        unsigned code;
        role reads = role::server;
        bool may_be_compressed = false;
    };
    const std::string text = short_frame(0x01, "a");
    const std::vector<violation> table = {
        {"RSV1 without an agreement", short_frame(0xc1, "a"), 1002},
        {"RSV2", short_frame(0xa1, "a"), 1002},
        {"RSV3", short_frame(0x91, "a"), 1002},
        {"RSV2 with compression", short_frame(0xe1, "a"), 1002, role::server, true},
        {"RSV1 of a continuation", text + short_frame(0xc0, "a"), 1002, role::server, true},
        {"RSV1 of a ping", short_frame(0xc9, ""), 1002, role::server, true},
        {"RSV1 of a pong", short_frame(0xca, ""), 1002, role::server, true},
        {"RSV1 of a close", short_frame(0xc8, ""), 1002, role::server, true},
        {"opcode 3", short_frame(0x83, ""), 1002},
        {"opcode 4", short_frame(0x84, ""), 1002},
        {"opcode 5", short_frame(0x85, ""), 1002},
        {"opcode 6", short_frame(0x86, ""), 1002},
        {"opcode 7", short_frame(0x87, ""), 1002},
        {"opcode 11", short_frame(0x8b, ""), 1002},
        {"opcode 12", short_frame(0x8c, ""), 1002},
        {"opcode 13", short_frame(0x8d, ""), 1002},
        {"opcode 14", short_frame(0x8e, ""), 1002},
        {"opcode 15", short_frame(0x8f, ""), 1002},
        {"a fragmented ping", short_frame(0x09, "a"), 1002},
        {"a fragmented pong", short_frame(0x0a, "a"), 1002},
        {"a fragmented close", short_frame(0x08, ""), 1002},
        {"a ping of 126 bytes", raw(0x89, "\x7e\x00\x7e"s, std::string(126, 'a')), 1002},
        {"a close of 126 bytes", raw(0x88, "\x7e\x00\x7e"s, std::string(126, 'a')), 1002},
        {"a ping with 64 bits of length", raw(0x89, "\x7f\0\0\0\0\0\0\0\x01"s, "a"), 1002},
        {"an unmasked frame of a client", short_frame(0x81, "a", false), 1002},
        {"a masked frame of a server", short_frame(0x81, "a"), 1002, role::client},
        {"a masked ping of a server", short_frame(0x89, ""), 1002, role::client},
        {"a continuation of nothing", short_frame(0x80, "a"), 1002},
        {"a continuation behind the end", short_frame(0x81, "a") + short_frame(0x00, "a"), 1002},
        {"a text within a message", text + short_frame(0x81, "b"), 1002},
        {"a binary within a message", text + short_frame(0x02, "b"), 1002},
        {"16 bits of length for 125", raw(0x82, "\x7e\x00\x7d"s, std::string(125, 'a')), 1002},
        {"16 bits of length for 0", raw(0x82, "\x7e\x00\x00"s, ""), 1002},
        {"64 bits of length for 65535", raw(0x82, "\x7f\0\0\0\0\0\0\xff\xff"s, "a"), 1002},
        {"64 bits of length for 5", raw(0x82, "\x7f\0\0\0\0\0\0\0\x05"s, "abcde"), 1002},
        {"a length of 2^63", raw(0x82, "\x7f\x80\0\0\0\0\0\0\0"s, "a"), 1002},
        {"a length of 2^64-1", raw(0x82, "\x7f\xff\xff\xff\xff\xff\xff\xff\xff"s, "a"), 1002},
        {"a length of 2^63-1", raw(0x82, "\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"s, "a"), 1009},
        {"a close of one byte", short_frame(0x88, "\x03"), 1002},
        {"a reason that is no UTF-8", close_frame(1000, "ab\xff"), 1007},
        {"a reason that ends within a character", close_frame(1000, "ab\xe2\x82"), 1007},
        {"a text that is no UTF-8",
         short_frame(0x81,
                     "ab\xff"
                     "cd"),
         1007},
        {"a text with a surrogate", short_frame(0x81, "\xed\xa0\x80"), 1007},
        {"a text with an overlong form", short_frame(0x81, "\xc0\xaf"), 1007},
        {"a text beyond U+10FFFF", short_frame(0x81, "\xf4\x90\x80\x80"), 1007},
        {"a text that ends within a character", short_frame(0x81, "ab\xe2\x82"), 1007},
        {"the same in fragments", short_frame(0x01, "ab\xe2") + short_frame(0x80, "\x82"), 1007},
        {"a wrong byte in the second fragment",
         short_frame(0x01, "ab\xe2") + short_frame(0x00, "\x28"), 1007},
    };
    for (const violation& each : table) {
        SCOPED_TRACE(each.what);
        const setting s{.reads = each.reads, .may_be_compressed = each.may_be_compressed};
        const std::string seen = read_cut(each.input, s);
        EXPECT_TRUE(seen.ends_with("error " + std::to_string(each.code) + "\n")) << seen;
    }
}

TEST(websocket_parser, yields_a_text_up_to_its_first_wrong_byte) {
    EXPECT_EQ(read_cut(short_frame(0x81,
                                   "ab\xc3\xa4\xff"
                                   "cd")),
              "open text 'ab\xc3\xa4'\nerror 1007\n");
    EXPECT_EQ(read_cut(short_frame(0x81, "ab\xe2\x82\x28")),
              "open text 'ab\xe2\x82'\nerror 1007\n");
}

TEST(websocket_parser, accepts_characters_that_are_cut_by_frames) {
    EXPECT_EQ(read_cut(short_frame(0x01, "\xf0") + short_frame(0x89, "\xff") +
                       short_frame(0x00, "\x9f\x98") + short_frame(0x80, "\x80!")),
              "ping '\xff'\nmessage text '\xf0\x9f\x98\x80!'\nidle\n");
    EXPECT_EQ(read_cut(short_frame(0x82, "\xff\xfe")), "message binary '\xff\xfe'\nidle\n");
}

TEST(websocket_parser, judges_close_codes) {
    for (const unsigned code : {1000u, 1001u, 1002u, 1003u, 1007u, 1008u, 1009u, 1010u, 1011u,
                                1012u, 1013u, 1014u, 3000u, 3999u, 4000u, 4999u}) {
        EXPECT_EQ(read_cut(close_frame(code, "why")),
                  "close " + std::to_string(code) + " 'why'\nclosed\n");
    }
    for (const unsigned code :
         {0u, 1u, 999u, 1004u, 1005u, 1006u, 1015u, 1016u, 1100u, 2000u, 2999u, 5000u, 65535u})
        EXPECT_EQ(read_cut(close_frame(code)), "error 1002\n") << code;
    EXPECT_EQ(read_cut(close_frame(1000, std::string(123, 'r'))),
              "close 1000 '" + std::string(123, 'r') + "'\nclosed\n");
}

TEST(websocket_parser, marks_compressed_messages_and_leaves_their_bytes) {
    const setting s{.may_be_compressed = true};
    EXPECT_EQ(read_cut(short_frame(0xc1, "\xff\x80") + short_frame(0x81, "plain"), s),
              "message text compressed '\xff\x80'\nmessage text 'plain'\nidle\n");
    EXPECT_EQ(read_cut(short_frame(0x42, "\xff") + short_frame(0x80, "\xfe"), s),
              "message binary compressed '\xff\xfe'\nidle\n");
}

TEST(websocket_parser, holds_a_frame_to_its_limit) {
    const setting s{.bounds = {.frame = 5, .message = 100}};
    EXPECT_EQ(read_cut(short_frame(0x82, "12345"), s), "message binary '12345'\nidle\n");
    EXPECT_EQ(read_cut(short_frame(0x82, "123456"), s), "error 1009\n");
    EXPECT_EQ(read_cut(short_frame(0x89, "123456"), s), "ping '123456'\nidle\n")
        << "control frames have a limit of their own";
    EXPECT_EQ(read_cut(short_frame(0x02, "12345") + short_frame(0x80, "123456"), s),
              "open binary '12345'\nerror 1009\n");
}

TEST(websocket_parser, holds_a_message_to_its_limit) {
    const setting s{.bounds = {.frame = 100, .message = 5}};
    EXPECT_EQ(read_cut(short_frame(0x02, "12") + short_frame(0x00, "34") + short_frame(0x80, "5") +
                           short_frame(0x82, "12345"),
                       s),
              "message binary '12345'\nmessage binary '12345'\nidle\n");
    EXPECT_EQ(
        read_cut(short_frame(0x02, "12") + short_frame(0x00, "34") + short_frame(0x80, "56"), s),
        "open binary '1234'\nerror 1009\n");
    EXPECT_EQ(read_cut(short_frame(0x82, "123456"), s), "error 1009\n");
    const setting none{.bounds = {.frame = 0, .message = 0}};
    EXPECT_EQ(read_cut(short_frame(0x82, ""), none), "message binary ''\nidle\n");
    EXPECT_EQ(read_cut(short_frame(0x82, "1"), none), "error 1009\n");
    const setting boundless{.bounds = {.frame = UINT64_MAX, .message = UINT64_MAX}};
    EXPECT_EQ(
        read_cut(short_frame(0x02, "1") + raw(0x80, "\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"s, "2"),
                 boundless),
        "open binary '12'\nunfinished\n");
}

TEST(websocket_parser, refuses_a_size_before_its_data_comes) {
    parser reader(role::client, {.frame = 1000, .message = 1000});
    byte_buffer message;
    EXPECT_EQ(reader.collect("\x82\x7e\x03\xe9"s, message).what, event::error);
    EXPECT_EQ(reader.error().code, close_code::message_too_big);
}

TEST(websocket_parser, takes_new_limits_between_frames) {
    parser reader(role::client, {.frame = 10, .message = 10});
    byte_buffer message;
    EXPECT_EQ(reader
                  .collect("\x02\x04"
                           "1234"s,
                           message)
                  .what,
              event::need_more);
    reader.set_limits({.frame = 3, .message = 3});
    EXPECT_EQ(reader.collect("\x80\x00"s, message).what, event::error)
        << "the message is larger already";
    EXPECT_EQ(reader.error().code, close_code::message_too_big);
}

TEST(websocket_parser, reserves_little_for_data_that_was_only_announced) {
    parser reader(role::client);
    byte_buffer message;
    const std::string head = "\x82\x7f\0\0\0\0\0\xff\xff\xff"s;
    EXPECT_EQ(reader.collect(head, message).what, event::need_more);
    EXPECT_EQ(message.capacity(), 0u) << "no data, no memory";
    EXPECT_EQ(reader.collect("x", message).what, event::need_more);
    EXPECT_LE(message.capacity(), parser::reserve_limit + 1);
}

TEST(websocket_parser, collects_a_message_of_the_reserve_in_one_block) {
    const std::string payload(parser::reserve_limit, 'p');
    byte_buffer frame;
    write_frame(frame, {.kind = opcode::binary, .mask = key}, payload);
    parser reader(role::server);
    byte_buffer message;
    std::string_view left = frame.text();
    EXPECT_EQ(reader.collect(left.substr(0, 1000), message).what, event::need_more);
    const std::size_t capacity = message.capacity();
    EXPECT_EQ(reader.collect(left.substr(1000), message).what, event::message_end);
    EXPECT_EQ(message.capacity(), capacity);
    EXPECT_EQ(message.text(), payload);
}

TEST(websocket_parser, appends_to_what_the_buffer_has) {
    parser reader(role::client);
    byte_buffer message;
    message.append("head:");
    EXPECT_EQ(reader.collect("\x81\x02hi", message).what, event::message_end);
    EXPECT_EQ(message.text(), "head:hi");
    EXPECT_EQ(reader.message().size, 2u);
}

TEST(websocket_parser, unmasks_in_place) {
    parser reader(role::server);
    std::string input = short_frame(0x81, "Hello");
    const mutable_bytes bytes(reinterpret_cast<std::byte*>(input.data()), input.size());
    const step begin = reader.parse(bytes);
    EXPECT_EQ(begin.what, event::message_begin);
    EXPECT_EQ(reader.message().size, 5u);
    const step data = reader.parse(bytes.subspan(begin.consumed));
    EXPECT_EQ(data.what, event::data);
    EXPECT_EQ(data.data.data(), input.data() + 6) << "no copy";
    EXPECT_EQ(data.data, "Hello");
    EXPECT_EQ(reader.parse({}).what, event::message_end) << "the end needs no more input";
    EXPECT_EQ(reader.parse({}).what, event::need_more);
}

TEST(websocket_parser, checks_text_across_blocks) {
    // Characters of three bytes, so that the parser's blocks and the pieces cut them.
    std::string payload;
    while (payload.size() < 40'000) payload += "\xe6\xbc\xa2";
    byte_buffer frame;
    write_frame(frame, {.kind = opcode::text, .mask = key}, payload);
    for (const std::size_t cut : {100u, 8200u, 16'385u, 33'333u}) {
        EXPECT_EQ(run(frame.text(), {cut}, {}, reading::in_place),
                  "message text '" + payload + "'\nidle\n");
        EXPECT_EQ(run(frame.text(), {cut}, {}, reading::collected),
                  "message text '" + payload + "'\nidle\n");
    }
    for (const std::size_t wrong : {0u, 8191u, 8192u, 8193u, 20'000u, 39'999u}) {
        std::string bad = payload;
        bad[wrong] = '\xff';
        byte_buffer other;
        write_frame(other, {.kind = opcode::text, .mask = key}, bad);
        const std::string seen = run(other.text(), {}, {}, reading::in_place);
        EXPECT_TRUE(seen.ends_with("error 1007\n"));
        EXPECT_EQ(run(other.text(), {wrong + 3, wrong + 9}, {}, reading::collected), seen);
    }
}

}  // namespace
}  // namespace eddy::websocket
