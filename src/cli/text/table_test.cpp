// Tests of tables and quantities.
#include "cli/text/table.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace eddy::cli {
namespace {

TEST(table, aligns_columns_without_spaces_at_the_end) {
    table t({"NAME", "PORT", "NOTE"});
    t.add({{"a"}, {"6379"}, {""}});
    t.add({{"longer-name"}, {"1"}, {"x"}});
    EXPECT_EQ(t.to_string(false),
              "NAME         PORT  NOTE\n"
              "a            6379\n"
              "longer-name  1     x\n");
    EXPECT_EQ(t.width(), 23U);
    EXPECT_EQ(table({}).width(), 0U);
}

TEST(table, counts_characters_and_not_bytes) {
    table t({"N", "P"});
    t.add({{"ä"}, {"1"}});
    t.add({{"ab"}, {"2"}});
    EXPECT_EQ(t.to_string(false), "N   P\nä   1\nab  2\n");
}

TEST(table, colours_do_not_change_the_layout) {
    table t({"A", "B"});
    t.add({{"x", tint::green}, {"y"}});
    EXPECT_EQ(t.to_string(true), "\x1b[1mA\x1b[0m  \x1b[1mB\x1b[0m\n\x1b[32mx\x1b[0m  y\n");
}

TEST(table, a_name_cannot_drive_the_terminal) {
    table t({"A"});
    t.add({{"\x1b[2Jgone\n"}});
    t.add({{"\u009b2Jgone\x9b\u202eä"}});
    EXPECT_EQ(t.to_string(false), "A\n?[2Jgone?\n?2Jgone??ä\n");
}

TEST(table, missing_cells_are_empty_and_further_ones_are_left_out) {
    table t({"A", "B"});
    t.add({{"x"}});
    t.add({{"x"}, {"y"}, {"z"}});
    EXPECT_EQ(t.to_string(false), "A  B\nx\nx  y\n");
}

TEST(quantities, are_written_for_people) {
    EXPECT_EQ(format_age(0), "0s");
    EXPECT_EQ(format_age(-1), "0s");
    EXPECT_EQ(format_age(59.9), "59s");
    EXPECT_EQ(format_age(725), "12m 5s");
    EXPECT_EQ(format_age(27000), "7h 30m");
    EXPECT_EQ(format_age(1051200), "12d 4h");
    EXPECT_EQ(format_age(1e308), format_age(1e15));
    EXPECT_EQ(format_age(std::numeric_limits<double>::infinity()), "11574074074d 1h");
    EXPECT_EQ(format_bytes(512), "512 B");
    EXPECT_EQ(format_bytes(1536), "1.5 KiB");
    EXPECT_EQ(format_bytes(1024.0 * 1024 * 340), "340 MiB");
    EXPECT_EQ(format_count(0), "0");
    EXPECT_EQ(format_count(999), "999");
    EXPECT_EQ(format_count(1000), "1,000");
    EXPECT_EQ(format_count(1234567), "1,234,567");
    EXPECT_EQ(format_count(-1234), "-1,234");
    EXPECT_EQ(format_count(0.5), "0.5");
}

}  // namespace
}  // namespace eddy::cli
