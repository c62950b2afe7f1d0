// Random streams of frames, right ones and damaged ones: the parser agrees with a slow decoder,
// however the stream is cut.
#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"
#include "wire/websocket/reference_decoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace eddy::websocket {
namespace {

std::string random_text(random_generator& random, std::size_t size) {
    constexpr std::string_view parts[] = {"a", "plain text ", "\xc3\xa4", "\xe2\x82\xac",
                                          "\xf0\x9f\x98\x80"};
    std::string text;
    while (text.size() < size) text += parts[random.below(std::size(parts))];
    return text;
}

mask_key random_key(random_generator& random) {
    mask_key key;
    for (std::uint8_t& byte : key) byte = static_cast<std::uint8_t>(random());
    return key;
}

std::size_t random_size(random_generator& random) {
    constexpr std::size_t edges[] = {0, 1, 2, 124, 125, 126, 127, 300};
    return random.chance(0.5) ? edges[random.below(std::size(edges))] : random.below(40);
}

// A stream of valid frames.
std::string random_stream(random_generator& random, bool is_masked, bool may_be_compressed) {
    byte_buffer out;
    const auto mask = [&]() -> std::optional<mask_key> {
        return is_masked ? std::optional(random_key(random)) : std::nullopt;
    };
    const auto control = [&] {
        const opcode kind = random.chance(0.5) ? opcode::ping : opcode::pong;
        EDDY_ASSERT(write_control(out, kind, std::string(random.below(126), 'c'), mask()));
    };
    for (std::uint64_t messages = random.below(6); messages > 0; --messages) {
        if (random.chance(0.2)) control();
        const bool is_text = random.chance(0.6);
        const std::size_t size = random_size(random);
        std::string data = is_text ? random_text(random, size) : std::string(size, '\xfe');
        fragments frames(is_text ? opcode::text : opcode::binary,
                         may_be_compressed && random.chance(0.3));
        std::string_view left = data;
        while (random.chance(0.4)) {
            const std::size_t piece = random.below(left.size() + 1);
            write_frame(out, frames.next(false, mask()), left.substr(0, piece));
            left.remove_prefix(piece);
            if (random.chance(0.3)) control();
        }
        write_frame(out, frames.next(true, mask()), left);
    }
    if (random.chance(0.3)) {
        const close_code code =
            random.chance(0.3) ? close_code::none
                               : close_code{static_cast<std::uint16_t>(1000 + random.below(4))};
        const std::string reason =
            code == close_code::none ? "" : random_text(random, random.below(100));
        EDDY_ASSERT(write_close(out, code, reason, mask()));
    }
    return std::string(out.text());
}

void damage(random_generator& random, std::string& stream) {
    if (stream.empty()) return;
    switch (random.below(4)) {
        case 0: stream.resize(random.below(stream.size())); break;
        case 1: stream[random.below(stream.size())] = static_cast<char>(random()); break;
        case 2:
            stream[random.below(stream.size())] ^= static_cast<char>(1U << random.below(8));
            break;
        default: stream.insert(random.below(stream.size()), 1, static_cast<char>(random())); break;
    }
}

TEST(websocket_random, agrees_with_a_slow_decoder_on_every_stream) {
    random_generator random(testing::seed_of_this_run());
    unsigned errors = 0;
    unsigned ends = 0;
    const unsigned all = testing::rounds(6000U);
    for (unsigned round = 0; round < all; ++round) {
        const role reads = random.chance(0.5) ? role::server : role::client;
        const bool may_be_compressed = random.chance(0.5);
        limits bounds;
        if (random.chance(0.3)) bounds = {.frame = random.below(200), .message = random.below(300)};
        std::string stream = random_stream(random, reads == role::server, may_be_compressed);
        for (std::uint64_t i = random.below(3); i > 0; --i) damage(random, stream);
        const std::string expected =
            reference_decoder(reads, bounds, may_be_compressed).decode(stream);
        errors += expected.find("error") != std::string::npos ? 1 : 0;
        ends += expected.ends_with("idle\n") || expected.ends_with("closed\n") ? 1 : 0;

        std::vector<std::size_t> cuts;
        const std::uint64_t width = 1 + random.below(64);
        for (std::size_t at = random.below(width); at < stream.size();
             at += 1 + random.below(width))
            cuts.push_back(at);
        for (const reading how : {reading::in_place, reading::collected}) {
            for (const bool is_cut : {false, true}) {
                parser reader(reads, bounds);
                reader.allow_compressed(may_be_compressed);
                ASSERT_EQ(
                    transcript(reader, stream, is_cut ? cuts : std::vector<std::size_t>(), how),
                    expected)
                    << "round " << round;
            }
        }
    }
    EXPECT_GT(errors, all / 10) << "the streams are too tame";
    EXPECT_GT(ends, all / 10) << "the streams are too wild";
}

}  // namespace
}  // namespace eddy::websocket
