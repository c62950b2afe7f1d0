// Inboxes between loops.
#include "runtime/server/exchange.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <utility>

namespace eddy::runtime::server {

void inbox::push(shared_messages more) {
    {
        const std::lock_guard lock(guard_);
        EDDY_ASSERT(more.payload != nullptr);
        const std::size_t size = more.payload->size();
        waiting_.push_back(std::move(more));
        bytes_ += size;
    }
    came_->notify();
}

bool inbox::notify_of_room(const std::shared_ptr<loop_notifier>& waiting) {
    const std::lock_guard lock(guard_);
    if (!is_full()) return false;
    if (std::ranges::find(for_room_, waiting) == for_room_.end()) for_room_.push_back(waiting);
    return true;
}

std::optional<shared_messages> inbox::front() const {
    const std::lock_guard lock(guard_);
    if (waiting_.empty()) return std::nullopt;
    return waiting_.front();
}

void inbox::pop() {
    std::vector<std::shared_ptr<loop_notifier>> released;
    {
        const std::lock_guard lock(guard_);
        EDDY_ASSERT(!waiting_.empty() && bytes_ >= waiting_.front().payload->size());
        bytes_ -= waiting_.front().payload->size();
        waiting_.pop_front();
        if (bytes_ <= limit_ / 2) released.swap(for_room_);
    }
    for (const auto& each : released) each->notify();
}

void exchange_end::send(const shared_messages& what) {
    for (inbox* const each : exchange_.all()) {
        if (each != &own_) each->push(what);
    }
}

bool exchange_end::must_wait() const noexcept {
    return std::ranges::any_of(
        exchange_.all(), [this](const inbox* each) { return each != &own_ && each->is_full(); });
}

task<result<>> exchange_end::wait_for_room() {
    for (;;) {
        bool waits = false;
        room_->reset();
        for (inbox* const each : exchange_.all())
            waits = (each != &own_ && each->notify_of_room(room_)) || waits;
        if (!waits) co_return result<>();
        const result<> woken = co_await room_->wait();
        if (!woken) co_return woken;
    }
}

}  // namespace eddy::runtime::server
