// Time that the calling thread has had the processor. What others take of a busy machine is not
// part of it.
#pragma once

#include <time.h>

#include <chrono>

namespace eddy {

inline std::chrono::nanoseconds processor_time() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace eddy
