// Timers: nodes of a loop's timer wheel, embedded in the objects that wait.
//
// The wheel is hierarchical, with slots down to single nanoseconds, so it is exact: deadlines are
// never rounded, and timers fire in their order. Arming and cancelling are O(1); a timer that fires
// has been moved at most once a level. No allocation, and no burst of work: however many timers
// come due, a turn of the loop moves and fires a bounded number of them. One loop's thread.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/io/operation.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace eddy {

/// Every length of time.
using duration = std::chrono::nanoseconds;
/// Time on a loop's clock: monotonic on real io-backends, virtual on the simulated one.
using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

/// A moment at which fire() is called, once, from the loop's turn. The owner arms it through
/// loop::arm() and may disarm it at any time before; destroying an armed timer is a bug. Timers of
/// the same deadline fire in the order in which they were armed. One loop's thread.
class timer {
public:
    timer() noexcept = default;
    timer(const timer&) = delete;
    timer& operator=(const timer&) = delete;

    /// True while it waits to fire.
    bool armed() const noexcept { return slot_ != nowhere; }
    /// The deadline of an armed timer.
    time_point when() const noexcept { return when_; }

protected:
    ~timer() {
        EDDY_PRECONDITION(!armed(), "a timer was destroyed while it is armed: disarm() it first");
    }

private:
    friend class timer_wheel;
    friend class loop;
    virtual void fire() noexcept = 0;

    static constexpr std::uint16_t nowhere = UINT16_MAX;

    time_point when_{};
    timer* next_ = nullptr;
    timer* prev_ = nullptr;
    std::uint16_t slot_ = nowhere;
};

/// The wheel itself (Varghese and Lauck 1987). One thread.
///
/// A slot of level 0 is a nanosecond, and one of each further level is 64 of the level below. A
/// timer stands on the level of the highest digit, to base 64, in which its deadline differs from
/// the wheel's time, and so comes down by at least one level whenever that digit is reached.
class timer_wheel {
public:
    bool empty() const noexcept { return levels_ == 0; }
    /// When fire_due() has to be called again: the next deadline, or a moment not long before it;
    /// time_point::min() when the last call left work over. time_point::max() for an empty wheel.
    time_point next() const noexcept { return next_; }
    void insert(timer& node, time_point when) noexcept;
    void remove(timer& node) noexcept;
    /// Fires what is due at `now`, in order, until `most` timers have been moved or fired.
    void fire_due(time_point now, std::size_t most) noexcept;

private:
    static constexpr unsigned digit_bits = 6;
    static constexpr unsigned slots_a_level = 1U << digit_bits;
    static constexpr unsigned level_count = 11;  // 63 bits of nanoseconds

    struct list {
        timer* first = nullptr;
        timer* last = nullptr;
    };
    list& at(unsigned slot) noexcept { return slots_[slot]; }
    void place(timer& node) noexcept;
    void append(timer& node, unsigned slot) noexcept;
    unsigned first_slot() const noexcept;
    std::int64_t start_of(unsigned slot) const noexcept;
    void find_next() noexcept;

    std::array<list, std::size_t{level_count} * slots_a_level> slots_;
    std::array<std::uint64_t, level_count> used_{};  // a bit for each slot that is not empty
    std::uint32_t levels_ = 0;                       // a bit for each level that is not empty
    std::int64_t time_ = 0;  // nanoseconds; nothing in the wheel was due before it
    /// The slot whose timers are being moved down. It holds what comes next of all.
    unsigned moving_ = none;
    static constexpr unsigned none = ~0U;
    time_point next_ = time_point::max();
};

}  // namespace eddy
