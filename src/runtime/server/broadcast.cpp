// Broadcast: messages are collected, and sent to all clients but the sender.
#include "runtime/server/broadcast.hpp"

#include <eddy/base/assert.hpp>

#include "runtime/clock.hpp"
#include "runtime/options/units.hpp"
#include "runtime/server/script/server_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::runtime::server {

void broadcast::add(client* sender, std::string_view messages, std::uint64_t count,
                    time_point arrived) {
    if (batch_->size() + messages.size() > batch_limit_) flush();
    batch_->append(messages);
    messages_ += count;
    const std::uint64_t id = sender ? sender->id() : 0;
    if (sender) sender->sent_in_batch = true;
    // Lines that arrive one after the other from one client are one segment.
    // A frame has one message, though.
    const bool is_alone = !by_line_ && has_web_clients();
    if (!segments_.empty() && segments_.back().sender == id && !is_alone) {
        segments_.back().size += messages.size();
        segments_.back().messages += count;
    } else {
        segments_.push_back({id, messages.size(), count, arrived});
    }
    filled_.set();
}

std::uint64_t broadcast::flush() {
    if (batch_->empty()) return 0;
    std::uint64_t reached = 0;
    const shared_bytes frames = has_web_clients() ? frame_batch() : nullptr;
    clients_.for_each([&](serving::connection& each) {
        if (send_batch(static_cast<client&>(each), frames)) ++reached;
    });
    const std::uint64_t messages = std::exchange(messages_, 0);
    if (others_ != nullptr) pass_to_others(messages, frames);

    {
        const auto lock = locked_latency();
        const time_point now = precise_now();
        for (const segment& s : segments_) note_latency(s.arrived, now);
    }
    segments_.clear();
    // A queue, or another loop, may still hold the payload; else its memory serves the next turn.
    if (others_ == nullptr && batch_.use_count() == 1)
        batch_->clear();
    else
        batch_ = std::make_shared<byte_buffer>();
    return reached;
}

std::uint64_t broadcast::deliver(const shared_messages& what, std::optional<time_point> arrived) {
    flush();
    std::uint64_t reached = 0;
    shared_bytes frames = what.frames;
    clients_.for_each([&](serving::connection& each) {
        auto& to = static_cast<client&>(each);
        if (to.web() && !frames) {
            byte_buffer made;
            write_frames(made, what.payload->text(), by_line_);
            frames = std::make_shared<const byte_buffer>(std::move(made));
        }
        const shared_bytes& owner = to.web() ? frames : what.payload;
        if (send_part(to, owner, owner->bytes(), what.count)) ++reached;
    });
    if (arrived) {
        const auto lock = locked_latency();
        note_latency(*arrived, precise_now());
    }
    return reached;
}

bool broadcast::deliver_to(client& to, const shared_messages& what) {
    shared_bytes owner = what.payload;
    if (to.web()) {
        byte_buffer made;
        write_frames(made, owner->text(), by_line_);
        owner = std::make_shared<const byte_buffer>(std::move(made));
    }
    return send_part(to, owner, owner->bytes(), what.count);
}

/// The batch as frames, segment by segment.
broadcast::shared_bytes broadcast::frame_batch() {
    byte_buffer made;
    made.reserve(batch_->size());
    std::size_t at = 0;
    for (segment& s : segments_) {
        const std::size_t before = made.size();
        write_frames(made, batch_->text().substr(at, s.size), by_line_);
        s.frame_size = made.size() - before;
        at += s.size;
    }
    return std::make_shared<const byte_buffer>(std::move(made));
}

void broadcast::pass_to_others(std::uint64_t messages, shared_bytes frames) noexcept {
    try {
        others_->send({batch_, messages, std::move(frames)});
    } catch (const std::bad_alloc&) {
        ++counted_.errors;
        counted_.dropped += messages;
    }
}

std::unique_lock<std::mutex> broadcast::locked_latency() {
    return latency_guard_ != nullptr ? std::unique_lock(*latency_guard_)
                                     : std::unique_lock<std::mutex>();
}

