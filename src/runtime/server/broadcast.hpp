// Broadcast: sends messages to all clients of a server, batched by the turn of the loop.
//
// What the clients send within one turn is collected in one payload. At the turn's end every client
// gets it by one write, without those parts that are its own; the payload is shared by all queues.
// So a hundred clients that speak at once cost a hundred writes, not ten thousand. Of several loops
// each has a broadcast of its own, and passes the payload on to the others (exchange.hpp).
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/histogram.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include "runtime/server/client.hpp"
#include "runtime/server/exchange.hpp"
#include "serving/connections.hpp"
#include "serving/counters.hpp"
#include "serving/journal.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

class broadcast {
public:
    /// Several messages are added in pieces of at most this size.
    static constexpr std::size_t largest_piece = 64 * 1024;

    /// The references outlive it. A client's queue holds `max_queue` bytes, of which at most half
    /// may be one message; no message is longer than `max_message`.
    broadcast(serving::connections& clients, serving::counters& counted, serving::journal& events,
              histogram& latency, std::size_t max_queue, std::size_t max_message) noexcept
        : clients_(clients),
          counted_(counted),
          events_(events),
          latency_(latency),
          piece_limit_(std::min(largest_piece, max_queue / 4)),
          largest_add_(std::max(piece_limit_, max_message)),
          batch_limit_(std::max(2 * piece_limit_, largest_add_)),
          hold_limit_(std::min(most_held, max_queue / 2)) {}

    /// Passes all on to the other loops, too, which may read `latency` under the guard. Both
    /// outlive it.
    void share(exchange_end& others, std::mutex& latency_guard) noexcept {
        others_ = &others;
        latency_guard_ = &latency_guard;
    }

    /// Frames messages while WebSockets are connected: `web_clients` is their number on all loops,
    /// and outlives this object. `by_line`: lines are messages.
    void frame_for(const std::atomic<std::uint32_t>& web_clients, bool by_line) noexcept {
        web_clients_ = &web_clients;
        by_line_ = by_line;
    }

    /// Most bytes of several messages that are added at once.
    std::size_t piece_limit() const noexcept { return piece_limit_; }

    /// Adds `count` whole messages from `sender` (null: from `eddy send`), which goes without them.
    /// They are copied. `arrived` is when they came.
    void add(client* sender, std::string_view messages, std::uint64_t count, time_point arrived);

    /// True when nothing was added since the last flush().
    bool is_empty() const noexcept { return batch_->empty(); }
    /// Sends messages to one client now, whether or not it was admitted; false when it does not
    /// take them.
    bool send_to(client& to, const std::shared_ptr<const byte_buffer>& owner, const_bytes part,
                 std::uint64_t messages);
    /// The same for bytes that are copied.
    bool send_own(client& to, const_bytes messages, std::uint64_t count);

    /// Sends what was added; returns how many clients of this loop took it.
    std::uint64_t flush();
    /// Sends that, and then messages for the clients of this loop alone; returns how many took
    /// them. The latency is counted from `arrived`, where it has not been.
    std::uint64_t deliver(const shared_messages& what, std::optional<time_point> arrived);
    /// Sends messages to one client of this loop; true if it took them.
    bool deliver_to(client& to, const shared_messages& what);

    /// True when a client other than `sender` has so much queued that senders should wait. If
    /// false, the next messages that are added fit into every queue.
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
        std::size_t frame_size = 0;  // as frames, where there are any
    };
    using shared_bytes = std::shared_ptr<const byte_buffer>;

    client* find_slow(const client* sender) const;
    bool send_batch(client& to, const shared_bytes& frames);
    bool note_sent(client& to, const result<>& sent, std::uint64_t messages);
    bool hold_back(client& to, const_bytes part, std::uint64_t messages);
    bool has_web_clients() const noexcept {
        return web_clients_ != nullptr && web_clients_->load(std::memory_order_relaxed) > 0;
    }
    shared_bytes frame_batch();
    bool send_part(client& to, const std::shared_ptr<const byte_buffer>& owner, const_bytes part,
                   std::uint64_t messages);
    void pass_to_others(std::uint64_t messages, shared_bytes frames) noexcept;
    std::unique_lock<std::mutex> locked_latency();
    void note_latency(time_point arrived, time_point now) noexcept;

    serving::connections& clients_;
    serving::counters& counted_;
    serving::journal& events_;
    histogram& latency_;
    std::size_t piece_limit_;
    std::size_t largest_add_;
    std::size_t batch_limit_;  // half of a queue at most
    std::size_t hold_limit_;   // of bytes that are held back for a new client
    std::shared_ptr<byte_buffer> batch_ = std::make_shared<byte_buffer>();
    std::vector<segment> segments_;
    std::uint64_t messages_ = 0;  // in the batch
    event filled_;
    exchange_end* others_ = nullptr;  // null with one loop
    std::mutex* latency_guard_ = nullptr;
    const std::atomic<std::uint32_t>* web_clients_ = nullptr;
    bool by_line_ = true;
};

}  // namespace eddy::runtime::server
