// Traffic counters of the server's connections, which the engine does not see.
#pragma once

#include <cstdint>

namespace eddy::cache {

/// Traffic of clients and replicas.
struct traffic {
    std::uint64_t bytes_in = 0;
    std::uint64_t bytes_out = 0;
    std::uint64_t reads = 0;  ///< received pieces
    std::uint64_t writes = 0;
    std::uint64_t threaded_reads = 0;  ///< part of them by --threads
    std::uint64_t threaded_writes = 0;
    std::uint64_t refused = 0;  ///< connections rejected at the limit

    /// Traffic since an earlier value.
    traffic operator-(const traffic& before) const noexcept {
        return {bytes_in - before.bytes_in,
                bytes_out - before.bytes_out,
                reads - before.reads,
                writes - before.writes,
                threaded_reads - before.threaded_reads,
                threaded_writes - before.threaded_writes,
                refused - before.refused};
    }
};

}  // namespace eddy::cache
