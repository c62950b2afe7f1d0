// Common parts of io_uring and epoll for message sockets: the layout of a received message in its
// buffer, reading many with one system call, sending, and options.
#pragma once

#include <eddy/io/datagram.hpp>

#include "io/posix/sockets.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

namespace eddy {

/// Head of a receive buffer, as a multishot receive of io_uring writes it
/// (io_uring_prep_recvmsg_multishot(3)). The sender's address, the control messages and the payload
/// follow, each at its fixed place.
struct message_head {
    std::uint32_t name_size;
    std::uint32_t control_size;
    std::uint32_t payload_size;
    std::uint32_t flags;  // MSG_TRUNC
};

/// Room for an IPv4 or IPv6 address; a Unix peer's name that does not fit is left out.
inline constexpr std::uint32_t message_name_room = 32;
/// Room for UDP_GRO (24 bytes) and IPV6_PKTINFO (40), and in buffers of the pool for a link.
inline constexpr std::uint32_t message_control_room = 80;
inline constexpr std::uint32_t message_payload_at =
    sizeof(message_head) + message_name_room + message_control_room;

/// Fills `into` from the message in `buffer`. `payload` is lent already; `port` is the socket's
/// own.
void describe_message(std::byte* buffer, lease payload, std::uint16_t port,
                      datagram_message& into) noexcept;

/// Messages in buffers of a pool, chained through these.
class message_queue {
public:
    bool empty() const noexcept { return first_ == nullptr; }
    void push(std::byte* buffer) noexcept;
    std::byte* pop() noexcept;

private:
    std::byte* first_ = nullptr;
    std::byte* last_ = nullptr;
};

/// Reads messages into buffers of a pool, which must have room for the head of each. The headers
/// for the system call stay prepared from one call to the next.
class message_reader {
public:
    /// Most messages of one system call; what one socket's queue holds at most.
    static constexpr unsigned most = 16;

    explicit message_reader(buffer_pool& pool) noexcept : pool_(&pool) {}
    ~message_reader();
    message_reader(const message_reader&) = delete;
    message_reader& operator=(const message_reader&) = delete;

    struct outcome {
        int error = 0;        // EAGAIN: there was none; ENOBUFS: the pool lends no more
        bool drained = true;  // fewer than requested
    };
    /// Reads up to `wanted` messages without waiting; only one while the pool is used up.
    outcome read(int fd, unsigned wanted, message_queue& into) noexcept;
    /// Lends a read message out as a lease.
    void deliver(std::byte* buffer, std::uint16_t port, datagram_message& into) noexcept;
    void drop(message_queue& queue) noexcept;

private:
    unsigned prepare(unsigned wanted) noexcept;
    std::byte* buffer_for(unsigned place) noexcept;

    buffer_pool* pool_;
    std::array<std::byte*, most> buffers_{};
    std::array<iovec, most> vectors_{};
    std::array<mmsghdr, most> headers_{};
};

/// Result of a receive that met this errno.
inline std::error_code receive_error(int error) noexcept {
    return error == ENOBUFS ? make_error_code(errc::no_buffers) : errno_code(error);
}

/// Options of a new socket (`opening`: defaults need not be set) or of any.
result<> set_datagram_options(int fd, int family, const datagram_options& options,
                              bool opening) noexcept;

/// A UDP socket bound to `local`, or connected to `peer` where `local` is empty; close-on-exec.
result<unique_fd> open_datagram(const endpoint& local, const endpoint& peer,
                                const datagram_options& options, bool nonblocking);

/// The part of a driver that needs only the socket. Sends are made at once; sends that wait for
/// room are in a list.
class posix_datagram : public datagram_driver {
public:
    bool start(send_datagrams_operation& op) final;
    void cancel(send_datagrams_operation& op) noexcept final;
    result<std::size_t> try_send(std::span<const outgoing_datagram> batch) noexcept final;
    result<> connect(const endpoint& peer) noexcept final;
    result<> set(const datagram_options& options) noexcept final;
    result<> set_member(const endpoint& group, std::uint32_t interface, bool member) noexcept final;
    endpoint local() const noexcept final { return local_endpoint(fd()); }
    endpoint peer() const noexcept final { return peer_endpoint(fd()); }
    int native_handle() const noexcept final { return fd(); }

protected:
    explicit posix_datagram(unique_fd socket) noexcept;
    ~posix_datagram() = default;

    int fd() const noexcept { return socket_.get(); }
    std::uint16_t port() const noexcept { return port_; }
    bool connected() const noexcept { return connected_; }
    void close_socket() noexcept { socket_.reset(); }

    /// Requests a call of send_waiting() once the socket has room.
    virtual void wait_writable() noexcept = 0;
    bool senders_wait() const noexcept { return !senders_.empty(); }
    /// Sends as much as possible; waits for room for the rest.
    void send_waiting() noexcept;
    void end_senders(std::error_code error) noexcept;

    /// An errno of the socket that a receive in the kernel met; the next call gets it.
    void note_error(int error) noexcept { error_ = error; }
    int take_error() noexcept { return std::exchange(error_, 0); }

private:
    bool send(send_datagrams_operation& op) noexcept;

    unique_fd socket_;
    intrusive_list<send_datagrams_operation, datagram_driver> senders_;
    int error_ = 0;
    std::uint16_t port_;
    bool connected_;
};

}  // namespace eddy
