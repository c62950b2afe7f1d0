// Tests of how messages look in the journal.
#include "runtime/logs/message_text.hpp"

#include "runtime/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using Lines = std::vector<std::string>;

TEST(message_text, line_ends_are_left_out_and_control_bytes_escaped) {
    EXPECT_EQ(shown_message("plain\n"), "plain");
    EXPECT_EQ(shown_message("dos\r\n"), "dos");
    EXPECT_EQ(shown_message("tab\there"), "tab\\there");
    EXPECT_EQ(shown_message("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
    EXPECT_EQ(shown_message(std::string_view("a\0b\nc", 5)), "a\\x00b\\x0ac");
    EXPECT_EQ(shown_message("größe"), "größe");
    EXPECT_EQ(shown_message("\u009b2J\x9b"), "\\xc2\\x9b2J\\x9b");
    EXPECT_EQ(shown_message("a\u202eb"), "a\\xe2\\x80\\xaeb");
    EXPECT_EQ(shown_message(""), "");
}

TEST(message_text, long_messages_are_cut_at_the_limit) {
    const std::string most(max_shown_message, 'x');
    EXPECT_EQ(shown_message(most), most);
    EXPECT_EQ(shown_message(most + "y"), most + "... (513 bytes)");
    const std::string all_but_one(max_shown_message - 1, 'x');
    EXPECT_EQ(shown_message(all_but_one + "ä"), all_but_one + "... (513 bytes)");
}

TEST(message_text, each_line_is_one_entry) {
    testing::recorder events;
    journal_messages(events, 7, "one\n\ntwo\r\n", true);
    EXPECT_EQ(events.lines, (Lines{"client 7: one", "client 7: ", "client 7: two"}));
    events.lines.clear();
    journal_messages(events, 8, "one\ntwo\n", false);
    EXPECT_EQ(events.lines, (Lines{"client 8: one\\x0atwo"}));
}

}  // namespace
}  // namespace eddy::runtime
