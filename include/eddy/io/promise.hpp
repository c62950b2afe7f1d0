// promise and future: one value, set once from any thread and awaited on a loop. For callbacks of
// other libraries, and for a reply that another coroutine gives.
//
//     promise<int> answer;
//     future<int> later = answer.get_future();
//     std::thread library(call_back, std::move(answer));  // it calls answer.set(42)
//     const result<int> got = co_await later.wait();
//
// The value has one taker. Many coroutines that wait for one condition use an event (event.hpp),
// and many values a channel (channel.hpp).
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace eddy {

template <class T>
class promise;
template <class T>
class future;

namespace detail {

class future_wait;

/// State that a promise and its future share. Its mutex guards the registration of the waiting
/// operation, which lives on one loop, against publish() on another thread.
class promise_state : public std::enable_shared_from_this<promise_state>, private posted_work {
public:
    promise_state() noexcept = default;
    promise_state(const promise_state&) = delete;
    promise_state& operator=(const promise_state&) = delete;

    /// The value has been stored. Any thread, once.
    void publish() noexcept;

protected:
    ~promise_state() = default;

private:
    friend class future_wait;
    bool begin_wait(future_wait& waiter) noexcept;
    void end_wait() noexcept;
    void run() noexcept final;

    std::mutex mutex_;
    bool is_set_ = false;
    future_wait* waiter_ = nullptr;
    loop* home_ = nullptr;                 // of the waiter: alive while it is registered
    std::shared_ptr<promise_state> self_;  // while this is posted
};

template <class T>
class promise_value final : public promise_state {
public:
    void set(result<T> value) {
        value_.emplace(std::move(value));
        publish();
    }
    /// After publish() was seen by a wait.
    result<T> take() {
        EDDY_PRECONDITION(!is_taken_, "a second wait() of a future: its value was taken");
        is_taken_ = true;
        return std::move(*value_);
    }

private:
    std::optional<result<T>> value_;
    bool is_taken_ = false;
};

/// Wait for a promise's value, without the value.
class future_wait : public operation {
public:
    void set_error(std::error_code error) noexcept final { error_ = error; }

protected:
    explicit future_wait(promise_state& of) noexcept : of_(&of) {}
    ~future_wait() = default;
    std::error_code error_;

private:
    bool start() final { return of_->begin_wait(*this); }
    void on_cancel() noexcept final {
        of_->end_wait();
        error_ = errc::cancelled;
        complete_later();
    }

    promise_state* of_;
};

}  // namespace detail

/// Waits for the value of a promise. It keeps the shared state alive.
template <class T>
class future_operation final : public detail::future_wait {
public:
    /// select() takes it.
    using keeps_when_withdrawn = void;

    explicit future_operation(std::shared_ptr<detail::promise_value<T>> of) noexcept
        : future_wait(*of), state_(std::move(of)) {}
    result<T> take_result() {
        if (error_) return fail(error_);
        return state_->take();
    }

private:
    std::shared_ptr<detail::promise_value<T>> state_;
};

/// Receiver of a promise's value. Move-only. It may outlive the promise, and the promise it. One
/// loop's thread, that of the loop that awaits it.
template <class T = void>
class future {
public:
    /// Without a promise; wait() needs one.
    future() noexcept = default;
    /// `other` has no promise afterwards.
    future(future&& other) noexcept = default;
    /// Drops its own state. `other` has no promise afterwards.
    future& operator=(future&& other) noexcept = default;

    /// True if it belongs to a promise.
    explicit operator bool() const noexcept { return static_cast<bool>(state_); }

    /// Awaits the value; one wait at a time. Yields a result<T>: what the promise was set to,
    /// errc::closed when the promise was destroyed without that, or errc::cancelled, after which
    /// the value is there for the next wait. It is yielded once. The future may be destroyed
    /// meanwhile.
    awaiting<future_operation<T>> wait() const {
        EDDY_PRECONDITION(state_, "wait() of a future without a promise: it was moved from");
        return awaiting<future_operation<T>>(state_);
    }

private:
    friend class promise<T>;
    explicit future(std::shared_ptr<detail::promise_value<T>> of) noexcept
        : state_(std::move(of)) {}

    std::shared_ptr<detail::promise_value<T>> state_;
};

/// Sender of one value to a future. Move-only; destroyed without a value, it sets errc::closed.
/// Moving a T must not throw. Any thread, one at a time.
template <class T = void>
class promise {
public:
    /// Allocates the state that it shares with its future. Throws std::bad_alloc.
    promise() : state_(std::make_shared<detail::promise_value<T>>()) {}
    /// `other` is without a state afterwards.
    promise(promise&& other) noexcept = default;
    /// Destroys its own state first. `other` is without a state afterwards.
    promise& operator=(promise&& other) noexcept {
        if (this != &other) {
            drop();
            state_ = std::move(other.state_);
            has_future_ = other.has_future_;
        }
        return *this;
    }
    ~promise() { drop(); }

    /// The receiver; once.
    [[nodiscard]] future<T> get_future() {
        EDDY_PRECONDITION(state_, "get_future() of a promise that was set or moved from");
        EDDY_PRECONDITION(!std::exchange(has_future_, true),
                          "a second get_future() of one promise: a value has one receiver");
        return future<T>(state_);
    }

    /// Sets the value, or an error: `answer.set(fail(errno_code(number)))`. Once; a waiting
    /// coroutine resumes in a later turn of its loop. It never waits for that loop.
    void set(result<T> value) {
        EDDY_PRECONDITION(state_, "a second set() of a promise, or of one that was moved from");
        const std::shared_ptr<detail::promise_value<T>> state = std::move(state_);
        state->set(std::move(value));
    }
    /// The same for a promise<>.
    void set()
        requires std::is_void_v<T>
    {
        set(result<T>());
    }

private:
    void drop() noexcept {
        if (state_) std::exchange(state_, nullptr)->set(fail(errc::closed));
    }

    std::shared_ptr<detail::promise_value<T>> state_;  // null once it is set
    bool has_future_ = false;
};

}  // namespace eddy
