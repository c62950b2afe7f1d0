// Block that a loop shares with its executors. It outlives the loop.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>

namespace eddy::detail {

/// Gate between other threads and the end of the loop: it says if the loop still exists, and keeps
/// it alive while threads use it. A thread counts itself first and reads the loop then; the loop's
/// end hides the loop first and reads the count then. At least one of the two observes the other.
class loop_gate {
public:
    loop_gate(loop& owner, std::size_t limit) noexcept : loop_(&owner), limit_(limit) {}

    /// The loop, which stays until leave(); null if it is gone, without a leave().
    loop* enter() noexcept {
        inside_.fetch_add(1, std::memory_order_seq_cst);
        loop* const found = loop_.load(std::memory_order_seq_cst);
        if (!found) leave();
        return found;
    }
    /// For callers for which the loop certainly exists.
    void enter_existing() noexcept { inside_.fetch_add(1, std::memory_order_relaxed); }
    void leave() noexcept { inside_.fetch_sub(1, std::memory_order_release); }

    bool closed() const noexcept { return !loop_.load(std::memory_order_relaxed); }
    bool is_of(const loop* one) const noexcept {
        return one && loop_.load(std::memory_order_relaxed) == one;
    }

    /// No thread enters any more.
    void close() noexcept { loop_.store(nullptr, std::memory_order_seq_cst); }
    void wait_until_left() const noexcept {
        while (inside_.load(std::memory_order_seq_cst) > 0) std::this_thread::yield();
    }

    /// Counts one more queued piece of work; false at the limit.
    bool add_pending() noexcept {
        if (pending_.fetch_add(1, std::memory_order_relaxed) < limit_) return true;
        remove_pending();
        return false;
    }
    void remove_pending() noexcept { pending_.fetch_sub(1, std::memory_order_relaxed); }

private:
    std::atomic<loop*> loop_;
    std::atomic<std::size_t> inside_{0};
    std::atomic<std::size_t> pending_{0};
    const std::size_t limit_;
};

/// Access to the tasks that a loop runs for executors; on its thread, while it runs posted work.
struct posted_task_access {
    static void start(task<void> work) {
        loop& here = loop::current();
        EDDY_ASSERT(here.posted_tasks_);
        here.posted_tasks_->spawn(std::move(work));
    }
    static cancel_source& source() noexcept { return loop::current().posted_tasks_->source(); }
};

}  // namespace eddy::detail
