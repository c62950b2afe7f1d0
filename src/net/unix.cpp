// Unix stream sockets.
#include <eddy/net/unix.hpp>

#include <sys/socket.h>
#include <unistd.h>

namespace eddy::unix_socket {

result<listener> listen(std::string_view path, const listen_options& options) {
    const auto local = endpoint::unix_path(path);
    if (!local) return fail(local.error());
    return loop::current().listen(*local, options);
}

task<result<stream>> connect(std::string path) {
    const auto peer = endpoint::unix_path(path);
    if (!peer) co_return fail(peer.error());
    co_return co_await loop::current().connect(*peer);
}

result<credentials> peer_credentials(const stream& connection) noexcept {
    if (!connection.local().is_unix()) return fail(errc::unsupported);
    // Below TLS there is a socket, too: its peer is not this process.
    const int socket = connection.driver().option_handle();
    if (socket < 0) return credentials{getpid(), getuid(), getgid()};
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return fail_errno();
    return credentials{peer.pid, peer.uid, peer.gid};
}

}  // namespace eddy::unix_socket
