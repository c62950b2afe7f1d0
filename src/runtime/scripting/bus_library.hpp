// Messages between the scripts of a daemon's runtimes: publish() and subscribe(), over the daemon's
// message bus.
//
// A subscription is a task that takes one message after the other, each when the function has ended
// for the one before. Meanwhile the bus queues for it, up to the limits of message_bus.hpp.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/host/host.hpp"
#include "runtime/scripting/script_metrics.hpp"
#include "script/library.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::runtime {

/// Subscriptions of one state at most; an ended one counts as long as a call of its function runs.
inline constexpr std::size_t max_script_subscriptions = 100;
/// Messages that a subscription gets in a turn of the loop at most; further ones get theirs in the
/// next turn, after those of other subscriptions.
inline constexpr std::size_t max_deliveries_a_turn = 16;
/// Bytes of a channel's name at most.
inline constexpr std::size_t max_channel_name = 200;

/// Subscriptions of one state. One loop's thread.
class script_bus {
public:
    /// Calls a script's functions.
    class runner {
    public:
        /// Calls the function with the text and the channel, and awaits its end.
        virtual task<void> deliver(std::shared_ptr<script::kept_function> function,
                                   std::string_view channel, std::string_view text) = 0;

    protected:
        ~runner() = default;
    };

    /// `daemon` has the bus; null in a trial, where nothing is sent. The subscriptions run in
    /// `tasks`, which must end before the state's host does. All references outlive it. `queue`:
    /// messages that wait for a subscription at most.
    script_bus(std::shared_ptr<host> daemon, runner& by, scope& tasks, script_tallies& counted,
               std::size_t queue = max_queued_messages) noexcept
        : daemon_(std::move(daemon)),
          runner_(by),
          tasks_(tasks),
          counted_(counted),
          queue_(queue) {}

    /// Functions of the table `self`.
    script::library functions() noexcept;

    /// Messages behind that one are delivered from now on.
    void begin(std::uint64_t after) noexcept;
    /// Messages behind that one are not.
    void end(std::uint64_t last) noexcept;
    /// After end(): awaits the delivery of what is queued, until `limit`.
    task<void> drain(time_point limit);

private:
    friend struct bus_functions;
    struct entry {
        std::string channel;
        std::shared_ptr<script::kept_function> function;
        subscription from;
        bool is_calling = false;
        bool is_over = false;
    };
    class under_way;

    std::uint64_t add(std::string channel, script::kept_function function, subscription from);
    bool remove(std::uint64_t id) noexcept;
    task<void> serve(std::shared_ptr<entry> its);

    const std::shared_ptr<host> daemon_;
    runner& runner_;
    scope& tasks_;
    script_tallies& counted_;
    const std::size_t queue_;
    std::map<std::uint64_t, std::shared_ptr<entry>> all_;
    std::size_t ended_ = 0;  // whose function still runs
    std::uint64_t last_id_ = 0;
    std::uint64_t first_ = 0;  // messages up to this one are another version's
    std::uint64_t last_ = std::numeric_limits<std::uint64_t>::max();
    event begun_;
    std::size_t serving_ = 0;
    event none_serves_;
};

}  // namespace eddy::runtime
