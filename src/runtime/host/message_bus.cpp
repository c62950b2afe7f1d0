// Message bus. The bus's lock is taken before that of a queue, and no other lock within either.
#include "runtime/host/message_bus.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace eddy::runtime {

/// Queue of a subscription.
struct subscription::state {
    state(std::string of, std::size_t limit) : topic(std::move(of)), most(limit) {
        EDDY_ASSERT(most > 0);
    }

    /// False at a limit.
    bool add(const std::shared_ptr<const std::string>& message, std::uint64_t number) {
        const std::lock_guard lock(mutex);
        if (is_sealed) return false;
        EDDY_ASSERT(messages.empty() || messages.back().number < number);
        if (messages.size() >= most || bytes + message->size() > max_queued_message_bytes) {
            ++dropped;
            return false;
        }
        messages.push_back({message, std::exchange(dropped, 0), number});
        bytes += message->size();
        return true;
    }
    std::optional<bus_message> take() {
        const std::lock_guard lock(mutex);
        if (messages.empty()) return std::nullopt;
        bus_message first = std::move(messages.front());
        messages.pop_front();
        EDDY_ASSERT(bytes >= first.bytes->size());
        bytes -= first.bytes->size();
        return first;
    }

    const std::string topic;
    const std::size_t most;  // messages
    const std::shared_ptr<loop_notifier> notifier = std::make_shared<loop_notifier>();
    std::mutex mutex;
    std::deque<bus_message> messages;
    std::size_t bytes = 0;
    std::uint64_t dropped = 0;
    bool is_sealed = false;
};

namespace {

outcome<> check_topic(std::string_view topic) {
    if (topic.empty()) return refuse(400, "a topic needs a name");
    if (topic.size() > max_topic_bytes)
        return refuse(400,
                      fmt::format("the name of the topic has {} bytes; at most {} are possible",
                                  topic.size(), max_topic_bytes));
    return {};
}

}  // namespace

outcome<std::uint64_t> message_bus::publish(std::string_view topic, std::string message) {
    if (auto valid = check_topic(topic); !valid) return std::unexpected(std::move(valid.error()));
    if (message.size() > max_message_bytes)
        return refuse(400, fmt::format("the message has {} bytes; at most {} are possible",
                                       message.size(), max_message_bytes));
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = ++last_number_;
    const auto found = topics_.find(topic);
    if (found == topics_.end()) return 0;
    const auto shared = std::make_shared<const std::string>(std::move(message));
    std::uint64_t taken = 0;
    for (const auto& each : found->second) {
        if (each->notifier->is_closed() || !each->add(shared, number)) continue;
        each->notifier->notify();
        ++taken;
    }
    return taken;
}

outcome<subscription> message_bus::subscribe(std::string topic, std::size_t most) {
    if (auto valid = check_topic(topic); !valid) return std::unexpected(std::move(valid.error()));
    auto made = std::make_shared<subscription::state>(std::move(topic), most);
    {
        const std::lock_guard lock(mutex_);
        topics_[made->topic].push_back(made);
    }
    return subscription(shared_from_this(), std::move(made));
}

std::uint64_t message_bus::last_number() const {
    const std::lock_guard lock(mutex_);
    return last_number_;
}

void message_bus::forget(const subscription::state& which) {
    const std::lock_guard lock(mutex_);
    const auto found = topics_.find(which.topic);
    EDDY_ASSERT(found != topics_.end());
    std::erase_if(found->second, [&](const auto& each) { return each.get() == &which; });
    if (found->second.empty()) topics_.erase(found);
}

subscription::subscription(std::shared_ptr<message_bus> at, std::shared_ptr<state> shared) noexcept
    : at_(std::move(at)), shared_(std::move(shared)) {}

subscription& subscription::operator=(subscription&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(shared_, other.shared_);
    return *this;
}

subscription::~subscription() {
    if (at_ != nullptr) at_->forget(*shared_);
}

const std::shared_ptr<loop_notifier>& subscription::notifier() const noexcept {
    return shared_->notifier;
}

void subscription::seal() noexcept {
    EDDY_ASSERT(shared_ != nullptr);
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->is_sealed = true;
    }
    shared_->notifier->notify();
}

void subscription::end() noexcept {
    EDDY_ASSERT(shared_ != nullptr);
    std::deque<bus_message> dropped;  // freed without the lock
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->is_sealed = true;
        shared_->messages.swap(dropped);
        shared_->bytes = 0;
    }
    shared_->notifier->notify();
}

task<result<bus_message>> subscription::next() {
    EDDY_ASSERT(shared_ != nullptr);
    loop_notifier& notifier = *shared_->notifier;
    for (;;) {
        if (notifier.is_closed()) co_return fail(errc::closed);
        if (auto first = shared_->take()) co_return std::move(*first);
        if (shared_->is_sealed) co_return fail(errc::closed);
        notifier.reset();
        const result<> waited = co_await notifier.wait();
        if (!waited) co_return fail(waited.error());
    }
}

}  // namespace eddy::runtime
