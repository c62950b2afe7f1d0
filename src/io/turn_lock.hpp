// The lock that a loop holds during its turns once it shares them; see turns.hpp.
#pragma once

#include <atomic>
#include <condition_variable>
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
    void leave() {
        const bool is_awaited = kept_out_ > 0;
        turn_.unlock();
        if (is_awaited) turn_over_.notify_all();
    }

    // For visitors. Among them whoever comes at the right moment is the first: handing over to one
    // that sleeps would leave the turn to nobody until it has woken.
    void begin_visit() {
        if (!loop_waits_.load(std::memory_order_relaxed) && turn_.try_lock()) return;
        wait_in_line();
    }
    void end_visit() { turn_.unlock(); }
    /// Lets the loop have its turn, as often as it takes until `may_go_on` says true, which is
    /// asked while nobody else is in. The loop is awake: what there is too much of has woken it.
    template <class Condition>
    void wait_for_loop(Condition may_go_on) {
        ++kept_out_;
        std::unique_lock turn(turn_, std::adopt_lock);
        turn_over_.wait(turn, std::move(may_go_on));
        turn.release();
        --kept_out_;
    }
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
    std::condition_variable turn_over_;  // the loop's
    std::atomic<bool> loop_waits_{false};
    bool woken_ = false;  // since the loop's last turn
    int kept_out_ = 0;    // visitors in wait_for_loop()
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
