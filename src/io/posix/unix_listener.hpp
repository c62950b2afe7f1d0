// Listening Unix sockets with a file. The file gets its path by rename(2), after bind(2), chmod(2)
// and listen(2): a path that exists can be connected to, with its final permissions.
//
// Until then it has a name beside the path, under which the kernel keeps it: getsockname(2),
// getpeername(2) and ss(8) show /run/.chat.sock.eddy for /run/chat.sock. local_endpoint() and
// peer_endpoint() yield the path.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/stream.hpp>

#include "io/posix/sockets.hpp"

#include <string>
#include <string_view>

namespace eddy {

/// The path of a Unix address; empty for unnamed and abstract ones, which are not in the
/// file system.
std::string socket_path(const endpoint& local);

/// True for a Unix address of the abstract namespace.
bool is_abstract(const endpoint& local) noexcept;

/// The name that a listener at `path` is bound to, as /proc/net/unix has it. A path that leaves no
/// room for it, or whose last component has more than 76 bytes, has another one.
std::string bound_name(std::string_view path);

/// The path of a listener that is bound to a name of bound_name(); other addresses as they are.
endpoint published(const endpoint& bound) noexcept;

/// Binds a new socket to the path of `local`, and listens. A file of a dead socket is replaced, in
/// one step. Of several simultaneous calls for one path, one succeeds. EADDRINUSE where the file is
/// another process's socket, listening or not, or no socket; else the errors of bind(2) and
/// listen(2). Files that a killed process has left beside the path are removed.
result<socket_file> listen_at_path(int socket, const endpoint& local,
                                   const listen_options& options);

}  // namespace eddy
