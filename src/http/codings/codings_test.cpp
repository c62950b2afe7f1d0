// Encoders and decoders: every split, limits, damaged and repeated content, bombs.
#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"
#include "http/codings/testing.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::http {
namespace {

using namespace std::string_literals;
using testing::decoded;
using testing::encoded;
using testing::sample_text;

const std::string malformed = make_error_code(errc::malformed).message();
const std::string too_large = make_error_code(errc::limit_reached).message();
const std::string cut_off = make_error_code(errc::truncated).message();

class http_codings : public ::testing::TestWithParam<content_coding> {};

TEST_P(http_codings, what_was_encoded_is_decoded) {
    for (const std::size_t size : {0U, 1U, 2U, 100U, 5000U, 70'000U, 1'000'000U}) {
        const std::string text = sample_text(size);
        EXPECT_EQ(decoded(GetParam(), encoded(GetParam(), text)), text) << size;
        if (size > 1000) EXPECT_LT(encoded(GetParam(), text).size(), size / 4);
    }
}

TEST_P(http_codings, any_split_gives_the_same_bytes) {
    const std::string text = sample_text(3000);
    const std::string data = encoded(GetParam(), text);
    for (const std::size_t piece : {1U, 2U, 3U, 7U, 100U})
        for (const std::size_t room : {1U, 2U, 5U, 1000U, 65'536U})
            EXPECT_EQ(decoded(GetParam(), data, {.piece = piece, .room = room}), text)
                << piece << " " << room;
    for (const std::size_t piece : {1U, 13U, 1000U})
        EXPECT_EQ(decoded(GetParam(), encoded(GetParam(), text, piece)), text) << piece;
}

TEST_P(http_codings, a_flush_lets_all_before_it_be_decoded) {
    auto by = encoder::make(GetParam(), std::nullopt);
    auto reader = decoder::make(GetParam());
    ASSERT_TRUE(by && reader);
    byte_buffer out;
    for (const std::string_view piece : {"one", "two", "", "three"}) {
        byte_buffer data;
        ASSERT_TRUE((*by)->add(piece, encoder::after::flush, data));
        std::string_view left = data.text();
        ASSERT_TRUE(reader->decode(left, out, 1000, 1000, {}));
    }
    EXPECT_EQ(out.text(), "onetwothree");
    EXPECT_FALSE(reader->finish());
    byte_buffer data;
    ASSERT_TRUE((*by)->add({}, encoder::after::end, data));
    std::string_view left = data.text();
    ASSERT_TRUE(reader->decode(left, out, 1000, 1000, {}));
    EXPECT_TRUE(reader->finish());
}

TEST_P(http_codings, content_that_is_cut_off_is_an_error) {
    const std::string data = encoded(GetParam(), sample_text(500));
    for (std::size_t size = 1; size < data.size(); ++size)
        EXPECT_EQ(decoded(GetParam(), data.substr(0, size)), cut_off) << size;
    EXPECT_EQ(decoded(GetParam(), ""), "") << "no byte is empty content";
}

TEST_P(http_codings, what_follows_the_content_is_an_error) {
    const std::string data = encoded(GetParam(), "some text");
    for (const std::size_t piece : {std::size_t{1}, SIZE_MAX}) {
        EXPECT_EQ(decoded(GetParam(), data + "garbage", {.piece = piece}), malformed);
        EXPECT_EQ(decoded(GetParam(), data + std::string(8, '\0'), {.piece = piece}), malformed);
    }
}

TEST_P(http_codings, damaged_content_takes_no_more_than_its_limits) {
    random_generator random(eddy::testing::seed_of_this_run());
    const std::string data = encoded(GetParam(), sample_text(3000));
    for (int round = 0; round < eddy::testing::rounds(3000); ++round) {
        std::string bad = data;
        for (std::uint64_t i = 1 + random.below(3); i > 0; --i)
            bad[random.below(bad.size())] = static_cast<char>(random());
        if (random.chance(0.3)) bad.resize(random.below(bad.size()));
        const std::string got = decoded(
            GetParam(), bad, {.piece = 1 + random.below(500), .room = 1000, .limit = 10'000});
        ASSERT_LE(got.size(), 11'000U);
    }
}

TEST_P(http_codings, decoded_content_has_a_limit) {
    const std::string text = sample_text(5000);
    const std::string data = encoded(GetParam(), text);
    EXPECT_EQ(decoded(GetParam(), data, {.limit = 5000}), text);
    EXPECT_EQ(decoded(GetParam(), data, {.limit = 4999}), too_large);
}

TEST_P(http_codings, expansion_has_a_limit) {
    // Ten in its own size, and a thousand and more of zeros.
    const std::string text = sample_text(200'000);
    EXPECT_EQ(decoded(GetParam(), encoded(GetParam(), text), {.expansion = {200, 0}}), text);
    const std::string zeros(2 << 20, '\0');
    const std::string data = encoded(GetParam(), zeros);
    EXPECT_EQ(decoded(GetParam(), data), too_large);
    EXPECT_EQ(decoded(GetParam(), data, {.expansion = {200, zeros.size()}}), zeros);
}

INSTANTIATE_TEST_SUITE_P(http, http_codings, ::testing::ValuesIn(testing::all_codings),
                         [](const auto& of) { return std::string(to_string(of.param)); });

TEST(http_codings, members_and_frames_may_follow_one_another) {
    for (const content_coding coding : {content_coding::gzip, content_coding::zstd}) {
        const std::string both =
            encoded(coding, "one,") + encoded(coding, "") + encoded(coding, "two");
        for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, SIZE_MAX})
            EXPECT_EQ(decoded(coding, both, {.piece = piece}), "one,two") << to_string(coding);
        EXPECT_EQ(decoded(coding, both.substr(0, both.size() - 1)), cut_off);
    }
    for (const content_coding coding : {content_coding::deflate, content_coding::br})
        EXPECT_EQ(decoded(coding, encoded(coding, "one") + encoded(coding, "two")), malformed);
}

TEST(http_codings, deflate_may_be_raw) {
    const std::string raw = "\xf3\x48\xcd\xc9\xc9\x07\x00"s;
    for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, SIZE_MAX})
        for (const std::size_t room : {1U, 100U})
            EXPECT_EQ(decoded(content_coding::deflate, raw, {.piece = piece, .room = room}),
                      "Hello");
    EXPECT_EQ(decoded(content_coding::deflate, raw.substr(0, 1)), cut_off);
    EXPECT_EQ(decoded(content_coding::deflate, raw + "x"), malformed);
    EXPECT_EQ(encoded(content_coding::deflate, "Hello").substr(0, 1).find_first_of("\x18\x78"), 0U)
        << "it is sent in the zlib format";
}

TEST(http_codings, a_bomb_of_ten_gigabytes_ends_at_the_limit) {
    std::string member = encoded(content_coding::gzip, std::string(10 << 20, '\0'));
    std::string bomb;
    for (int i = 0; i < 1000; ++i) bomb += member;
    const expansion_limits any{.ratio = UINT32_MAX, .free_bytes = UINT64_MAX};
    EXPECT_EQ(decoded(content_coding::gzip, bomb, {.limit = 20 << 20, .expansion = any}),
              too_large);
    EXPECT_EQ(decoded(content_coding::gzip, bomb), too_large) << "by its ratio";
    // A frame of zstd without a size, of blocks that are 128 KiB of one byte each.
    std::string frame = "\x28\xb5\x2f\xfd\x00\x58"s;
    for (int i = 0; i < 80'000; ++i) frame += "\x02\x00\x10\x00"s;
    EXPECT_EQ(decoded(content_coding::zstd, frame, {.limit = 1 << 20, .expansion = any}),
              too_large);
    EXPECT_EQ(decoded(content_coding::zstd, frame), too_large);
}

TEST(http_codings, a_window_of_zstd_is_at_most_eight_mebibytes) {
    const auto frame = [](unsigned bits) {
        return "\x28\xb5\x2f\xfd\x00"s + static_cast<char>((bits - 10) << 3) + "\x09\x00\x00x"s;
    };
    EXPECT_EQ(decoded(content_coding::zstd, frame(zstd_decoder_window_bits)), "x");
    EXPECT_EQ(decoded(content_coding::zstd, frame(zstd_decoder_window_bits + 1)), too_large);
}

// The library reads the format of version 0.5 if the first five bytes come at once.
TEST(http_codings, frames_of_zstd_before_version_0_8_are_malformed) {
    const std::string old = "\x25\xb5\x2f\xfd\x00\x40\x00\x05Hello\xc0\x00\x00"s;
    const std::string skipped = "\x5f\x2a\x4d\x18\x01\x00\x00\x00-"s;
    const std::string text = encoded(content_coding::zstd, "text");
    for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, SIZE_MAX}) {
        EXPECT_EQ(decoded(content_coding::zstd, old, {.piece = piece}), malformed);
        EXPECT_EQ(decoded(content_coding::zstd, text + old, {.piece = piece}), malformed);
        EXPECT_EQ(decoded(content_coding::zstd, skipped + text, {.piece = piece}), "text");
    }
}

}  // namespace
}  // namespace eddy::http
