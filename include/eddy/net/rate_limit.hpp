// Token bucket: a rate per second on average, with bursts up to a limit.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

#include <cstdint>

namespace eddy {

/// Tokens arrive at `per_second` and pile up to `burst`; it starts full. A rate of 0 means no
/// limit. 24 bytes, no allocation. One thread; time comes from the caller, so it costs no clock
/// read.
class rate_limiter {
public:
    /// A full bucket at `now`.
    rate_limiter(double per_second, double burst, time_point now) noexcept;

    /// True if every take passes at once.
    bool unlimited() const noexcept { return per_second_ <= 0; }

    /// Takes `count` tokens if they are there now. A count above `burst` never is.
    bool try_take(std::uint64_t count, time_point now) noexcept;

    /// Takes `count` tokens on credit and returns the time that the caller must wait; zero when
    /// they were there. Callers thus queue in the order of their calls.
    duration take_later(std::uint64_t count, time_point now) noexcept;

    /// Waits until `count` tokens are the caller's. Yields a result<>, whose only error is
    /// errc::cancelled, which does not give them back.
    task<result<>> take(std::uint64_t count);

private:
    time_point full_after(std::uint64_t count, time_point now) const noexcept;

    double per_second_;
    duration burst_;      // the time in which an empty bucket fills
    time_point full_at_;  // says how many tokens there are, as one number
};

}  // namespace eddy
