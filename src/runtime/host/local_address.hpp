// Address at which an instance reaches another runtime of its daemon.
#pragma once

#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "runtime/host/host.hpp"

#include <string_view>

namespace eddy::runtime {

/// The best address for a stream to the runtime `target`, by name or id: TCP, then a Unix socket,
/// shared memory and TLS. Refuses (404) an unknown one, one that does not run, and one without such
/// an address. `self` is the instance's own name, whose addresses are left out.
outcome<transport::address> find_local_address(const host& daemon, std::string_view target,
                                               std::string_view self);

}  // namespace eddy::runtime
