// Host of a runtime, over the registry and the message bus that all hosts of a daemon share.
#include "runtime/host/host.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace eddy::runtime {
namespace {

std::unexpected<problem> alone() {
    return refuse(503, "this runtime runs without a daemon, and cannot reach other runtimes");
}

}  // namespace

host::host(std::string name, std::shared_ptr<registry> runtimes,
           std::shared_ptr<message_bus> messages) noexcept
    : runtimes_(std::move(runtimes)), messages_(std::move(messages)), name_(std::move(name)) {}

void host::rename(std::string name) {
    const std::lock_guard lock(mutex_);
    name_ = std::move(name);
}

std::string host::name() const {
    const std::lock_guard lock(mutex_);
    return name_;
}

task<outcome<>> host::keep_options(nlohmann::json /*changed*/) { co_return alone(); }

outcome<served_addresses> host::resolve(std::string_view target) const {
    if (runtimes_ == nullptr) return alone();
    return runtimes_->resolve(target);
}

outcome<address_watch> host::watch(std::string target) {
    if (runtimes_ == nullptr) return alone();
    address_watch made = runtimes_->watch(std::move(target));
    if (auto added = add(made.shared_->notifier); !added)
        return std::unexpected(std::move(added.error()));
    return made;
}

void host::offer_cache(std::shared_ptr<local_cache> cache) {
    if (runtimes_ != nullptr) runtimes_->offer_cache(name(), std::move(cache));
}

outcome<std::shared_ptr<local_cache>> host::find_cache(std::string_view target) const {
    if (runtimes_ == nullptr) return alone();
    return runtimes_->find_cache(target);
}

outcome<std::uint64_t> host::publish(std::string_view topic, std::string message) {
    if (messages_ == nullptr) return alone();
    return messages_->publish(topic, std::move(message));
}

outcome<subscription> host::subscribe(std::string topic, std::size_t most) {
    if (messages_ == nullptr) return alone();
    auto made = messages_->subscribe(std::move(topic), most);
    if (!made) return made;
    if (auto added = add(made->notifier()); !added)
        return std::unexpected(std::move(added.error()));
    return made;
}

std::uint64_t host::last_message() const {
    return messages_ == nullptr ? 0 : messages_->last_number();
}

outcome<> host::add(const std::shared_ptr<loop_notifier>& subscriber) {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return refuse(409, fmt::format("{} has stopped", name_));
    if (subscribers_.size() >= max_watches)
        std::erase_if(subscribers_, [](const auto& each) { return each.expired(); });
    if (subscribers_.size() >= max_watches)
        return refuse(503, fmt::format("{} has {} watches and subscriptions, which is the limit",
                                       name_, max_watches));
    subscribers_.push_back(subscriber);
    return {};
}

void host::end() noexcept {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    for (const auto& each : subscribers_)
        if (const auto alive = each.lock()) alive->close();
    subscribers_.clear();
}

address_note host::note_address(const transport::address& where, const endpoint& bound) {
    return runtimes_ == nullptr ? address_note() : runtimes_->note(name(), where, bound);
}

std::string host::server_at(const endpoint& where, bool is_datagram) const {
    return runtimes_ == nullptr ? std::string() : runtimes_->server_at(where, is_datagram);
}

}  // namespace eddy::runtime
