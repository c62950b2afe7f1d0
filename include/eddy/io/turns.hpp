// shared_turns and visit: threads that take turns with a loop.
//
//     shared_turns turns;
//     event done;
//     int visits = 0;  // this loop's; no atomic
//     std::thread other([&] {
//         const visit here(turns);
//         ++visits;
//         done.set();
//     });
//     const result<> woken = co_await done.wait();
//
// A loop whose turns are shared holds a lock whenever it does anything but wait for the kernel. So
// what belongs to it can be used by other threads, one at a time, between its turns: without a
// message, without a wake-up, and without a lock of its own for each thing.
#pragma once

#include <eddy/io/loop.hpp>

#include <memory_resource>

namespace eddy {

/// Is told when shared visits are over.
class turn_listener {
public:
    /// The loop, or a visit that is not shared, has its turn: called on its thread before it does
    /// anything, each time.
    virtual void is_alone() noexcept = 0;

protected:
    ~turn_listener() = default;
};

/// Shares the turns of the loop of this thread as long as it lives. Made and destroyed while that
/// loop runs, on its thread; it may be made several times. By its end no visit() to it is under
/// way, and none begins later.
class shared_turns {
public:
    /// `told`, unless null, outlives it.
    explicit shared_turns(turn_listener* told = nullptr);
    ~shared_turns();
    shared_turns(const shared_turns&) = delete;
    shared_turns& operator=(const shared_turns&) = delete;

    /// The loop that is visited.
    loop& home() const noexcept { return home_; }

private:
    loop& home_;
    turn_listener* told_;
};

/// As long as it lives, the calling thread acts for the loop that is visited: loop::current() is
/// that loop, which waits. Made on any thread, with a loop of its own or without; it waits, asleep,
/// until the loop's own turn and earlier visits are over, so keep it short. The loop and its
/// visitors take turns however busy they are; among visitors there is no order. It cannot fail.
///
/// Within it, events may be set and coroutines posted, timers armed, scopes cancelled; a coroutine
/// that is spawned runs until its first wait, with frames from the pool. What begins or cancels an
/// operation of the kernel is passed on by the loop's own thread, max_requests of them in one visit
/// at most: more may be an assertion. While the loop has not passed on what earlier visits left,
/// and there is not room for so many, a visit waits for that before it begins. Work that needs
/// system calls had better begin with `co_await loop::current().yield()`, and run there. It is no
/// place to await. There is one visit at a time on a thread, and two loops that share their turns
/// do not visit each other: each would wait for the other's turn to end.
class [[nodiscard]] visit {
public:
    /// Operations of the kernel that are begun, and those that are cancelled.
    static constexpr unsigned max_requests = 512;

    /// Waits for its turn. On that loop's own thread, and with null, it does nothing. `to` outlives
    /// it.
    explicit visit(shared_turns* to) noexcept;
    /// The same.
    explicit visit(shared_turns& to) noexcept : visit(&to) {}
    ~visit() {
        if (home_ != nullptr) leave();
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;

private:
    void leave() noexcept;

    loop* home_ = nullptr;  // null where there is nothing to do
    loop* own_ = nullptr;   // of this thread
    std::pmr::memory_resource* own_frame_memory_ = nullptr;
};

/// A visit that other threads' shared visits do not wait for: what they all touch is theirs to
/// lock. Neither the loop nor a visit() has its turn meanwhile. The calling thread stays with its
/// own loop: events, timers and tasks of the loop that is visited are out of reach. Those who want
/// to be alone come first: while one waits, who comes later waits for it.
class [[nodiscard]] shared_visit {
public:
    /// Waits for its turn. On that loop's own thread, and with null, it does nothing. `to` outlives
    /// it.
    explicit shared_visit(shared_turns* to) noexcept;
    ~shared_visit();
    shared_visit(const shared_visit&) = delete;
    shared_visit& operator=(const shared_visit&) = delete;

private:
    loop* home_ = nullptr;  // null where there is nothing to do
};

}  // namespace eddy
