// Sockets of the kernel io-backends: opening, binding, naming; the inline send; the pool of receive
// buffers.
#include "io/posix/sockets.hpp"

#include "io/posix/posix_datagram.hpp"
#include "io/posix/signals.hpp"
#include "io/posix/unix_listener.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define EDDY_POISON_BUFFERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EDDY_POISON_BUFFERS 1
#endif
#endif
#if defined(EDDY_POISON_BUFFERS)
#include <sanitizer/asan_interface.h>
#endif

namespace eddy {
namespace {

result<> set_option(int fd, int level, int option, int value) noexcept {
    if (::setsockopt(fd, level, option, &value, sizeof(value)) < 0) return fail_errno();
    return {};
}

result<int> option_of(int fd, int option) noexcept {
    int value = 0;
    socklen_t size = sizeof(value);
    if (::getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0) return fail_errno();
    return value;
}

bool is_ip(const endpoint& address) noexcept {
    return address.family() == AF_INET || address.family() == AF_INET6;
}

bool is_ipv6_wildcard(const endpoint& address) noexcept {
    if (address.family() != AF_INET6) return false;
    sockaddr_in6 ipv6;
    std::memcpy(&ipv6, address.data(), sizeof(ipv6));
    return IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr);
}

/// A socket to be bound to `local`. On a kernel without IPv6 the dual-stack wildcard means the
/// IPv4 one, and `local` is changed to that.
result<unique_fd> open_for_bind(endpoint& local, int type, const listen_options& options) {
    unique_fd fd(::socket(local.family(), type | SOCK_CLOEXEC, 0));
    if (!fd && errno == EAFNOSUPPORT && options.dual_stack && is_ipv6_wildcard(local)) {
        auto ipv4 = endpoint::ip("0.0.0.0", local.port());
        if (!ipv4) return fail(ipv4.error());
        local = *ipv4;
        fd.reset(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    }
    if (!fd) return fail_errno();
    if (local.family() == AF_INET6)
        if (auto set = set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, !options.dual_stack); !set)
            return fail(set.error());
    if (options.reuse_port && is_ip(local))
        if (auto set = set_option(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1); !set)
            return fail(set.error());
    return fd;
}

result<> bind_to(int fd, const endpoint& local) noexcept {
    if (::bind(fd, local.data(), local.size()) < 0) return fail_errno();
    return {};
}

/// The socket file at `path`; none where there is no file or one of another kind.
socket_file file_at(const std::string& path) noexcept {
    struct stat info;
    if (path.empty() || ::lstat(path.c_str(), &info) < 0 || !S_ISSOCK(info.st_mode)) return {};
    return {info.st_dev, info.st_ino};
}

result<> bind_tcp(int fd, const endpoint& local) noexcept {
    // A restarted server must not wait until the connections of the old one have left TIME_WAIT.
    if (auto set = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1); !set) return set;
    if (auto set = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); !set) return set;
    return bind_to(fd, local);
}

result<> bind_outgoing(int fd, const endpoint& peer, const local_binding& from) noexcept {
    if (!is_ip(peer)) return fail(errc::unsupported);
    if (!from.device.empty()) {
        // The kernel would take the beginning of a longer name.
        if (from.device.size() >= IFNAMSIZ) return fail_errno(ENODEV);
        if (::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, from.device.data(),
                         static_cast<socklen_t>(from.device.size())) < 0)
            return fail_errno();
    }
    if (from.address.family() == AF_UNSPEC) return {};
    if (from.address.family() != peer.family()) return fail_errno(EAFNOSUPPORT);
    if (from.address.port() == 0) {
        // The port is then chosen only for this peer, and others may use the same one. Kernels
        // without the option have fewer ports.
        static_cast<void>(set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1));
    } else if (auto set = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1); !set) {
        return set;  // else the port would stay taken while the last connection is in TIME_WAIT
    }
    return bind_to(fd, from.address);
}

result<> bind_and_listen(int fd, const endpoint& local, const listen_options& options) noexcept {
    auto bound = local.is_unix() ? bind_to(fd, local) : bind_tcp(fd, local);
    if (!bound) return bound;
    if (::listen(fd, options.backlog) < 0) return fail_errno();
    return {};
}

result<opened_listener> open_listener_of_type(const endpoint& local, const listen_options& options,
                                              int type_and_flags) {
    if (auto usable = check_unix_mode(local, options); !usable) return fail(usable.error());
    endpoint address = local;
    auto fd = open_for_bind(address, type_and_flags, options);
    if (!fd) return fail(fd.error());
    if (!socket_path(address).empty()) {
        const auto file = listen_at_path(fd->get(), address, options);
        if (!file) return fail(file.error());
        return opened_listener{std::move(*fd), *file, address};
    }
    if (auto listens = bind_and_listen(fd->get(), address, options); !listens)
        return fail(listens.error());
    const endpoint chosen = local_endpoint(fd->get());
    return opened_listener{std::move(*fd), socket_file(), chosen};
}

}  // namespace

