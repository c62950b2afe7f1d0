// Tests of lines that come in pieces, and of lines that are too long.
#include "base/text/line_splitter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy {
namespace {

using ::testing::ElementsAre;

/// The lines of `bytes` in pieces of one size; a cut one ends with "~".
std::vector<std::string> lines_of(std::string_view bytes, std::size_t longest, std::size_t piece) {
    std::vector<std::string> lines;
    const auto add = [&](std::string_view line, bool is_cut) {
        lines.push_back(std::string(line) + (is_cut ? "~" : ""));
    };
    line_splitter splitter;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
        splitter.take(bytes.substr(0, piece), longest, add);
    splitter.finish(longest, add);
    return lines;
}

TEST(line_splitter, the_pieces_do_not_count) {
    const std::string bytes = "\nabcd\r\nabcde\nabcd\r\r\nabcdefghijk\r\n\rab\n\r\nlast";
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
        EXPECT_THAT(lines_of(bytes, 4, piece),
                    ElementsAre("", "abcd", "abcd~", "abcd~", "abcd~", "\rab", "", "last"))
            << piece;
    }
}

TEST(line_splitter, the_end_is_no_line) {
    EXPECT_THAT(lines_of("", 4, 1), ElementsAre());
    EXPECT_THAT(lines_of("ab\n", 4, 1), ElementsAre("ab"));
    EXPECT_THAT(lines_of("abcde", 4, 1), ElementsAre("abcd~"));
}

TEST(line_splitter, keeps_so_much_of_a_line_that_does_not_end) {
    line_splitter splitter;
    const auto ignore = [](std::string_view, bool) {};
    splitter.take("ab\ncd", 4, ignore);
    EXPECT_EQ(splitter.begun(), 2u);
    for (int i = 0; i < 100; ++i) splitter.take("efgh", 4, ignore);
    EXPECT_EQ(splitter.begun(), 6u);
    splitter.take("\n", 4, ignore);
    EXPECT_EQ(splitter.begun(), 0u);
}

TEST(line_splitter, the_limit_may_change_within_a_line) {
    std::vector<std::string> lines;
    const auto add = [&](std::string_view line, bool is_cut) {
        lines.push_back(std::string(line) + (is_cut ? "~" : ""));
    };
    line_splitter splitter;
    splitter.take("abcdef", 10, add);
    splitter.take("gh\n12345\n", 2, add);
    EXPECT_THAT(lines, ElementsAre("ab~", "12~"));
}

}  // namespace
}  // namespace eddy
