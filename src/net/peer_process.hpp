// Process at the other end of a Unix socket, and check of its user.
#pragma once

#include <eddy/base/result.hpp>

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace eddy::unix_socket {

/// Numbers of a process; `id` is 0 for a process in a PID namespace that is not visible here.
struct peer_process {
    pid_t id = 0;
    uid_t user = 0;

    friend bool operator==(const peer_process&, const peer_process&) = default;
};

/// The process that connected, or for a connecting socket the one that listens: SO_PEERCRED,
/// unix(7). None for a socket that has no peer of this kind. Any thread.
std::optional<peer_process> peer_of(int socket) noexcept;

/// True if `user` is one of `allowed`, or with an empty list this process's effective user or root.
bool is_allowed(uid_t user, const std::vector<uid_t>& allowed) noexcept;

/// Both: true if the peer of `socket` runs as an allowed user.
bool has_allowed_peer(int socket, const std::vector<uid_t>& allowed) noexcept;

/// True if `group` is the effective group of the peer of `socket`, or one of its supplementary
/// groups, as of its connect(2).
bool has_peer_in_group(int socket, gid_t group);

/// One datagram of a Unix socket with SO_PASSCRED, and the process that sent it.
struct sent_datagram {
    std::size_t size = 0;  ///< of the bytes that fit
    peer_process sender;
};

/// The next datagram, into `into`; a longer one is cut, and descriptors that come with it are
/// closed. Does not wait: EAGAIN. EPROTO for a socket without SO_PASSCRED, unix(7).
result<sent_datagram> receive_with_sender(int socket, std::span<char> into) noexcept;

}  // namespace eddy::unix_socket
