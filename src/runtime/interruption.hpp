// interruption: ends one wait of a coroutine early, and not the coroutine.
#pragma once

#include <eddy/io/operation.hpp>

#include <coroutine>
#include <optional>

namespace eddy::runtime {

/// One wait at a time that code of the same loop may end. It must outlive the wait, and allocates
/// nothing. The loop's thread.
class interruption {
public:
    interruption() noexcept = default;
    interruption(const interruption&) = delete;
    interruption& operator=(const interruption&) = delete;

    /// Ends the wait, if there is one, with errc::cancelled; with its value when that has come
    /// already. The coroutine goes on in a later turn of the loop, and its own source is not
    /// cancelled.
    void request() noexcept {
        if (source_ != nullptr) source_->request();
    }

    template <class Op>
    class [[nodiscard]] awaiter {
    public:
        /// It keeps frame memory, see frames.hpp.
        using keeps_frame_memory = void;

        awaiter(interruption& by, awaiting<Op>& work) noexcept : by_(by), work_(work) {}
        awaiter(const awaiter&) = delete;
        awaiter& operator=(const awaiter&) = delete;

        bool await_ready() const noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> waiter) {
            source_.emplace(waiter.promise().source());
            by_.source_ = &*source_;
            return work_.begin(waiter, &*source_);
        }
        [[nodiscard]] auto await_resume() {
            by_.source_ = nullptr;
            source_.reset();
            return work_.await_resume();
        }

    private:
        interruption& by_;
        awaiting<Op>& work_;
        std::optional<cancel_source> source_;
    };

    /// Awaits the operation: `co_await stop.wait(peer.read())`, in the expression that makes it.
    template <class Op>
    awaiter<Op> wait(awaiting<Op>&& work) noexcept {
        EDDY_ASSERT(source_ == nullptr);
        return awaiter<Op>(*this, work);
    }

private:
    cancel_source* source_ = nullptr;
};

}  // namespace eddy::runtime
