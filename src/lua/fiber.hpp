// Suspendable call: it runs on a stack of its own, so it can be left in the middle and resumed
// later.
//
// A coroutine of C++ or Lua would not suffice: when its time ends, a script may be anywhere, such
// as within a comparison of table.sort() or within a coroutine of its own.
#pragma once

#include "lua/native_stack.hpp"

#include <cstddef>

namespace eddy::lua {

/// Used by one thread at a time; a suspended fiber may be resumed on another thread. A switch costs
/// a few nanoseconds. Exceptions and Lua's errors must not leave the body.
class fiber {
public:
    using body = void (*)(void* of);

    /// Address space; pages are taken as they are touched.
    static constexpr std::size_t stack_bytes = std::size_t{8} << 20;
    /// Below the stack, and never accessible: a fault ends the process. The last defence, larger
    /// than any frame; what recurses checks native_stack.
    static constexpr std::size_t guard_bytes = std::size_t{1} << 20;

    /// Throws std::bad_alloc when there is no address space.
    fiber();
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;
    /// Not while the body is suspended.
    ~fiber();

    /// Calls run(of) until it returns or suspends itself; true when it has returned.
    bool start(body run, void* of);
    /// Resumes a suspended body; true when it has returned.
    bool resume();
    /// Within the body: start() or resume() returns false.
    void suspend();

    bool is_inside() const noexcept { return inside_; }
    bool is_suspended() const noexcept { return suspended_; }

private:
    struct context;
    static void enter(fiber* self);
    bool switch_in();
    void switch_out(bool for_good);

    char* memory_ = nullptr;  // the guard, and the stack
    native_stack::state stack_;
    context* context_ = nullptr;
    body run_ = nullptr;
    void* of_ = nullptr;
    bool inside_ = false;
    bool suspended_ = false;
};

}  // namespace eddy::lua
