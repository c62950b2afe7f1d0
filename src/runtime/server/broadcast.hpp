// Sends messages to all clients of a server, batched by the turn of the loop.
//
// What the clients send within one turn is collected in one payload. At the turn's end every client
// gets it by one write, without those parts that are its own; the payload is shared by all queues.
// So a hundred clients that speak at once cost a hundred writes, not ten thousand.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/histogram.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include "runtime/connections.hpp"
#include "runtime/journal.hpp"
#include "runtime/metrics.hpp"
#include "runtime/server/client.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

class broadcast {
public:
    /// Several messages are added in pieces of at most this size.
    static constexpr std::size_t largest_piece = 64 * 1024;

    /// The references outlive it. A client's queue holds `max_queue` bytes, of which at most half
    /// may be one message; no message is longer than `max_message`.
    broadcast(connections& clients, counters& counted, journal& events, histogram& latency,
              std::size_t max_queue, std::size_t max_message) noexcept
        : clients_(clients),
          counted_(counted),
          events_(events),
          latency_(latency),
          piece_limit_(std::min(largest_piece, max_queue / 4)),
          largest_add_(std::max(piece_limit_, max_message)),
          batch_limit_(std::max(2 * piece_limit_, largest_add_)) {}

    /// What several messages that are added at once may have.
    std::size_t piece_limit() const noexcept { return piece_limit_; }

    /// Adds `count` whole messages from `sender` (null: from `eddy send`), which goes without them.
    /// They are copied. `arrived` is when they came.
    void add(client* sender, std::string_view messages, std::uint64_t count, time_point arrived);

    /// Sends what was added; returns how many clients took it.
    std::uint64_t flush();

    /// Whether a client other than `sender` has so much queued that senders should wait. If not,
    /// what is added next fits into every queue.
    bool must_wait(const client* sender);
    /// Awaits the end of that; errc::cancelled.
    task<result<>> wait_for_readers(const client* sender);

    /// Flushes at the end of each turn that added something; runs until cancelled.
    task<void> run();

private:
    struct segment {
        std::uint64_t sender;  // its id, since it may be gone when the batch goes out; 0: none
        std::size_t size;
        std::uint64_t messages;
        time_point arrived;
    };

    client* find_slow(const client* sender) const;
    bool send_batch(client& to);
    bool send_part(client& to, const_bytes part, std::uint64_t messages);

    connections& clients_;
    counters& counted_;
    journal& events_;
    histogram& latency_;
    std::size_t piece_limit_;
    std::size_t largest_add_;
    std::size_t batch_limit_;  // half of a queue at most
    std::shared_ptr<byte_buffer> batch_ = std::make_shared<byte_buffer>();
    std::vector<segment> segments_;
    std::uint64_t messages_ = 0;  // in the batch
    event filled_;
};

}  // namespace eddy::runtime::server
