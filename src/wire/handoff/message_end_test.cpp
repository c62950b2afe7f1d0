// End of handoff messages, in any split of their bytes.
#include "wire/handoff/message_end.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::handoff {
namespace {

using namespace std::string_view_literals;

/// Bytes of the first message in `text`, given a byte at a time; npos if it does not end.
std::size_t end_of(std::string_view text) {
    message_end end;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (end.feed(text.substr(i, 1))) return i + 1;
    return std::string_view::npos;
}

TEST(handoff_message, ends_with_its_object) {
    EXPECT_EQ(end_of("{}"), 2U);
    EXPECT_EQ(end_of(" \r\n{\"prompt\":\"hi\"} and more"), 18U);
    EXPECT_EQ(end_of(R"({"messages":[{"role":"user"},{}],"n":1})"), 39U);
}

TEST(handoff_message, does_not_end_within_strings) {
    EXPECT_EQ(end_of(R"({"a":"}"})"), 9U);
    EXPECT_EQ(end_of(R"({"a":"\"}"})"), 11U);
    EXPECT_EQ(end_of(R"({"a":"\\"}tail)"), 10U);
    EXPECT_EQ(end_of(R"({"a":"open})"), std::string_view::npos);
}

TEST(handoff_message, may_be_one_NUL) {
    EXPECT_EQ(end_of("\0"sv), 1U);
    EXPECT_EQ(end_of("\0{}"sv), 1U);
}

TEST(handoff_message, of_another_form_ends_with_its_sender) {
    EXPECT_EQ(end_of("prompt=hi"), std::string_view::npos);
    EXPECT_EQ(end_of("[{}]"), std::string_view::npos);
    EXPECT_EQ(end_of(""), std::string_view::npos);
    EXPECT_EQ(end_of("   "), std::string_view::npos);
}

TEST(handoff_message, ends_at_the_same_byte_in_any_split) {
    const std::string text = R"({"a":{"b":["x\"}",1]},"c":"\\\\"})";
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        message_end end;
        const bool early = end.feed(std::string_view(text).substr(0, cut));
        EXPECT_EQ(early, cut == text.size()) << cut;
        EXPECT_TRUE(end.feed(std::string_view(text).substr(cut))) << cut;
    }
}

TEST(handoff_message, survives_brackets_that_do_not_match) {
    EXPECT_EQ(end_of("{]"), 2U);
    EXPECT_EQ(end_of("{[}}"), 4U);
    EXPECT_EQ(end_of("}"), std::string_view::npos);
}

}  // namespace
}  // namespace eddy::handoff
