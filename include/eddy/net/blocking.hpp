// Blocking sockets, without a loop, for small clients, tools and tests.
//
//     auto peer = blocking::connect("example.org", 80);
//     if (!peer) return peer.error();
//     peer->set_timeout(std::chrono::seconds(5));
//     auto sent = peer->write_all("GET / HTTP/1.0\r\n\r\n");
//     auto size = peer->read_some(buffer);
//
// A wait ends with errc::timed_out after the socket's timeout. A timeout of zero makes the socket
// non-blocking: a call that would wait fails with errno EAGAIN. No coroutines, no allocation; an
// object belongs to one thread at a time. A connection can go to a loop:
// loop::adopt(peer.release()).
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/datagram.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/timer.hpp>

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Sockets without a loop.
namespace eddy::blocking {

/// Common part of all sockets here. A closed one fails with errc::closed. Any thread, one at a
/// time.
class socket {
public:
    /// True if it is open.
    explicit operator bool() const noexcept { return static_cast<bool>(fd_); }

    /// Limit on each later call, in all; duration::max(), the initial value, for none.
    void set_timeout(duration most) noexcept { timeout_ = most; }
    /// The value of set_timeout().
    duration timeout() const noexcept { return timeout_; }

    /// This end's address; empty when it is closed.
    endpoint local() const noexcept;
    /// The descriptor, still owned here; -1 when it is closed.
    int native_handle() const noexcept { return fd_.get(); }
    /// Gives the descriptor up to the caller: a stream's blocks, the others' do not (O_NONBLOCK).
    unique_fd release() noexcept { return std::move(fd_); }
    /// Closes it; the destructor does the same.
    void close() noexcept { fd_.reset(); }

    /// \cond
protected:
    socket() noexcept = default;
    explicit socket(unique_fd fd) noexcept : fd_(std::move(fd)) {}

    unique_fd fd_;
    duration timeout_ = duration::max();
    /// \endcond
};

/// A connected byte stream over TCP or a Unix socket. Any thread, one at a time.
class stream : public socket {
public:
    stream() noexcept = default;
    /// Takes over a connected socket, and clears its O_NONBLOCK. Errors are fcntl(2)'s, such as
    /// EBADF; the socket is closed then.
    [[nodiscard]] static result<stream> adopt(unique_fd connected);

    /// Waits for at least one byte. errc::end_of_stream when the peer has finished sending; `into`
    /// must not be empty.
    [[nodiscard]] result<std::size_t> read_some(mutable_bytes into) noexcept;
    /// Waits until `into` is full. errc::end_of_stream when the peer had finished before the first
    /// byte, errc::truncated when it finished in the middle. `received`, if given, says also after
    /// an error how many bytes came: they are the first of `into`.
    [[nodiscard]] result<> read_exactly(mutable_bytes into,
                                        std::size_t* received = nullptr) noexcept;
    /// Waits until at least one byte went to the kernel. EPIPE, never SIGPIPE.
    [[nodiscard]] result<std::size_t> write_some(const_bytes bytes) noexcept;
    /// Waits until all went to the kernel. After an error it is unknown how many did.
    [[nodiscard]] result<> write_all(const_bytes bytes) noexcept;
    /// The same for text.
    [[nodiscard]] result<> write_all(std::string_view text) noexcept {
        return write_all(as_bytes(text));
    }
    /// Signals the peer that no more bytes follow; errors are shutdown(2)'s.
    [[nodiscard]] result<> shutdown_write() noexcept;
    /// The other end's address; empty when it is closed. Also after the other end has reset the
    /// connection.
    endpoint peer() const noexcept;

private:
    friend class listener;
    explicit stream(unique_fd blocks) noexcept : socket(std::move(blocks)) {}
};

/// An accepting socket, TCP or Unix. Any thread, one at a time.
class listener : public socket {
public:
    listener() noexcept = default;
    /// Waits for a connection. TCP streams have TCP_NODELAY set. EMFILE and the like pass.
    [[nodiscard]] result<stream> accept() noexcept;
    /// The address that it listens on, with the port that the kernel chose for port 0; empty when
    /// it is closed.
    endpoint local() const noexcept { return native_handle() < 0 ? endpoint() : local_; }
    /// Closes it; so does the destructor. The file of a Unix listener goes if it is still its own.
    void close() noexcept;
    ~listener() { close(); }
    /// The other one is closed afterwards.
    listener(listener&&) noexcept = default;
    /// Closes its own socket first. `other` is closed afterwards.
    listener& operator=(listener&& other) noexcept;

private:
    friend result<listener> listen(const endpoint& local, const listen_options& options);
    using socket::socket;

    endpoint local_;
    // Identity of a Unix listener's file.
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

/// A UDP socket. Any thread, one at a time.
class datagram : public socket {
public:
    datagram() noexcept = default;
    /// A datagram that came.
    struct received {
        std::size_t size = 0;  ///< bytes in the caller's buffer

        /// The sender's address.
        endpoint from;
        bool truncated = false;  ///< it was longer than the buffer; its end is lost
    };

    /// Waits for a datagram, whose bytes go into `into`. An empty one is a message like others.
    /// errc::timed_out, or recvmsg(2)'s errors: ECONNREFUSED when no socket is bound at the
    /// connected peer; call again.
    [[nodiscard]] result<received> receive(mutable_bytes into) noexcept;
    /// Sends one datagram, to the connected peer if `to` is empty. errc::timed_out when the kernel
    /// had no room for so long, or sendto(2)'s errors: EMSGSIZE for more than fits into a datagram.
    [[nodiscard]] result<> send_to(const_bytes bytes, const endpoint& to) noexcept;
    /// Sends to and receives from only `peer` from now on; errors are connect(2)'s.
    [[nodiscard]] result<> connect(const endpoint& peer) noexcept;

private:
    friend result<datagram> bind(const endpoint& local, const datagram_options& options);
    using socket::socket;
};

/// The addresses of a host, IPv6 and IPv4, as getaddrinfo(3) orders them; numeric ones too. Waits
/// for the system's resolver, for which there is no timeout. errc::name_not_found,
/// errc::resolver_failed, errc::bad_address.
[[nodiscard]] result<std::vector<endpoint>> resolve(const std::string& host, std::uint16_t port);

/// Connects to one address, `from` an address or device of this machine. errc::timed_out after
/// `timeout`, or connect(2)'s error; a Unix socket waits so long for room in the backlog of its
/// listener, and without time fails with EAGAIN. TCP_NODELAY is set; tcp::apply() takes its
/// native_handle().
[[nodiscard]] result<stream> connect(const endpoint& peer, duration timeout = duration::max(),
                                     const local_binding& from = {}) noexcept;
/// Connects to the first address of a host that answers. The error is the last one's.
[[nodiscard]] result<stream> connect(const std::string& host, std::uint16_t port,
                                     duration timeout_each = std::chrono::seconds(10),
                                     const local_binding& from = {});

/// As tcp::listen() and unix_socket::listen(), for endpoint::ip() and endpoint::unix_path().
[[nodiscard]] result<listener> listen(const endpoint& local, const listen_options& options = {});
/// As udp::bind(), but datagrams always come one by one.
[[nodiscard]] result<datagram> bind(const endpoint& local, const datagram_options& options = {});

}  // namespace eddy::blocking
