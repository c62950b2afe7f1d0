// Exchange: broadcasts on their way between the loops of one server.
//
// What a loop's clients send within one turn goes to the inbox of each other loop as one shared
// payload, and wakes that loop once, however much comes. The order of an inbox is that of its
// senders. An inbox is bounded: while one is full, clients of other loops are not read from, so
// nothing is lost on the way; that ends by itself, since a loop empties its inbox whatever its
// clients do, or under --slow-reader wait as soon as they read, which their senders are to wait
// for.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/task.hpp>

#include "runtime/host/loop_notifier.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

struct script_receivers;

/// Whole messages for all clients of a loop. The payload does not change any more.
struct shared_messages {
    std::shared_ptr<const byte_buffer> payload;
    std::uint64_t count = 0;
    /// The same as frames of WebSocket, if there are clients that take them; else null.
    std::shared_ptr<const byte_buffer> frames = nullptr;
    /// The clients that a script has named; null: all.
    std::shared_ptr<const script_receivers> to = nullptr;
    /// The client that alone gets them; 0: all of the loop.
    std::uint64_t only = 0;
};

/// Messages that other loops have for the clients of one loop. Made and destroyed on that loop.
class inbox {
public:
    /// Bytes that may wait; one batch of each other loop comes on top, as fullness is checked
    /// before a message is taken from its sender.
    explicit inbox(std::size_t limit) : limit_(limit) {}

    /// Any thread. Throws std::bad_alloc, and then has nothing of it.
    void push(shared_messages more);
    /// Any thread.
    bool is_full() const noexcept { return bytes_.load(std::memory_order_relaxed) >= limit_; }
    /// False when it is not full. Else `waiting` is notified once half of it is free. Any thread.
    bool notify_of_room(const std::shared_ptr<loop_notifier>& waiting);

    /// Its loop's thread: the oldest, which stays; none when it is empty.
    std::optional<shared_messages> front() const;
    /// Its loop's thread, after front().
    void pop();
    /// Its loop's thread: notified after messages came.
    loop_notifier& came() noexcept { return *came_; }

private:
    std::size_t limit_;
    mutable std::mutex guard_;
    std::deque<shared_messages> waiting_;
    std::atomic<std::size_t> bytes_{0};  // changed under the guard
    std::vector<std::shared_ptr<loop_notifier>> for_room_;
    const std::shared_ptr<loop_notifier> came_ = std::make_shared<loop_notifier>();
};

/// The inboxes of all loops that have clients. They are added before the first message, and outlive
/// the last one.
class exchange {
public:
    /// Bytes that may wait in an inbox: as many as for one client.
    explicit exchange(std::size_t limit) noexcept : limit_(limit) {}

    std::size_t limit() const noexcept { return limit_; }
    void add(inbox& one) { all_.push_back(&one); }
    const std::vector<inbox*>& all() const noexcept { return all_; }

private:
    std::size_t limit_;
    std::vector<inbox*> all_;
};

/// One loop's end of the exchange. Its thread.
class exchange_end {
public:
    explicit exchange_end(exchange& of) : exchange_(of), own_(of.limit()) { of.add(own_); }

    inbox& own() noexcept { return own_; }
    /// Sends to all other loops. Throws std::bad_alloc.
    void send(const shared_messages& what);
    /// True when the inbox of another loop is full.
    bool must_wait() const noexcept;
    /// Awaits the end of that; errc::cancelled.
    task<result<>> wait_for_room();

private:
    exchange& exchange_;
    inbox own_;
    const std::shared_ptr<loop_notifier> room_ = std::make_shared<loop_notifier>();
};

}  // namespace eddy::runtime::server
