// Outbox: bounded queue of a client's messages to its server, kept while there is no connection or
// the server reads slowly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace eddy::runtime::client {

/// Policy for messages that do not fit the queue.
enum class queue_policy : std::uint8_t {
    refuse,       ///< the send fails
    drop_oldest,  ///< the oldest messages make room
    drop_newest,  ///< the new messages are dropped
};

struct outbox_limits {
    std::size_t max_bytes = std::size_t{1} << 20;
    queue_policy policy = queue_policy::refuse;
    bool operator==(const outbox_limits&) const = default;
};

/// Fate of messages that were added.
struct admission {
    enum class verdict : std::uint8_t { queued, refused, dropped };
    verdict fate = verdict::queued;
    std::uint64_t dropped = 0;  ///< messages, old or new, that the policy has dropped
};

/// Messages in the order of their sends. The one that is being sent has left the queue: it is never
/// sent twice, nor dropped by the policy. One thread.
class outbox {
public:
    /// Messages at most, besides the limit on their bytes: bounds the memory of short ones.
    static constexpr std::size_t max_messages = 65'536;

    explicit outbox(outbox_limits limits = {}) noexcept : limits_(limits) {}

    /// Limits of later messages; the queued ones stay.
    void set_limits(outbox_limits limits) noexcept { limits_ = limits; }
    const outbox_limits& limits() const noexcept { return limits_; }

    /// Adds all of the messages or none. Messages that together exceed the limits of an empty queue
    /// are refused under every policy.
    admission add(std::vector<std::string> messages);

    /// Takes the oldest message, for sending. Only while there is one, and none is being sent.
    std::string take();
    /// The message of take() has been sent, or may have been.
    void finish() noexcept { in_flight_ = 0; }
    /// Drops all queued messages, and returns their number.
    std::size_t clear() noexcept;
    /// Removes the queued messages and yields them, oldest first.
    std::deque<std::string> release();
    /// Queues released messages again. Only while none is queued.
    void restore(std::deque<std::string> messages) noexcept;

    bool empty() const noexcept { return messages_.empty(); }
    std::size_t messages() const noexcept { return messages_.size(); }
    /// Bytes of the queued messages, and of the one that is being sent.
    std::size_t bytes() const noexcept { return bytes_ + in_flight_; }

private:
    bool fits(std::size_t bytes, std::size_t messages) const noexcept;

    outbox_limits limits_;
    std::deque<std::string> messages_;
    std::size_t bytes_ = 0;
    std::size_t in_flight_ = 0;
};

}  // namespace eddy::runtime::client