result<> check_unix_mode(const endpoint& local, const listen_options& options) noexcept {
    if (options.unix_mode >= 0 && is_abstract(local)) return fail_errno(EINVAL);
    return {};
}

socket_file file_of(const endpoint& local) noexcept { return file_at(socket_path(local)); }

void remove_socket_file(const endpoint& local, const socket_file& file) noexcept {
    if (file.inode == 0) return;
    const std::string path = socket_path(local);
    const socket_file there = file_at(path);
    if (there.device == file.device && there.inode == file.inode) ::unlink(path.c_str());
}

result<opened_listener> open_listener(const endpoint& local, const listen_options& options,
                                      bool nonblocking) {
    return open_listener_of_type(local, options, SOCK_STREAM | (nonblocking ? SOCK_NONBLOCK : 0));
}

result<opened_listener> open_unix_listener(const endpoint& local, const listen_options& options,
                                           int socket_type, bool nonblocking) {
    if (!local.is_unix()) return fail(errc::unsupported);
    return open_listener_of_type(local, options, socket_type | (nonblocking ? SOCK_NONBLOCK : 0));
}

result<opened_listener> adopt_listener(unique_fd socket) {
    const auto type = option_of(socket.get(), SO_TYPE);
    if (!type) return fail(type.error());
    if (*type != SOCK_STREAM) return fail(errc::unsupported);
    const auto listens = option_of(socket.get(), SO_ACCEPTCONN);
    if (!listens) return fail(listens.error());
    if (*listens == 0) return fail_errno(EINVAL);
    if (::fcntl(socket.get(), F_SETFD, FD_CLOEXEC) < 0) return fail_errno();
    if (is_tcp(socket.get()))
        if (auto set = set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1); !set)
            return fail(set.error());
    opened_listener adopted;
    adopted.local = local_endpoint(socket.get());
    adopted.socket = std::move(socket);
    adopted.is_adopted = true;
    return adopted;
}

result<unique_fd> open_datagram(const endpoint& local, const endpoint& peer,
                                const datagram_options& options, bool nonblocking) {
    const bool connecting = local.family() == AF_UNSPEC;
    endpoint address = connecting ? peer : local;
    if (!is_ip(address)) return fail(errc::unsupported);
    listen_options opening;
    opening.reuse_port = options.reuse_port;
    opening.dual_stack = options.dual_stack;
    auto fd = open_for_bind(address, SOCK_DGRAM | (nonblocking ? SOCK_NONBLOCK : 0), opening);
    if (!fd) return fd;
    if (options.reuse_address)
        if (auto set = set_option(fd->get(), SOL_SOCKET, SO_REUSEADDR, 1); !set)
            return fail(set.error());
    if (auto set = set_datagram_options(fd->get(), address.family(), options, true); !set)
        return fail(set.error());
    if (!connecting) {
        if (auto bound = bind_to(fd->get(), address); !bound) return fail(bound.error());
    } else if (::connect(fd->get(), address.data(), address.size()) < 0) {
        return fail_errno();
    }
    return fd;
}

result<unique_fd> open_for_connect(const endpoint& peer, const local_binding* from,
                                   bool nonblocking) {
    unique_fd fd(
        ::socket(peer.family(), SOCK_STREAM | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0), 0));
    if (!fd) return fail_errno();
    if (is_ip(peer))
        if (auto set = set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1); !set)
            return fail(set.error());
    if (from && !from->empty())
        if (auto bound = bind_outgoing(fd.get(), peer, *from); !bound) return fail(bound.error());
    return fd;
}

bool concerns_one_connection(int error) noexcept {
    switch (error) {
        case EINTR:
        case ECONNABORTED:
        case EPROTO:
        case ENOPROTOOPT:
        case ENETDOWN:
        case ENETUNREACH:
        case EHOSTDOWN:
        case EHOSTUNREACH:
        case ENONET: return true;
        default: return false;
    }
}

bool is_tcp(int fd) noexcept { return option_of(fd, SO_PROTOCOL) == IPPROTO_TCP; }

void reset_connection(int fd) noexcept {
    static_cast<void>(::connect(fd, &no_peer, sizeof(no_peer)));
}

void drop_unread(int fd) noexcept {
    std::byte dropped[16 * 1024];
    for (std::size_t total = 0; total < max_dropped;) {
        const ssize_t count = recv(fd, dropped, sizeof(dropped), MSG_DONTWAIT | MSG_TRUNC);
        if (count <= 0) return;
        total += static_cast<std::size_t>(count);
    }
}

endpoint local_endpoint(int fd) noexcept {
    endpoint address;
    socklen_t size = endpoint::capacity();
    if (::getsockname(fd, address.data(), &size) == 0) address.resize(size);
    return published(address);
}

