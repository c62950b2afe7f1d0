// Addresses and loads of members.
#include "daemon/cluster/own_member.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/transport/transport.hpp>

#include "daemon/cluster/engines.hpp"
#include "daemon/control/runtime_view.hpp"
#include "daemon/state/runtime_name.hpp"
#include "net/host_names.hpp"
#include "net/network.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace eddy::daemon {
namespace {

using transport::scheme;

/// Change of a number of connections that is published: at least so many, and the tenth part.
constexpr std::uint64_t least_load_change = 5;

bool is_wildcard(const endpoint& where) {
    const std::string host = where.host();
    return host == "::" || host == "0.0.0.0";
}

bool is_loopback(const endpoint& where) {
    const std::string host = unmapped(where).host();
    return host.starts_with("127.") || host == "::1";
}

/// Addresses that mean something on one link alone (RFC 3927, RFC 4291).
bool is_link_local(const endpoint& where) {
    const std::string host = where.host();
    return host.starts_with("169.254.") || host.starts_with("fe80:");
}

/// A place that others may connect to, as a URI that parses back to it.
std::string uri_of(scheme kind, std::string host, std::uint16_t port) {
    transport::address at;
    at.kind = kind;
    at.host = std::move(host);
    at.port = port;
    return at.to_string();
}

/// The place of a URI from another machine: its parameters, which would name files here, do not
/// count. None where it cannot be connected to.
std::optional<runtime::remote_runtime::place> place_of(const std::string& uri, bool with_loopback) {
    const auto at = transport::parse(uri);
    if (!at || at->host.empty() || at->port == 0) return std::nullopt;
    if (at->kind != scheme::tcp && at->kind != scheme::udp && at->kind != scheme::tls)
        return std::nullopt;
    const auto numeric = at->host == "*" ? endpoint::ip("::", 0) : endpoint::ip(at->host, 0);
    if (numeric && is_wildcard(*numeric)) return std::nullopt;
    // Here it would be another machine's.
    if (!with_loopback && is_loopback_host(at->host)) return std::nullopt;
    return runtime::remote_runtime::place{at->kind, at->host, at->port};
}

outcome<> check_host(const std::string& host) {
    const auto numeric =
        host == "*" ? result<endpoint>(fail(errc::bad_address)) : endpoint::ip(host, 0);
    const bool has_zone = host.find('%') != std::string::npos;
    if (numeric ? !is_wildcard(*numeric) && !has_zone : is_host_name(host)) return {};
    return refuse(400, fmt::format("--advertise cannot be \"{}\": write the name or address at "
                                   "which other machines reach this one, without a port",
                                   host));
}

}  // namespace

outcome<> check_cluster_options(const cluster_options& of, std::string_view daemon_name) {
    if (auto valid = check_engine(of.engine); !valid) return valid;
    if (auto valid = check_runtime_name(daemon_name); !valid)
        return refuse(400,
                      fmt::format("--name, of a member of a cluster: {}; give another one with "
                                  "--name",
                                  valid.error().message));
    if (!of.advertise.empty())
        if (auto valid = check_host(of.advertise); !valid) return valid;
    if (of.label.empty()) return {};
    if (auto valid = check_runtime_name(of.label); !valid)
        return refuse(400, fmt::format("--label: {}", valid.error().message));
    return {};
}

bool is_loopback_host(std::string_view host) {
    if (is_localhost(host)) return true;
    if (host.empty() || host == "*") return false;
    const auto numeric = endpoint::ip(host, 0);
    return numeric && is_loopback(*numeric);
}

