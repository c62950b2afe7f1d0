// TCP: listening, connecting to a host by name, socket options. One loop's thread.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy {
class resolver;
}

/// TCP: listening, connecting by name, options. One loop's thread for everything here.
namespace eddy::tcp {

/// tcp(7), socket(7).
struct socket_options {
    /// Send small pieces at once (TCP_NODELAY). Eddy's sockets start with it set.
    bool nodelay = true;
    /// Detect a peer that vanished silently: after `keepalive_idle` without traffic it is probed
    /// every `keepalive_interval`, and given up after `keepalive_probes` probes without an answer,
    /// which ends waits with ETIMEDOUT. The kernel counts whole seconds, 1 to 32767.
    bool keepalive = false;
    /// TCP_KEEPIDLE.
    std::chrono::seconds keepalive_idle{60};
    /// TCP_KEEPINTVL.
    std::chrono::seconds keepalive_interval{10};
    /// TCP_KEEPCNT.
    int keepalive_probes = 6;
    /// Kernel buffers in bytes, SO_SNDBUF and SO_RCVBUF; 0 leaves them to the kernel, which then
    /// adapts them to the connection.
    int send_buffer = 0;
    /// SO_RCVBUF.
    int receive_buffer = 0;
    /// SO_LINGER. Zero: closing resets the connection, and what was not sent is lost; no TIME_WAIT
    /// stays. More: close(2) waits so long, in whole seconds, until the peer has confirmed all.
    /// That would stop a loop: streams refuse it with errc::unsupported. Without a value it stays
    /// as it is.
    std::optional<std::chrono::seconds> linger = std::nullopt;
    /// TCP_USER_TIMEOUT: most milliseconds that sent bytes may stay unconfirmed before waits end
    /// with ETIMEDOUT; zero is the system's default. Without a value it stays as it is.
    std::optional<std::chrono::milliseconds> user_timeout = std::nullopt;
    /// The byte with DSCP in its upper six bits (IP_TOS, IPV6_TCLASS), 0 to 255; -1 leaves it as it
    /// is. TCP keeps the lowest two bits to itself.
    int traffic_class = -1;
};

/// Options with keepalive for a server of many clients: a peer that is silent for `idle` is probed
/// then, and every third of that time, and given up after three probes, so after twice the time in
/// all. Zero: without keepalive.
socket_options keepalive_after(std::chrono::seconds idle) noexcept;

/// Applies the options to a connected stream; errors are setsockopt(2)'s, and errc::unsupported for
/// a `linger` that waits. With TLS they reach the socket below. Does nothing on streams that are no
/// TCP sockets.
[[nodiscard]] result<> apply(const stream& connection, const socket_options& options) noexcept;

/// The same for a descriptor, such as that of a blocking::stream, whose close() may wait, or of a
/// listener: the sockets that it accepts inherit them.
[[nodiscard]] result<> apply(int socket, const socket_options& options) noexcept;

/// Options of connect().
struct connect_options {
    /// For all attempts together, the name's lookup included, from when the task is awaited; then
    /// errc::timed_out.
    duration timeout = std::chrono::seconds(30);
    /// Head start of one address before the next one is tried (RFC 8305, section 5).
    duration attempt_delay = std::chrono::milliseconds(250);
    /// The resolver of names; null for the thread's own. It must outlive the connect.
    resolver* names = nullptr;
    /// Applied to the connection before it is returned.
    socket_options socket;
    /// Local side of the connection. Addresses of another family than `local.address` fail.
    local_binding local = {};
};

/// Listens on the running loop. `address` is numeric, "localhost" (which is 127.0.0.1), or "" or
/// "*" for every address of the machine, IPv4 and IPv6 alike where the kernel has both. Port 0 lets
/// the kernel choose; listener::local() returns it. Errors: errc::bad_address, bind(2)'s and
/// listen(2)'s.
[[nodiscard]] result<listener> listen(std::string_view address, std::uint16_t port,
                                      const listen_options& options = {});

/// Connects to a name or a numeric address: resolves it, then tries its addresses, IPv6 first and
/// families in turn, each after `attempt_delay` or as soon as the one before has failed. The first
/// connection wins, the other attempts are cancelled (Happy Eyeballs, RFC 8305). Yields a
/// result<stream>. Fails with the resolver's error, errc::timed_out, errc::cancelled, or
/// connect(2)'s error of the address that came furthest.
task<result<stream>> connect(std::string host, std::uint16_t port, connect_options options);
/// The same with default options. The name is copied.
task<result<stream>> connect(std::string_view host, std::uint16_t port);

/// The same for addresses already known, in the order given. Ports are theirs; `options.names`
/// is not used. An empty list is errc::bad_address.
task<result<stream>> connect_any(std::vector<endpoint> addresses, connect_options options);

/// The order in which connect() tries addresses: the families alternate, IPv6 begins, and within a
/// family the order stays (RFC 8305, section 4).
std::vector<endpoint> interleave_families(std::vector<endpoint> addresses);

}  // namespace eddy::tcp
