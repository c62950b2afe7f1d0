// Tasks of a scope: start, count, join.
#include <eddy/io/scope.hpp>

#include <coroutine>
#include <exception>
#include <memory_resource>
#include <utility>

namespace eddy {

/// The coroutine at the root of each child: it owns the task, and its frame frees itself. A server
/// has one for each connection, so it is small: all that it needs is in the promise, and only once.
struct scope::root {
    struct promise_type {
        /// There is memory for the frame by now, so the child counts.
        promise_type(scope& owner, task<void>& child) noexcept
            : owner_(&owner), child_(std::move(child)) {
            ++owner.children_;
        }
        static void* operator new(std::size_t size) { return detail::make_frame(size); }
        static void operator delete(void* frame, std::size_t size) noexcept {
            detail::end_frame(frame, size);
        }
        root get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
        cancel_source* source() const noexcept { return &owner_->source_; }

        task<void>::awaiter child() noexcept { return std::move(child_).operator co_await(); }

        void take_failure() noexcept {
            try {
                child().await_resume();
            } catch (...) {
                if (!owner_->failure_) owner_->failure_ = std::current_exception();
                owner_->cancel();
            }
        }

        struct ending {
            static constexpr bool await_ready() noexcept { return false; }
            /// The child's frame, which dies with this one, is freed before the owner is notified
            /// of its end: what it referred to may die with the owner.
            static void await_suspend(std::coroutine_handle<promise_type> self) noexcept {
                scope& owner = *self.promise().owner_;
                self.promise().take_failure();
                self.destroy();
                owner.child_done();
                detail::current_frame_memory = nullptr;  // no coroutine is resumed after this one
            }
            static void await_resume() noexcept {}
        };
        ending final_suspend() const noexcept { return {}; }

        scope* owner_;
        task<void> child_;
    };

    /// Runs the child of the promise. Its result is taken by take_failure(). The frame of a root
    /// has 64 bytes that way, and 80 where it awaits a parameter (2026-11-27).
    struct run_child {
        static constexpr bool await_ready() noexcept { return false; }
        static std::coroutine_handle<> await_suspend(
            std::coroutine_handle<promise_type> self) noexcept {
            return self.promise().child().await_suspend(self);
        }
        static void await_resume() noexcept {}
    };

    /// The parameters are for the promise.
    static root make(scope& /*owner*/, task<void>& /*child*/) { co_await run_child{}; }
};

void scope::spawn(task<void> child) {
    std::pmr::memory_resource* const own = detail::current_frame_memory;
    root::make(*this, child);
    detail::current_frame_memory = own;
}

void scope::child_done() noexcept {
    EDDY_ASSERT(children_ > 0);
    if (--children_ == 0 && joiner_) std::exchange(joiner_, nullptr)->complete_later();
}

bool join_operation::start() {
    if (scope_->children_ == 0) return true;
    EDDY_PRECONDITION(!scope_->joiner_, "a second join() of one scope: await the first");
    scope_->joiner_ = this;
    return false;
}

void join_operation::take_result() { scope_->rethrow_failure(); }

}  // namespace eddy
