// System calls of message sockets: many received by one recvmmsg(2), many sent by one sendmmsg(2),
// and the options. One call for many saves a quarter of a receive's time, and a fourteenth of a
// send's; io_uring requests are the most expensive way to send.
#include "io/posix/posix_datagram.hpp"

#include "io/posix/sockets.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace eddy {
namespace {

constexpr std::size_t name_at = sizeof(message_head);
constexpr std::size_t control_at = name_at + message_name_room;
constexpr std::size_t link_at = message_payload_at - sizeof(std::byte*);
constexpr std::size_t pool_control_room = link_at - control_at;
static_assert(CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(in6_pktinfo)) <= pool_control_room);
static_assert(sizeof(sockaddr_in6) <= message_name_room && control_at % alignof(cmsghdr) == 0);

message_head& head_of(std::byte* buffer) noexcept {
    return *reinterpret_cast<message_head*>(buffer);
}

std::byte* link_of(std::byte* buffer) noexcept {
    std::byte* next;
    std::memcpy(static_cast<void*>(&next), buffer + link_at, sizeof(next));
    return next;
}
void set_link(std::byte* buffer, std::byte* next) noexcept {
    std::memcpy(buffer + link_at, static_cast<const void*>(&next), sizeof(next));
}

void read_control(const cmsghdr& one, std::uint16_t port, datagram_message& into) noexcept {
    const unsigned char* data = CMSG_DATA(&one);
    if (one.cmsg_level == SOL_UDP && one.cmsg_type == UDP_GRO) {
        int size = 0;
        std::memcpy(&size, data, sizeof(size));
        if (size > 0) into.segment_size = static_cast<std::uint32_t>(size);
    } else if (one.cmsg_level == IPPROTO_IP && one.cmsg_type == IP_PKTINFO) {
        in_pktinfo info;
        std::memcpy(&info, data, sizeof(info));
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr = info.ipi_addr;
        into.to = endpoint(reinterpret_cast<const sockaddr*>(&to), sizeof(to));
        into.interface = static_cast<std::uint32_t>(info.ipi_ifindex);
    } else if (one.cmsg_level == IPPROTO_IPV6 && one.cmsg_type == IPV6_PKTINFO) {
        in6_pktinfo info;
        std::memcpy(&info, data, sizeof(info));
        sockaddr_in6 to{};
        to.sin6_family = AF_INET6;
        to.sin6_addr = info.ipi6_addr;
        if (IN6_IS_ADDR_LINKLOCAL(&to.sin6_addr)) to.sin6_scope_id = info.ipi6_ifindex;
        into.to = endpoint(reinterpret_cast<const sockaddr*>(&to), sizeof(to));
        into.interface = info.ipi6_ifindex;
    } else {
        return;
    }
    into.to.set_port(port);
}

/// The arguments of one sendmsg(2).
struct send_arguments {
    iovec vector;
    alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(std::uint16_t)) +
                                           CMSG_SPACE(sizeof(in6_pktinfo))];

    void fill(msghdr& header, const outgoing_datagram& from) noexcept {
        // The kernel only reads what a send's pointers point to.
        vector = {const_cast<std::byte*>(from.bytes.data()), from.bytes.size()};
        header = {};
        header.msg_iov = &vector;
        header.msg_iovlen = 1;
        if (from.to) {
            header.msg_name = const_cast<sockaddr*>(from.to->data());
            header.msg_namelen = from.to->size();
        }
        if (from.segment_size > 0 && from.bytes.size() > from.segment_size)
            add(header, SOL_UDP, UDP_SEGMENT, from.segment_size);
        if (from.from) add_source(header, *from.from);
    }

