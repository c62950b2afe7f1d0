// Unix stream sockets by path or abstract name, and the credentials of a peer: unix(7). One loop's
// thread.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <sys/types.h>

#include <string>
#include <string_view>

/// Unix stream sockets. One loop's thread for everything here.
namespace eddy::unix_socket {

/// Listens on the running loop at `path`, of at most 107 bytes; "@name" is a name in the abstract
/// namespace, which has no file and no permissions: every user of the machine may connect, and
/// peer_credentials() yields the user. listen_options::unix_mode sets the file's permissions.
///
/// The file appears when the socket listens, by rename(2): a path that exists can be connected to.
/// A file of a dead socket is replaced in one step; any other file, also a socket of a process that
/// does not listen yet, is EADDRINUSE. The folder must be writable, as for bind(2). The kernel has
/// the socket under the name before the rename, so ss(8), and getpeername(2) of programs without
/// Eddy, show /run/.chat.sock.eddy for /run/chat.sock; streams' local() and peer() yield the path,
/// unless it has less than 6 bytes of room or a last component of more than 76 bytes. A process
/// that is killed in that moment leaves this file and .chat.sock.eddy-lock, which go with the next
/// start at the path. The path goes when the listener closes, unless another one has taken it.
///
/// Errors: errc::bad_address, bind(2)'s, EINVAL for permissions of an abstract name.
[[nodiscard]] result<listener> listen(std::string_view path, const listen_options& options = {});

/// Connects. Yields a result<stream>; errors are errc::bad_address, errc::cancelled and
/// connect(2)'s: ENOENT without a file, ECONNREFUSED when its listener is gone, EACCES without
/// permission to write to it.
task<result<stream>> connect(std::string path);

/// A process as the kernel saw it when it connected. It may have ended since.
struct credentials {
    /// The process.
    pid_t pid;
    /// Its effective user.
    uid_t uid;
    /// Its effective group.
    gid_t gid;
};

/// Credentials of the peer process, SO_PEERCRED, also of a TLS stream; on the simulator this
/// process's. errc::unsupported for a stream that is no Unix socket.
[[nodiscard]] result<credentials> peer_credentials(const stream& connection) noexcept;

}  // namespace eddy::unix_socket
