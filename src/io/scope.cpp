// Tasks of a scope: start, count, join.
#include <eddy/io/scope.hpp>

#include <coroutine>
#include <memory_resource>

namespace eddy {

/// The coroutine at the root of each child: it owns the task, and its frame frees itself.
struct scope::root {
    struct promise_type {
        static void* operator new(std::size_t size) { return detail::make_frame(size); }
        static void operator delete(void* frame, std::size_t size) noexcept {
            detail::end_frame(frame, size);
        }
        root get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
        cancel_source* source() const noexcept { return source_; }

        cancel_source* source_ = nullptr;
    };
    std::coroutine_handle<promise_type> frame;
};

scope::root scope::run_child(scope& owner, task<void> child) {
    try {
        co_await std::move(child);
    } catch (...) {
        if (!owner.failure_) owner.failure_ = std::current_exception();
        owner.cancel();
    }
    {
        // The child's frame is freed before the owner is notified of its end: what it referred to
        // may die with the owner.
        task<void> finished = std::move(child);  // NOLINT(bugprone-use-after-move): awaited only
    }
    owner.child_done();
    detail::current_frame_memory = nullptr;  // no coroutine goes on after this one
}

void scope::spawn(task<void> child) {
    root started = run_child(*this, std::move(child));
    ++children_;  // not before: there may be no memory for the frame
    started.frame.promise().source_ = &source_;
    std::pmr::memory_resource* const own = detail::current_frame_memory;
    started.frame.resume();
    detail::current_frame_memory = own;
}

void scope::child_done() noexcept {
    EDDY_ASSERT(children_ > 0);
    if (--children_ == 0 && joiner_) std::exchange(joiner_, nullptr)->complete_later();
}

bool join_operation::start() {
    if (scope_->children_ == 0) return true;
    EDDY_ASSERT(!scope_->joiner_);
    scope_->joiner_ = this;
    return false;
}

void join_operation::take_result() { scope_->rethrow_failure(); }

}  // namespace eddy
