// Sender's side of a handoff: a client's connected socket passed to a stream runtime, which answers
// it.
//
// One connection to the runtime's Unix socket for each client, and one message: data, usually JSON,
// with the client's descriptor beside it (SCM_RIGHTS, unix(7)). There is no reply. Once the message
// is in the kernel the sender is free: the runtime has its own copy of the descriptor.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <chrono>
#include <cstdint>
#include <string>

/// Handoffs: sockets of clients passed between processes. Any thread, but for coroutines, which
/// belong to their loop's.
namespace eddy::handoff {

/// Type of the Unix socket on which a stream runtime takes handoffs.
enum class socket_kind : std::uint8_t {
    automatic,  ///< SOCK_SEQPACKET, or SOCK_STREAM where the receiver's socket is one
    seqpacket,  ///< SOCK_SEQPACKET: the message arrives whole
    stream,     ///< SOCK_STREAM: the message ends with the connection
};

/// Limits of a handoff.
struct sender_options {
    /// Type of the receiver's socket. `automatic` costs one more connect(2) for a stream socket.
    socket_kind kind = socket_kind::automatic;
    /// Time for the whole handoff; duration::max() for no limit. It bounds the waits for a receiver
    /// that does not accept, for room in the socket, and for descriptors in flight.
    duration timeout = std::chrono::seconds(10);
};

/// `eddy_handoff`: passes `client`, a connected socket, with `message` to the stream runtime that
/// listens at `receiver`, a path of at most 107 bytes, or "@name" in the abstract namespace.
/// An empty message is sent as one NUL byte, which stands for no data. `client` must stay open
/// until completion and stays the caller's, which closes it afterwards: until then the client's
/// connection does not end with the runtime's answer. What is buffered for the client in this
/// process must be sent before.
///
/// Yields once the kernel has the message. Does not block the loop, and can be cancelled; after an
/// error the receiver may have a connection without a message, or with a part of it. Errors:
/// - connect(2)'s, such as ENOENT and ECONNREFUSED without a receiver, EACCES without permission,
///   EPROTOTYPE for a receiver of the other type; errc::bad_address for a path that is none;
/// - errc::timed_out when the receiver did not accept, or read, for so long;
/// - ETOOMANYREFS when for so long the user had more descriptors in flight than the limit of open
///   files, unix(7). It is retried first: 1 ms later, then after ever longer waits of up to 50 ms;
/// - EMSGSIZE for a message that no buffer of a SOCK_SEQPACKET socket holds: SO_SNDBUF is raised
///   as far as net.core.wmem_max allows. A SOCK_STREAM receiver has no such limit;
/// - errc::unsupported on the simulator, EPIPE or ECONNRESET when the receiver closed early,
///   errc::cancelled.
///
/// The running loop's thread.
[[nodiscard]] task<result<>> hand_over(std::string receiver, std::string message, int client,
                                       sender_options options = {});

/// The same for programs without a loop: waits in system calls. Any thread.
[[nodiscard]] result<> hand_over_blocking(const std::string& receiver, const std::string& message,
                                          int client, const sender_options& options = {});

}  // namespace eddy::handoff
