// One client of a stream server.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/net/queued_writer.hpp>
#include <eddy/net/rate_limit.hpp>

#include "runtime/server/first_bytes.hpp"
#include "runtime/server/web_peer.hpp"
#include "serving/connections.hpp"
#include "serving/counters.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace eddy::runtime::server {

/// Time after connecting that a new client has to begin a request before it gets messages, time
/// that it may then pause within its first line, and bytes of messages that are held back meanwhile
/// at most, and half of --max-queue: beyond any of them it gets messages, and a request of it is
/// refused.
inline constexpr duration hold_time = std::chrono::milliseconds(150);
inline constexpr duration first_line_time = std::chrono::seconds(2);
inline constexpr std::size_t most_held = std::size_t{256} << 10;

class client;
struct script_client;

/// Messages that are held back for a client that has not decided what it speaks.
class held_messages final : public client_extra, private timer {
public:
    explicit held_messages(client& of);
    ~held_messages() override;
    byte_buffer bytes;
    std::uint32_t count = 0;

private:
    void fire() noexcept override;
    client& client_;
};

/// Lives in the coroutine that serves it; broadcasts reach it through `out`.
class client final : public serving::connection {
public:
    client(serving::connections& all, stream accepted, scope& tasks,
           const queued_writer_options& queue, const rate_limiter& pace,
           serving::connection_slot slot)
        : connection(all, std::move(accepted), tasks.source(), std::move(slot)),
          out(socket, tasks, without_disconnect(queue)),
          limiter(pace),
          disconnects_(queue.policy == slow_reader_policy::disconnect) {}
    /// The waits for this client to read end.
    ~client() {
        extra.reset();
        disconnect();
    }

    /// As out.enqueue(), which alone does not end a connection that another process has, too.
    [[nodiscard]] result<> enqueue(const_bytes bytes, std::uint32_t count) noexcept {
        return end_if_too_slow(out.enqueue(bytes, count));
    }
    [[nodiscard]] result<> enqueue(std::shared_ptr<const void> owner, const_bytes bytes,
                                   std::uint32_t count) noexcept {
        return end_if_too_slow(out.enqueue(std::move(owner), bytes, count));
    }
    /// Drops what is queued, and closes the connection.
    void disconnect() noexcept {
        end_sending();
        out.abort();
    }

    /// Until when messages are held back for it, if it is undecided.
    time_point held_until() const noexcept {
        return touched_at() + (input.empty() ? hold_time : first_line_time);
    }
    /// Messages that are held back for it; null if there are none.
    held_messages* held() const noexcept {
        return speaks == speech::undecided ? static_cast<held_messages*>(extra.get()) : nullptr;
    }
    /// Its frames; null if it is no WebSocket.
    web_peer* web() const noexcept {
        return speaks == speech::web ? static_cast<web_peer*>(extra.get()) : nullptr;
    }

    /// It gets what was held back, and all messages that follow.
    void become_raw() noexcept {
        if (speaks != speech::undecided) return;
        const held_messages* const all = held();
        speaks = speech::raw;
        if (all == nullptr) return;
        static_cast<void>(enqueue(all->bytes.bytes(), all->count));
        touch();
        extra.reset();
    }
    /// It speaks HTTP, as far as it is known. What was held back for it counts as dropped.
    void become_http(serving::counters& counted) noexcept {
        if (held() != nullptr) counted.dropped += held()->count;
        speaks = speech::http;
        extra.reset();
    }

    queued_writer out;
    rate_limiter limiter;
    /// Received bytes that could not be passed on yet: part of a line, or messages that a limit
    /// holds back.
    byte_buffer input;
    std::unique_ptr<client_extra> extra;  // see held() and web()
    /// The first message of `input` has passed its rate limits.
    bool paid = false;
    /// Part of the batch that goes out next is this client's own.
    bool sent_in_batch = false;
    /// `input` is none of a request, which must not reach others as messages. Not known before its
    /// first line, also when it gets messages already.
    bool is_judged = false;
    /// The script knows it; null without a script.
    script_client* script = nullptr;
    /// The script has disconnected it.
    bool is_dismissed = false;
    /// It sends nothing more.
    bool finished = false;
    /// It is being closed and gets no more messages.
    bool leaving = false;
    speech speaks = speech::undecided;

    bool listens() const noexcept {
        return socket && !leaving && !out.error() && speaks != speech::http;
    }

private:
    static queued_writer_options without_disconnect(queued_writer_options from) noexcept {
        if (from.policy == slow_reader_policy::disconnect) from.policy = slow_reader_policy::wait;
        return from;
    }
    result<> end_if_too_slow(result<> sent) noexcept {
        if (!sent && sent.error() == errc::limit_reached && disconnects_) disconnect();
        return sent;
    }

    bool disconnects_;  // --slow-reader
};

inline held_messages::held_messages(client& of) : client_(of) {
    loop::current().arm(*this, of.held_until());
}

inline held_messages::~held_messages() {
    if (armed()) loop::current().disarm(*this);
}

/// Perhaps the last call on this object.
inline void held_messages::fire() noexcept {
    loop& here = loop::current();
    if (here.now() < client_.held_until())
        here.arm(*this, client_.held_until());
    else
        client_.become_raw();
}

}  // namespace eddy::runtime::server