void broadcast::note_latency(time_point arrived, time_point now) noexcept {
    latency_.record(static_cast<std::uint64_t>(std::max<std::int64_t>((now - arrived).count(), 0)));
}

bool broadcast::send_batch(client& to, const shared_bytes& frames) {
    const shared_bytes& owner = to.web() ? frames : batch_;
    EDDY_ASSERT(owner != nullptr);
    const const_bytes all = owner->bytes();
    if (!std::exchange(to.sent_in_batch, false)) return send_part(to, owner, all, messages_);

    bool took = false;
    std::size_t first = 0;
    std::size_t at = 0;
    std::uint64_t messages = 0;
    for (const segment& s : segments_) {
        const std::size_t size = to.web() ? s.frame_size : s.size;
        if (s.sender == to.id()) {
            if (at > first) took |= send_part(to, owner, all.subspan(first, at - first), messages);
            first = at + size;
            messages = 0;
        } else {
            messages += s.messages;
        }
        at += size;
    }
    EDDY_ASSERT(first <= at && at <= all.size());
    if (at > first) took |= send_part(to, owner, all.subspan(first, at - first), messages);
    return took;
}

bool broadcast::send_part(client& to, const std::shared_ptr<const byte_buffer>& owner,
                          const_bytes part, std::uint64_t messages) {
    if (to.script != nullptr && !to.script->is_admitted) return false;
    return send_to(to, owner, part, messages);
}

bool broadcast::send_to(client& to, const std::shared_ptr<const byte_buffer>& owner,
                        const_bytes part, std::uint64_t messages) {
    if (!to.listens()) return false;
    if (to.speaks == speech::undecided && hold_back(to, part, messages)) return true;
    return note_sent(to, to.enqueue(owner, part, static_cast<std::uint32_t>(messages)), messages);
}

bool broadcast::send_own(client& to, const_bytes messages, std::uint64_t count) {
    if (!to.listens()) return false;
    if (to.speaks == speech::undecided && hold_back(to, messages, count)) return true;
    return note_sent(to, to.enqueue(messages, static_cast<std::uint32_t>(count)), count);
}

bool broadcast::note_sent(client& to, const result<>& sent, std::uint64_t messages) {
    if (!sent) {
        if (sent.error() == errc::limit_reached) {
            counted_.dropped += messages;
            if (!to.socket) {
                events_.write(
                    fmt::format("client {} reads too slowly: disconnected, see "
                                "--slow-reader and --max-queue",
                                to.id()));
            }
        }
        return false;
    }
    if (to.out.queued_bytes() == 0) to.touch();
    return true;
}

/// Keeps messages for a client that may be about to send a request. False: it gets them now.
bool broadcast::hold_back(client& to, const_bytes part, std::uint64_t messages) {
    const bool is_late = !to.held() && loop::current().now() >= to.held_until();
    const std::size_t size = (to.held() ? to.held()->bytes.size() : 0) + part.size();
    if (is_late || size > hold_limit_) {
        to.become_raw();
        return false;
    }
    if (!to.held()) to.extra = std::make_unique<held_messages>(to);
    to.held()->bytes.append(part);
    to.held()->count += static_cast<std::uint32_t>(messages);
    return true;
}

client* broadcast::find_slow(const client* sender) const {
    client* slow = nullptr;
    clients_.for_each([&](serving::connection& each) {
        auto& c = static_cast<client&>(each);
        if (!slow && &c != sender && c.listens() && c.out.high_watermark_active()) slow = &c;
    });
    return slow;
}

bool broadcast::must_wait(const client* sender) {
    // The queues that count are those after the batch has gone.
    if (batch_->size() + largest_add_ > batch_limit_) flush();
    return find_slow(sender) != nullptr;
}

task<result<>> broadcast::wait_for_readers(const client* sender) {
    while (client* slow = find_slow(sender)) {
        const result<> waited = co_await slow->out.ready();
        if (!waited && waited.error() == errc::cancelled) co_return waited;
    }
    co_return result<>();
}

task<void> broadcast::run() {
    while (co_await filled_.wait()) {
        filled_.reset();
        flush();
    }
}

}  // namespace eddy::runtime::server
