// Signals as options name them.
#pragma once

#include "base/problem.hpp"

#include <string>
#include <string_view>

namespace eddy::runtime::program {

/// The number of "TERM", "SIGTERM" or "15". The refusal (400) begins with `flag`.
outcome<int> read_signal(std::string_view text, std::string_view flag);
/// "SIGTERM", or "signal 35".
std::string signal_name(int number);

}  // namespace eddy::runtime::program
