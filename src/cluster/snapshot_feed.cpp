// Publication of snapshots.
#include "cluster/snapshot_feed.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include <algorithm>
#include <utility>

namespace eddy::cluster {

snapshot_feed::snapshot_feed() : current_(std::make_shared<const snapshot>()) {}

snapshot_feed::~snapshot_feed() { EDDY_ASSERT(waiters_ == 0); }

void snapshot_feed::show(member_list members, std::string stale_reason) {
    EDDY_ASSERT(std::ranges::adjacent_find(members, [](const auto& a, const auto& b) {
                    return a->name >= b->name;
                }) == members.end());
    if (is_closed_) return;
    if (current_->number > 0 && current_->members == members &&
        current_->stale_reason == stale_reason)
        return;
    auto next = std::make_shared<snapshot>();
    next->number = current_->number + 1;
    next->members = std::move(members);
    next->is_stale = !stale_reason.empty();
    next->stale_reason = std::move(stale_reason);
    current_ = std::move(next);
    shown_.set();
    shown_.reset();
}

task<result<>> snapshot_feed::changed(std::uint64_t known) {
    ++waiters_;
    result<> ended;
    while (ended && !is_closed_ && current_->number <= known) ended = co_await shown_.wait();
    --waiters_;
    if (ended && is_closed_) ended = fail(errc::closed);
    co_return ended;
}

void snapshot_feed::close() {
    is_closed_ = true;
    shown_.set();
    shown_.reset();
}

task<void> snapshot_feed::drained() {
    EDDY_ASSERT(is_closed_);
    while (waiters_ > 0) co_await loop::current().yield();
}

}  // namespace eddy::cluster
