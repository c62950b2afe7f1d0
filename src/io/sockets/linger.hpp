// Lingering close (RFC 9112, 9.6): reading on after the last bytes for a peer that still sends.
// Closing a TCP socket with unread bytes, or with bytes yet to come, resets the connection, and the
// peer may lose the answer that it was sent: its next write fails, or the reset overtakes.
#pragma once

#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace eddy {

/// Times of a lingering close; those of nginx.
struct linger_limits {
    duration whole = std::chrono::seconds(30);
    duration idle = std::chrono::seconds(5);  ///< without a byte of the peer
};

/// Lingering connections of one loop at most. At the limit the oldest one ends.
inline constexpr std::size_t max_lingering = 1024;

/// Reads and drops what the peer still sends: until its end or an error, at most for the times of
/// `limits`, or until this task is cancelled. After the last bytes, and usually after
/// shutdown_write(), which lets the peer see the end at once; the caller closes the stream
/// afterwards.
task<void> linger(stream& from, linger_limits limits = {});

/// The same of a stream of its own, for a scope of such tasks. Without memory it closes at once.
task<void> linger_and_close(stream peer, linger_limits limits = {});

/// Connections of this process that linger. Any thread.
std::uint64_t lingering_connections() noexcept;

}  // namespace eddy