endpoint peer_endpoint(int fd) noexcept {
    endpoint address;
    socklen_t size = endpoint::capacity();
    if (::getpeername(fd, address.data(), &size) == 0) {
        address.resize(size);
        return published(address);
    }
    if (errno != ENOTCONN) return address;
    // getpeername(2) refuses a connection that the peer has reset; this option still has the
    // address. It takes the size of the family's address and no larger one.
    constexpr socklen_t sizes[] = {sizeof(sockaddr_in6), sizeof(sockaddr_in)};
    for (const socklen_t exact : sizes) {
        size = exact;
        if (::getsockopt(fd, SOL_SOCKET, SO_PEERNAME, address.data(), &size) != 0) continue;
        address.resize(size);
        break;
    }
    return address;
}

std::size_t gather(const write_operation& op, iovec (&vectors)[max_write_pieces]) noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < op.pieces_left() && count < max_write_pieces; ++i) {
        const const_bytes piece = op.piece(i);
        if (piece.empty()) continue;
        // The kernel only reads what an iovec of a send points to.
        vectors[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
    }
    return count;
}

int send_now(int fd, write_operation& op) noexcept {
    constexpr int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    std::size_t left = most_bytes_a_turn;
    while (left > 0) {
        ssize_t sent;
        if (const const_bytes piece = op.piece(0); op.pieces_left() == 1 || piece.size() >= left) {
            sent = ::send(fd, piece.data(), std::min(piece.size(), left), flags);
        } else {
            iovec vectors[max_write_pieces];
            msghdr message{};
            message.msg_iov = vectors;
            message.msg_iovlen = gather(op, vectors);
            sent = ::sendmsg(fd, &message, flags);
        }
        if (sent >= 0) {
            const auto size = static_cast<std::size_t>(sent);
            if (op.advance(size)) return 0;
            left -= std::min(size, left);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return EINPROGRESS;
}

result<std::size_t> send_file_now(int socket, const_bytes head, int file, std::uint64_t offset,
                                  std::size_t size) noexcept {
    std::size_t done = 0;
    if (!head.empty()) {
        ssize_t sent;
        do {
            // The kernel keeps it for the packet of the file's first bytes.
            sent = ::send(socket, head.data(), head.size(),
                          MSG_DONTWAIT | MSG_NOSIGNAL | (size > 0 ? MSG_MORE : 0));
        } while (sent < 0 && errno == EINTR);
        if (sent < 0) return fail_errno();
        done = static_cast<std::size_t>(sent);
        if (done < head.size()) return done;
    }
    if (size == 0) return done;
    auto from = static_cast<off_t>(offset);
    const std::size_t wanted = std::min(size, stream::max_sent_of_file);
    no_broken_pipe_signal quiet;
    ssize_t sent;
    do {
        sent = ::sendfile(socket, file, &from, wanted);
    } while (sent < 0 && errno == EINTR);
    const int error = errno;
    if (sent != static_cast<ssize_t>(wanted)) quiet.take();
    if (sent > 0) return done + static_cast<std::size_t>(sent);
    if (done > 0) return done;  // the next call fails again
    if (sent == 0) return fail(errc::truncated);
    // Errors of sendfile(2) for files without pages to send.
    if (error == EINVAL || error == ENOSYS) return fail(errc::unsupported);
    return fail_errno(error);
}

bool concerns_file(std::error_code error) noexcept {
    return error == errc::truncated || error == errc::unsupported || error == std::errc::io_error ||
           error == std::errc::bad_file_descriptor || error == std::errc::value_too_large ||
           error == std::errc::not_enough_memory;
}

// A buffer that lies in the pool is poisoned under the address sanitizer, so that bytes used after
// their lease are seen.
buffer_pool::buffer_pool(std::uint32_t keep, std::uint32_t size, std::size_t most) noexcept
    : keep_(keep), size_(size), most_(most) {
    EDDY_ASSERT(size > 0 && most > 0);
    free_.reserve(keep);
}

buffer_pool::~buffer_pool() {
    EDDY_PRECONDITION(lent_ == 0, "a lease outlived its loop: return it before the loop ends");
    for (std::byte* data : free_) {
#if defined(EDDY_POISON_BUFFERS)
        ASAN_UNPOISON_MEMORY_REGION(data, size_);
#endif
        delete[] data;
    }
}

std::error_code buffer_pool::refusal() const noexcept {
    return lent_ >= most_ ? make_error_code(errc::no_buffers) : errno_code(ENOMEM);
}

std::byte* buffer_pool::take() noexcept {
    if (lent_ >= most_) return nullptr;
    std::byte* data;
    if (free_.empty()) {
        data = new (std::nothrow) std::byte[size_];
        if (!data) return nullptr;
    } else {
        data = free_.back();
        free_.pop_back();
#if defined(EDDY_POISON_BUFFERS)
        ASAN_UNPOISON_MEMORY_REGION(data, size_);
#endif
    }
    ++lent_;
    return data;
}

void buffer_pool::give_back(std::byte* data, std::uint32_t offset) noexcept {
    EDDY_ASSERT(lent_ > 0);
    data -= offset;
    --lent_;
    if (free_.size() == keep_) {
        delete[] data;
        return;
    }
#if defined(EDDY_POISON_BUFFERS)
    ASAN_POISON_MEMORY_REGION(data, size_);
#endif
    free_.push_back(data);
}

}  // namespace eddy
