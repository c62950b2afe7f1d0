// Descriptors passed between processes over Unix sockets: SCM_RIGHTS, unix(7), cmsg(3).
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::unix_socket {

/// Type of a Unix socket that messages with descriptors pass through.
enum class socket_type : std::uint8_t {
    stream,     ///< SOCK_STREAM: bytes; a message may arrive in parts
    seqpacket,  ///< SOCK_SEQPACKET: each message arrives whole
};

/// Sends the beginning of `message` with a copy of `descriptor`, without waiting. Returns how many
/// bytes went, all of them through a seqpacket socket; the descriptor went with the first one. The
/// caller keeps its descriptor. Errors are sendmsg(2)'s: EAGAIN while the socket is full,
/// ETOOMANYREFS when the user has too many descriptors in flight that no process has received
/// yet, EMSGSIZE for a message that is larger than the socket's buffer. Any thread.
[[nodiscard]] result<std::size_t> send_descriptor(int socket, std::string_view message,
                                                  int descriptor) noexcept;

/// Received part of a message, and what came with it.
struct received_message {
    /// Bytes of the buffer that were filled; 0 at the end of the stream.
    std::size_t size = 0;
    /// The first descriptor, close-on-exec; none if none came.
    unique_fd descriptor;
    /// Further descriptors that came; they are closed.
    std::uint32_t surplus = 0;
    /// Descriptors came that this process had no room for: they are lost.
    bool lost_descriptors = false;
    /// The message was larger than the buffer; its rest is lost.
    bool is_cut = false;
};

/// Receives what has arrived, without waiting. SO_LINGER is taken off sockets that come, so that
/// closing one never blocks. Errors are recvmsg(2)'s: EAGAIN while nothing has.
/// Any thread, one at a time for a socket.
[[nodiscard]] result<received_message> receive_message(int socket,
                                                       std::span<std::byte> into) noexcept;

/// End of the descriptors that a stream socket is to receive, before it is read without room for
/// them, or closed: dropping a passed socket that lingers would block. From Linux 6.16 on, senders
/// get EPERM from now on (SO_PASSRIGHTS); older kernels deliver them as before. SO_LINGER is taken
/// off the sockets that are queued by now; no bytes are consumed. Any thread, one at a time for a
/// socket.
void refuse_descriptors(int socket) noexcept;

}  // namespace eddy::unix_socket
