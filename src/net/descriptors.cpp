// Descriptors passed over Unix sockets.
#include <eddy/net/descriptors.hpp>

#include <eddy/base/assert.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

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
    iovec bytes{into.data(), into.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(max_descriptors * sizeof(int))];
    msghdr header{};
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    ssize_t received = -1;
    do {
        received = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
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

}  // namespace eddy::unix_socket
