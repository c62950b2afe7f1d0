// The console's page against its Content-Security-Policy. tests/console_test.py has the guard.
#include "daemon/console/console_page.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace eddy::daemon {
namespace {

TEST(console_page, has_no_code_or_style_of_its_own) {
    for (const console_file& file : console_files()) {
        EXPECT_FALSE(file.content.empty()) << file.path;
        if (file.path != "/") continue;
        // The policy would refuse both.
        EXPECT_EQ(file.content.find("<style"), std::string_view::npos);
        EXPECT_EQ(file.content.find("style="), std::string_view::npos);
        EXPECT_EQ(file.content.find("onclick="), std::string_view::npos);
    }
}

}  // namespace
}  // namespace eddy::daemon
