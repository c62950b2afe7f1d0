// Tunnel: the bytes of a client and a backend, forwarded both ways.
//
// A direction reads a lease of the loop's buffers and writes it at once. What the receiver does not
// take waits, and nothing more is read before it is gone: the kernel then slows the sender down. So
// a direction has at most one lease of bytes, and none while it waits for input.
//
// A side gets an orderly end only if the other one has sent it: every other way in which a tunnel
// ends resets the connection (stream::abort()), so that what broke off does not look whole.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/lease.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "io/sockets/linger.hpp"
#include "serving/counters.hpp"

#include <chrono>
#include <cstddef>
#include <system_error>

namespace eddy::proxy {

/// Leases of the loop's buffers that wait for slow readers, at most. Bytes for further ones are
/// copied, so that the loop's buffers are left to other connections.
inline constexpr std::size_t most_held_leases = 64;
/// Bytes that wait for a slow reader are written so many at a time; each time counts as a sign of
/// life for the idle timeout.
inline constexpr std::size_t most_a_write = std::size_t{64} * 1024;
/// Pause of a direction that finds none of the loop's buffers free. A time, not an event: any
/// connection of the loop may return a buffer, and take it again before others.
inline constexpr duration starved_pause = std::chrono::milliseconds(5);
/// A side that is to get a reset, and was sent bytes so short a time ago, gets the reset when it
/// has sent nothing for as long: before, it might lose those bytes, such as an early answer.
inline constexpr duration last_words_time = std::chrono::seconds(1);
/// When a side takes nothing more, its own earlier bytes may wait so long for the other side to
/// read any of them.
inline constexpr duration longest_rest = std::chrono::seconds(30);
/// Longest wait for the reset of a client that keeps sending: its bytes are lost.
inline constexpr duration longest_cut_linger = std::chrono::seconds(5);

/// Buffers of the tunnels of one loop.
struct tunnel_buffers {
    std::size_t held_leases = 0;  ///< that wait for slow readers
};

/// Tallies of a tunnel, which outlive it.
struct tunnel_counts {
    serving::tally& from_client;
    serving::tally& to_backend;
    serving::tally& from_backend;
    serving::tally& to_client;
};

/// Owner of a tunnel: it limits its time, and ends it. The loop's thread.
class tunnel_owner {
public:
    /// Bytes came or went. Yields the time.
    virtual time_point touch() noexcept = 0;
    /// One side has ended and the other lingers: from now on the tunnel may be closed at any time.
    /// False: it must end now.
    virtual bool may_linger() noexcept = 0;
    /// A direction has failed for want of memory.
    virtual void note_no_memory() noexcept = 0;

protected:
    ~tunnel_owner() = default;
};

/// Both directions between two streams. Everything that it refers to must outlive it. One loop's
/// thread.
class tunnel {
public:
    tunnel(stream& client, stream& backend, tunnel_owner& owner, tunnel_buffers& buffers,
           const tunnel_counts& counts) noexcept;
    /// Resets a side that has not got the other one's end.
    ~tunnel();
    tunnel(const tunnel&) = delete;
    tunnel& operator=(const tunnel&) = delete;

    /// Forwards until both sides have ended, or it is cancelled by `stop`, the source that the task
    /// runs under. Bytes that were received before go first.
    task<void> run(cancel_source& stop, byte_buffer from_client = {},
                   byte_buffer from_backend = {});

private:
    class held_piece;

    /// One way through it.
    struct direction {
        enum class state : std::uint8_t {
            flows,
            drops,  ///< the receiver takes nothing more; the sender's bytes are dropped
            ended,  ///< the sender has finished
            failed,
        };

        stream& from;
        stream& to;
        serving::tally& received;
        serving::tally& sent;
        bool has_end = false;  // the receiver: the sender's end was passed on
        time_point sent_at{};
        time_point dropped_since{};
        state now = state::flows;

        bool is_over() const noexcept { return now == state::ended || now == state::failed; }
    };

    task<void> pump(scope& both, direction& way, const direction& other, byte_buffer begun);
    static void end_input(scope& both, direction& way, const direction& other,
                          std::error_code error) noexcept;
    [[gnu::noinline]] task<void> end();
    static task<void> part(stream& side, const direction& way, linger_limits limits);

    tunnel_owner& owner_;
    tunnel_buffers& buffers_;
    direction up_;
    direction down_;
};

}  // namespace eddy::proxy