private:
    template <class T>
    void add(msghdr& header, int level, int type, const T& value) noexcept {
        header.msg_control = control;
        auto* const one = reinterpret_cast<cmsghdr*>(control + header.msg_controllen);
        header.msg_controllen += CMSG_SPACE(sizeof(value));
        one->cmsg_level = level;
        one->cmsg_type = type;
        one->cmsg_len = CMSG_LEN(sizeof(value));
        std::memcpy(CMSG_DATA(one), &value, sizeof(value));
    }
    void add_source(msghdr& header, const endpoint& source) noexcept {
        if (source.family() == AF_INET) {
            in_pktinfo info{};
            info.ipi_spec_dst = reinterpret_cast<const sockaddr_in*>(source.data())->sin_addr;
            add(header, IPPROTO_IP, IP_PKTINFO, info);
        } else if (source.family() == AF_INET6) {
            const auto& address = *reinterpret_cast<const sockaddr_in6*>(source.data());
            in6_pktinfo info{};
            info.ipi6_addr = address.sin6_addr;
            info.ipi6_ifindex = address.sin6_scope_id;
            add(header, IPPROTO_IPV6, IPV6_PKTINFO, info);
        }
    }
};

bool has_too_many_segments(const outgoing_datagram& one) noexcept {
    return one.segment_size > 0 &&
           one.bytes.size() > std::size_t{one.segment_size} * datagram::max_segments;
}

constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;

int send_one(int fd, const outgoing_datagram& one) noexcept {
    send_arguments arguments;
    msghdr header;
    arguments.fill(header, one);
    ssize_t sent;
    do {
        sent = ::sendmsg(fd, &header, send_flags);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0;
}

/// Sends as many as possible. `sent` is their number; returns the errno of the next one if none
/// went.
int send_batch(int fd, std::span<const outgoing_datagram> batch, std::size_t& sent) noexcept {
    sent = 0;
    if (has_too_many_segments(batch.front())) return EINVAL;
    if (batch.size() == 1) {
        const int error = send_one(fd, batch.front());
        sent = error == 0 ? 1 : 0;
        return error;
    }
    send_arguments arguments[datagram::max_batch];
    mmsghdr headers[datagram::max_batch];
    unsigned count = 0;
    for (const outgoing_datagram& one : batch) {
        if (has_too_many_segments(one)) break;
        arguments[count].fill(headers[count].msg_hdr, one);
        ++count;
    }
    int done;
    do {
        done = ::sendmmsg(fd, headers, count, send_flags);
    } while (done < 0 && errno == EINTR);
    if (done < 0) return errno;
    sent = static_cast<std::size_t>(done);
    return 0;
}

int family_of(int fd) noexcept {
    int domain = AF_UNSPEC;
    socklen_t size = sizeof(domain);
    ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    return domain;
}

/// The options as setsockopt(2) takes them; the first error stays.
class option_setter {
public:
    option_setter(int fd, bool opening) noexcept : fd_(fd), opening_(opening) {}

    template <class T>
    void set(int level, int name, const T& value) noexcept {
        if (error_ == 0 && ::setsockopt(fd_, level, name, &value, sizeof(value)) < 0)
            error_ = errno;
    }
    /// Changes nothing on a new socket that has that value already.
    void set_unless(int usual, int level, int name, int value) noexcept {
        if (!opening_ || value != usual) set(level, name, value);
    }
    result<> outcome() const noexcept {
        if (error_ != 0) return fail_errno(error_);
        return {};
    }

private:
    int fd_;
    bool opening_;
    int error_ = 0;
};

}  // namespace

void describe_message(std::byte* buffer, lease payload, std::uint16_t port,
                      datagram_message& into) noexcept {
    const message_head& head = head_of(buffer);
    into.segment_size = static_cast<std::uint32_t>(payload.size());
    into.payload = std::move(payload);
    into.truncated = (head.flags & MSG_TRUNC) != 0;
    if (head.name_size > 0 && head.name_size <= message_name_room) {
        std::memcpy(into.from.data(), buffer + name_at, message_name_room);
        into.from.resize(head.name_size);
    }
    if (head.control_size == 0) return;
    msghdr control{};
    control.msg_control = buffer + control_at;
    control.msg_controllen = head.control_size;
    for (cmsghdr* one = CMSG_FIRSTHDR(&control); one; one = CMSG_NXTHDR(&control, one))
        read_control(*one, port, into);
}

void message_queue::push(std::byte* buffer) noexcept {
    set_link(buffer, nullptr);
    if (first_)
        set_link(last_, buffer);
    else
        first_ = buffer;
    last_ = buffer;
}

