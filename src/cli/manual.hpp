// Manual pages of commands, made from their tables: eddy-create(1) and so on.
#pragma once

#include "cli/program.hpp"

#include <span>
#include <string>

namespace eddy::cli {

/// The page of a command, in man(7) macros. That of create has the flags of all types.
std::string manual_page(const context& with, const command& which);

/// Name of its file: "eddy-bench-http.1".
std::string manual_file(const command& which);

/// Writes a page for each command, and for each of their children, into a folder. Returns the exit
/// status.
int write_manual(const context& with, std::span<const command> commands, const std::string& folder);

}  // namespace eddy::cli
