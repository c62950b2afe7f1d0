// The lock that a loop holds during its turns once it shares them; see turns.hpp.
//
// Who has the turn is alone, or has let in those who share it: they count themselves in one word,
// of which a bit says that somebody wants to be alone.
#pragma once

#include <eddy/io/turns.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

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
        begin_alone();
        woken_ = false;
    }
    void leave() {
        const bool is_awaited = kept_out_ > 0;
        end_alone();
        turn_.unlock();
        if (is_awaited) turn_over_.notify_all();
    }

    // For visitors. Among them whoever comes at the right moment is the first: handing over to one
    // that sleeps would leave the turn to nobody until it has woken.
    void begin_visit() {
        if (loop_waits_.load(std::memory_order_relaxed) || !turn_.try_lock()) wait_in_line();
        begin_alone();
    }
    void end_visit() {
        end_alone();
        turn_.unlock();
    }

    // For visitors who share their turn with each other.
    void begin_shared() {
        if ((sharing_.fetch_add(one_more, std::memory_order_acquire) & alone) == 0) [[likely]]
            return;
        end_shared();
        // Whoever is alone has the turn: who comes after that is let in before the next one.
        wait_in_line();
        sharing_.fetch_add(one_more, std::memory_order_acquire);
        turn_.unlock();
    }
    void end_shared() {
        if (sharing_.fetch_sub(one_more, std::memory_order_release) != (one_more | alone))
            [[likely]]
            return;
        // Whoever waits has looked already, or sees that there is nobody left.
        {
            const std::lock_guard looking(looking_);
        }
        nobody_shares_.notify_one();
    }
    /// Lets the loop have its turn, as often as it takes until `may_go_on` says true, which is
    /// asked while nobody else is in. The loop is awake: what there is too much of has woken it.
    template <class Condition>
    void wait_for_loop(Condition may_go_on) {
        ++kept_out_;
        std::unique_lock turn(turn_, std::adopt_lock);
        while (!may_go_on()) {
            end_alone();
            turn_over_.wait(turn);
            begin_alone();
        }
        turn.release();
        --kept_out_;
    }
    /// Whether this visitor is to wake the loop: the first that leaves it something to do is.
    bool take_wake() noexcept { return !std::exchange(woken_, true); }

    // In the turn of somebody who is alone.
    void add(turn_listener& told) { listeners_.push_back(&told); }
    void remove(turn_listener& told) noexcept { std::erase(listeners_, &told); }

    std::size_t owners = 0;  // shared_turns

private:
    static constexpr std::uint32_t alone = 1;
    static constexpr std::uint32_t one_more = 2;

    /// Whoever is at the head of the line has the next turn.
    void wait_in_line() {
        const std::lock_guard head(head_);
        turn_.lock();
    }
    // Asleep: std::atomic::wait() would give the core away several times before.
    void begin_alone() {
        if (sharing_.fetch_or(alone, std::memory_order_acquire) != 0) {
            std::unique_lock looking(looking_);
            nobody_shares_.wait(
                looking, [this] { return sharing_.load(std::memory_order_acquire) == alone; });
        }
        for (turn_listener* const each : listeners_) each->is_alone();
    }
    void end_alone() noexcept { sharing_.fetch_and(~alone, std::memory_order_release); }

    // What each visit writes comes from the core that wrote it last with one line of memory.
    alignas(64) std::mutex turn_;
    std::atomic<std::uint32_t> sharing_{0};
    std::atomic<bool> loop_waits_{false};
    bool woken_ = false;  // since the loop's last turn
    int kept_out_ = 0;    // visitors in wait_for_loop()

    alignas(64) std::vector<turn_listener*> listeners_;
    std::mutex head_;
    std::condition_variable turn_over_;  // the loop's
    std::mutex looking_;
    std::condition_variable nobody_shares_;
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
