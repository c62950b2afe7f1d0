// For tests: checks of a library's rows.
#pragma once

#include "script/library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace eddy::script::testing {

/// Each row has what users see of it: help, and words for the arguments that are checked.
inline void expect_documented(const library& all) {
    EXPECT_FALSE(all.functions.empty());
    for (const library_function& row : all.functions) {
        EXPECT_THAT(row.help, ::testing::EndsWith(".")) << row.name;
        EXPECT_EQ(row.takes.empty(), row.arguments[0].name.empty()) << row.name;
        EXPECT_EQ(row.run == nullptr, row.existing[0] != nullptr) << row.name;
    }
}

/// The row of a page's table: "| `self.send(client, text)` | Help. |".
inline std::string documented_row(const library& of, const library_function& row) {
    std::string text = "| `" + std::string(of.name) + "." + row.name + "(";
    for (std::size_t i = 0; i < max_arguments && !row.arguments[i].name.empty(); ++i) {
        const argument& each = row.arguments[i];
        if (i > 0) text += ", ";
        text += each.is_optional ? "[" + std::string(each.name) + "]" : std::string(each.name);
    }
    return text + ")` | " + std::string(row.help) + " |\n";
}

}  // namespace eddy::script::testing
