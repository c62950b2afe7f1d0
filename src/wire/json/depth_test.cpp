// Depth of nesting of a JSON text.
#include <eddy/wire/json.hpp>

#include <gtest/gtest.h>

#include <string>

namespace eddy {
namespace {

TEST(json_depth, counts_arrays_and_objects) {
    EXPECT_FALSE(nests_deeper("1", 0));
    EXPECT_TRUE(nests_deeper("[]", 0));
    EXPECT_FALSE(nests_deeper(R"({"a":[1,2],"b":{}})", 2));
    EXPECT_TRUE(nests_deeper(R"({"a":[{}]})", 2));
    EXPECT_FALSE(nests_deeper("[] [] []", 1));
    EXPECT_TRUE(nests_deeper("]]] [[", 1));
}

TEST(json_depth, brackets_in_strings_do_not_count) {
    EXPECT_FALSE(nests_deeper(R"("[[[[")", 0));
    EXPECT_FALSE(nests_deeper(R"(["\"[[", "\\", "{"])", 1));
    EXPECT_TRUE(nests_deeper(R"(["\\",[]])", 1));
    EXPECT_FALSE(nests_deeper("\"\\", 0));
}

}  // namespace
}  // namespace eddy
