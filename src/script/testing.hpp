// For tests: checks of a library's rows.
#pragma once

#include "script/library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eddy::script::testing {

/// Each row has what users see of it: help, and words for the arguments that are checked.
inline void expect_documented(const library& all) {
    EXPECT_FALSE(all.functions.empty());
    for (const library_function& row : all.functions) {
        EXPECT_THAT(row.help, ::testing::EndsWith(".")) << row.name;
        EXPECT_EQ(row.takes.empty(), row.arguments[0].name.empty()) << row.name;
        EXPECT_NE(row.run, nullptr) << row.name;
    }
}

}  // namespace eddy::script::testing
