// Comparison of destinations by their scopes, labels and precedences (RFC 6724, section 2.1).
#include "net/address_order.hpp"

#include <eddy/base/unique_fd.hpp>

#include "io/posix/sockets.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

namespace eddy {
namespace {

using ip_bytes = std::array<std::uint8_t, 16>;

constexpr ip_bytes mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/// An IPv4 address in its IPv6 form, ::ffff:a.b.c.d.
ip_bytes bytes_of(const endpoint& address) noexcept {
    ip_bytes bytes{};
    if (address.family() == AF_INET6) {
        const auto* six = reinterpret_cast<const sockaddr_in6*>(address.data());
        std::memcpy(bytes.data(), &six->sin6_addr, bytes.size());
    } else {
        const auto* four = reinterpret_cast<const sockaddr_in*>(address.data());
        bytes = mapped_prefix;
        std::memcpy(bytes.data() + 12, &four->sin_addr, 4);
    }
    return bytes;
}

unsigned common_bits(const ip_bytes& a, const ip_bytes& b) noexcept {
    for (std::size_t i = 0; i < a.size(); ++i)
        for (unsigned bit = 0; bit < 8; ++bit)
            if (((a[i] ^ b[i]) & (0x80U >> bit)) != 0) return static_cast<unsigned>(8 * i) + bit;
    return 128;
}

bool is_mapped(const ip_bytes& address) noexcept {
    return common_bits(address, mapped_prefix) >= 96;
}

/// As the scopes of multicast addresses are numbered.
unsigned scope_of(const ip_bytes& address) noexcept {
    constexpr unsigned link_local = 2;
    constexpr unsigned site_local = 5;
    constexpr unsigned global = 14;
    if (is_mapped(address)) {
        const bool is_near = address[12] == 127 || (address[12] == 169 && address[13] == 254);
        return is_near ? link_local : global;
    }
    if (address[0] == 0xff) return address[1] & 0x0fU;
    constexpr ip_bytes loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    if (address == loopback || common_bits(address, {0xfe, 0x80}) >= 10) return link_local;
    return common_bits(address, {0xfe, 0xc0}) >= 10 ? site_local : global;
}

struct policy {
    ip_bytes prefix;
    unsigned bits;
    int precedence;
    int label;
};

/// The longest prefixes first.
constexpr std::array<policy, 9> policies{{
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 50, 0},
    {mapped_prefix, 96, 35, 4},
    {{}, 96, 1, 3},
    {{0x20, 0x01}, 32, 5, 5},
    {{0x20, 0x02}, 16, 30, 2},
    {{0x3f, 0xfe}, 16, 1, 12},
    {{0xfe, 0xc0}, 10, 1, 11},
    {{0xfc}, 7, 3, 13},
    {{}, 0, 40, 1},
}};

const policy& policy_of(const ip_bytes& address) noexcept {
    return *std::find_if(policies.begin(), policies.end(), [&](const policy& one) {
        return common_bits(address, one.prefix) >= one.bits;
    });
}

using rank = std::tuple<bool, bool, bool, int, unsigned, int>;

/// Sort key of a destination, the smaller one first: rules 1, 2, 5, 6, 8 and 9. The others need
/// facts that this machine does not report (addresses that are going to be given up, mobile homes,
/// tunnels).
rank rank_of(const address_route& route) noexcept {
    // Behind these bits an address names an interface.
    constexpr unsigned most_prefix = 64;
    const ip_bytes to = bytes_of(route.to);
    const policy& wanted = policy_of(to);
    const unsigned scope = scope_of(to);
    if (route.from.size() == 0) return {true, true, true, -wanted.precedence, scope, 0};
    const ip_bytes from = bytes_of(route.from);
    const int prefix = route.to.family() == AF_INET6
                           ? static_cast<int>(std::min(common_bits(to, from), most_prefix))
                           : 0;
    return {false,
            scope != scope_of(from),
            wanted.label != policy_of(from).label,
            -wanted.precedence,
            scope,
            -prefix};
}

/// A socket of one family that is connected, which for UDP means a lookup of the route.
class route_finder {
public:
    explicit route_finder(int family) noexcept
        : socket_(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

    endpoint source_for(const endpoint& to) noexcept {
        endpoint from;
        if (!socket_) return from;
        // The choice of an earlier one would stay.
        static_cast<void>(::connect(socket_.get(), &no_peer, sizeof(no_peer)));
        if (::connect(socket_.get(), to.data(), to.size()) != 0) return from;
        socklen_t size = sizeof(sockaddr_storage);
        sockaddr_storage name{};
        if (::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0)
            from = endpoint(reinterpret_cast<const sockaddr*>(&name), size);
        return from;
    }

private:
    unique_fd socket_;
};

}  // namespace

void find_sources(std::vector<address_route>& routes) noexcept {
    route_finder four(AF_INET);
    route_finder six(AF_INET6);
    for (address_route& route : routes)
        route.from = (route.to.family() == AF_INET6 ? six : four).source_for(route.to);
}

void order_routes(std::vector<address_route>& routes) {
    std::vector<std::pair<rank, std::size_t>> order;
    order.reserve(routes.size());
    for (std::size_t i = 0; i < routes.size(); ++i) order.emplace_back(rank_of(routes[i]), i);
    std::sort(order.begin(), order.end());
    std::vector<address_route> sorted;
    sorted.reserve(routes.size());
    for (const auto& [by, place] : order) sorted.push_back(routes[place]);
    routes = std::move(sorted);
}

}  // namespace eddy
