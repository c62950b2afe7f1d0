// Reasons that pause clients' writes.
#pragma once

#include <cstdint>

namespace eddy::cache {

/// Each until its own end, see waits.hpp.
enum class write_hold : std::uint8_t {
    failover = 1,
    file = 2,      ///< the append-only file lacks what there is: append_log::holds_writes()
    shutdown = 4,  ///< the cache is about to stop, and replicas must have everything first
    stop = 8,      ///< its files have everything, as it is about to stop
};

}  // namespace eddy::cache
