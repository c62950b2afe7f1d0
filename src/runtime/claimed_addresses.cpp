// Addresses of options, and their comparison.
#include "runtime/claimed_addresses.hpp"

#include "runtime/listening.hpp"
#include "runtime/socket_address.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime {
namespace {

using transport::address;
using transport::scheme;

bool has_rows(const type& of, std::initializer_list<std::string_view> names) {
    return std::ranges::all_of(names, [&](std::string_view name) {
        return std::ranges::any_of(of.options, [&](const option& o) { return o.name == name; });
    });
}

/// True if its --listen may be given several times.
bool names_sockets(const type& of) {
    return std::ranges::any_of(of.options, [](const option& each) {
        return each.name == "listen" && each.kind == option_kind::list;
    });
}

bool is_path(const address& where) noexcept { return !where.path.empty(); }

bool is_wildcard(std::string_view host) noexcept {
    return host.empty() || host == "*" || host == "0.0.0.0" || host == "::";
}

std::string_view plain_host(std::string_view host) noexcept {
    return host == "localhost" ? "127.0.0.1" : host;
}

}  // namespace

std::vector<address> claimed_addresses(const type& of, const settings& chosen) {
    std::vector<address> all;
    if (has_rows(of, {"port", "bind", "unix", "listen"})) {
        const bool is_udp = has_rows(of, {"udp"}) && chosen.flag("udp");
        auto where = choose_address(chosen, is_udp ? scheme::udp : scheme::tcp);
        if (where) all.push_back(std::move(*where));
        if (has_rows(of, {"tls-port"}) && chosen.has("tls-port")) {
            address secure;
            secure.port = static_cast<std::uint16_t>(chosen.number("tls-port"));
            secure.host = chosen.text("bind");
            all.push_back(std::move(secure));
        }
    }
    if (names_sockets(of))
        for (const std::string& each : chosen.list("listen"))
            if (auto where = read_socket_address(each)) all.push_back(std::move(*where));
    if (has_rows(of, {"handoff"}) && chosen.has("handoff"))
        if (auto where = transport::parse(chosen.text("handoff"))) all.push_back(std::move(*where));
    std::erase_if(all, [](const address& each) { return !is_path(each) && each.port == 0; });
    return all;
}

bool is_same_claim(const address& one, const address& other) {
    if (is_path(one) || is_path(other)) return one.path == other.path;
    if ((one.kind == scheme::udp) != (other.kind == scheme::udp) || one.port != other.port)
        return false;
    return is_wildcard(one.host) || is_wildcard(other.host) ||
           plain_host(one.host) == plain_host(other.host);
}

}  // namespace eddy::runtime
