// Heads and frames byte by byte, what is refused, and round trips through the parser.
#include "wire/websocket/transcript.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::websocket {
namespace {

using namespace std::string_literals;

constexpr mask_key key{0x37, 0xfa, 0x21, 0x3d};

std::string head(const frame& of, std::uint64_t size) {
    return std::string(frame_head(of, size).text());
}

std::string written(const frame& of, std::string_view payload) {
    byte_buffer out;
    write_frame(out, of, payload);
    return std::string(out.text());
}

TEST(websocket_writer, writes_the_examples_of_the_standard) {
    EXPECT_EQ(written({}, "Hello"), "\x81\x05Hello");
    EXPECT_EQ(written({.mask = key}, "Hello"), "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
    EXPECT_EQ(written({.is_last = false}, "Hel"), "\x01\x03Hel");
    EXPECT_EQ(written({.kind = opcode::continuation}, "lo"), "\x80\x02lo");
    EXPECT_EQ(head({.kind = opcode::binary}, 256), "\x82\x7e\x01\x00"s);
    EXPECT_EQ(head({.kind = opcode::binary}, 65536), "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"s);
}

TEST(websocket_writer, uses_the_shortest_length) {
    EXPECT_EQ(head({}, 0), "\x81\x00"s);
    EXPECT_EQ(head({}, 125), "\x81\x7d");
    EXPECT_EQ(head({}, 126), "\x81\x7e\x00\x7e"s);
    EXPECT_EQ(head({}, 65535), "\x81\x7e\xff\xff");
    EXPECT_EQ(head({}, UINT64_MAX >> 1), "\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff");
    EXPECT_EQ(head({.mask = key}, 65536).size(), frame_head::size_limit);
}

TEST(websocket_writer, marks_compressed_messages) {
    EXPECT_EQ(head({.is_compressed = true}, 1), "\xc1\x01");
    fragments frames(opcode::binary, true);
    EXPECT_EQ(head(frames.next(false), 1), "\x42\x01");
    EXPECT_EQ(head(frames.next(false), 1), "\x00\x01"s);
    EXPECT_EQ(head(frames.next(true), 1), "\x80\x01");
}

TEST(websocket_writer, writes_control_frames_up_to_their_limit) {
    byte_buffer out;
    EXPECT_TRUE(write_control(out, opcode::ping, "", key));
    EXPECT_EQ(out.text(), "\x89\x80\x37\xfa\x21\x3d");
    out.clear();
    EXPECT_TRUE(write_control(out, opcode::pong, std::string(125, 'x')));
    EXPECT_EQ(out.text(), "\x8a\x7d" + std::string(125, 'x'));
    EXPECT_EQ(write_control(out, opcode::pong, std::string(126, 'x')), fail(errc::limit_reached));
    EXPECT_EQ(out.size(), 127u);
}

std::string closed(close_code code, std::string_view reason = {}) {
    byte_buffer out;
    return write_close(out, code, reason) ? std::string(out.text()) : "refused";
}

TEST(websocket_writer, writes_close_frames) {
    EXPECT_EQ(closed(close_code::none), "\x88\x00"s);
    EXPECT_EQ(closed(close_code::normal), "\x88\x02\x03\xe8");
    EXPECT_EQ(closed(close_code{4999}, "why"), "\x88\x05\x13\x87why");
    EXPECT_EQ(closed(close_code::normal, std::string(123, 'r')),
              "\x88\x7d\x03\xe8" + std::string(123, 'r'));
    for (const unsigned code : {0u, 999u, 1004u, 1006u, 1015u, 2999u, 5000u})
        EXPECT_EQ(closed(close_code{static_cast<std::uint16_t>(code)}), "refused") << code;
    EXPECT_EQ(closed(close_code::normal, "\xff"), "refused");
    EXPECT_EQ(closed(close_code::none, "why"), "refused") << "a reason needs a code";
}

TEST(websocket_writer, cuts_a_long_reason_between_characters) {
    EXPECT_EQ(closed(close_code::normal, std::string(500, 'r')),
              "\x88\x7d\x03\xe8" + std::string(123, 'r'));
    const std::string longest(122, 'r');
    EXPECT_EQ(closed(close_code::normal, longest + "\xc3\xa4"), "\x88\x7c\x03\xe8" + longest);
    EXPECT_EQ(closed(close_code::normal, longest.substr(1) + "\xc3\xa4 more"),
              "\x88\x7d\x03\xe8" + longest.substr(1) + "\xc3\xa4");
}

TEST(websocket_writer, is_read_by_the_parser_at_every_size) {
    for (const role reads : {role::server, role::client}) {
        const auto mask = reads == role::server ? std::optional(key) : std::nullopt;
        for (const std::size_t size :
             {0u, 1u, 125u, 126u, 127u, 128u, 65535u, 65536u, 65537u, 200'000u}) {
            const std::string payload(size, 'p');
            byte_buffer out;
            write_frame(out, {.mask = mask}, payload);
            fragments frames(opcode::binary);
            write_frame(out, frames.next(false, mask), payload);
            write_frame(out, frames.next(true, mask), "end");
            ASSERT_TRUE(write_close(out, close_code::going_away, "bye", mask));
            const std::string expected = "message text '" + payload + "'\nmessage binary '" +
                                         payload + "end'\nclose 1001 'bye'\nclosed\n";
            for (const reading how : {reading::in_place, reading::collected}) {
                parser reader(reads);
                EXPECT_EQ(transcript(reader, out.text(), {size / 2, out.size() / 2}, how),
                          expected);
            }
        }
    }
}

TEST(websocket_writer, gathers_a_head_with_a_payload_that_is_masked_in_place) {
    std::string payload = "Hello";
    const frame_head first({.mask = key}, payload.size());
    apply_mask({reinterpret_cast<std::byte*>(payload.data()), payload.size()}, key);
    EXPECT_EQ(std::string(first.text()) + payload, written({.mask = key}, "Hello"));
}

}  // namespace
}  // namespace eddy::websocket
