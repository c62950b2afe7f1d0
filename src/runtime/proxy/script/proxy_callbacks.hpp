// Callbacks of a proxy's script, beside those of all types: for docs and checks.
#pragma once

#include "script/coroutine_host.hpp"

#include <span>

namespace eddy::runtime::proxy {

std::span<const script::callback> proxy_callbacks();

}  // namespace eddy::runtime::proxy
