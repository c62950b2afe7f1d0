// Coalesced notification: the notifier is itself the work that is posted.
#include "runtime/host/loop_notifier.hpp"

#include <utility>

namespace eddy::runtime {

void loop_notifier::notify() noexcept {
    if (is_posted_.exchange(true, std::memory_order_acq_rel)) return;
    // Until run(), only the thread that set the flag reaches this.
    self_ = shared_from_this();
    if (!home_.post(*this)) self_.reset();  // the loop is gone, and the flag stays set
}

void loop_notifier::close() noexcept {
    is_closed_.store(true, std::memory_order_release);
    notify();
}

void loop_notifier::run() noexcept {
    const std::shared_ptr<loop_notifier> last = std::move(self_);
    // Before the waiters run: a change from now on needs another post.
    is_posted_.store(false, std::memory_order_release);
    notified_.set();
}

}  // namespace eddy::runtime
