// Tests of variables in stack files.
#include "cli/stack/variables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace eddy::cli {
namespace {

using ::testing::HasSubstr;

std::optional<std::string> known(std::string_view name) {
    if (name == "PORT") return "6379";
    if (name == "EMPTY") return "";
    return std::nullopt;
}

std::string text(std::string_view from) {
    const auto made = expand(from, known);
    return made ? *made : "error: " + made.error();
}

TEST(variables, are_replaced) {
    EXPECT_EQ(text("tcp://*:${PORT}/"), "tcp://*:6379/");
    EXPECT_EQ(text("${PORT}${PORT}"), "63796379");
    EXPECT_EQ(text("a${EMPTY}b"), "ab");
    EXPECT_EQ(text(""), "");
}

TEST(variables, have_defaults_and_messages) {
    EXPECT_EQ(text("${NONE:-80}"), "80");
    EXPECT_EQ(text("${EMPTY:-80}"), "80");
    EXPECT_EQ(text("${EMPTY-80}"), "");
    EXPECT_EQ(text("${NONE-}"), "");
    EXPECT_EQ(text("${NONE:-${PORT}}"), "6379");
    EXPECT_EQ(text("${PORT:?no port}"), "6379");
    EXPECT_EQ(text("${NONE:?say the port}"), "error: NONE: say the port");
    EXPECT_THAT(text("${EMPTY:?}"), HasSubstr("it must be set"));
    EXPECT_THAT(text("${NONE}"), HasSubstr("no NONE; set it, or write ${NONE:-DEFAULT}"));
}

TEST(variables, dollars_stay_what_they_are) {
    EXPECT_EQ(text("/=https://$host"), "/=https://$host");
    EXPECT_EQ(text("$$"), "$");
    EXPECT_EQ(text("$${PORT}"), "${PORT}");
    EXPECT_EQ(text("1$"), "1$");
}

TEST(variables, refuse_what_is_no_variable) {
    EXPECT_THAT(text("${PORT"), HasSubstr("not closed"));
    EXPECT_THAT(text("${}"), HasSubstr("no name"));
    EXPECT_THAT(text("${1A}"), HasSubstr("no name"));
    EXPECT_THAT(text("${PORT:+x}"), HasSubstr("cannot be read"));
    std::string deep = "x";
    for (int i = 0; i < 20; ++i) deep = "${NONE:-" + deep + "}";
    EXPECT_THAT(text(deep), HasSubstr("8 deep at most"));
    EXPECT_THAT(text(std::string(100'000, 'x')), HasSubstr("more than 65536 bytes"));
}

TEST(variables, a_text_without_them_comes_back) {
    for (const std::string each : {"$", "$$", "${PORT}", "a$b$$c${", "$$$", "/=https://$host"})
        EXPECT_EQ(text(without_variables(each)), each);
}

}  // namespace
}  // namespace eddy::cli
