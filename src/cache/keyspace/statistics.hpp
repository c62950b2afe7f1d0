// Counters of the cache, for INFO and /metrics.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eddy::cache {

/// Counters since the engine's start or CONFIG RESETSTAT, and gauges of the moment.
struct statistics {
    std::uint64_t commands = 0;            ///< executed or refused
    std::uint64_t parallel_commands = 0;   ///< of them, by lanes: others could run at that time
    std::uint64_t errors = 0;              ///< error replies
    std::uint64_t unexpected_errors = 0;   ///< of them, to a master or of the append-only file
    std::uint64_t rounds = 0;              ///< of the loop, in which there was something to do
    std::uint64_t hits = 0;                ///< keys that a reading command found
    std::uint64_t misses = 0;              ///< keys that a reading command did not find
    std::uint64_t expired_keys = 0;        ///< keys removed because their time was over
    std::uint64_t evicted_keys = 0;        ///< keys removed to stay below maxmemory
    std::uint64_t freed_in_slices = 0;     ///< large values, and keys of flushed databases
    std::uint64_t sweep_ns = 0;            ///< time of sweeps for expired keys
    std::uint64_t sweeps_cut = 0;          ///< sweeps that ended as their slice was over
    double expired_share = 0;              ///< of keys with a TTL that sweeps passed, lately
    std::int64_t over_limit_us = 0;        ///< time above maxmemory that has ended
    std::int64_t over_limit_since_us = 0;  ///< steady time; 0: not above it
    std::uint64_t payloads_checked = 0;    ///< deeply, as sanitize-dump-payload says
    std::uint64_t output_closed = 0;     ///< clients closed because they did not take their output
    std::uint64_t query_closed = 0;      ///< the same by client-query-buffer-limit
    std::uint64_t evicted_clients = 0;   ///< clients closed to stay below maxmemory-clients
    std::uint64_t sessions = 0;          ///< gauge: connected clients
    std::uint64_t total_sessions = 0;    ///< clients that ever connected
    std::uint64_t keys = 0;              ///< gauge, all databases
    std::uint64_t keys_with_expiry = 0;  ///< gauge, all databases
    std::uint64_t fields_with_expiry = 0;  ///< gauge, hashes that have such fields
    std::size_t used_memory = 0;           ///< gauge: bytes in keys, values and tables
    std::size_t peak_memory = 0;           ///< the highest used_memory that was sampled
    std::size_t reserved_memory = 0;       ///< gauge: bytes taken from the system for them
};

}  // namespace eddy::cache
