// Present runtimes as a stack file.
#pragma once

#include "cli/program.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace eddy::cli {

/// TOML of a list of runtimes as the daemon shows them: a stack file that makes the same ones.
/// Secrets, which the daemon does not show, are variables of the environment that must be set.
std::string exported(const context& with, const nlohmann::json& runtimes, std::string_view stack);

}  // namespace eddy::cli
