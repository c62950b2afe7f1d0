// Tests of lines for the journal.
#include "daemon/service/journal_lines.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

namespace eddy::daemon {
namespace {

TEST(journal_lines, have_a_priority_in_place_of_the_time) {
    const auto line = [](log_level level) {
        return journal_line(level, format_log_line({}, level, "db", "a  b"));
    };
    EXPECT_EQ(line(log_level::debug), "<7>debug db  a  b\n");
    EXPECT_EQ(line(log_level::info), "<6>info  db  a  b\n");
    EXPECT_EQ(line(log_level::warn), "<4>warn  db  a  b\n");
    EXPECT_EQ(line(log_level::error), "<3>error db  a  b\n");
}

TEST(journal_lines, are_for_the_stream_that_is_named_alone) {
    struct stat there{};
    ASSERT_EQ(::fstat(STDERR_FILENO, &there), 0);
    ::setenv("JOURNAL_STREAM", fmt::format("{}:{}", there.st_dev, there.st_ino).c_str(), 1);
    EXPECT_TRUE(stderr_is_journal());
    // As in a child whose output goes elsewhere.
    for (const char* other : {"8:1", "", "x", "8:"}) {
        ::setenv("JOURNAL_STREAM", other, 1);
        EXPECT_FALSE(stderr_is_journal()) << other;
    }
    ::unsetenv("JOURNAL_STREAM");
    EXPECT_FALSE(stderr_is_journal());
}

}  // namespace
}  // namespace eddy::daemon
