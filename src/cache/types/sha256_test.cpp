// Tests of SHA-256 against the examples of the standard, and every length around the ends of
// blocks.
#include "cache/types/sha256.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::cache {
namespace {

TEST(sha256, examples_of_the_standard) {
    EXPECT_EQ(to_hex(sha256("")),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(to_hex(sha256("abc")),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(to_hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(to_hex(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                            "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu")),
              "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    EXPECT_EQ(to_hex(sha256(std::string(1'000'000, 'a'))),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The digests of n times 'x' for n from 50 to 130, hashed together; made by another program.
TEST(sha256, lengths_around_a_block) {
    std::string all;
    for (std::size_t n = 50; n < 130; ++n) all += to_hex(sha256(std::string(n, 'x')));
    EXPECT_EQ(to_hex(sha256(all)),
              "2ec97c2d09bbb24d089634028e976a912a09970e315a5f6648ae238686fa0638");
}

TEST(sha256, hexadecimal_digits) {
    const sha256_digest digest = sha256("abc");
    const std::string text = to_hex(digest);
    ASSERT_TRUE(digest_from_hex(text).has_value());
    EXPECT_TRUE(same_digest(*digest_from_hex(text), digest));
    EXPECT_FALSE(same_digest(sha256("abd"), digest));
    EXPECT_FALSE(digest_from_hex(text.substr(1)).has_value());
    EXPECT_FALSE(digest_from_hex(text + "0").has_value());
    EXPECT_FALSE(digest_from_hex("A" + text.substr(1)).has_value());
    EXPECT_FALSE(digest_from_hex("g" + text.substr(1)).has_value());
    EXPECT_FALSE(digest_from_hex("").has_value());
}

}  // namespace
}  // namespace eddy::cache
