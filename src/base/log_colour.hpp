// The colours of the log on a terminal, for every sink that writes to one.
#pragma once

#include <eddy/base/log.hpp>

#include <string>
#include <string_view>

namespace eddy {

/// A finished line of the log, coloured by its level where standard error is a terminal and
/// NO_COLOR is unset.
std::string log_line_for_stderr(log_level level, std::string_view line);

}  // namespace eddy
