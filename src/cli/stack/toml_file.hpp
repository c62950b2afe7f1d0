// TOML of a stack file as a tree with places, apart from the library that reads it.
#pragma once

#include "cli/stack/stack_file.hpp"

#include <nlohmann/json.hpp>

#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// A key with its value; a table has members, another value is JSON.
struct toml_member {
    std::string key;
    place at;
    bool is_table = false;
    std::vector<toml_member> members = {};  ///< in the order of the file
    nlohmann::json value = {};
    std::string fault = {};  ///< of a value that no option takes, such as a date
};

/// The members of a text; the error is the first one of its syntax.
std::expected<std::vector<toml_member>, file_fault> parse_toml(std::string_view text,
                                                               const std::string& file);

}  // namespace eddy::cli
