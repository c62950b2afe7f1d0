// Callbacks of a site's script, beside those of all types: for docs and checks.
#pragma once

#include "script/coroutine_host.hpp"

#include <span>

namespace eddy::runtime::http {

std::span<const script::callback> site_callbacks();

}  // namespace eddy::runtime::http
