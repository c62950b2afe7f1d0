// Collecting what other loops append, for the home loop.
#include "runtime/logs/shared_log.hpp"

#include <utility>

namespace eddy::runtime {

bool shared_log::append(std::string_view messages, std::uint64_t count) {
    if (!is_shared_) return log_.append(messages, count);
    {
        const std::lock_guard lock(guard_);
        if (waiting_.size() + messages.size() > line_log::max_waiting) return false;
        waiting_.append(messages);
        messages_ += count;
    }
    came_->notify();
    return true;
}

std::uint64_t shared_log::flush() {
    byte_buffer going;
    std::uint64_t messages = 0;
    {
        const std::lock_guard lock(guard_);
        going.swap(waiting_);
        messages = std::exchange(messages_, 0);
    }
    if (messages > 0 && !log_.append(going.text(), messages)) dropped_ += messages;
    return dropped_;
}

task<void> shared_log::run() {
    while (co_await came_->wait()) {
        came_->reset();
        static_cast<void>(flush());
    }
}

}  // namespace eddy::runtime
