// Process in which an object was made. Children of fork(2) have copies of it, while its socket and
// its memory stay the parent's: a copy must neither end nor use them.
#pragma once

#include <eddy/base/assert.hpp>

#include <pthread.h>

#include <cstdint>

namespace eddy::shm {

/// Any thread. A child of clone(2), or of _Fork(3), is taken for its parent.
class origin {
public:
    origin() noexcept : made_at_(__atomic_load_n(&forks_, __ATOMIC_RELAXED)) {
        // Once, also for children, which inherit it. It fails only without memory for its entry.
        static const int failed = ::pthread_atfork(nullptr, nullptr, &origin::count_fork);
        EDDY_ASSERT(failed == 0);
    }

    /// False in children of the process that made it.
    bool is_here() const noexcept { return made_at_ == __atomic_load_n(&forks_, __ATOMIC_RELAXED); }

private:
    static void count_fork() noexcept { ++forks_; }  // a child has one thread

    static inline constinit std::uint32_t forks_ = 0;  // of ancestors, from the first origin on
    std::uint32_t made_at_;
};

}  // namespace eddy::shm
