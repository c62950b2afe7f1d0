// The mask against its definition, and close codes.
#include <eddy/wire/websocket/frame.hpp>

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace eddy::websocket {
namespace {

constexpr mask_key key{0x37, 0xfa, 0x21, 0x3d};

void check_mask(std::size_t size, std::size_t start, std::uint64_t offset) {
    random_generator random(size + 1);
    std::vector<std::byte> plain(start + size + 1);
    for (std::byte& each : plain) each = std::byte(random() & 0xff);
    std::vector<std::byte> expected = plain;
    for (std::size_t i = 0; i < size; ++i) expected[start + i] ^= std::byte{key[(offset + i) % 4]};

    std::vector<std::byte> masked = plain;
    apply_mask(mutable_bytes(masked).subspan(start, size), key, offset);
    ASSERT_EQ(masked, expected) << size << " bytes at " << start << ", offset " << offset;
    std::vector<std::byte> copied = plain;
    copy_masked(copied.data() + start, const_bytes(plain).subspan(start, size), key, offset);
    ASSERT_EQ(copied, expected) << size << " bytes at " << start << ", offset " << offset;
}

TEST(websocket_mask, follows_its_definition_at_every_size_alignment_and_offset) {
    for (std::size_t size = 0; size < 70; ++size) {
        for (std::size_t start = 0; start < 9; ++start) {
            for (std::uint64_t offset = 0; offset < 5; ++offset) check_mask(size, start, offset);
        }
    }
    for (const std::size_t size : {255u, 256u, 257u, 263u, 1000u, 4096u, 65536u, 65537u}) {
        check_mask(size, 0, 0);
        check_mask(size, 3, 1);
        check_mask(size, 8, (1ULL << 40) + 2);
    }
}

TEST(websocket_mask, is_its_own_inverse_in_pieces) {
    std::vector<std::byte> text(1000, std::byte{'a'});
    apply_mask(text, key);
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = std::min<std::size_t>(at % 97 + 1, text.size() - at);
        apply_mask(mutable_bytes(text).subspan(at, size), key, at);
        at += size;
    }
    EXPECT_EQ(text, std::vector<std::byte>(1000, std::byte{'a'}));
}

TEST(websocket_close_code, says_which_may_be_sent) {
    for (unsigned number = 0; number <= 0xffff; ++number) {
        const bool is_registered =
            (number >= 1000 && number <= 1003) || (number >= 1007 && number <= 1014);
        const bool is_free = number >= 3000 && number <= 4999;
        EXPECT_EQ(is_sendable(close_code{static_cast<std::uint16_t>(number)}),
                  is_registered || is_free)
            << number;
    }
}

}  // namespace
}  // namespace eddy::websocket
