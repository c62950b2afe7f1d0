// Names of runtimes, and the check of them.
#pragma once

#include "base/problem.hpp"

#include <cstddef>
#include <string_view>

namespace eddy::daemon {

/// The longest name in bytes.
inline constexpr std::size_t runtime_name_limit = 128;

/// Refuses (400) what is not 1 to 128 of A-Z a-z 0-9 . _ - or begins with a dot. A name that passes
/// is safe as a file's name, in a URL and in a log line.
outcome<> check_runtime_name(std::string_view name);

/// The same for a group, called so in the message.
outcome<> check_group_name(std::string_view name);

}  // namespace eddy::daemon
