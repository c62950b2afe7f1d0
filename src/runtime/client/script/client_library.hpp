// Rows of a client's script: its callbacks beside those of all types, and its functions in the
// table `self`.
#pragma once

#include "runtime/client/script/client_script.hpp"
#include "script/coroutine_host.hpp"
#include "script/library.hpp"

#include <span>

namespace eddy::runtime::client {

std::span<const script::callback> client_callbacks();

/// `of` outlives the script's state.
script::library client_library(script_link& of);

}  // namespace eddy::runtime::client
