// One process's part of a load of handoffs: a loop, a coroutine a stream, and what it shares with
// the process that started it.
#pragma once

#include "cli/bench/handoff/handoff_load.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace eddy::cli::bench {

/// Counts of all processes, in memory that they share.
struct handoff_board {
    std::atomic<std::uint32_t> ready{0};    ///< workers that wait for the start
    std::atomic<std::int64_t> start_ns{0};  ///< on the monotonic clock; 0: not set
    std::atomic<std::int64_t> live{0};      ///< streams under way
    std::atomic<std::int64_t> peak{0};      ///< most of them at once
    std::atomic<std::uint64_t> started{0};
    std::atomic<std::uint64_t> failed{0};
    static_assert(std::atomic<std::int64_t>::is_always_lock_free);

    void begin_stream() noexcept;
    void end_stream() noexcept { live.fetch_sub(1, std::memory_order_relaxed); }
};

/// One worker's results, in that memory.
struct handoff_share {
    std::atomic<std::int64_t> cpu_ns{0};  ///< so far
    handoff_counts counts;
};

/// Runs the streams `index`, `index` + `processes`, ... of the load on a loop of this process. An
/// error that is no stream's is an exception.
void run_handoff_worker(const handoff_options& wanted, std::size_t index, std::size_t processes,
                        handoff_board& board, handoff_share& share);

}  // namespace eddy::cli::bench
