// Tests of --filter: keys, values, and what is refused.
#include "cli/commands/filters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {
namespace {

using ::testing::HasSubstr;

constexpr std::array<std::string_view, 3> keys = {"name", "type", "group"};

std::expected<filters, std::string> parsed(const std::vector<std::string>& values) {
    const std::vector<flag> table = {
        {.name = "filter", .value_name = "KEY=VALUE", .repeats = true}};
    std::vector<std::string> words;
    for (const std::string& each : values) words.push_back("--filter=" + each);
    const auto given = parse_arguments(words, table);
    EXPECT_TRUE(given);
    return filters::parse(*given, keys);
}

TEST(filters, one_of_each_key) {
    const json row = {{"name", "db-1"}, {"type", "cache"}, {"group", nullptr}};
    EXPECT_TRUE(parsed({})->has(row));
    EXPECT_TRUE(parsed({"type=cache"})->has(row));
    EXPECT_FALSE(parsed({"type=server"})->has(row));
    EXPECT_TRUE(parsed({"type=server,cache"})->has(row));
    EXPECT_TRUE(parsed({"type=server", "type=cache"})->has(row));
    EXPECT_FALSE(parsed({"type=cache", "group=web"})->has(row));
    EXPECT_TRUE(parsed({"group="})->has(row));
    EXPECT_TRUE(parsed({"name=db-*"})->has(row));
    EXPECT_FALSE(parsed({"type=c*"})->has(row));
}

TEST(filters, mistakes_are_named) {
    EXPECT_THAT(parsed({"typ=cache"}).error(), HasSubstr("did you mean \"type\"?"));
    EXPECT_THAT(parsed({"colour=red"}).error(), HasSubstr("there are name, type, group"));
    EXPECT_THAT(parsed({"cache"}).error(), HasSubstr("has no value: --filter name=VALUE"));
}

}  // namespace
}  // namespace eddy::cli
