// task<T>: lazy coroutine that another coroutine awaits.
//
// A task starts when it is awaited and resumes its awaiter by symmetric transfer, so chains of any
// depth use no stack. Its frame comes from a pool of the thread, or from the memory named by
// with_frames() (frames.hpp). It runs under the awaiter's cancel_source. Tasks of a loop stay on
// that loop's thread.
//
// Rules that keep coroutines safe: take parameters by value (or references to what outlives the
// task); let no lambda that captures be a coroutine, unless it lives until the coroutine has ended,
// as the body given to with_scope() does; and let no object with an operation in flight die: a
// scope (scope.hpp) awaits its children for that reason.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/frame_pool.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/operation.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory_resource>
#include <optional>
#include <type_traits>
#include <utility>

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
#error "Eddy needs GCC 13 or Clang 19: GCC 12 destroys temporaries in co_await expressions twice."
#endif

namespace eddy {

template <class T = void>
class task;

namespace detail {

/// The source that a task was put under by task::under(), for wrappers of the task.
struct own_source;

/// Awaitable after which a coroutine continues with the frame memory that it had before
/// (frame_pool.hpp), and whose work inherits it: Eddy's own awaitables, which have a member type of
/// that name, and others with it, which pass their wait on to one of these.
template <class Awaitable>
concept keeps_frame_memory =
    requires { typename std::remove_cvref_t<Awaitable>::keeps_frame_memory; };

/// The awaiter that the compiler would use, but for promises that transform it.
template <class Awaitable>
decltype(auto) awaiter_of(Awaitable&& work) {
    if constexpr (requires { static_cast<Awaitable&&>(work).operator co_await(); })
        return static_cast<Awaitable&&>(work).operator co_await();
    else if constexpr (requires { operator co_await(static_cast<Awaitable&&>(work)); })
        return operator co_await(static_cast<Awaitable&&>(work));
    else
        return static_cast<Awaitable&&>(work);
}

/// A foreign awaitable: any code may resume it, so the inherited state is kept here.
template <class Awaitable>
concept foreign_awaitable = !keeps_frame_memory<Awaitable> && requires(Awaitable&& work) {
    awaiter_of(static_cast<Awaitable&&>(work)).await_ready();
};

/// Awaits a foreign awaitable, which lives as long as the full expression.
template <foreign_awaitable Awaitable>
class foreign_awaiter {
    using inner = decltype(awaiter_of(std::declval<Awaitable>()));
    using value = decltype(std::declval<inner&>().await_resume());

public:
    explicit foreign_awaiter(Awaitable&& work)
        : inner_(awaiter_of(static_cast<Awaitable&&>(work))) {}
    foreign_awaiter(const foreign_awaiter&) = delete;
    foreign_awaiter& operator=(const foreign_awaiter&) = delete;

    bool await_ready() { return static_cast<bool>(inner_.await_ready()); }

    /// Clears the thread's frame memory: neither the code that resumed this coroutine nor one to
    /// which it transfers may use this coroutine's.
    template <class Promise>
    auto await_suspend(std::coroutine_handle<Promise> waiter) {
        using next = decltype(inner_.await_suspend(waiter));
        if constexpr (std::is_void_v<next>) {
            inner_.await_suspend(waiter);  // this object may be gone after it
            current_frame_memory = nullptr;
        } else if constexpr (std::is_same_v<next, bool>) {
            if (!inner_.await_suspend(waiter)) return false;
            current_frame_memory = nullptr;
            return true;
        } else {
            const next to = inner_.await_suspend(waiter);
            current_frame_memory = nullptr;
            return to;
        }
    }

    value await_resume() {
        current_frame_memory = memory_;
        return inner_.await_resume();
    }
    [[nodiscard]] value await_resume()
        requires is_result<value>
    {
        current_frame_memory = memory_;
        return inner_.await_resume();
    }

private:
    std::pmr::memory_resource* memory_ = current_frame_memory;
    inner inner_;
};

/// State of every coroutine of Eddy's: its continuation and its cancel_source.
class promise_base {
public:
    static void* operator new(std::size_t size) { return make_frame(size); }
    static void operator delete(void* frame, std::size_t size) noexcept { end_frame(frame, size); }

    cancel_source* source() const noexcept { return source_; }
    void set_source(cancel_source* source) noexcept { source_ = source; }
    void set_continuation(std::coroutine_handle<> next) noexcept { continuation_ = next; }
    bool was_awaited() const noexcept { return static_cast<bool>(continuation_); }

    std::suspend_always initial_suspend() const noexcept { return {}; }

    template <class Awaitable>
    Awaitable&& await_transform(Awaitable&& work) const noexcept {
        return static_cast<Awaitable&&>(work);
    }
    template <foreign_awaitable Awaitable>
    foreign_awaiter<Awaitable> await_transform(Awaitable&& work) const {
        return foreign_awaiter<Awaitable>(static_cast<Awaitable&&>(work));
    }

