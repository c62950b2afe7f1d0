// scope: owner of a group of tasks; none started in it outlives it. One loop's thread.
//
//     co_await with_scope([&](scope& children) -> task<> {
//         for (;;) {
//             auto peer = co_await listener.accept();
//             if (!peer) break;
//             children.spawn(serve(std::move(*peer)));
//         }
//     });  // the children are cancelled and awaited here
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <exception>
#include <utility>

namespace eddy {

class scope;

/// Waits until a scope has no children. It cannot be cancelled, since it waits for a cancellation
/// to take effect.
class join_operation final : public operation {
public:
    explicit join_operation(scope& children) noexcept : scope_(&children) {}
    void set_error(std::error_code) noexcept override {}
    void take_result();

    bool await_uncancelled(std::coroutine_handle<> waiter) { return begin(waiter, nullptr); }

private:
    bool start() override;
    void on_cancel() noexcept override {}

    scope* scope_;
};

/// Makes join_operation awaitable without registering it for cancellation. One loop's thread.
class [[nodiscard]] joining {
public:
    /// It keeps frame memory, see frames.hpp.
    using keeps_frame_memory = void;

    explicit joining(scope& children) noexcept : op_(children) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiter) { return op_.await_uncancelled(waiter); }
    void await_resume() { op_.take_result(); }

private:
    join_operation op_;
};

/// Owns running tasks. It must be joined before it dies, or an exception of theirs would be lost.
/// One loop's thread.
class scope {
public:
    /// A scope under `parent` (null for a root): the parent's cancellation reaches the children.
    explicit scope(cancel_source* parent = nullptr) noexcept : source_(parent) {}
    ~scope() {
        EDDY_PRECONDITION(children_ == 0,
                          "a scope was destroyed while children of it run: co_await its join(), or "
                          "use with_scope()");
        EDDY_PRECONDITION(!failure_,
                          "a scope was destroyed with an exception of a child that no join() has "
                          "thrown: co_await its join()");
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

    /// Starts `child`; it runs until its first wait inside this call. An exception that leaves it
    /// cancels the other children and comes out of join().
    void spawn(task<void> child);

    /// Cancels every child. New children are cancelled at their first wait.
    void cancel() noexcept { source_.request(); }

    /// Waits for every child, cancelled or not. Yields nothing; rethrows the first exception that
    /// left one.
    joining join() noexcept { return joining(*this); }

    /// Throws the first exception that left a child, if there was one.
    void rethrow_failure() {
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

    /// Children that still run.
    std::size_t children() const noexcept { return children_; }
    /// The source that the children run under.
    cancel_source& source() noexcept { return source_; }

private:
    friend class join_operation;
    struct root;
    void child_done() noexcept;

    cancel_source source_;
    std::size_t children_ = 0;
    join_operation* joiner_ = nullptr;
    std::exception_ptr failure_;
};

/// Runs `body(scope&)`, a callable that returns task<void>; then cancels and awaits the children.
/// `body` and what it captured live until then. Yields nothing; an exception from the body or a
/// child comes out.
template <class Body>
task<void> with_scope(Body body) {
    scope children(co_await current_source());
    std::exception_ptr failure;
    try {
        co_await body(children);
    } catch (...) {
        failure = std::current_exception();
    }
    children.cancel();
    co_await children.join();
    if (failure) std::rethrow_exception(failure);
}

/// The same, but waits for the children to finish by themselves when the body ends well.
template <class Body>
task<void> join_scope(Body body) {
    scope children(co_await current_source());
    std::exception_ptr failure;
    try {
        co_await body(children);
    } catch (...) {
        failure = std::current_exception();
        children.cancel();
    }
    co_await children.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace eddy
