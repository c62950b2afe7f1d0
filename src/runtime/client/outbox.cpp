// Admission to the outbox by its limits and policy.
#include "runtime/client/outbox.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <utility>

namespace eddy::runtime::client {

bool outbox::fits(std::size_t bytes, std::size_t messages) const noexcept {
    return bytes <= limits_.max_bytes - std::min(bytes_, limits_.max_bytes) &&
           messages <= max_messages - std::min(messages_.size(), max_messages);
}

admission outbox::add(std::vector<std::string> messages) {
    using enum admission::verdict;
    std::size_t size = 0;
    for (const std::string& each : messages) size += each.size();
    if (size > limits_.max_bytes || messages.size() > max_messages) return {refused};
    admission made;
    if (!fits(size, messages.size())) {
        if (limits_.policy == queue_policy::refuse) return {refused};
        if (limits_.policy == queue_policy::drop_newest) return {dropped, messages.size()};
    }
    while (!fits(size, messages.size())) {
        EDDY_ASSERT(!messages_.empty());
        bytes_ -= messages_.front().size();
        messages_.pop_front();
        ++made.dropped;
    }
    for (std::string& each : messages) {
        messages_.push_back(std::move(each));
        bytes_ += messages_.back().size();
    }
    return made;
}

std::string outbox::take() {
    EDDY_ASSERT(!messages_.empty() && in_flight_ == 0);
    std::string oldest = std::move(messages_.front());
    messages_.pop_front();
    bytes_ -= oldest.size();
    in_flight_ = oldest.size();
    return oldest;
}

std::size_t outbox::clear() noexcept {
    const std::size_t dropped = messages_.size();
    messages_.clear();
    bytes_ = 0;
    return dropped;
}

std::deque<std::string> outbox::release() {
    bytes_ = 0;
    return std::exchange(messages_, {});
}

void outbox::restore(std::deque<std::string> messages) noexcept {
    EDDY_ASSERT(messages_.empty());
    messages_.swap(messages);
    for (const std::string& each : messages_) bytes_ += each.size();
}

}  // namespace eddy::runtime::client
