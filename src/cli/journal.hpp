// Output of a runtime's journal as it comes from the daemon.
#pragma once

#include "cli/program.hpp"

#include <string>

namespace eddy::cli {

/// A sink that prints the lines of a journal: as they are, or each as a JSON object.
body_sink journal_printer(bool as_json);

/// Shows what happens to a runtime from now on, and sends it each line of standard input, until
/// that ends or the runtime is removed. Returns the exit status.
int attach(const context& with, const std::string& name);

}  // namespace eddy::cli
