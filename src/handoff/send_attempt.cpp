// Handoff in steps.
#include "handoff/send_attempt.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/net/descriptors.hpp>

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <utility>

namespace eddy::handoff {

result<send_attempt::wait> send_attempt::step() noexcept {
    EDDY_ASSERT(!rest_.empty());
    auto done = is_connected_ ? result<>() : connect();
    if (done) done = send();
    if (done) return wait::none;
    reason_ = done.error().category() == std::generic_category() ? done.error().value() : 0;
    // connect(2) fails with EAGAIN when the receiver's queue is full, for which there is no event.
    if (reason_ == EAGAIN) return is_connected_ ? wait::writable : wait::pause;
    if (reason_ == ETOOMANYREFS) return wait::pause;
    return fail(done.error());
}

bool send_attempt::is_abstract() const noexcept {
    const auto* const address = reinterpret_cast<const sockaddr_un*>(receiver_.data());
    return receiver_.size() > offsetof(sockaddr_un, sun_path) && address->sun_path[0] == '\0';
}

result<> send_attempt::connect() noexcept {
    for (;;) {
        if (!socket_) {
            const int type = kind_ == socket_kind::stream ? SOCK_STREAM : SOCK_SEQPACKET;
            socket_.reset(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            if (!socket_) return fail_errno();
        }
        if (::connect(socket_.get(), receiver_.data(), receiver_.size()) == 0) break;
        if (errno == EINTR) continue;
        // The two types have separate abstract names.
        const bool is_other_type = errno == EPROTOTYPE || (errno == ECONNREFUSED && is_abstract());
        if (!is_other_type || kind_ != socket_kind::automatic) return fail_errno();
        kind_ = socket_kind::stream;
        socket_.reset();
    }
    if (kind_ == socket_kind::automatic) kind_ = socket_kind::seqpacket;
    is_connected_ = true;
    return {};
}

result<> send_attempt::send() noexcept {
    while (!is_passed_) {
        const auto sent = unix_socket::send_descriptor(socket_.get(), rest_, client_);
        if (sent) {
            rest_.remove_prefix(*sent);
            is_passed_ = true;
        } else if (is_enlarged_ && sent.error() == errno_code(ENOBUFS)) {
            // The privileged may raise the buffer beyond what the kernel can then allocate.
            return fail_errno(EMSGSIZE);
        } else if (sent.error() != errno_code(EMSGSIZE) || !enlarge_buffer()) {
            return fail(sent.error());
        }
    }
    while (!rest_.empty()) {
        const ssize_t sent =
            ::send(socket_.get(), rest_.data(), rest_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
            rest_.remove_prefix(static_cast<std::size_t>(sent));
        else if (errno != EINTR)
            return fail_errno();
    }
    return {};
}

/// Makes room for the message as far as the system allows. False when that was tried before.
bool send_attempt::enlarge_buffer() noexcept {
    if (std::exchange(is_enlarged_, true)) return false;
    constexpr std::size_t overhead = 64;
    const int size = static_cast<int>(std::min<std::size_t>(rest_.size() + overhead, INT_MAX / 2));
    // The first one is for the privileged; the second one goes up to the system's limit.
    if (::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) == 0)
        return true;
    return ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0;
}

}  // namespace eddy::handoff
