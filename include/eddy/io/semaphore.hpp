// semaphore and async_mutex: limits on the coroutines of one loop that are in one section at a
// time.
//
//     result<permit> inside = co_await connections.acquire();
//     if (!inside) co_return;             // cancelled
//     co_await serve(std::move(peer));    // at most that many of these at once
//
// Coroutines of one loop need no lock for what happens between two of their waits. They need one
// for a section that spans a wait, such as a request and its reply on one connection. One loop's
// thread.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/operation.hpp>

#include <cstddef>
#include <utility>

namespace eddy {

class semaphore;

/// One of a semaphore's places, given back by the destructor. The semaphore must outlive it. The
/// loop's thread.
class permit {
public:
    permit() noexcept = default;
    /// `other` is empty afterwards.
    permit(permit&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    /// Gives back the place that this held. `other` is empty afterwards.
    permit& operator=(permit&& other) noexcept {
        if (this != &other) {
            release();
            of_ = std::exchange(other.of_, nullptr);
        }
        return *this;
    }
    ~permit() { release(); }

    /// True if it holds a place.
    explicit operator bool() const noexcept { return of_ != nullptr; }

    /// Gives the place back now.
    void release() noexcept;

private:
    friend class semaphore;
    friend class acquire_operation;
    explicit permit(semaphore& of) noexcept : of_(&of) {}

    semaphore* of_ = nullptr;
};

/// Waits for a place.
class acquire_operation final : public operation, public list_link<semaphore> {
public:
    /// select() takes it.
    using keeps_when_withdrawn = void;

    explicit acquire_operation(semaphore& of) noexcept : of_(&of) {}
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<permit> take_result() noexcept {
        if (error_) return fail(error_);
        return permit(*of_);
    }

private:
    bool start() override;
    void on_cancel() noexcept override {
        list_link<semaphore>::unlink();
        error_ = errc::cancelled;
        complete_later();
    }

    semaphore* of_;
    std::error_code error_;
};

/// A number of permits, granted in the order of the requests: a later request never overtakes one
/// that waits. It must outlive its waits and permits. One loop's thread.
class semaphore {
public:
    /// All places are free at first.
    explicit semaphore(std::size_t places) noexcept : places_(places), free_(places) {}
    semaphore(const semaphore&) = delete;
    semaphore& operator=(const semaphore&) = delete;
    /// All permits must have been given back, and no coroutine may wait.
    ~semaphore() {
        EDDY_PRECONDITION(waiters_.empty(),
                          "a semaphore or async_mutex was destroyed while a coroutine waits for "
                          "it: await that first");
        EDDY_PRECONDITION(free_ == places_,
                          "a semaphore or async_mutex was destroyed before one of its permits: "
                          "release that first");
    }

    /// Free places.
    std::size_t available() const noexcept { return free_; }

    /// Awaits a permit. Yields a result<permit>, whose only error is errc::cancelled; none is taken
    /// then.
    awaiting<acquire_operation> acquire() noexcept { return awaiting<acquire_operation>(*this); }

    /// A place now, or an empty permit.
    permit try_acquire() noexcept {
        if (free_ == 0) return {};
        --free_;
        return permit(*this);
    }

private:
    friend class permit;
    friend class acquire_operation;

    void give_back() noexcept {
        // The permit passes directly to the waiting coroutine, so that no other can take it in
        // between.
        if (waiters_.empty())
            ++free_;
        else
            waiters_.pop_front().complete_later();
    }

    std::size_t places_;
    std::size_t free_;
    intrusive_list<acquire_operation, semaphore> waiters_;
};

/// A semaphore with one place. lock() yields a permit; once that is released the next waiting
/// coroutine gets it. One loop's thread.
class async_mutex {
public:
    async_mutex() noexcept : one_(1) {}

    /// True while it is held.
    bool locked() const noexcept { return one_.available() == 0; }

    /// Awaits the lock, in the order of the requests. Yields a result<permit>, whose only error is
    /// errc::cancelled. A holder that locks again waits for ever.
    awaiting<acquire_operation> lock() noexcept { return one_.acquire(); }
    /// The lock now, or an empty permit.
    permit try_lock() noexcept { return one_.try_acquire(); }

private:
    semaphore one_;
};

inline void permit::release() noexcept {
    if (of_) std::exchange(of_, nullptr)->give_back();
}

inline bool acquire_operation::start() {
    if (of_->free_ > 0) {
        --of_->free_;
        return true;
    }
    of_->waiters_.push_back(*this);
    return false;
}

}  // namespace eddy
