// event: flag that coroutines of one loop wait for.
#pragma once

#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/operation.hpp>

namespace eddy {

class event;

/// Waits until an event is set.
class event_operation final : public operation, public list_link<event> {
public:
    /// select() takes it.
    using keeps_when_withdrawn = void;

    explicit event_operation(event& of) noexcept : event_(&of) {}
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<> take_result() const noexcept {
        if (error_) return fail(error_);
        return {};
    }

private:
    bool start() override;
    void on_cancel() noexcept override {
        list_link<event>::unlink();
        error_ = errc::cancelled;
        complete_later();
    }

    event* event_;
    std::error_code error_;
};

/// A manual-reset event: once set, every wait passes until it is reset. Any number of coroutines
/// may wait; the event must outlive their waits. One loop's thread; other threads set it by posting
/// to the loop, or under a loop_lock.
class event {
public:
    event() noexcept = default;
    event(const event&) = delete;
    event& operator=(const event&) = delete;
    ~event() {
        EDDY_PRECONDITION(
            waiters_.empty(),
            "an event was destroyed while a coroutine waits for it: await that first");
    }

    /// True if a wait would pass at once.
    bool is_set() const noexcept { return set_; }

    /// Releases all waiters: they resume in the loop's next turn, in the order in which they came.
    void set() noexcept {
        set_ = true;
        while (!waiters_.empty()) waiters_.pop_front().complete_later();
    }

    /// Makes later waits wait again. Waiters that set() has released still resume.
    void reset() noexcept { set_ = false; }

    /// Awaits set(). Yields a result<>, whose only error is errc::cancelled.
    awaiting<event_operation> wait() noexcept { return awaiting<event_operation>(*this); }

private:
    friend class event_operation;

    intrusive_list<event_operation, event> waiters_;
    bool set_ = false;
};

inline bool event_operation::start() {
    if (event_->set_) return true;
    event_->waiters_.push_back(*this);
    return false;
}

}  // namespace eddy
