// Addresses that a runtime's options claim, to find two runtimes that want the same one before
// either is started.
#pragma once

#include <eddy/transport/transport.hpp>

#include "runtime/options/settings.hpp"
#include "runtime/type.hpp"

#include <vector>

namespace eddy::runtime {

/// Addresses of --port, --bind, --unix, --listen, --tls-port and --handoff; none for port 0, which
/// is any free one, and for options that name no address. A --listen that may be given several
/// times names the sockets of a program. `chosen` has been checked.
std::vector<transport::address> claimed_addresses(const type& of, const settings& chosen);

/// True if one socket at most can serve on both: the same path, or a port of the same protocol on
/// addresses of the machine that overlap.
bool is_same_claim(const transport::address& one, const transport::address& other);

}  // namespace eddy::runtime
