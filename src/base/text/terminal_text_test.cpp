// Text for terminals: text that passes, text that is escaped, and pieces.
#include "base/text/terminal_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy {
namespace {

TEST(terminal_text, text_in_any_language_is_let_through) {
    const std::string text = "größe, 大きさ, размер, 🙂 \u00a0\u200b\n\tnext";
    EXPECT_EQ(escaped_for_terminal(text), text);
    EXPECT_EQ(escaped_for_terminal(""), "");
}

TEST(terminal_text, control_characters_are_escaped_in_both_sets) {
    EXPECT_EQ(escaped_for_terminal("\x1b[2J\r\x7f"), "\\x1b[2J\\x0d\\x7f");
    EXPECT_EQ(escaped_for_terminal(std::string_view("\0", 1)), "\\x00");
    // U+009B is CSI, the beginning of a terminal's commands.
    EXPECT_EQ(escaped_for_terminal("\u009b2J"), "\\xc2\\x9b2J");
    for (unsigned code = 0x80; code < 0xa0; ++code) {
        const std::string one = {'\xc2', static_cast<char>(code)};
        EXPECT_FALSE(first_unit(one).is_printable) << code;
        EXPECT_EQ(first_unit(one).size, 2U) << code;
    }
}

TEST(terminal_text, bytes_that_are_no_utf8_are_escaped_one_by_one) {
    EXPECT_EQ(escaped_for_terminal("\x9b"
                                   "2J\xff"),
              "\\x9b2J\\xff");
    EXPECT_EQ(escaped_for_terminal("\xc0\x9b"), "\\xc0\\x9b");                    // overlong
    EXPECT_EQ(escaped_for_terminal("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");           // overlong
    EXPECT_EQ(escaped_for_terminal("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
    EXPECT_EQ(escaped_for_terminal("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // too large
    EXPECT_EQ(escaped_for_terminal("\xe2\x82"), "\\xe2\\x82");                    // cut off
    EXPECT_EQ(escaped_for_terminal("\xc3(\xc3\xa4"), "\\xc3(ä");
}

TEST(terminal_text, what_reorders_text_or_breaks_lines_is_escaped) {
    for (const std::string_view one :
         {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"})
        EXPECT_FALSE(first_unit(one).is_printable) << escaped_for_terminal(one);
    EXPECT_TRUE(first_unit("\u202f").is_printable);
    EXPECT_TRUE(first_unit("\u206a").is_printable);
    EXPECT_EQ(escaped_for_terminal("a\u202eb"), "a\\xe2\\x80\\xaeb");
}

TEST(terminal_text, printable_text_shows_a_mark_for_the_rest) {
    EXPECT_EQ(printable("a\x1b[2J\xff ä\n"), "a?[2J? ä?");
    EXPECT_EQ(printable("aäb", 2), "aä") << "a character that begins before the limit is whole";
    EXPECT_EQ(in_quotes("abc", 3), "\"abc\"");
    EXPECT_EQ(in_quotes("abcd", 3), "\"abc...\"");
}

TEST(terminal_text, a_character_may_come_in_pieces) {
    const std::string text = "ä\u009b🙂\x9b\xf0z大";
    for (std::size_t size = 1; size < text.size(); ++size) {
        terminal_escaper pieces;
        std::string shown;
        for (std::size_t at = 0; at < text.size(); at += size)
            shown += pieces.next(std::string_view(text).substr(at, size));
        EXPECT_EQ(shown, escaped_for_terminal(text)) << size;
    }
}

TEST(terminal_text, no_more_than_a_character_waits) {
    terminal_escaper pieces;
    EXPECT_EQ(pieces.next("\xf0\x9f\x99"), "");
    EXPECT_EQ(pieces.next("\x9b\x9b\x9b"), "\xf0\x9f\x99\x9b\\x9b\\x9b");
}

}  // namespace
}  // namespace eddy
