// Credentials of a peer.
#include "net/peer_process.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace eddy::unix_socket {

std::optional<peer_process> peer_of(int socket) noexcept {
    ucred found{};
    socklen_t size = sizeof(found);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) < 0) return std::nullopt;
    return peer_process{found.pid, found.uid};
}

bool is_allowed(uid_t user, const std::vector<uid_t>& allowed) noexcept {
    if (allowed.empty()) return user == 0 || user == ::geteuid();
    return std::ranges::find(allowed, user) != allowed.end();
}

bool has_allowed_peer(int socket, const std::vector<uid_t>& allowed) noexcept {
    const auto peer = peer_of(socket);
    return peer && is_allowed(peer->user, allowed);
}

bool has_peer_in_group(int socket, gid_t group) {
    ucred found{};
    socklen_t size = sizeof(found);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) < 0) return false;
    if (found.gid == group) return true;
    std::vector<gid_t> groups(32);
    size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    int status = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
    if (status < 0 && errno == ERANGE) {
        groups.resize(size / sizeof(gid_t));
        status = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
    }
    if (status < 0) return false;
    groups.resize(size / sizeof(gid_t));
    return std::ranges::find(groups, group) != groups.end();
}

result<sent_datagram> receive_with_sender(int socket, std::span<char> into) noexcept {
    iovec place{into.data(), into.size()};
    // No room for descriptors: the kernel closes them.
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
    msghdr message{};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t size = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0) return fail(errno_code(errno));
    const cmsghdr* const part = CMSG_FIRSTHDR(&message);
    if (part == nullptr || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS)
        return fail(errno_code(EPROTO));
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(part), sizeof(sender));
    return sent_datagram{static_cast<std::size_t>(size), {sender.pid, sender.uid}};
}

}  // namespace eddy::unix_socket
