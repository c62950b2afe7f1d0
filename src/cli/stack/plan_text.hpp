// The plan of a stack, and the faults that a daemon finds in one, as text.
#pragma once

#include "cli/stack/stack_file.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace eddy::cli {

/// A line, or several, for a change as the daemon shows it; `is_done` after it was made.
std::string change_text(const nlohmann::json& change, bool is_done);

/// "2 created, 1 changed, 3 unchanged".
std::string summary_text(const nlohmann::json& plan);

/// The faults of a daemon's refusal, each with the place of the value that it names.
std::vector<file_fault> faults_of(const nlohmann::json& error, const stack_file& file);

}  // namespace eddy::cli
