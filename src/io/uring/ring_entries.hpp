// Entries of the submission rings of this process's loops: for a program that lets its user choose.
#pragma once

#include <atomic>

namespace eddy::detail {

/// Entries by default, at least and at most. Fewer could not hold what a loop queues in one step;
/// more are refused by the kernel.
inline constexpr unsigned default_ring_entries = 1024;
inline constexpr unsigned least_ring_entries = 1024;
inline constexpr unsigned most_ring_entries = 32768;

/// Entries for loops that are made from now on.
inline std::atomic<unsigned> ring_entries = default_ring_entries;

}  // namespace eddy::detail
