// Descriptors passed over Unix sockets.
#include <eddy/net/descriptors.hpp>

#include <eddy/base/assert.hpp>

#include "net/passed_rights.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace eddy::unix_socket {
namespace {

// As many as one message may have, SCM_MAX_FD: what does not fit would be lost as if the table were
// full, and could not be distinguished from it.
constexpr std::size_t max_descriptors = 253;

/// Takes the descriptors of one control message.
void take_descriptors(const cmsghdr& header, received_message& into) noexcept {
    const std::size_t count = (header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
        int each = -1;
        std::memcpy(&each, CMSG_DATA(&header) + i * sizeof(int), sizeof(int));
        unique_fd taken(each);
        // The sender's SO_LINGER would let close(2) block. What is no socket has none.
        const linger none{};
        static_cast<void>(::setsockopt(each, SOL_SOCKET, SO_LINGER, &none, sizeof(none)));
        if (into.descriptor)
            ++into.surplus;
        else
            into.descriptor = std::move(taken);
    }
}

/// Chunks of a queue that refuse_descriptors() goes through, at most: more than a socket's buffer
/// holds as packets of one byte, by the default of the kernel.
constexpr int max_queued = 1024;

result<received_message> receive(int socket, std::span<std::byte> into, int flags) noexcept {
    iovec bytes{into.data(), into.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(max_descriptors * sizeof(int))];
    msghdr header{};
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    ssize_t received = -1;
    do {
        received = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | flags);
    } while (received < 0 && errno == EINTR);
    if (received < 0) return fail_errno();
    received_message taken;
    taken.size = static_cast<std::size_t>(received);
    taken.lost_descriptors = (header.msg_flags & MSG_CTRUNC) != 0;
    taken.is_cut = (header.msg_flags & MSG_TRUNC) != 0;
    for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each))
        if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == SCM_RIGHTS)
            take_descriptors(*each, taken);
    return taken;
}

void set_option(int socket, int name, int value) noexcept {
    static_cast<void>(::setsockopt(socket, SOL_SOCKET, name, &value, sizeof(value)));
}

}  // namespace

result<std::size_t> send_descriptor(int socket, std::string_view message, int descriptor) noexcept {
    EDDY_PRECONDITION(
        !message.empty(),
        "send_descriptor() with an empty message: a descriptor goes with at least one byte");
    EDDY_PRECONDITION(descriptor >= 0, "send_descriptor() of no descriptor");
    iovec bytes{const_cast<char*>(message.data()), message.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
    for (;;) {
        const ssize_t sent = ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) return static_cast<std::size_t>(sent);
        if (errno != EINTR) return fail_errno();
    }
}

result<received_message> receive_message(int socket, std::span<std::byte> into) noexcept {
    EDDY_PRECONDITION(!into.empty(), "a read into an empty span: it has to hold at least one byte");
    return receive(socket, into, 0);
}

void refuse_descriptors(int socket) noexcept {
    set_option(socket, so_passrights, 0);
    // FIONREAD takes no lock, and misses a descriptor that is sent meanwhile. Peeking installs
    // copies, whose options are those of the queued sockets themselves.
    set_option(socket, SO_PEEK_OFF, 0);
    std::array<std::byte, 4096> room;
    for (int i = 0; i < max_queued; ++i) {
        const auto peeked = receive(socket, room, MSG_PEEK);
        if (!peeked || peeked->size == 0) break;
    }
    set_option(socket, SO_PEEK_OFF, -1);
}

}  // namespace eddy::unix_socket
