// Time for scripts: sleep(milliseconds).
#pragma once

#include "script/library.hpp"

#include <chrono>

namespace eddy::script {

/// Longest sleep().
inline constexpr std::chrono::hours max_sleep{24};

/// Global functions.
library time_library();

}  // namespace eddy::script
