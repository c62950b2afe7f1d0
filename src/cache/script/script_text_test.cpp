// Tests of a script's first line.
#include "cache/script/script_text.hpp"

#include <gtest/gtest.h>

namespace eddy::cache {
namespace {

TEST(script_text, reads_the_first_line) {
    const script_head none = take_script_head("return 1", false);
    EXPECT_EQ(none.rest, "return 1");
    EXPECT_EQ(none.flags, script_flag::unsaid);
    const script_head some = take_script_head("#!lua  flags=no-writes,allow-oom \nreturn 1", false);
    EXPECT_EQ(some.rest, "\nreturn 1");
    EXPECT_EQ(some.flags, script_flag::no_writes | script_flag::allow_oom);
    EXPECT_EQ(take_script_head("#!lua flags=\nx", false).refusal, "");
    EXPECT_EQ(take_script_head("#!lua flags=x\n", false).refusal,
              "Unexpected flag in script shebang: x");
}

}  // namespace
}  // namespace eddy::cache
