// Process at the other end of a Unix socket, and check of its user.
#pragma once

#include <sys/types.h>

#include <optional>
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

}  // namespace eddy::unix_socket
