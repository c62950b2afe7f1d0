// Mock backend: texts and pace.
#include "runtime/stream/mock_backend.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "runtime/stream/answer.hpp"

#include <fmt/format.h>

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

mock_backend::mock_backend(handoff::client_table& clients, observer& owner, duration delay,
                           std::uint32_t messages)
    : clients_(clients),
      owner_(owner),
      delay_ms_(static_cast<std::uint32_t>(delay / std::chrono::milliseconds(1))),
      messages_(messages),
      start_(loop::current().now()) {
    EDDY_ASSERT(delay_ms_ > 0 && messages_ > 0);
    for (std::uint32_t i = own_messages + 1; i <= messages; ++i) {
        texts_.push_back(content_event(fmt::format("This is message {} of {}.", i, messages)));
        if (is_last(i)) texts_.back() += done_event;
    }
}

mock_backend::~mock_backend() { loop::current().disarm(*this); }

std::string mock_backend::opening(const request& from) const {
    const std::string_view shown = first_characters(from.prompt, prompt_characters);
    std::string bytes = response_head(from.headers);
    bytes += content_event(fmt::format("Hello from Eddy! Prompt: {}", shown));
    if (is_last(1)) bytes += done_event;
    return bytes;
}

void mock_backend::begin(std::uint32_t client, request from) {
    if (client >= streams_.size()) streams_.resize(client + 1);
    stream& its = streams_[client];
    EDDY_ASSERT(!its.is_queued);
    its.begun_ms = clock_ms();
    its.sent = 1;
    ++messages_sent_;
    if (is_last(1)) {
        clients_.finish(client);
        return owner_.on_end(client, duration::zero());
    }
    its.second = std::make_unique<std::string>(
        content_event(fmt::format("User ID: {}", from.user_id)) +
        std::string(is_last(own_messages) ? done_event : std::string_view()));
    its.due_ms = its.begun_ms + delay_ms_;
    enqueue(client);
    if (!armed()) arm();
}

void mock_backend::forget(std::uint32_t client) noexcept {
    if (client >= streams_.size()) return;
    if (streams_[client].is_queued) dequeue(client);
    streams_[client].second.reset();
}

void mock_backend::fire() noexcept {
    const std::uint32_t now = clock_ms();
    for (unsigned i = 0; i < burst && head_ != none; ++i) {
        // The difference stays right when the count of milliseconds wraps.
        if (static_cast<std::int32_t>(streams_[head_].due_ms - now) > 0) break;
        const std::uint32_t client = head_;
        try {
            advance(client);
        } catch (const std::bad_alloc&) {
            clients_.abandon(client);
            forget(client);
            owner_.on_fault(client, "no_memory");
        }
    }
    clients_.flush();
    if (head_ != none) arm();
}

void mock_backend::advance(std::uint32_t client) {
    stream& its = streams_[client];
    // Sending may lose the client, which forget() then finds out of the queue.
    dequeue(client);
    const std::uint32_t message = ++its.sent;
    const std::uint32_t begun = its.begun_ms;
    ++messages_sent_;
    bool is_lost = false;
    if (message <= own_messages) {
        is_lost = !clients_.send_owned(client, std::move(*its.second));
        its.second.reset();
    } else {
        is_lost = !clients_.send(client, texts_[message - own_messages - 1]);
    }
    if (is_lost) return;
    if (is_last(message)) {
        clients_.finish(client);
        return owner_.on_end(client, std::chrono::milliseconds(clock_ms() - begun));
    }
    its.due_ms += delay_ms_;
    enqueue(client);
}

void mock_backend::enqueue(std::uint32_t client) noexcept {
    stream& its = streams_[client];
    EDDY_ASSERT(!its.is_queued);
    its.is_queued = true;
    its.next = none;
    its.previous = tail_;
    (tail_ == none ? head_ : streams_[tail_].next) = client;
    tail_ = client;
}

void mock_backend::dequeue(std::uint32_t client) noexcept {
    stream& its = streams_[client];
    EDDY_ASSERT(its.is_queued);
    its.is_queued = false;
    (its.previous == none ? head_ : streams_[its.previous].next) = its.next;
    (its.next == none ? tail_ : streams_[its.next].previous) = its.previous;
}

void mock_backend::arm() noexcept {
    const std::uint32_t now = clock_ms();
    const auto ahead = static_cast<std::int32_t>(streams_[head_].due_ms - now);
    loop& here = loop::current();
    // Whole milliseconds since the start: what is due in one of them goes in one batch.
    const duration since = here.now() - start_;
    const duration begun = since - since % std::chrono::milliseconds(1);
    here.arm(*this, start_ + begun + std::chrono::milliseconds(ahead > 0 ? ahead : 0));
}

std::uint32_t mock_backend::clock_ms() const noexcept {
    return static_cast<std::uint32_t>((loop::current().now() - start_) /
                                      std::chrono::milliseconds(1));
}

}  // namespace eddy::runtime::stream
