// Compression of messages: the standard's examples, every window, limits, and damaged data.
#include "http/websocket/message_deflate.hpp"

#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::http {
namespace {

using websocket::deflate_terms;
using websocket::role;
using namespace std::string_literals;

constexpr std::uint64_t no_limit = UINT64_MAX;

constexpr deflate_terms alone{.server_no_context_takeover = true,
                              .client_no_context_takeover = true};

std::string compressed(message_compressor& by, std::string_view text) {
    byte_buffer out;
    EXPECT_TRUE(by.add(text, true, out));
    return std::string(out.text());
}

// The inflated text, or the message of the error.
std::string inflated(message_inflater& by, std::string_view data, std::uint64_t limit = no_limit) {
    byte_buffer out;
    const result<> done = by.add(data, true, out, limit);
    EXPECT_LE(out.size(), limit);
    return done ? std::string(out.text()) : done.error().message();
}

const std::string malformed = make_error_code(errc::malformed).message();
const std::string too_large = make_error_code(errc::limit_reached).message();

std::string sample_text(std::size_t size) {
    std::string text;
    for (unsigned i = 0; text.size() < size; ++i)
        text += "{\"id\":" + std::to_string(i * 7919 % 1000) + ",\"name\":\"value\"},";
    text.resize(size);
    return text;
}

TEST(message_deflate, reads_the_examples_of_the_standard) {
    message_inflater reader(deflate_terms(), role::client);
    EXPECT_EQ(inflated(reader, "\xf2\x48\xcd\xc9\xc9\x07\x00"s), "Hello");
    EXPECT_EQ(inflated(reader, "\xf2\x00\x11\x00\x00"s), "Hello") << "from the window";
    EXPECT_EQ(inflated(reader, "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"s), "Hello")
        << "a block without compression";
    EXPECT_EQ(inflated(reader, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s), "Hello") << "a final block";
    EXPECT_EQ(inflated(reader, "\xf2\x00\x11\x00\x00"s), "Hello") << "from the window before it";
    EXPECT_EQ(inflated(reader, "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"s), "Hello")
        << "two blocks";
    EXPECT_EQ(inflated(reader, "\x00"s), "");
    EXPECT_EQ(inflated(reader, "\xf3\x48\xcd\xc9\xc9\x07\x00"s), "Hello")
        << "a final block and nothing behind it";
    EXPECT_EQ(inflated(reader, "\xf2\x00\x11\x00\x00"s), "Hello");
}

TEST(message_deflate, writes_the_examples_of_the_standard) {
    message_compressor writer(deflate_terms(), role::server);
    EXPECT_EQ(compressed(writer, "Hello"), "\xf2\x48\xcd\xc9\xc9\x07\x00"s);
    EXPECT_EQ(compressed(writer, "Hello"), "\xf2\x00\x11\x00\x00"s);
    EXPECT_EQ(compressed(writer, ""), "\x00"s);
    EXPECT_EQ(compressed(writer, ""), "\x00"s);
    message_compressor each_alone(alone, role::server);
    EXPECT_EQ(compressed(each_alone, "Hello"), "\xf2\x48\xcd\xc9\xc9\x07\x00"s);
    EXPECT_EQ(compressed(each_alone, "Hello"), "\xf2\x48\xcd\xc9\xc9\x07\x00"s);
}

TEST(message_deflate, goes_round_with_every_window_and_level) {
    const std::string text = sample_text(100'000);
    for (unsigned bits = websocket::least_window_bits; bits <= websocket::most_window_bits;
         ++bits) {
        for (const int level : {1, 6, 9}) {
            for (const bool is_alone : {false, true}) {
                const deflate_terms terms{.server_no_context_takeover = is_alone,
                                          .client_no_context_takeover = true,
                                          .server_max_window_bits = bits,
                                          .client_max_window_bits = 8};
                message_compressor writer(terms, role::server, level);
                message_inflater reader(terms, role::server);
                for (const std::size_t size : {0u, 1u, 300u, 70'000u, 100'000u, 0u, 5u}) {
                    const std::string_view part = std::string_view(text).substr(0, size);
                    const std::string data = compressed(writer, part);
                    if (size > 1000) {
                        EXPECT_LT(data.size(), size);
                    }
                    ASSERT_EQ(inflated(reader, data), part) << bits << " bits, level " << level;
                }
            }
        }
    }
}

TEST(message_deflate, keeps_distances_within_a_window_of_8_bits) {
    // Repetitions at each distance around 256 bytes.
    const deflate_terms terms{.server_max_window_bits = 8};
    random_generator random(testing::seed_of_this_run());
    for (std::size_t period = 240; period < 520; ++period) {
        std::string unit(period, ' ');
        for (char& c : unit) c = static_cast<char>(random());
        std::string text;
        for (int i = 0; i < 20; ++i) text += unit;
        for (const int level : {1, 9}) {
            message_compressor writer(terms, role::server, level);
            message_inflater reader(terms, role::server);
            ASSERT_EQ(inflated(reader, compressed(writer, text)), text) << period;
            ASSERT_EQ(inflated(reader, compressed(writer, text)), text) << period;
        }
    }
}

TEST(message_deflate, takes_messages_in_pieces) {
    random_generator random(testing::seed_of_this_run());
    message_compressor writer(deflate_terms(), role::client);
    message_inflater reader(deflate_terms(), role::client);
    for (int round = 0; round < testing::rounds(200); ++round) {
        const std::string text = sample_text(random.below(20'000));
        byte_buffer data;
        std::string_view left = text;
        do {
            const std::string_view piece = left.substr(0, random.below(3000));
            left.remove_prefix(piece.size());
            ASSERT_TRUE(writer.add(piece, left.empty(), data));
        } while (!left.empty());
        byte_buffer out;
        std::string_view rest = data.text();
        do {
            const std::string_view piece = rest.substr(0, random.below(300));
            rest.remove_prefix(piece.size());
            ASSERT_TRUE(reader.add(piece, rest.empty(), out, text.size()));
        } while (!rest.empty());
        ASSERT_EQ(out.text(), text);
    }
}

TEST(message_deflate, holds_a_message_to_its_limit) {
    const std::string text = sample_text(5000);
    message_compressor writer(alone, role::server);
    const std::string data = compressed(writer, text);
    message_inflater reader(alone, role::server);
    EXPECT_EQ(inflated(reader, data, 5000), text);
    EXPECT_EQ(inflated(reader, data, 4999), too_large);
    EXPECT_EQ(inflated(reader, data, 1), too_large);
    EXPECT_EQ(inflated(reader, data, 0), too_large);
    EXPECT_EQ(inflated(reader, data, 5000), text) << "the next message begins anew";
    EXPECT_EQ(inflated(reader, compressed(writer, ""), 0), "");
}

TEST(message_deflate, stops_a_bomb_at_the_limit) {
    message_compressor writer(alone, role::server, 9);
    const std::string data = compressed(writer, std::string(10'000'000, '\0'));
    EXPECT_LT(data.size(), 20'000u);
    message_inflater reader(alone, role::server);
    byte_buffer out;
    EXPECT_EQ(reader.add(data, true, out, 100'000), fail(errc::limit_reached));
    EXPECT_LE(out.size(), 100'000u);
    EXPECT_LE(out.capacity(), 400'000u);
}

TEST(message_deflate, refuses_data_that_is_no_deflate_stream) {
    message_inflater reader(deflate_terms(), role::server);
    EXPECT_EQ(inflated(reader, "\x07"s), malformed) << "a reserved kind of block";
    EXPECT_EQ(inflated(reader, "\x00\x05\x00\x00\x00"s), malformed) << "lengths that do not match";
    EXPECT_EQ(inflated(reader, "\xf2\x48\xcd"s), malformed) << "the end is missing";
    EXPECT_EQ(inflated(reader, ""), malformed) << "no block at all";
    EXPECT_EQ(inflated(reader, "\x00\x09\x00\xf6\xff\x48"s), malformed);
    EXPECT_EQ(inflated(reader, "\xf2\x00\x11\x00\x00"s), malformed) << "a window that is not there";
    message_compressor writer(deflate_terms(), role::server);
    EXPECT_EQ(inflated(reader, compressed(writer, "text")), "text") << "after all that";
}

TEST(message_deflate, survives_damaged_data) {
    random_generator random(testing::seed_of_this_run());
    message_compressor writer(alone, role::server);
    const std::string data = compressed(writer, sample_text(3000));
    for (int round = 0; round < testing::rounds(5000); ++round) {
        std::string bad = data;
        for (std::uint64_t i = 1 + random.below(3); i > 0; --i)
            bad[random.below(bad.size())] = static_cast<char>(random());
        if (random.chance(0.3)) bad.resize(random.below(bad.size()));
        message_inflater reader(random.chance(0.5) ? deflate_terms() : alone, role::server);
        byte_buffer out;
        static_cast<void>(reader.add(bad, true, out, 10'000));
        ASSERT_LE(out.size(), 10'000u);
    }
}

TEST(message_deflate, serves_connections_in_turn_where_no_context_is_kept) {
    message_compressor writer(alone, role::server);
    message_inflater reader(alone, role::server);
    const std::string first = compressed(writer, sample_text(400));
    writer.release_memory();
    EXPECT_EQ(compressed(writer, sample_text(400)), first);
    EXPECT_EQ(inflated(reader, first), sample_text(400));
    reader.release_memory();
    EXPECT_EQ(inflated(reader, first), sample_text(400));
}

}  // namespace
}  // namespace eddy::http
