// Ring of received messages, and its followers.
#include "daemon/journal/message_feed.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::daemon {

/// Notification of the control loop; it holds the feed until then.
struct message_feed::wake_up final : posted_work {
    explicit wake_up(std::shared_ptr<message_feed> of) : feed(std::move(of)) {}
    void run() noexcept override {
        feed->changed_.set();
        delete this;
    }
    std::shared_ptr<message_feed> feed;
};

class message_feed::follower final : public http::body_producer {
public:
    explicit follower(std::shared_ptr<message_feed> from)
        : from_(std::move(from)), seen_(from_->begin_following()) {}
    ~follower() override { from_->end_following(); }

    task<result<>> produce(http::body_writer& to) override {
        for (;;) {
            const auto woken = co_await from_->wait_beyond(seen_);
            if (!woken && woken.error() == errc::closed) co_return result<>();
            if (!woken) co_return woken;
            const part got = from_->read(seen_);
            seen_ = got.last;
            const auto sent = co_await to.write(got.text);
            if (!sent) co_return sent;
        }
    }

private:
    std::shared_ptr<message_feed> from_;
    std::uint64_t seen_;
};

void message_feed::write(std::string_view message) {
    bool wakes = false;
    {
        const std::lock_guard lock(mutex_);
        if (!has_followers()) return;
        messages_.emplace_back(message);
        ++last_number_;
        bytes_ += message.size();
        while (messages_.size() > message_limit || bytes_ > byte_limit) {
            EDDY_ASSERT(!messages_.empty() && bytes_ >= messages_.front().size());
            bytes_ -= messages_.front().size();
            messages_.pop_front();
        }
        wakes = std::exchange(is_awaited_, false);
    }
    if (wakes) control_.post(*new wake_up(shared_from_this()));
}

message_feed::part message_feed::read(std::uint64_t after) const {
    const std::lock_guard lock(mutex_);
    EDDY_ASSERT(after <= last_number_);
    part made;
    made.last = last_number_;
    const std::uint64_t wanted = last_number_ - after;
    const auto kept = std::min<std::uint64_t>(wanted, messages_.size());
    if (kept < wanted)
        made.text =
            fmt::format("... {} messages are lost: the reader was too slow\n", wanted - kept);
    for (auto each = messages_.end() - static_cast<std::ptrdiff_t>(kept); each != messages_.end();
         ++each)
        made.text += *each;
    return made;
}

task<result<>> message_feed::wait_beyond(std::uint64_t after) {
    for (;;) {
        changed_.reset();
        {
            const std::lock_guard lock(mutex_);
            if (last_number_ > after) co_return result<>();
            is_awaited_ = true;
        }
        if (is_closed_) co_return fail(errc::closed);
        const auto woken = co_await changed_.wait();
        if (!woken) co_return woken;
    }
}

std::uint64_t message_feed::begin_following() noexcept {
    const std::lock_guard lock(mutex_);
    ++followers_;
    return last_number_;
}

void message_feed::end_following() noexcept {
    const std::lock_guard lock(mutex_);
    EDDY_ASSERT(followers_ > 0);
    if (--followers_ > 0) return;
    messages_.clear();
    bytes_ = 0;
}

std::unique_ptr<http::body_producer> message_feed::follow() {
    return std::make_unique<follower>(shared_from_this());
}

void message_feed::close() {
    is_closed_ = true;
    changed_.set();
}

}  // namespace eddy::daemon
