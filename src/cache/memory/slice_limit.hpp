// Time limit of a slice of background work.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace eddy::cache {

/// Nanoseconds on a monotonic clock, from any origin.
using slice_clock = std::int64_t (*)() noexcept;

/// The system's monotonic clock.
inline std::int64_t steady_ns() noexcept {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

/// Duration of a slice, which one more piece of work may exceed.
inline constexpr std::int64_t longest_slice_ns = 200'000;

/// Time of one slice, from its construction on. Reading the clock costs as much as a small piece of
/// work, so pieces have weights, and the clock is read once in `a_look` of weight.
class slice_limit {
public:
    static constexpr std::size_t a_look = 32;

    /// Without a clock (null) the slice is not limited.
    slice_limit(slice_clock clock, std::int64_t most_ns) noexcept
        : clock_(clock),
          seen_ns_(clock != nullptr ? clock() : 0),
          end_ns_(clock != nullptr ? seen_ns_ + most_ns : 0) {}

    /// Counts a finished piece of this weight. True once the slice has used up its time.
    bool is_over_after(std::size_t weight) noexcept {
        if (is_over_) return true;
        if (weight < left_) {
            left_ -= weight;
            return false;
        }
        left_ = a_look;
        is_over_ = clock_ != nullptr && read_clock() >= end_ns_;
        return is_over_;
    }
    /// The clock's time now, and when it was last read; always 0 without one.
    std::int64_t read_clock() noexcept {
        if (clock_ != nullptr) seen_ns_ = clock_();
        return seen_ns_;
    }
    std::int64_t seen_ns() const noexcept { return seen_ns_; }
    /// True if is_over_after() has been true.
    bool is_over() const noexcept { return is_over_; }

private:
    slice_clock clock_;
    std::int64_t seen_ns_;
    std::int64_t end_ns_;
    std::size_t left_ = a_look;
    bool is_over_ = false;
};

}  // namespace eddy::cache