std::byte* message_queue::pop() noexcept {
    std::byte* const buffer = first_;
    first_ = link_of(buffer);
    return buffer;
}

message_reader::~message_reader() {
    for (std::byte* buffer : buffers_)
        if (buffer) pool_->give_back(buffer, 0);
}

/// One for a place that has none: of the pool, or of a later place where the pool has no more.
std::byte* message_reader::buffer_for(unsigned place) noexcept {
    if (place == 0 || pool_->has_spare())
        if (std::byte* const fresh = pool_->take()) return fresh;
    for (unsigned later = place + 1; later < most; ++later)
        if (buffers_[later]) return std::exchange(buffers_[later], nullptr);
    return nullptr;
}

unsigned message_reader::prepare(unsigned wanted) noexcept {
    for (unsigned i = 0; i < wanted; ++i) {
        if (buffers_[i]) continue;
        std::byte* const buffer = buffer_for(i);
        if (!buffer) return i;
        buffers_[i] = buffer;
        vectors_[i] = {buffer + message_payload_at, pool_->buffer_size() - message_payload_at};
        msghdr& header = headers_[i].msg_hdr;
        header.msg_name = buffer + name_at;
        header.msg_namelen = message_name_room;
        header.msg_iov = &vectors_[i];
        header.msg_iovlen = 1;
        header.msg_control = buffer + control_at;
        header.msg_controllen = pool_control_room;
        header.msg_flags = 0;
    }
    return wanted;
}

message_reader::outcome message_reader::read(int fd, unsigned wanted,
                                             message_queue& into) noexcept {
    const unsigned ready = prepare(wanted);
    if (ready == 0) return {pool_->refusal() == errc::no_buffers ? ENOBUFS : ENOMEM, false};
    int count;
    do {
        count = ::recvmmsg(fd, headers_.data(), ready, MSG_DONTWAIT, nullptr);
    } while (count < 0 && errno == EINTR);
    if (count < 0) return {errno, true};
    const auto received = static_cast<unsigned>(count);
    for (unsigned i = 0; i < received; ++i) {
        std::byte* const buffer = std::exchange(buffers_[i], nullptr);
        const msghdr& header = headers_[i].msg_hdr;
        head_of(buffer) = {header.msg_namelen, static_cast<std::uint32_t>(header.msg_controllen),
                           headers_[i].msg_len, static_cast<std::uint32_t>(header.msg_flags)};
        into.push(buffer);
    }
    return {0, received < ready};
}

void message_reader::deliver(std::byte* buffer, std::uint16_t port,
                             datagram_message& into) noexcept {
    describe_message(buffer, pool_->lend(buffer, head_of(buffer).payload_size, message_payload_at),
                     port, into);
}

void message_reader::drop(message_queue& queue) noexcept {
    while (!queue.empty()) pool_->give_back(queue.pop(), 0);
}

result<> set_datagram_options(int fd, int family, const datagram_options& options,
                              bool opening) noexcept {
    if (family != AF_INET && family != AF_INET6) return {};
    const bool six = family == AF_INET6;
    option_setter to(fd, opening);
    to.set_unless(0, SOL_SOCKET, SO_BROADCAST, options.broadcast);
    to.set_unless(0, SOL_UDP, UDP_GRO, options.join_segments);
    to.set_unless(0, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_RECVPKTINFO : IP_PKTINFO,
                  options.local_address);
    if (options.receive_buffer > 0) to.set(SOL_SOCKET, SO_RCVBUF, options.receive_buffer);
    if (options.send_buffer > 0) to.set(SOL_SOCKET, SO_SNDBUF, options.send_buffer);
    // An IPv6 socket may send IPv4, too.
    if (options.ttl > 0) to.set(IPPROTO_IP, IP_TTL, options.ttl);
    if (options.traffic_class >= 0) to.set(IPPROTO_IP, IP_TOS, options.traffic_class);
    to.set_unless(1, IPPROTO_IP, IP_MULTICAST_TTL, options.multicast_ttl);
    to.set_unless(1, IPPROTO_IP, IP_MULTICAST_LOOP, options.multicast_loop);
    if (!opening || options.multicast_interface > 0) {
        ip_mreqn interface{};
        interface.imr_ifindex = static_cast<int>(options.multicast_interface);
        to.set(IPPROTO_IP, IP_MULTICAST_IF, interface);
    }
    if (six) {
        if (options.ttl > 0) to.set(IPPROTO_IPV6, IPV6_UNICAST_HOPS, options.ttl);
        if (options.traffic_class >= 0) to.set(IPPROTO_IPV6, IPV6_TCLASS, options.traffic_class);
        to.set_unless(1, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, options.multicast_ttl);
        to.set_unless(1, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, options.multicast_loop);
        to.set_unless(0, IPPROTO_IPV6, IPV6_MULTICAST_IF,
                      static_cast<int>(options.multicast_interface));
    }
    if (opening) {
        // Only members get a group's datagrams; else every socket of the port would, once any
        // process has joined. Old kernels lack it for IPv6.
        const int off = 0;
        ::setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off));
        if (six) ::setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off, sizeof(off));
    }
    return to.outcome();
}

