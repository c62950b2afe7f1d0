// Deadlines: run a task, and cancel it when its time is over.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/task.hpp>

#include <utility>

namespace eddy {

/// A cancel_source that requests itself at a deadline. One loop's thread.
class deadline_source final : private timer {
public:
    /// A child of `parent`, which may be null, that is requested at `when` on the running loop.
    deadline_source(cancel_source* parent, time_point when) noexcept : source_(parent) {
        loop::current().arm(*this, when);
    }
    ~deadline_source() { loop::current().disarm(*this); }

    /// What the work runs under: `std::move(work).under(deadline.source())`.
    cancel_source& source() noexcept { return source_; }
    /// Whether the deadline has passed, though the source may have been requested before.
    bool expired() const noexcept { return expired_; }

private:
    void fire() noexcept override {
        expired_ = true;
        source_.request();
    }

    cancel_source source_;
    bool expired_ = false;
};

/// Awaits `work`, which yields a result<T>; cancels it at `when`. Yields that result, but
/// errc::timed_out when the deadline was what ended it. A value that arrived in time is never
/// thrown away.
template <class T>
task<result<T>> with_deadline(time_point when, task<result<T>> work) {
    deadline_source deadline(co_await current_source(), when);
    result<T> value = co_await std::move(work).under(deadline.source());
    if (!value && deadline.expired() && value.error() == errc::cancelled)
        value = fail(errc::timed_out);
    co_return value;
}

/// The same with a limit from now; duration::max() for none.
template <class T>
task<result<T>> with_timeout(duration time, task<result<T>> work) {
    return with_deadline(loop::current().after(time), std::move(work));
}

}  // namespace eddy
