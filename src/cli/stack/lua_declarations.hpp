// Declarations of a stack in Lua: a file whose runtimes{...} are collected.
#pragma once

#include "cli/program.hpp"

#include <nlohmann/json.hpp>

#include <expected>
#include <string>
#include <vector>

namespace eddy::cli {

/// The tables that the file passes to runtimes{}, each with a name and a type. Its other functions
/// of `eddy` may read the daemon, and change nothing. What it prints goes to standard error. The
/// error is one line; a build without scripts fails.
std::expected<std::vector<nlohmann::json>, std::string> declarations_of_script(
    context& with, std::string text, const std::string& path);

}  // namespace eddy::cli
