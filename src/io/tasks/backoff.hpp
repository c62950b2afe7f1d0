// Exponential backoff with jitter: pauses between attempts at the same thing.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/timer.hpp>

#include <algorithm>
#include <cstdint>

namespace eddy {

/// The length of a pause doubles from `first` to `longest`. Each pause is drawn from the upper half
/// of its length, so that many clients that a server has closed do not come back at once. One
/// thread.
class backoff {
public:
    /// `first` has at least 2 ns.
    backoff(duration first, duration longest, std::uint64_t seed) noexcept
        : first_(first), longest_(longest), next_(first), random_(seed) {
        EDDY_ASSERT(first.count() >= 2 && first <= longest);
    }

    /// The pause before the next attempt: at least half of its length, and less than that.
    duration next() noexcept {
        const auto half = static_cast<std::uint64_t>(next_.count()) / 2;
        next_ = next_ < longest_ / 2 ? 2 * next_ : longest_;
        return duration(half + random_.below(half));
    }
    /// After success: the next pause has the first length again.
    void reset() noexcept { next_ = first_; }

private:
    const duration first_;
    const duration longest_;
    duration next_;
    random_generator random_;
};

}  // namespace eddy
