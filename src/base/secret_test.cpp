// Tests of the comparison of secrets.
#include "base/secret.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy {
namespace {

TEST(secret, the_same_bytes_alone_are_the_same) {
    EXPECT_TRUE(is_same_secret("sesame", "sesame"));
    for (const char* const other :
         {"", "s", "sesam", "sesamf", "Sesame", "sesame ", "sesamesesame"})
        EXPECT_FALSE(is_same_secret(other, "sesame")) << other;
    EXPECT_TRUE(is_same_secret(std::string("a\0b", 3), std::string("a\0b", 3)));
    EXPECT_FALSE(is_same_secret(std::string("a\0b", 3), std::string("a\0c", 3)));
}

TEST(secret, an_empty_secret_is_that_of_nothing) {
    EXPECT_FALSE(is_same_secret("", ""));
    EXPECT_FALSE(is_same_secret("x", ""));
}

}  // namespace
}  // namespace eddy
