// A runtime's declaration: options from names and values as files write them, checked against the
// flags of its type.
#pragma once

#include "cli/program.hpp"
#include "cli/stack/stack_file.hpp"
#include "cli/stack/variables.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// Surroundings of a file's declarations. All outlive it.
struct declaration_source {
    const context& with;
    const environment& variables;
    std::string folder;  ///< of relative paths
    bool has_variables = true;
    std::vector<file_fault>* warnings = nullptr;
};

/// Sets a member of a runtime from a file: an option, "owner", "on_parent_stop", "group" or
/// "start". Appends faults.
void declare(const declaration_source& from, declared_runtime& of, std::string_view name,
             const nlohmann::json& value, const place& at, std::vector<file_fault>& faults);

/// After all members: what the file's place says, such as the working folder of a program.
void complete(const declaration_source& from, declared_runtime& of);

/// The fault of a type that there is not; empty if there is.
std::string type_fault(const context& with, std::string_view type,
                       const std::vector<std::string_view>& others);

/// The text with its variables; a fault, and empty, where that fails.
std::string expanded_text(const declaration_source& from, std::string_view text, const place& at,
                          std::vector<file_fault>& faults);

}  // namespace eddy::cli
