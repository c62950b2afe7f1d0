// Memory of buffers: for clients, replicas and the append-only file.
#pragma once

#include "cache/engine/engine_state.hpp"

#include <cstddef>

namespace eddy::cache {

/// Memory of the buffers for files, replicas and clients, for INFO and MEMORY STATS. O(clients).
struct buffer_bytes {
    std::size_t backlog = 0;   ///< kept for replicas that come back
    std::size_t replicas = 0;  ///< client_bytes() of all that follow
    std::size_t normal = 0;    ///< client_bytes() of all others
    std::size_t append = 0;    ///< of the append-only file, not written yet
};
buffer_bytes measure_buffers(engine_state& s);

}  // namespace eddy::cache
