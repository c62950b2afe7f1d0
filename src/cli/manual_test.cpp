// Tests of manual pages.
#include "cli/manual.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace eddy::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(manual, a_page_has_the_command_its_flags_and_examples) {
    context with;
    with.version = "1.2";
    command which;
    which.name = "bench http";
    which.operands = "<url>";
    which.summary = "measure a server";
    which.more = "First. It's long\n.and goes on\n\nSecond";
    which.flags = {{.name = "dry-run", .letter = 'n', .help = "print only"},
                   {.name = "rate", .value_name = "N", .help = "a \\ rate", .default_value = "5"},
                   {.name = "hidden", .is_ignored = true}};
    which.examples = {{"eddy bench http 'x'", "an example"}};
    const std::string page = manual_page(with, which);
    EXPECT_EQ(manual_file(which), "eddy-bench-http.1");
    EXPECT_THAT(page, HasSubstr(".TH EDDY-BENCH-HTTP 1 "));
    EXPECT_THAT(page, HasSubstr("\"eddy 1.2\""));
    EXPECT_THAT(page, HasSubstr("eddy\\-bench\\-http \\- measure a server\n"));
    EXPECT_THAT(page, HasSubstr("\\fB\\-n\\fR, \\fB\\-\\-dry\\-run\\fR\nprint only\n"));
    EXPECT_THAT(page, HasSubstr("\\fB\\-\\-rate\\fR \\fIN\\fR\na \\e rate [5]\n"));
    EXPECT_THAT(page, HasSubstr("First.\nIt\\(aqs long .and goes on\n.PP\nSecond\n"));
    EXPECT_THAT(page, HasSubstr("\\fBeddy bench http \\(aqx\\(aq\\fR\nan example\n"));
    EXPECT_THAT(page, Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace eddy::cli
