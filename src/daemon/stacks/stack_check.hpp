// Check of a stack without a daemon.
#pragma once

#include "runtime/type.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::daemon {

/// The status and the body with which a daemon of these types, and without runtimes, would answer a
/// dry run of PUT /v1/stacks/NAME. Addresses are not tried, and owners may be other ones. Blocks.
std::pair<int, std::string> check_stack(std::span<const runtime::type> types, std::string name,
                                        std::string_view body);

}  // namespace eddy::daemon
