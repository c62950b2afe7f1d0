// Functions of a server's script for the servers of --upstream, in the table `self`.
#pragma once

#include "runtime/server/upstreams.hpp"
#include "script/library.hpp"

namespace eddy::runtime::server {

/// `of`, null without --upstream, outlives the script's state.
script::library upstream_library(upstreams* of);

}  // namespace eddy::runtime::server
