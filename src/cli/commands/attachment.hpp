// Attachment to a runtime: `eddy attach` and `eddy start -i`.
#pragma once

#include "cli/program.hpp"

#include <string>

namespace eddy::cli {

/// Shows what a runtime receives from now on, or of a type whose messages cannot be followed what
/// its journal gets, and sends it each line of standard input, until that ends or the runtime is
/// removed. The runtime stays up. Returns the exit status.
int attach(const context& with, const std::string& name);

}  // namespace eddy::cli
