// Tests of what goes with an owner.
#include "cli/commands/cascade.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::cli {
namespace {

json made(const char* name, const char* owner, const char* policy, const char* status = "running") {
    return {{"name", name}, {"owner", owner}, {"on_parent_stop", policy}, {"status", status}};
}

std::string ends(const json& all, const std::vector<std::string>& named, cascade of) {
    return describe(consequences_of(all, named, of));
}

TEST(cascade, policies_decide) {
    const json all = {
        made("a", "boss", "stop"),           made("b", "boss", "remove"), made("boss", "", "stop"),
        made("c", "boss", "keep"),           made("d", "a", "stop"),      made("e", "c", "stop"),
        made("f", "boss", "stop", "stopped")};
    EXPECT_EQ(ends(all, {"boss"}, cascade::of_stop), "stops a, d; removes b; keeps c");
    EXPECT_EQ(ends(all, {"boss"}, cascade::of_removal), "removes a, b, d, f; keeps c");
    EXPECT_EQ(ends(all, {"boss", "a"}, cascade::of_removal), "removes b, d, f; keeps c");
    EXPECT_EQ(ends(all, {"e"}, cascade::of_removal), "");
}

TEST(cascade, a_circle_of_owners_ends) {
    const json all = {made("a", "b", "stop"), made("b", "a", "stop")};
    EXPECT_EQ(ends(all, {"a"}, cascade::of_removal), "removes b");
    EXPECT_EQ(ends(all, {"a"}, cascade::of_stop), "stops b");
}

TEST(cascade, a_daemon_of_before_says_no_policy) {
    const json all = {{{"name", "a"}, {"owner", "boss"}, {"status", "running"}},
                      {{"name", "boss"}, {"owner", ""}, {"status", "running"}}};
    EXPECT_EQ(ends(all, {"boss"}, cascade::of_stop), "stops a");
}

}  // namespace
}  // namespace eddy::cli
