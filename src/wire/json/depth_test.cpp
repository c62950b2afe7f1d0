// Depth of nesting, and number of members, of a JSON text.
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

TEST(json_members, are_counted_in_all_objects_together) {
    const auto excess = [](std::string_view text, std::size_t members) {
        return excess_of(text, {.depth = 2, .members = members});
    };
    EXPECT_EQ(excess(R"({"a":1,"b":{"c":2}})", 3), json_excess::none);
    EXPECT_EQ(excess(R"({"a":1,"b":{"c":2}})", 2), json_excess::members);
    EXPECT_EQ(excess(R"(["a:b:c", 1, 2, 3])", 0), json_excess::none);
    EXPECT_EQ(excess(R"({"a":1,"b":[[]]})", 2), json_excess::depth);
}

}  // namespace
}  // namespace eddy
