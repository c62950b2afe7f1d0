// Timers: nodes of a heap that a loop owns, embedded in whatever waits.
//
// The heap is a pairing heap: arming is O(1), cancelling and firing are amortised O(log n), and a
// timer that is armed and cancelled again while it is not the next to fire costs a few pointer
// writes. No allocation, no resolution limit: deadlines are nanoseconds.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/io/operation.hpp>

#include <chrono>

namespace eddy {

using duration = std::chrono::nanoseconds;
/// Time on a loop's clock: monotonic on real backends, virtual on the simulated one.
using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

/// A moment at which fire() is called, once, from the loop's turn. The owner arms it through
/// loop::arm() and may disarm it at any time before; destroying an armed timer is a bug.
class timer {
public:
    timer() noexcept = default;
    timer(const timer&) = delete;
    timer& operator=(const timer&) = delete;

    bool armed() const noexcept { return armed_; }
    time_point when() const noexcept { return when_; }

protected:
    ~timer() { EDDY_ASSERT(!armed_); }

private:
    friend class timer_heap;
    friend class loop;
    virtual void fire() noexcept = 0;

    time_point when_{};
    timer* child_ = nullptr;
    timer* next_ = nullptr;
    timer* prev_ = nullptr;  // the left sibling, or the parent of a first child
    bool armed_ = false;
};

/// The heap itself. One thread.
class timer_heap {
public:
    bool empty() const noexcept { return !root_; }
    timer& first() const noexcept { return *root_; }
    void insert(timer& node) noexcept;
    void remove(timer& node) noexcept;

private:
    static timer* meld(timer* a, timer* b) noexcept;
    static timer* meld_siblings(timer* first) noexcept;

    timer* root_ = nullptr;
};

}  // namespace eddy
