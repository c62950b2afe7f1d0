// Way of a promise's value to the loop of its waiting coroutine.
#include <eddy/io/promise.hpp>

#include <utility>

namespace eddy::detail {

void promise_state::publish() noexcept {
    std::unique_lock lock(mutex_);
    is_set_ = true;
    if (!waiter_) return;
    if (home_ == loop::of_this_thread()) {
        future_wait& waiter = *std::exchange(waiter_, nullptr);
        lock.unlock();
        waiter.complete_later();
        return;
    }
    // The waiter cannot be withdrawn before the lock is free, so its loop is there.
    self_ = shared_from_this();
    home_->post(*this);
}

void promise_state::run() noexcept {
    const std::shared_ptr<promise_state> self = std::move(self_);
    std::unique_lock lock(mutex_);
    future_wait* const waiter = std::exchange(waiter_, nullptr);
    lock.unlock();
    if (waiter) waiter->complete_later();
}

bool promise_state::begin_wait(future_wait& waiter) noexcept {
    const std::lock_guard lock(mutex_);
    if (is_set_) return true;
    EDDY_PRECONDITION(!waiter_, "a second wait() of one future: await the first");
    waiter_ = &waiter;
    home_ = &loop::current();
    return false;
}

void promise_state::end_wait() noexcept {
    const std::lock_guard lock(mutex_);
    waiter_ = nullptr;
}

}  // namespace eddy::detail
