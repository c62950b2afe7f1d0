// Blocking sockets. A call that may wait for ever waits in the system call itself, which is the
// only one then. One with a timeout tries, and waits in ppoll(2) for what is left: the kernel's own
// timeouts (SO_RCVTIMEO) are for one call, and as coarse as its timer's ticks.
#include <eddy/net/blocking.hpp>

#include <eddy/base/assert.hpp>

#include "io/posix/posix_datagram.hpp"
#include "io/posix/sockets.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

namespace eddy::blocking {
namespace {

/// Remaining time of a call. The clock is read only once a call has to wait.
class patience {
public:
    explicit patience(duration most) noexcept : left_(most) {}

    /// Flags with which recv(2) and its like wait, or not, on a socket that blocks.
    int flags() const noexcept { return left_ == duration::max() ? 0 : MSG_DONTWAIT; }

    /// Waits for readiness. Errors and hang-ups count: the next try reports them.
    result<> wait(int fd, short events) noexcept {
        if (left_ <= duration::zero())
            return ever_waited_ ? fail(errc::timed_out) : fail_errno(EAGAIN);
        for (;;) {
            pollfd watched{fd, events, 0};
            timespec room{};
            const auto begin = std::chrono::steady_clock::now();
            const bool ends = left_ != duration::max();
            if (ends) {
                room.tv_sec = static_cast<time_t>(left_.count() / 1'000'000'000);
                room.tv_nsec = static_cast<long>(left_.count() % 1'000'000'000);
            }
            const int ready = ::ppoll(&watched, 1, ends ? &room : nullptr, nullptr);
            const int error = errno;
            ever_waited_ = true;
            if (ends) left_ -= std::chrono::steady_clock::now() - begin;
            if (ready > 0) return {};
            if (ready < 0 && error != EINTR) return fail_errno(error);
            if (ready == 0 || left_ <= duration::zero()) return fail(errc::timed_out);
        }
    }

private:
    duration left_;
    bool ever_waited_ = false;
};

/// Repeats `attempt`, a system call, until it succeeds, fails for good, or the time has passed.
template <class Attempt>
result<std::size_t> persist(int fd, short events, patience& time, Attempt attempt) noexcept {
    if (fd < 0) return fail(errc::closed);
    for (;;) {
        const ssize_t outcome = attempt();
        if (outcome >= 0) return static_cast<std::size_t>(outcome);
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return fail_errno();
        if (auto ready = time.wait(fd, events); !ready) return fail(ready.error());
    }
}

result<> make_blocking(int fd) noexcept {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0) return fail_errno();
    return {};
}

result<std::size_t> read_once(int fd, mutable_bytes into, patience& time) noexcept {
    auto size = persist(fd, POLLIN, time,
                        [&] { return ::recv(fd, into.data(), into.size(), time.flags()); });
    if (size && *size == 0) return fail(errc::end_of_stream);
    return size;
}

/// Without MSG_DONTWAIT in `flags` the kernel waits until it has all bytes.
result<std::size_t> write_once(int fd, const_bytes bytes, patience& time, int flags) noexcept {
    return persist(fd, POLLOUT, time,
                   [&] { return ::send(fd, bytes.data(), bytes.size(), flags | MSG_NOSIGNAL); });
}

}  // namespace

endpoint socket::local() const noexcept { return local_endpoint(fd_.get()); }

result<stream> stream::adopt(unique_fd connected) {
    if (auto made = make_blocking(connected.get()); !made) return fail(made.error());
    return stream(std::move(connected));
}

endpoint stream::peer() const noexcept { return peer_endpoint(fd_.get()); }

result<std::size_t> stream::read_some(mutable_bytes into) noexcept {
    EDDY_PRECONDITION(!into.empty(), "a read into an empty span: it has to hold at least one byte");
    patience time(timeout_);
    return read_once(fd_.get(), into, time);
}

result<> stream::read_exactly(mutable_bytes into, std::size_t* received) noexcept {
    patience time(timeout_);
    std::size_t total = 0;
    if (received) *received = 0;
    while (total < into.size()) {
        const auto size = read_once(fd_.get(), into.subspan(total), time);
        if (!size && total > 0 && size.error() == errc::end_of_stream) return fail(errc::truncated);
        if (!size) return fail(size.error());
        total += *size;
        if (received) *received = total;
    }
    return {};
}

result<std::size_t> stream::write_some(const_bytes bytes) noexcept {
    patience time(timeout_);
    return write_once(fd_.get(), bytes, time, MSG_DONTWAIT);
}

result<> stream::write_all(const_bytes bytes) noexcept {
    patience time(timeout_);
    while (!bytes.empty()) {
        const auto size = write_once(fd_.get(), bytes, time, time.flags());
        if (!size) return fail(size.error());
        bytes = bytes.subspan(*size);
    }
    return {};
}

result<> stream::shutdown_write() noexcept {
    if (!fd_) return fail(errc::closed);
    if (::shutdown(fd_.get(), SHUT_WR) < 0) return fail_errno();
    return {};
}

void listener::close() noexcept {
    if (fd_) remove_socket_file(local_, {device_, inode_});
    socket::close();
}

listener& listener::operator=(listener&& other) noexcept {
    if (this != &other) {
        close();
        socket::operator=(std::move(other));
        local_ = other.local_;
        device_ = other.device_;
        inode_ = other.inode_;
    }
    return *this;
}

result<stream> listener::accept() noexcept {
    patience time(timeout_);
    for (;;) {
        const auto accepted = persist(fd_.get(), POLLIN, time, [&] {
            return ::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC);
        });
        if (accepted) return stream(unique_fd(static_cast<int>(*accepted)));
        const std::error_code error = accepted.error();
        const bool concerns_one =
            error.category() == std::generic_category() && concerns_one_connection(error.value());
        if (!concerns_one) return fail(error);
    }
}

result<datagram::received> datagram::receive(mutable_bytes into) noexcept {
    patience time(timeout_);
    received got;
    iovec room{into.data(), into.size()};
    msghdr message{};
    const auto size = persist(fd_.get(), POLLIN, time, [&] {
        message = {};
        message.msg_name = got.from.data();
        message.msg_namelen = endpoint::capacity();
        message.msg_iov = &room;
        message.msg_iovlen = 1;
        return ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    });
    if (!size) return fail(size.error());
    got.size = *size;
    got.from.resize(message.msg_namelen);
    got.truncated = (message.msg_flags & MSG_TRUNC) != 0;
    return got;
}

result<> datagram::send_to(const_bytes bytes, const endpoint& to) noexcept {
    patience time(timeout_);
    const bool connected = to.family() == AF_UNSPEC;
    const auto sent = persist(fd_.get(), POLLOUT, time, [&] {
        return ::sendto(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                        connected ? nullptr : to.data(), connected ? 0 : to.size());
    });
    if (!sent) return fail(sent.error());
    return {};
}

result<> datagram::connect(const endpoint& peer) noexcept {
    if (!fd_) return fail(errc::closed);
    if (::connect(fd_.get(), peer.data(), peer.size()) < 0) return fail_errno();
    return {};
}

result<std::vector<endpoint>> resolve(const std::string& host, std::uint16_t port) {
    if (host.empty()) return fail(errc::bad_address);
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    addrinfo* first = nullptr;
    const int outcome = ::getaddrinfo(host.c_str(), nullptr, &hints, &first);
    switch (outcome) {
        case 0: break;
        case EAI_NONAME:
        case EAI_NODATA:
        case EAI_ADDRFAMILY: return fail(errc::name_not_found);
        default: return fail(errc::resolver_failed);
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, &::freeaddrinfo);
    std::vector<endpoint> found;
    for (const addrinfo* one = first; one; one = one->ai_next) {
        endpoint address(one->ai_addr, one->ai_addrlen);
        address.set_port(port);
        found.push_back(address);
    }
    return found;
}

namespace {

/// Limit on the waits of a blocking socket's connect(2) and send(2); zero for none.
result<> limit_waits(int fd, duration most) noexcept {
    constexpr std::int64_t a_second = 1'000'000;
    constexpr std::int64_t longest = 1'000'000 * a_second;  // as good as none
    const std::int64_t wanted = (most.count() + 999) / 1000;
    const std::int64_t time = std::min(wanted, longest);
    const timeval value{static_cast<time_t>(time / a_second),
                        static_cast<suseconds_t>(time % a_second)};
    if (::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof(value)) < 0) return fail_errno();
    return {};
}

/// While the listener's backlog is full, the call itself waits: no event reports room in it.
result<stream> connect_unix(const endpoint& peer, duration timeout,
                            const local_binding& from) noexcept {
    const bool waits = timeout > duration::zero();
    auto fd = open_for_connect(peer, &from, !waits);
    if (!fd) return fail(fd.error());
    const bool ends = waits && timeout != duration::max();
    const auto begin = std::chrono::steady_clock::now();
    for (duration left = timeout;;) {
        if (ends)
            if (auto set = limit_waits(fd->get(), left); !set) return fail(set.error());
        if (::connect(fd->get(), peer.data(), peer.size()) == 0) break;
        if (errno == EAGAIN && waits) return fail(errc::timed_out);
        if (errno != EINTR) return fail_errno();
        if (!ends) continue;
        left = timeout - (std::chrono::steady_clock::now() - begin);
        if (left <= duration::zero()) return fail(errc::timed_out);
    }
    if (ends)
        if (auto set = limit_waits(fd->get(), duration::zero()); !set) return fail(set.error());
    return stream::adopt(std::move(*fd));
}

}  // namespace

