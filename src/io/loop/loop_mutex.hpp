// Mutex of a lockable loop, exclusive or shared; see loop_lock.hpp.
//
// `exclusive_` is held by the loop during its turns, and by a loop_lock. Shared locks are counted
// in one word, with a bit for an exclusive lock that is held or waits for them.
#pragma once

#include <eddy/io/loop_lock.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace eddy::detail {

/// The mutex of one loop.
class loop_mutex {
public:
    // For the loop, around each system call that may wait. It precedes threads that come later, and
    // follows one that waited already: neither starves the other, however busy it is.
    void lock_for_loop() {
        loop_waits_.store(true, std::memory_order_relaxed);
        wait_in_line();
        loop_waits_.store(false, std::memory_order_relaxed);
        begin_exclusive();
        woken_ = false;
    }
    void unlock_for_loop() {
        const bool is_awaited = waiting_for_loop_ > 0;
        end_exclusive();
        exclusive_.unlock();
        if (is_awaited) turn_over_.notify_all();
    }

    // For other threads. Among them the first at the right moment gets the lock: passing it to one
    // that sleeps would leave it unused until that one has woken.
    void lock() {
        if (loop_waits_.load(std::memory_order_relaxed) || !exclusive_.try_lock()) wait_in_line();
        begin_exclusive();
    }
    void unlock() {
        end_exclusive();
        exclusive_.unlock();
    }

    // For other threads that share the lock.
    void lock_shared() {
        if ((sharing_.fetch_add(one_more, std::memory_order_acquire) & exclusive) == 0) [[likely]]
            return;
        unlock_shared();
        // An exclusive lock is held: shared ones that come later precede the next exclusive one.
        wait_in_line();
        sharing_.fetch_add(one_more, std::memory_order_acquire);
        exclusive_.unlock();
    }
    void unlock_shared() {
        if (sharing_.fetch_sub(one_more, std::memory_order_release) != (one_more | exclusive))
            [[likely]]
            return;
        // The waiting thread either sleeps by now, or will see that no shared lock is left.
        {
            const std::lock_guard checking(checking_);
        }
        none_shared_.notify_one();
    }
    /// Lets the loop run turns until `may_go_on`, called under the exclusive lock, returns true.
    /// The loop is awake: the excess of requests has woken it.
    template <class Condition>
    void wait_for_loop(Condition may_go_on) {
        ++waiting_for_loop_;
        std::unique_lock held(exclusive_, std::adopt_lock);
        while (!may_go_on()) {
            end_exclusive();
            turn_over_.wait(held);
            begin_exclusive();
        }
        held.release();
        --waiting_for_loop_;
    }
    /// True for the first thread with work for the loop, which has to wake it.
    bool take_wake() noexcept { return !std::exchange(woken_, true); }

    // Under the exclusive lock.
    void add(loop_lock_observer& observer) { observers_.push_back(&observer); }
    void remove(loop_lock_observer& observer) noexcept { std::erase(observers_, &observer); }

    std::size_t owners = 0;  // lockable_loop objects

private:
    static constexpr std::uint32_t exclusive = 1;
    static constexpr std::uint32_t one_more = 2;

    /// The head of the line gets the lock next.
    void wait_in_line() {
        const std::lock_guard head(head_);
        exclusive_.lock();
    }
    // Asleep: std::atomic::wait() would yield the core several times before.
    void begin_exclusive() {
        if (sharing_.fetch_or(exclusive, std::memory_order_acquire) != 0) {
            std::unique_lock checking(checking_);
            none_shared_.wait(
                checking, [this] { return sharing_.load(std::memory_order_acquire) == exclusive; });
        }
        for (loop_lock_observer* const each : observers_) each->became_exclusive();
    }
    void end_exclusive() noexcept { sharing_.fetch_and(~exclusive, std::memory_order_release); }

    // Written by each lock: one line of memory, fetched from the core that wrote it last.
    alignas(64) std::mutex exclusive_;
    std::atomic<std::uint32_t> sharing_{0};
    std::atomic<bool> loop_waits_{false};
    bool woken_ = false;        // since the loop's last turn
    int waiting_for_loop_ = 0;  // threads in wait_for_loop()

    alignas(64) std::vector<loop_lock_observer*> observers_;
    std::mutex head_;
    std::condition_variable turn_over_;  // the loop's
    std::mutex checking_;
    std::condition_variable none_shared_;
};

/// Unlocks a loop's mutex while it lives, for the loop's wait. Null: the loop is not lockable.
class loop_unlock {
public:
    explicit loop_unlock(loop_mutex* of) : mutex_(of) {
        if (mutex_ != nullptr) [[unlikely]]
            mutex_->unlock_for_loop();
    }
    ~loop_unlock() {
        if (mutex_ != nullptr) [[unlikely]]
            mutex_->lock_for_loop();
    }
    loop_unlock(const loop_unlock&) = delete;
    loop_unlock& operator=(const loop_unlock&) = delete;

private:
    loop_mutex* mutex_;
};

}  // namespace eddy::detail
