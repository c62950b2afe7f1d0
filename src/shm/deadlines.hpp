// Deadlines of waits in poll(2). Any thread.
#pragma once

#include <eddy/io/timer.hpp>

#include "shm/hello.hpp"
#include "shm/spinning.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>

namespace eddy::shm {

/// The end of the clock for limits beyond it.
inline time_point deadline_after(duration time) noexcept {
    const time_point now = clock_now();
    return time < time_point::max() - now ? now + time : time_point::max();
}

inline duration left_until(time_point deadline, time_point now) noexcept {
    if (deadline == time_point::max()) return duration::max();
    return std::max(deadline - now, duration::zero());
}

/// Timeout of poll(2), rounded up; at most an hour.
inline int milliseconds_of(duration time) noexcept {
    constexpr duration longest = std::chrono::hours(1);
    const duration counted = std::min(time, longest);
    return static_cast<int>((counted + std::chrono::microseconds(999)) /
                            std::chrono::milliseconds(1));
}

/// Events of poll(2) for the next step of an exchange.
inline short events_of(exchange::wait what) noexcept {
    return what == exchange::wait::writable ? POLLOUT : POLLIN;
}

}  // namespace eddy::shm
