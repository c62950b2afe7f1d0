// Message bus: publish and subscribe between the runtimes of a daemon, by the names of topics.
//
// A message is copied into one shared block; each subscription queues a reference to it and gets it
// on its own loop. The messages of one publisher keep their order.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/host/loop_notifier.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {

class message_bus;

/// The longest name of a topic, and the largest message, in bytes.
inline constexpr std::size_t max_topic_bytes = 256;
inline constexpr std::size_t max_message_bytes = std::size_t{1} << 20;
/// Limits of a subscription's queue; that of the messages is the usual one. A message that comes at
/// either limit is dropped for that subscription, and counted.
inline constexpr std::size_t max_queued_messages = 1024;
inline constexpr std::size_t max_queued_message_bytes = std::size_t{4} << 20;

/// One message as a subscription gets it.
struct bus_message {
    std::shared_ptr<const std::string> bytes;  ///< shared with other subscriptions
    /// Messages that the subscription has lost since the one before, for want of room.
    std::uint64_t dropped_before = 0;
    /// Place among all messages of the bus: each has a greater one than those before.
    std::uint64_t number = 0;
};

/// Subscription to a topic. It belongs to the loop that it was made on, and must outlive its
/// next().
class subscription {
public:
    subscription(subscription&&) noexcept = default;
    subscription& operator=(subscription&& other) noexcept;
    ~subscription();

    /// Waits for the next message. errc::cancelled; errc::closed once the instance that subscribed
    /// has stopped: what was queued is dropped.
    task<result<bus_message>> next();
    /// Takes no message from now on: after the queued ones next() is errc::closed. The loop's
    /// thread.
    void seal() noexcept;
    /// Takes no message from now on, and drops the queued ones. The loop's thread.
    void end() noexcept;

private:
    friend class message_bus;
    friend class host;
    struct state;
    subscription(std::shared_ptr<message_bus> at, std::shared_ptr<state> shared) noexcept;
    const std::shared_ptr<loop_notifier>& notifier() const noexcept;

    std::shared_ptr<message_bus> at_;
    std::shared_ptr<state> shared_;
};

/// The bus itself. Any thread. Held by std::shared_ptr alone.
class message_bus : public std::enable_shared_from_this<message_bus> {
public:
    /// Queues the message at each subscription of the topic, the publisher's own, too, and returns
    /// how many took it. Never waits. Refuses (400) a name or message that is too long.
    outcome<std::uint64_t> publish(std::string_view topic, std::string message);
    /// Subscribes from now on, with a queue of `most` messages, at least 1. Refuses (400) a name
    /// that is empty or too long. The calling thread's loop.
    outcome<subscription> subscribe(std::string topic, std::size_t most = max_queued_messages);
    /// Number of the last message of all topics; 0 before the first.
    std::uint64_t last_number() const;

private:
    friend class subscription;
    using subscribers = std::vector<std::shared_ptr<subscription::state>>;

    void forget(const subscription::state& which);

    mutable std::mutex mutex_;
    std::uint64_t last_number_ = 0;
    std::map<std::string, subscribers, std::less<>> topics_;
};

}  // namespace eddy::runtime
