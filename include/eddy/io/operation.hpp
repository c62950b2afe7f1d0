// Operations, the waits of a coroutine, and their cancellation.
//
// An `operation` is one wait in flight. It lives in the awaiting coroutine's frame, so it costs no
// allocation, and it has exactly one completion. A `cancel_source` knows the operations that wait
// under it; requesting cancellation reaches each of them at once, without polling. Every task
// carries a pointer to the source that it runs under and passes it to the tasks that it awaits
// (task.hpp), so no function takes a token as a parameter.
//
// All of it belongs to one loop's thread.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/frame_pool.hpp>
#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/result.hpp>

#include <coroutine>
#include <memory_resource>
#include <system_error>
#include <utility>

namespace eddy {

class loop;

namespace detail {
class select_base;
}  // namespace detail

/// Observer of a cancellation.
class cancel_hook : public list_link<> {
public:
    /// Called once, on the loop's thread, after the hook has left its source's list.
    virtual void on_cancel() noexcept = 0;

protected:
    ~cancel_hook() = default;
};

/// Cancels everything that waits under it. Sources form a tree: a child is notified of its parent's
/// cancellation. A source stays cancelled. One loop's thread.
class cancel_source final : private cancel_hook {
public:
    cancel_source() noexcept = default;
    /// A child of `parent`, which may be null and must outlive it.
    explicit cancel_source(cancel_source* parent) noexcept;
    ~cancel_source();

    /// True once request() was called, here or on a parent.
    bool requested() const noexcept { return requested_; }

    /// Cancels every operation and every child source registered here. Operations complete later,
    /// from the loop, never inside this call.
    void request() noexcept;

    /// Registers a hook until it unlinks itself. The source must not be cancelled yet.
    void add(cancel_hook& hook) noexcept {
        EDDY_PRECONDITION(!requested_, "cancel_source::add() after its request()");
        hooks_.push_back(hook);
    }

private:
    void on_cancel() noexcept override { request(); }

    intrusive_list<cancel_hook> hooks_;
    bool requested_ = false;
};

/// One wait of one coroutine. Derived classes hold the arguments and the result.
class operation : public cancel_hook {
public:
    /// Begins the wait for `waiter`. False when it completed at once: the coroutine continues
    /// without suspending. `source` may be null. Otherwise the running coroutine counts as
    /// suspended from now on: its frame memory is kept for the waiter, and frames come from the
    /// pool until another coroutine resumes.
    bool begin(std::coroutine_handle<> waiter, cancel_source* source);

    /// Completes the wait and resumes the coroutine inside this call. Only from the loop's own
    /// turn, never from code that a coroutine called.
    void complete_now();

    /// Completes the wait; the coroutine resumes in the loop's next turn. Callable from anywhere
    /// on the loop's thread.
    void complete_later() noexcept;

    /// Result that begin() stores when the source was cancelled beforehand.
    virtual void set_error(std::error_code error) noexcept = 0;

protected:
    ~operation() = default;

    /// Starts the work. True when it is complete already, with its result stored; otherwise
    /// complete_now() or complete_later() follows exactly once, unless goes_on().
    virtual bool start() = 0;

    /// Called when the driver completes or withdraws the wait. True if that was only a part of it
    /// and the next part has been requested of the driver: the coroutine keeps waiting.
    virtual bool goes_on() { return !waiter_ && notify_select(); }

private:
    friend class loop;
    friend class detail::select_base;
    bool notify_select() noexcept;

    std::coroutine_handle<> waiter_;  // null for an arm of select()
    union {
        std::pmr::memory_resource* frame_memory_ = nullptr;  // what the waiter inherited
        detail::select_base* select_;  // of an arm; null once it has completed
    };
};

/// Callback of an io-backend for a request that the kernel has completed: exactly once for a
/// one-shot request, however it ended. The object must live until then. One loop's thread.
class completion {
public:
    /// `result` as a system call inside the kernel returns it: a count, or a negative errno.
    /// `flags` mean what the io-backend says.
    virtual void on_completion(int result, unsigned flags) = 0;

protected:
    ~completion() = default;
};

/// Makes an operation awaitable: `co_await awaiting<read_operation>(...)`. `Op` offers
/// `take_result()`. One loop's thread.
template <class Op>
class [[nodiscard]] awaiting {
public:
    /// It keeps frame memory, see frames.hpp.
    using keeps_frame_memory = void;

    template <class... Args>
    explicit awaiting(Args&&... args) : op_(static_cast<Args&&>(args)...) {}
    awaiting(const awaiting&) = delete;
    awaiting& operator=(const awaiting&) = delete;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiter) {
        return begin(waiter, source_under(waiter.promise().source()));
    }
    auto await_resume() { return op_.take_result(); }
    [[nodiscard]] auto await_resume()
        requires detail::is_result<decltype(std::declval<Op&>().take_result())>
    {
        return op_.take_result();
    }

    /// The source to wait under in a coroutine whose own is `inherited`: that one, unless the
    /// operation stands for a task that was put under another.
    cancel_source* source_under(cancel_source* inherited) const noexcept {
        if constexpr (requires { op_.task_source(); }) {
            if (cancel_source* const own = op_.task_source()) return own;
        }
        return inherited;
    }

    /// As await_suspend(), under a source of the caller's: for awaitables around this one.
    bool begin(std::coroutine_handle<> waiter, cancel_source* source) {
        return op_.begin(waiter, source);
    }

private:
    friend class detail::select_base;
    Op op_;
};

}  // namespace eddy
