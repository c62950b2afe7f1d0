// Sleep of a thread on a word of shared memory: futex(2).
#pragma once

#include <eddy/io/timer.hpp>

#include <cstdint>

namespace eddy::shm {

/// Sleeps while `word` has the value `seen`, at most so long (duration::max(): no limit). It may
/// return early. The word may be in memory that is mapped to be read only.
void futex_wait(const std::uint32_t* word, std::uint32_t seen, duration limit) noexcept;

/// Wakes all that sleep on `word`, in every process that maps it.
void futex_wake(const std::uint32_t* word) noexcept;

}  // namespace eddy::shm
