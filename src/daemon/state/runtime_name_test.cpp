// Tests of the names of runtimes: allowed and refused ones.
#include "daemon/state/runtime_name.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::daemon {
namespace {

TEST(runtime_name, accepts_letters_digits_dots_dashes_and_underscores) {
    for (const char* name : {"a", "db", "api-1", "My_Cache.v2", "-", "_", "0", "a.", "a..b"})
        EXPECT_TRUE(check_runtime_name(name)) << name;
    EXPECT_TRUE(check_runtime_name(std::string(128, 'x')));
}

TEST(runtime_name, refuses_everything_else_with_the_rule) {
    for (const char* name :
         {"", ".", "..", ".hidden", "a b", "a/b", "../a", "a\nb", "ä", "a*", "@a", "a%2f", "a:b"}) {
        const auto checked = check_runtime_name(name);
        ASSERT_FALSE(checked) << name;
        EXPECT_EQ(checked.error().status, 400);
        EXPECT_NE(checked.error().message.find("1 to 128"), std::string::npos);
    }
    EXPECT_FALSE(check_runtime_name(std::string(129, 'x')));
    EXPECT_FALSE(check_runtime_name(std::string_view("a\0b", 3)));
}

TEST(group_name, says_that_it_is_a_group) {
    const auto checked = check_group_name("a b");
    ASSERT_FALSE(checked);
    EXPECT_NE(checked.error().message.find("group"), std::string::npos);
}

}  // namespace
}  // namespace eddy::daemon
