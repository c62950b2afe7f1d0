// Callbacks of a server's script, beside those of all types: for docs and checks.
#pragma once

#include "script/coroutine_host.hpp"

#include <span>

namespace eddy::runtime::server {

std::span<const script::callback> server_callbacks();

}  // namespace eddy::runtime::server
