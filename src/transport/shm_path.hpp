// Path of a port of shared memory, shm://:4242, for runtimes that compare and show the addresses
// that they serve.
#pragma once

#include "shm/port_names.hpp"

#include <unistd.h>

#include <cstdint>
#include <string>

namespace eddy::transport {

/// Path at which this process listens for a port of shm: the abstract name "@eddy-shm-1000-4242" of
/// its effective user, which <eddy/shm/layout.h> defines. Any thread.
inline std::string shm_path_of(std::uint16_t port) { return shm::port_name(port, ::geteuid()); }

}  // namespace eddy::transport
