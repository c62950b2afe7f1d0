// The token bucket.
#include <eddy/net/rate_limit.hpp>

#include <algorithm>

namespace eddy {
namespace {

/// A wait is never longer: durations of 64 bits would overflow with very slow rates.
constexpr double longest_wait_ns = 1e18;

duration time_for(double tokens, double per_second) noexcept {
    return duration(
        static_cast<duration::rep>(std::clamp(tokens * 1e9 / per_second, 0.0, longest_wait_ns)));
}

}  // namespace

rate_limiter::rate_limiter(double per_second, double burst, time_point now) noexcept
    : per_second_(per_second),
      burst_(per_second > 0 ? time_for(burst, per_second) : duration::zero()),
      full_at_(now) {}

/// When the bucket is full again after `count` more tokens have been taken.
time_point rate_limiter::full_after(std::uint64_t count, time_point now) const noexcept {
    const duration until_full = std::max(full_at_ - now, duration::zero()) +
                                time_for(static_cast<double>(count), per_second_);
    return now + std::min(until_full, duration(static_cast<duration::rep>(longest_wait_ns)));
}

bool rate_limiter::try_take(std::uint64_t count, time_point now) noexcept {
    if (unlimited()) return true;
    const time_point full_at = full_after(count, now);
    if (full_at - now > burst_) return false;
    full_at_ = full_at;
    return true;
}

duration rate_limiter::take_later(std::uint64_t count, time_point now) noexcept {
    if (unlimited()) return duration::zero();
    full_at_ = full_after(count, now);
    return std::max(full_at_ - now - burst_, duration::zero());
}

task<result<>> rate_limiter::take(std::uint64_t count) {
    const duration wait = take_later(count, loop::current().now());
    if (wait == duration::zero()) co_return result<>();
    co_return co_await loop::current().sleep_for(wait);
}

}  // namespace eddy
