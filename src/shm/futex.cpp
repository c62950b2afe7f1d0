// futex(2), which the C library does not wrap.
#include "shm/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace eddy::shm {

void futex_wait(const std::uint32_t* word, std::uint32_t seen, duration limit) noexcept {
    const timespec time{static_cast<time_t>(limit.count() / 1'000'000'000),
                        static_cast<long>(limit.count() % 1'000'000'000)};
    // Not FUTEX_PRIVATE_FLAG: the waker is another process. After any error the caller only polls
    // again.
    ::syscall(SYS_futex, word, FUTEX_WAIT, seen, limit == duration::max() ? nullptr : &time,
              nullptr, 0);
}

void futex_wake(const std::uint32_t* word) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace eddy::shm
