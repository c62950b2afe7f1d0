// Process at the other end of a Unix socket, and whether its user is allowed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

namespace eddy::unix_socket {

/// Numbers of a process; `id` is 0 where it runs in a PID namespace that this one does not see.
struct peer_process {
    pid_t id = 0;
    uid_t user = 0;

    friend bool operator==(const peer_process&, const peer_process&) = default;
};

/// The process that connected, or of a connecting socket the one that listens: SO_PEERCRED,
/// unix(7). None for a socket that has no peer of this kind. Any thread.
std::optional<peer_process> peer_of(int socket) noexcept;

/// Whether `user` is one of `allowed`, or, where that is empty, this process's effective user or
/// root.
bool is_allowed(uid_t user, const std::vector<uid_t>& allowed) noexcept;

/// Both: whether the peer of `socket` is of an allowed user.
bool has_allowed_peer(int socket, const std::vector<uid_t>& allowed) noexcept;

}  // namespace eddy::unix_socket
