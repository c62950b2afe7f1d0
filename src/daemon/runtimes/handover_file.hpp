// File that takes the data of an instance to the next one: without a name, so that it ends with its
// last descriptor.
#pragma once

#include "runtime/instance.hpp"

#include <string>

namespace eddy::daemon {

/// Makes such a file in the folder; on failure runtime::handover::fault has the reason. Waits for
/// the disk.
runtime::handover open_handover_file(const std::string& folder);

}  // namespace eddy::daemon
