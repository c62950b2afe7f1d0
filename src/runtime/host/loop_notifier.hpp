// Coalesced notification of one loop from any thread: many calls of notify() before the loop's next
// turn wake it up once.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>

#include <atomic>
#include <memory>

namespace eddy::runtime {

/// A flag that other threads set for the loop that it was made on. Held by std::shared_ptr alone.
class loop_notifier final : public std::enable_shared_from_this<loop_notifier>,
                            private posted_work {
public:
    /// Notifier of the calling thread's loop; there must be one.
    loop_notifier() noexcept : home_(executor::current()) {}

    /// Sets the flag in the loop's next turn. Any thread. No allocation, and no effect once the
    /// loop is gone.
    void notify() noexcept;
    /// Ends it: notifies, and is_closed() is true from then on. Any thread.
    void close() noexcept;
    bool is_closed() const noexcept { return is_closed_.load(std::memory_order_acquire); }

    /// Makes wait() wait for the next notify(). The loop's thread; the caller has read the state
    /// that notify() announces, without a wait since.
    void reset() noexcept { notified_.reset(); }
    /// Yields a result<>, whose only error is errc::cancelled. The loop's thread.
    awaiting<event_operation> wait() noexcept { return notified_.wait(); }

private:
    void run() noexcept override;

    const executor home_;
    std::atomic<bool> is_posted_{false};
    std::atomic<bool> is_closed_{false};
    std::shared_ptr<loop_notifier> self_;  // while it is posted
    event notified_;                       // the loop's thread
};

}  // namespace eddy::runtime
