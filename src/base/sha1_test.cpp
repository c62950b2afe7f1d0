// SHA-1: the examples of its standard, and sizes around a block's.
#include "base/sha1.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy {
namespace {

TEST(sha1, has_the_digests_of_the_standard) {
    EXPECT_EQ(hexadecimal(sha1("")), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    EXPECT_EQ(hexadecimal(sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
    EXPECT_EQ(hexadecimal(sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
              "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    EXPECT_EQ(hexadecimal(sha1(std::string(119, 'a'))), "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56");
}

TEST(sha1, takes_a_text_in_pieces) {
    const std::string text(1000, 'x');
    sha1_sum sum;
    sum.add(std::string_view(text).substr(0, 3 * sha1_sum::block_bytes));
    EXPECT_EQ(sum.end(std::string_view(text).substr(3 * sha1_sum::block_bytes)), sha1(text));
}

}  // namespace
}  // namespace eddy
