// The lock that a loop holds during its turns once it shares them; see turns.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>

namespace eddy::detail {

/// Of one loop.
class turn_lock {
public:
    // For the loop, around each system call that may wait. It comes before visitors that come
    // later, and after one that waited already: neither keeps the other out, however busy it is.
    void enter() {
        loop_waits_.store(true, std::memory_order_relaxed);
        wait_in_line();
        loop_waits_.store(false, std::memory_order_relaxed);
        woken_ = false;
    }
    void leave() { turn_.unlock(); }

    // For visitors. Among them whoever comes at the right moment is the first: handing over to one
    // that sleeps would leave the turn to nobody until it has woken.
    void begin_visit() {
        if (!loop_waits_.load(std::memory_order_relaxed) && turn_.try_lock()) return;
        wait_in_line();
    }
    void end_visit() { turn_.unlock(); }
    /// Whether this visitor is to wake the loop: the first that leaves it something to do is.
    bool take_wake() noexcept { return !std::exchange(woken_, true); }

    std::size_t owners = 0;  // shared_turns

private:
    /// Whoever is at the head of the line has the next turn.
    void wait_in_line() {
        const std::lock_guard head(head_);
        turn_.lock();
    }

    std::mutex turn_;
    std::mutex head_;
    std::atomic<bool> loop_waits_{false};
    bool woken_ = false;  // since the loop's last turn
};

/// Lets visitors in while it lives. Null: there are none.
class turn_pause {
public:
    explicit turn_pause(turn_lock* of) : lock_(of) {
        if (lock_ != nullptr) [[unlikely]]
            lock_->leave();
    }
    ~turn_pause() {
        if (lock_ != nullptr) [[unlikely]]
            lock_->enter();
    }
    turn_pause(const turn_pause&) = delete;
    turn_pause& operator=(const turn_pause&) = delete;

private:
    turn_lock* lock_;
};

}  // namespace eddy::detail
