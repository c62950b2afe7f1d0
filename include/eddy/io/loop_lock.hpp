// lockable_loop, loop_lock and shared_loop_lock: locks on a loop for other threads.
//
//     lockable_loop lockable;
//     event done;
//     int changes = 0;  // this loop's; no atomic
//     std::thread other([&] {
//         const loop_lock lock(lockable);
//         ++changes;
//         done.set();
//     });
//     const result<> woken = co_await done.wait();
//
// A lockable loop holds its lock except while it waits for the kernel. So other threads can use its
// objects between its turns, one at a time: without a message, a wake-up, or a lock for each
// object.
#pragma once

#include <eddy/io/loop.hpp>

#include <memory_resource>

namespace eddy {

/// Observer of exclusive sections of a lockable loop.
class loop_lock_observer {
public:
    /// The loop, or a loop_lock, holds the lock exclusively from now on; shared locks have ended.
    /// Called each time, on the thread that holds it, before anything else.
    virtual void became_exclusive() noexcept = 0;

protected:
    ~loop_lock_observer() = default;
};

/// Makes the loop of this thread lockable as long as it lives. Made and destroyed while that loop
/// runs, on its thread; there may be several. By its end no lock on it is held, and none begins
/// later.
class lockable_loop {
public:
    /// `observer`, unless null, must outlive it.
    explicit lockable_loop(loop_lock_observer* observer = nullptr);
    ~lockable_loop();
    lockable_loop(const lockable_loop&) = delete;
    lockable_loop& operator=(const lockable_loop&) = delete;

    /// The loop that is locked.
    loop& home() const noexcept { return home_; }

private:
    loop& home_;
    loop_lock_observer* observer_;
};

/// Exclusive lock on a loop, as long as it lives. The calling thread acts for that loop meanwhile:
/// loop::current() is that loop. Made on any thread, with a loop of its own or without. It waits,
/// asleep, until the loop's turn and earlier locks have ended, so keep it short. The loop and the
/// locking threads alternate however busy they are; among locking threads there is no order. It
/// cannot fail.
///
/// Under it, events may be set and coroutines posted, timers armed, scopes cancelled; a coroutine
/// that is spawned runs until its first wait, with frames from the pool. Operations of the kernel
/// that it begins or cancels are submitted by the loop's own thread, at most max_requests in one
/// lock: more may be an assertion. While the loop has not submitted those of earlier locks, and
/// there is not room for so many, a new lock waits for that. Work that needs system calls should
/// begin with `co_await loop::current().yield()`, and run on the loop's thread. Do not await under
/// it. A thread holds one lock at a time, and two lockable loops do not lock each other: that would
/// be a deadlock.
class [[nodiscard]] loop_lock {
public:
    /// Operations of the kernel that one lock may begin, and as many that it may cancel.
    static constexpr unsigned max_requests = 512;

    /// Waits for the lock. On that loop's own thread, and with null, it does nothing. `to` must
    /// outlive it.
    explicit loop_lock(lockable_loop* to) noexcept;
    /// The same.
    explicit loop_lock(lockable_loop& to) noexcept : loop_lock(&to) {}
    ~loop_lock() {
        if (home_ != nullptr) unlock();
    }
    loop_lock(const loop_lock&) = delete;
    loop_lock& operator=(const loop_lock&) = delete;

private:
    void unlock() noexcept;

    loop* home_ = nullptr;  // null where there is nothing to do
    loop* own_ = nullptr;   // of this thread
    std::pmr::memory_resource* own_frame_memory_ = nullptr;
};

/// Shared lock on a loop: excludes the loop and every loop_lock, but not other shared locks.
/// Threads that hold it must lock the data that they share. The calling thread keeps its own loop:
/// events, timers and tasks of the locked loop are out of reach. Exclusive locks have priority:
/// while one waits, new shared locks wait behind it.
class [[nodiscard]] shared_loop_lock {
public:
    /// Waits for the lock. On that loop's own thread, and with null, it does nothing. `to` must
    /// outlive it.
    explicit shared_loop_lock(lockable_loop* to) noexcept;
    ~shared_loop_lock();
    shared_loop_lock(const shared_loop_lock&) = delete;
    shared_loop_lock& operator=(const shared_loop_lock&) = delete;

private:
    loop* home_ = nullptr;  // null where there is nothing to do
};

}  // namespace eddy