std::string find_own_address() {
    ifaddrs* listed = nullptr;
    if (::getifaddrs(&listed) != 0) return {};
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(listed, &::freeifaddrs);
    std::string of_ipv6;
    for (const ifaddrs* each = all.get(); each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0 ||
            (each->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        const int family = each->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        const endpoint at(
            each->ifa_addr,
            static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
        if (is_loopback(at) || is_link_local(at)) continue;
        if (family == AF_INET) return at.host();
        if (of_ipv6.empty()) of_ipv6 = at.host();
    }
    return of_ipv6;
}

std::string uri_for_others(const runtime::opened_address& at, std::string_view host) {
    EDDY_ASSERT(!host.empty());
    const bool is_network =
        at.kind == scheme::tcp || at.kind == scheme::udp || at.kind == scheme::tls;
    if (!is_network || at.bound.is_unix() || at.bound.port() == 0) return {};
    if (is_wildcard(at.bound)) return uri_of(at.kind, std::string(host), at.bound.port());
    if (is_link_local(at.bound) || (is_loopback(at.bound) && !is_loopback_host(host))) return {};
    return uri_of(at.kind, unmapped(at.bound).host(), at.bound.port());
}

cluster::member_info describe_own_member(cluster::member_info identity,
                                         const runtime_registry& all) {
    cluster::member_info made = std::move(identity);
    EDDY_ASSERT(!made.name.empty() && !made.host.empty());
    std::vector<const managed_runtime*> chosen;
    chosen.reserve(all.size());
    all.for_each([&](const managed_runtime& each) { chosen.push_back(&each); });
    if (chosen.size() > cluster::max_runtimes) {
        std::ranges::sort(chosen, {}, [](const managed_runtime* each) {
            const bool runs = each->running.status() == runtime_status::running;
            return std::pair(!runs, std::string_view(each->name()));
        });
        chosen.resize(cluster::max_runtimes);
        std::ranges::sort(chosen, {}, [](const managed_runtime* each) -> const std::string& {
            return each->name();
        });
    }
    made.runtimes.clear();
    made.runtimes.reserve(chosen.size());
    for (const managed_runtime* const each : chosen) {
        const runtime_record& record = each->desired.record;
        cluster::runtime_info shown;
        shown.name = record.name;
        shown.id = record.id;
        shown.type = record.type;
        shown.group = record.group;
        shown.state = to_string(each->running.status());
        shown.connections = connections_of(*each);
        for (const runtime::opened_address& at : all.published()->opened_by(record.name)) {
            if (shown.addresses.size() == cluster::max_addresses) break;
            std::string uri = uri_for_others(at, made.host);
            if (uri.empty() || std::ranges::find(shown.addresses, uri) != shown.addresses.end())
                continue;
            shown.addresses.push_back(std::move(uri));
        }
        made.runtimes.push_back(std::move(shown));
    }
    return made;
}

void keep_similar_loads(cluster::member_info& now, const cluster::member_info& before) noexcept {
    auto old = before.runtimes.begin();
    for (cluster::runtime_info& each : now.runtimes) {
        while (old != before.runtimes.end() && old->name < each.name) ++old;
        if (old == before.runtimes.end()) return;
        if (old->name != each.name) continue;
        const std::uint64_t change = each.connections > old->connections
                                         ? each.connections - old->connections
                                         : old->connections - each.connections;
        if (change < std::max(least_load_change, old->connections / 10))
            each.connections = old->connections;
    }
}

own_places own_places::of(const cluster::member_info& own) {
    own_places made;
    for (const cluster::runtime_info& each : own.runtimes)
        made.addresses.insert(each.addresses.begin(), each.addresses.end());
    made.is_loopback = is_loopback_host(own.host);
    return made;
}

std::vector<runtime::remote_runtime> usable_runtimes(const cluster::member_info& of,
                                                     const own_places& own) {
    std::vector<runtime::remote_runtime> usable;
    EDDY_ASSERT(!of.name.empty() && !of.name.contains('/'));
    if (of.is_leaving) return usable;
    for (const cluster::runtime_info& each : of.runtimes) {
        if (each.group.empty() || each.state != to_string(runtime_status::running)) continue;
        runtime::remote_runtime made;
        made.name = fmt::format("{}/{}", of.name, each.name);
        made.group = each.group;
        for (const std::string& uri : each.addresses) {
            // One of a member that this daemon was before: a proxy would connect to itself.
            if (own.addresses.contains(uri)) continue;
            if (auto at = place_of(uri, own.is_loopback)) made.places.push_back(std::move(*at));
        }
        if (!made.places.empty()) usable.push_back(std::move(made));
    }
    return usable;
}

}  // namespace eddy::daemon