posix_datagram::posix_datagram(unique_fd socket) noexcept
    : socket_(std::move(socket)),
      port_(local_endpoint(socket_.get()).port()),
      connected_(peer_endpoint(socket_.get()).family() != AF_UNSPEC) {}

result<std::size_t> posix_datagram::try_send(std::span<const outgoing_datagram> batch) noexcept {
    if (const int error = take_error(); error != 0) return fail_errno(error);
    // Waiting senders come first.
    if (senders_wait()) return fail_errno(EAGAIN);
    std::size_t sent = 0;
    if (const int error = send_batch(fd(), batch, sent); error != 0) return fail_errno(error);
    return sent;
}

/// True when `op` is finished, well or not.
bool posix_datagram::send(send_datagrams_operation& op) noexcept {
    for (;;) {
        std::size_t sent = 0;
        const int error = send_batch(fd(), op.left(), sent);
        op.count_sent(sent);
        if (error == EAGAIN) return false;
        if (error != 0) {
            op.set_error(errno_code(error));
            return true;
        }
        if (op.left().empty()) return true;
    }
}

bool posix_datagram::start(send_datagrams_operation& op) {
    if (const int error = take_error(); error != 0) {
        op.set_error(errno_code(error));
        return true;
    }
    const bool first = senders_.empty();
    if (first && send(op)) return true;
    senders_.push_back(op);
    if (first) wait_writable();
    return false;
}

void posix_datagram::send_waiting() noexcept {
    while (!senders_.empty()) {
        if (!send(senders_.front())) return wait_writable();
        senders_.pop_front().complete_later();
    }
}

void posix_datagram::end_senders(std::error_code error) noexcept {
    while (!senders_.empty()) {
        send_datagrams_operation& op = senders_.pop_front();
        op.set_error(error);
        op.complete_later();
    }
}

void posix_datagram::cancel(send_datagrams_operation& op) noexcept {
    op.list_link<datagram_driver>::unlink();
    op.set_error(errc::cancelled);
    op.complete_later();
}

result<> posix_datagram::connect(const endpoint& peer) noexcept {
    const bool dissolve = peer.family() == AF_UNSPEC;
    if (::connect(fd(), dissolve ? &no_peer : peer.data(),
                  dissolve ? static_cast<socklen_t>(sizeof(no_peer)) : peer.size()) < 0)
        return fail_errno();
    connected_ = !dissolve;
    port_ = local().port();
    return {};
}

result<> posix_datagram::set(const datagram_options& options) noexcept {
    return set_datagram_options(fd(), family_of(fd()), options, false);
}

result<> posix_datagram::set_member(const endpoint& group, std::uint32_t interface,
                                    bool member) noexcept {
    if (group.family() != AF_INET && group.family() != AF_INET6) return fail_errno(EAFNOSUPPORT);
    group_req request{};
    request.gr_interface = interface;
    std::memcpy(&request.gr_group, group.data(), group.size());
    const int level = group.family() == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    if (::setsockopt(fd(), level, member ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP, &request,
                     sizeof(request)) < 0)
        return fail_errno();
    return {};
}

}  // namespace eddy
