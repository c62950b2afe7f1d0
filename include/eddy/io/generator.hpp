// async_generator<T>: coroutine that yields values to another one on demand.
//
//     async_generator<std::string> lines = read_lines(peer);
//     while (std::optional<std::string> line = co_await lines.next()) use(*line);
//
// and leases(): the received bytes of a stream as such a sequence.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <coroutine>
#include <optional>
#include <utility>

namespace eddy {

/// A sequence of values. Its coroutine runs only while next() is awaited: not awaiting is the
/// backpressure. Each time it runs under the cancel_source of the awaiting coroutine, and with the
/// frame memory of that one (frames.hpp). Its own frame is had once, so a value costs no
/// allocation. One next() waits at a time. The rules of task.hpp hold for its parameters.
///
/// It may be destroyed after any value: it stands at its co_yield then, and what it holds dies.
/// Destroying it while a next() waits is a bug; that waiting coroutine is cancelled first, as
/// everywhere. Move-only. One loop's thread.
template <class T>
class [[nodiscard]] async_generator {
public:
    class promise_type;

    /// `other` has no coroutine afterwards; its next() must not be called.
    async_generator(async_generator&& other) noexcept
        : frame_(std::exchange(other.frame_, nullptr)) {}
    /// Exchanges the coroutines.
    async_generator& operator=(async_generator&& other) noexcept {
        std::swap(frame_, other.frame_);
        return *this;
    }
    ~async_generator() {
        if (!frame_) return;
        EDDY_PRECONDITION(!frame_.promise().runs_,
                          "an async_generator was destroyed while a coroutine awaits its next(): "
                          "await that first");
        frame_.destroy();
    }

    class [[nodiscard]] awaiter;

    /// Awaits the next value: std::nullopt once the coroutine has ended, then always. An exception
    /// that leaves it is thrown here, once, and ends it.
    awaiter next() noexcept { return awaiter(frame_); }

private:
    using handle = std::coroutine_handle<promise_type>;
    explicit async_generator(handle frame) noexcept : frame_(frame) {}

    handle frame_;
};

template <class T>
class async_generator<T>::promise_type final : public detail::promise_base {
public:
    async_generator get_return_object() noexcept {
        return async_generator(handle::from_promise(*this));
    }
    final_awaiter yield_value(T value) {
        value_.emplace(std::move(value));
        return {};  // to the awaiting coroutine, as at the end
    }
    void return_void() const noexcept {}

private:
    friend class async_generator;
    std::optional<T> value_;
    bool runs_ = false;
};

template <class T>
class async_generator<T>::awaiter {
public:
    using keeps_frame_memory = void;

    explicit awaiter(handle frame) noexcept : frame_(frame) {}
    bool await_ready() const noexcept { return frame_.done(); }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        promise_type& own = frame_.promise();
        EDDY_PRECONDITION(
            !own.runs_, "a second next() of one async_generator: await the first before the next");
        own.runs_ = true;
        own.set_continuation(parent);
        own.set_source(parent.promise().source());
        asked_ = true;
        return frame_;
    }
    std::optional<T> await_resume() {
        if (!asked_) return std::nullopt;
        promise_type& own = frame_.promise();
        own.runs_ = false;
        own.rethrow_if_failed();
        return std::exchange(own.value_, std::nullopt);
    }

private:
    handle frame_;
    bool asked_ = false;
};

/// The received bytes of `from`, piece by piece, until its peer has finished sending: that ends the
/// sequence. An error, errc::cancelled among them, is its last value.
///
///     auto incoming = leases(peer);
///     while (auto received = co_await incoming.next()) {
///         if (!*received) co_return fail(received->error());
///         parse((*received)->bytes());
///     }
///
/// Each lease goes back to the loop's buffers when it dies. While the next one is not awaited, a
/// stream takes at most a few buffers from its socket, which then holds its peer back. `from` must
/// outlive the generator, and has no other reader meanwhile.
inline async_generator<result<lease>> leases(stream& from) {
    for (;;) {
        result<lease> received = co_await from.read();
        if (!received && received.error() == errc::end_of_stream) co_return;
        const bool over = !received;
        co_yield std::move(received);
        if (over) co_return;
    }
}

}  // namespace eddy