result<stream> connect(const endpoint& peer, duration timeout, const local_binding& from) noexcept {
    if (peer.is_unix()) return connect_unix(peer, timeout, from);
    auto fd = open_for_connect(peer, &from, true);
    if (!fd) return fail(fd.error());
    patience time(timeout);
    if (::connect(fd->get(), peer.data(), peer.size()) < 0) {
        // EINTR, too, leaves the connection on its way.
        if (errno != EINPROGRESS && errno != EINTR) return fail_errno();
        if (auto ready = time.wait(fd->get(), POLLOUT); !ready) return fail(ready.error());
        int error = 0;
        socklen_t size = sizeof error;
        if (::getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &error, &size) < 0) return fail_errno();
        if (error != 0) return fail_errno(error);
    }
    return stream::adopt(std::move(*fd));
}

result<stream> connect(const std::string& host, std::uint16_t port, duration timeout_each,
                       const local_binding& from) {
    const auto addresses = resolve(host, port);
    if (!addresses) return fail(addresses.error());
    result<stream> connected = fail(errc::name_not_found);
    for (const endpoint& one : *addresses) {
        connected = connect(one, timeout_each, from);
        if (connected) break;
    }
    return connected;
}

result<listener> listen(const endpoint& local, const listen_options& options) {
    auto opened = open_listener(local, options, true);
    if (!opened) return fail(opened.error());
    listener made(std::move(opened->socket));
    made.local_ = opened->local;
    made.device_ = opened->file.device;
    made.inode_ = opened->file.inode;
    return made;
}

result<datagram> bind(const endpoint& local, const datagram_options& options) {
    datagram_options apart = options;
    apart.join_segments = false;  // nothing here reports the segments' size
    auto fd = open_datagram(local, endpoint(), apart, true);
    if (!fd) return fail(fd.error());
    return datagram(std::move(*fd));
}

}  // namespace eddy::blocking
