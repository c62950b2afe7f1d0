// Upgrade channel: messages between a running daemon and the one that takes its place, over a pair
// of Unix sockets. A message is a JSON object, and at most one descriptor.
#pragma once

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "daemon/control/json.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::daemon {

/// Version of the messages. Both daemons must have the same.
inline constexpr int upgrade_protocol = 1;
/// Bytes of a message at most.
inline constexpr std::size_t max_upgrade_message = std::size_t{32} * 1024;
/// Variable of the environment by which the new daemon knows that its standard input is the
/// channel.
inline constexpr const char* upgrade_variable = "EDDY_UPGRADE";
/// The new daemon sends a sign of life at least this often.
inline constexpr duration upgrade_sign_interval = std::chrono::milliseconds(500);

struct upgrade_message {
    json what = {};
    unique_fd descriptor = {};

    /// A member of `what` that is a text; empty if there is none.
    std::string text(std::string_view name) const;
    bool has(std::string_view name) const { return what.contains(name); }
};

/// One end. One loop's thread.
class upgrade_channel {
public:
    /// A SOCK_SEQPACKET socket.
    explicit upgrade_channel(unique_fd socket) : socket_(std::move(socket)) {}

    /// A new pair: this end, and the descriptor for the other process.
    static outcome<std::pair<upgrade_channel, unique_fd>> make_pair();
    /// The channel that the environment of this process announces on its standard input, which is
    /// /dev/null afterwards; none if there is none. Before the first thread.
    static std::optional<upgrade_channel> take_from_environment();

    /// From `until` on send() and receive() refuse (504). Unlimited at first.
    void end_at(time_point until) noexcept { until_ = until; }
    /// Waits while the other end reads nothing. Refuses (500) once it is gone.
    task<outcome<>> send(json what, int descriptor = -1);
    /// The next message. Refuses (500) once the other end is gone, what is no message, and (504)
    /// after `patience` without one.
    task<outcome<upgrade_message>> receive(duration patience);
    /// True if the other end has closed, as the last receive() or send() has found.
    bool is_at_end() const noexcept { return is_at_end_; }
    /// Ends the channel for both sides, and for each process that has a copy of the other end.
    void end() noexcept;

private:
    outcome<std::optional<upgrade_message>> receive_now();

    unique_fd socket_;
    time_point until_ = time_point::max();
    bool is_at_end_ = false;
};

}  // namespace eddy::daemon