    struct final_awaiter {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) const noexcept {
            return done.promise().continuation_;
        }
        void await_resume() const noexcept {}
    };
    final_awaiter final_suspend() const noexcept { return {}; }

    void unhandled_exception() noexcept { exception_ = std::current_exception(); }
    void rethrow_if_failed() const {
        if (exception_) std::rethrow_exception(exception_);
    }

private:
    std::coroutine_handle<> continuation_;
    cancel_source* source_ = nullptr;
    std::exception_ptr exception_;
};

template <class T>
class promise final : public promise_base {
public:
    task<T> get_return_object() noexcept;
    /// A value of another type is an error at its co_return.
    template <class U = T>
        requires std::is_constructible_v<T, U>
    void return_value(U&& value) {
        value_.emplace(std::forward<U>(value));
    }
    T take() {
        rethrow_if_failed();
        EDDY_ASSERT(value_.has_value());
        return std::move(*value_);
    }

private:
    std::optional<T> value_;
};

template <>
class promise<void> final : public promise_base {
public:
    task<void> get_return_object() noexcept;
    void return_void() const noexcept {}
    void take() const { rethrow_if_failed(); }
};

}  // namespace detail

/// A coroutine that yields one T when awaited. Move-only; awaited once. An exception that leaves
/// the coroutine is thrown from the co_await. It may be made on any thread, one at a time, and runs
/// and ends on that of the loop where it is awaited.
template <class T>
class [[nodiscard]] task {
public:
    /// For the compiler.
    using promise_type = detail::promise<T>;
    /// It keeps frame memory, see frames.hpp.
    using keeps_frame_memory = void;

    /// `other` has no coroutine afterwards and must not be awaited.
    task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    /// Exchanges the coroutines.
    task& operator=(task&& other) noexcept {
        std::swap(frame_, other.frame_);
        return *this;
    }
    ~task() {
        if (frame_) frame_.destroy();
    }

    /// Runs the awaited task under `source` instead of the awaiter's own, and instead of one that
    /// it was put under before. `source` must outlive it, and belongs to the loop that awaits it;
    /// for executor::post() and strand::post() to the loop that runs it. Functions that take the
    /// task, such as with_timeout(), resume_on(), strand::run(), when_all() or scope::spawn(),
    /// keeps it under `source`: its cancellation reaches the task there, too.
    task under(cancel_source& source) && noexcept {
        EDDY_PRECONDITION(frame_, "under() of a task that was moved from: it has no coroutine");
        frame_.promise().set_source(&source);
        return std::move(*this);
    }

    class awaiter {
    public:
        explicit awaiter(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
            EDDY_PRECONDITION(frame_,
                              "co_await of a task that was moved from: it has no coroutine");
            promise_type& own = frame_.promise();
            EDDY_PRECONDITION(!own.was_awaited(),
                              "a task was awaited twice: it runs once and yields its value once");
            own.set_continuation(parent);
            if (!own.source()) own.set_source(parent.promise().source());
            return frame_;
        }
        T await_resume() { return frame_.promise().take(); }
        [[nodiscard]] T await_resume()
            requires detail::is_result<T>
        {
            return frame_.promise().take();
        }

    private:
        std::coroutine_handle<promise_type> frame_;
    };
    /// Starts the task and waits for its end: `co_await std::move(work)`.
    awaiter operator co_await() && noexcept { return awaiter(frame_); }

private:
    friend promise_type;
    friend detail::own_source;
    explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

    std::coroutine_handle<promise_type> frame_;
};

namespace detail {

template <class Work>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

struct own_source {
    /// Null for none.
    template <class T>
    static cancel_source* of(const task<T>& work) noexcept {
        return work.frame_ ? work.frame_.promise().source() : nullptr;
    }
    /// The same; `work` runs under its awaiter's from now on.
    template <class T>
    static cancel_source* take(const task<T>& work) noexcept {
        cancel_source* const source = of(work);
        if (source) work.frame_.promise().set_source(nullptr);
        return source;
    }
    /// `work` under `source`, which may be null.
    template <class T>
    static task<T> put(task<T> work, cancel_source* source) noexcept {
        if (source) return std::move(work).under(*source);
        return work;
    }
};

template <class T>
task<T> promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<promise>::from_promise(*this));
}
inline task<void> promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<promise>::from_promise(*this));
}

struct current_source_awaiter {
    using keeps_frame_memory = void;

    cancel_source* source = nullptr;
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> self) noexcept {
        source = self.promise().source();
        return false;
    }
    cancel_source* await_resume() const noexcept { return source; }
};

}  // namespace detail

/// `co_await current_source()` yields the cancel_source that the calling task runs under, or null.
/// It never waits.
inline detail::current_source_awaiter current_source() noexcept { return {}; }

}  // namespace eddy
