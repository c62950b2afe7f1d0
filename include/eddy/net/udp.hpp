// UDP: message sockets bound to an address or connected to a host by name, and multicast groups.
// Their operations are in <eddy/io/datagram.hpp>. One loop's thread.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/datagram.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy {
class resolver;
}

/// UDP by name, and multicast groups. One loop's thread for everything here.
namespace eddy::udp {

/// The most bytes that one IPv4 datagram carries; a longer one is EMSGSIZE.
inline constexpr std::size_t max_payload = 65507;

/// udp(7), ip(7), ipv6(7), socket(7). datagram::set() changes them later.
using socket_options = datagram_options;

/// Binds a socket on the running loop. `address` as for tcp::listen(). Errors: errc::bad_address,
/// bind(2)'s, setsockopt(2)'s.
[[nodiscard]] result<datagram> bind(std::string_view address, std::uint16_t port,
                                    const socket_options& options = {});

/// Options of connect().
struct connect_options {
    /// For the name's lookup, from when the task is awaited; then errc::timed_out.
    duration timeout = std::chrono::seconds(30);
    /// The resolver of names; null for the thread's own. It must outlive the connect.
    resolver* names = nullptr;
    /// Options that the socket is opened with.
    socket_options socket;
};

/// Yields a socket that sends to one host, by name or numeric address, and receives only from it:
/// the first of its addresses, in the resolver's order, to which this machine has a route. Nothing
/// is sent, so a host that is not there is noticed only later, as ECONNREFUSED or by silence.
/// Errors: the resolver's, errc::timed_out, errc::cancelled, connect(2)'s of the first address.
task<result<datagram>> connect(std::string host, std::uint16_t port, connect_options options);
/// The same with default options. The name is copied.
task<result<datagram>> connect(std::string_view host, std::uint16_t port);

/// An interface's index from its name or number; 0, the default route's, for "". ENODEV when there
/// is none.
[[nodiscard]] result<std::uint32_t> interface_index(std::string_view name);

/// Joins a multicast group, a numeric address, on an interface by its name or index; ""
/// lets the routes decide. Errors are those of interface_index() and datagram::join(), and
/// errc::bad_address for what is no address.
[[nodiscard]] result<> join(datagram& socket, std::string_view group,
                            std::string_view interface = {});
/// Leaves a group that was joined with the same arguments. Errors are those of interface_index()
/// and datagram::leave(), and errc::bad_address as with join().
[[nodiscard]] result<> leave(datagram& socket, std::string_view group,
                             std::string_view interface = {});

}  // namespace eddy::udp
