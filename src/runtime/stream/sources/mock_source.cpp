// Mock source: texts and pace.
#include "runtime/stream/sources/mock_source.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "runtime/stream/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::runtime::stream {
namespace {

/// Messages that are made for each client: the greeting and the one with its user.
constexpr std::uint32_t own_messages = 2;

/// The first `most` characters of a text in UTF-8.
std::string_view first_characters(std::string_view text, std::size_t most) noexcept {
    std::size_t i = 0;
    for (std::size_t count = 0; i < text.size(); ++i) {
        const bool begins_character = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
        if (begins_character && ++count > most) break;
    }
    return text.substr(0, i);
}

}  // namespace

mock_source::mock_source(sessions& in, observer& owner, duration delay, std::uint32_t messages,
                         duration heartbeat)
    : sessions_(in),
      owner_(owner),
      delay_ms_(static_cast<std::uint32_t>(delay / std::chrono::milliseconds(1))),
      messages_(messages),
      heartbeat_ms_(
          static_cast<std::uint32_t>(std::min(heartbeat, delay) / std::chrono::milliseconds(1))),
      start_(loop::current().now()) {
    EDDY_ASSERT(delay_ms_ > 0 && messages_ > 0 && heartbeat_ms_ > 0);
    for (std::uint32_t i = own_messages + 1; i <= messages; ++i) {
        texts_.push_back(
            with_end(i, content_event(fmt::format("This is message {} of {}.", i, messages))));
    }
}

mock_source::~mock_source() { loop::current().disarm(*this); }

std::string mock_source::opening(const stream_request& from) const {
    return response_head(from.headers);
}

std::string mock_source::first_event(const stream_request& from) const {
    const std::string_view shown = first_characters(from.prompt, prompt_characters);
    return with_end(1, content_event(fmt::format("Hello from Eddy! Prompt: {}", shown)));
}

/// The end of an answer goes with the last event, in one packet. Where that has an id, it is not
/// part of it: a client that has the event may have missed the end.
std::string mock_source::with_end(std::uint32_t message, std::string event) const {
    if (is_last(message) && !sessions_.has_replay()) event += done_event;
    return event;
}

/// Ends the stream behind its last message.
void mock_source::end(std::uint32_t client, std::uint32_t begun_ms) {
    if (!sessions_.finish(client, std::string(sessions_.has_replay() ? done_event : ""))) return;
    owner_.on_end(client, std::chrono::milliseconds(clock_ms() - begun_ms));
}

void mock_source::begin(std::uint32_t client, stream_request from) {
    streams_.make_room(client);
    if (has_beats()) beats_.make_room(client);
    stream& its = streams_[client];
    its.begun_ms = clock_ms();
    its.sent = 1;
    count_message(client);
    if (is_last(1)) return end(client, its.begun_ms);
    its.second = std::make_unique<std::string>(
        with_end(own_messages, content_event(fmt::format("User ID: {}", from.user_id))));
    await_next(client, its.begun_ms + delay_ms_);
    if (!armed()) arm();
}

void mock_source::forget(std::uint32_t client) noexcept {
    if (!streams_.has(client)) return;
    streams_.remove(client);
    beats_.remove(client);
    streams_[client].second.reset();
}

void mock_source::end_overdue(std::uint32_t client) noexcept {
    try {
        const bool is_passed = sessions_.finish(client, error_event(overdue_reason));
        forget(client);
        if (is_passed) owner_.on_fault(client, overdue_reason);
    } catch (const std::bad_alloc&) {
        give_up(client);
    }
}

void mock_source::count_message(std::uint32_t client) noexcept {
    ++messages_sent_;
    owner_.on_events(client, 1);
}

void mock_source::fire() noexcept {
    const std::uint32_t now = clock_ms();
    for (unsigned i = 0; i < burst && streams_.is_due(now); ++i) {
        const std::uint32_t client = streams_.first();
        try {
            advance(client);
        } catch (const std::bad_alloc&) {
            give_up(client);
        }
    }
    for (unsigned i = 0; i < burst && beats_.is_due(now); ++i) {
        const std::uint32_t client = beats_.first();
        try {
            beat(client);
        } catch (const std::bad_alloc&) {
            give_up(client);
        }
    }
    sessions_.flush();
    if (!streams_.is_empty()) arm();
}

void mock_source::give_up(std::uint32_t client) noexcept {
    sessions_.abandon(client);
    forget(client);
    owner_.on_fault(client, "no_memory");
}

void mock_source::advance(std::uint32_t client) {
    stream& its = streams_[client];
    // Sending may lose the client, which forget() then finds out of the queue.
    streams_.remove(client);
    beats_.remove(client);
    const std::uint32_t message = ++its.sent;
    const std::uint32_t begun = its.begun_ms;
    const std::uint32_t due = its.due_ms;
    count_message(client);
    bool is_lost = false;
    if (message <= own_messages) {
        is_lost = !sessions_.send_owned(client, std::move(*its.second));
        its.second.reset();
    } else {
        is_lost = !sessions_.send(client, texts_[message - own_messages - 1]);
    }
    if (is_lost) return;
    if (is_last(message)) return end(client, begun);
    await_next(client, due + delay_ms_);
}

void mock_source::beat(std::uint32_t client) {
    beats_.remove(client);
    if (sessions_.send_comment(client, heartbeat_event)) await_beat(client);
}

void mock_source::await_next(std::uint32_t client, std::uint32_t due_ms) noexcept {
    streams_.add(client, due_ms);
    if (has_beats()) await_beat(client);
}

/// Queues the next heartbeat of a client that was sent something now.
void mock_source::await_beat(std::uint32_t client) noexcept {
    const std::uint32_t due = clock_ms() + heartbeat_ms_;
    if (is_before(due, streams_[client].due_ms)) beats_.add(client, due);
}

void mock_source::arm() noexcept {
    std::uint32_t due = streams_[streams_.first()].due_ms;
    if (!beats_.is_empty() && is_before(beats_[beats_.first()].due_ms, due))
        due = beats_[beats_.first()].due_ms;
    const auto ahead = static_cast<std::int32_t>(due - clock_ms());
    loop& here = loop::current();
    // Whole milliseconds since the start: what is due in one of them goes in one batch.
    const duration since = here.now() - start_;
    const duration begun = since - since % std::chrono::milliseconds(1);
    here.arm(*this, start_ + begun + std::chrono::milliseconds(ahead > 0 ? ahead : 0));
}

std::uint32_t mock_source::clock_ms() const noexcept {
    return static_cast<std::uint32_t>((loop::current().now() - start_) /
                                      std::chrono::milliseconds(1));
}

}  // namespace eddy::runtime::stream
