// UDP sockets: binding, connecting, multicast groups by name.
#include <eddy/net/udp.hpp>

#include <eddy/io/timeout.hpp>
#include <eddy/net/resolver.hpp>

#include "net/address.hpp"

#include <net/if.h>

#include <charconv>
#include <utility>

namespace eddy::udp {
namespace {

task<result<datagram>> resolve_and_connect(std::string host, std::uint16_t port,
                                           connect_options options) {
    resolver& names = options.names ? *options.names : resolver::of_this_thread();
    auto addresses = co_await names.resolve(std::move(host), port);
    if (!addresses) co_return fail(addresses.error());
    std::error_code first;
    for (const endpoint& peer : *addresses) {
        auto connected = loop::current().connect_datagram(peer, options.socket);
        if (connected) co_return connected;
        if (!first) first = connected.error();
    }
    co_return fail(first);
}

result<> set_member(datagram& socket, std::string_view group, std::string_view interface,
                    bool member) {
    if (group.empty() || group == "*") return fail(errc::bad_address);
    const auto address = endpoint::ip(group, socket.local().port());
    if (!address) return fail(address.error());
    const auto index = interface_index(interface);
    if (!index) return fail(index.error());
    return member ? socket.join(*address, *index) : socket.leave(*address, *index);
}

}  // namespace

result<datagram> bind(std::string_view address, std::uint16_t port, const socket_options& options) {
    const auto local = address_to_bind(address, port);
    if (!local) return fail(local.error());
    return loop::current().bind_datagram(*local, options);
}

task<result<datagram>> connect(std::string host, std::uint16_t port, connect_options options) {
    return with_timeout(options.timeout, resolve_and_connect(std::move(host), port, options));
}

task<result<datagram>> connect(std::string_view host, std::uint16_t port) {
    return connect(std::string(host), port, connect_options());
}

result<std::uint32_t> interface_index(std::string_view name) {
    if (name.empty()) return 0;
    std::uint32_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    if (error == std::errc() && end == name.data() + name.size()) return index;
    index = if_nametoindex(std::string(name).c_str());
    if (index == 0) return fail_errno(ENODEV);
    return index;
}

result<> join(datagram& socket, std::string_view group, std::string_view interface) {
    return set_member(socket, group, interface, true);
}
result<> leave(datagram& socket, std::string_view group, std::string_view interface) {
    return set_member(socket, group, interface, false);
}

}  // namespace eddy::udp
