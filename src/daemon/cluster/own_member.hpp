// Own entry in a cluster: what this daemon shows of itself and its runtimes, and the addresses at
// which other members reach them.
#pragma once

#include "base/problem.hpp"
#include "cluster/membership.hpp"
#include "daemon/runtimes/runtime_registry.hpp"
#include "runtime/host/registry.hpp"

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// Values of `eddy daemon --cluster` and the flags beside it.
struct cluster_options {
    std::string engine;          ///< an absolute path of a folder, or a URI; see engines.hpp
    std::string advertise = {};  ///< host of this machine for the others; empty: chosen
    std::string label = {};
};

/// Refuses (400) options that cannot be used, and a daemon's name that members cannot have; the
/// sentence names the flag.
outcome<> check_cluster_options(const cluster_options& of, std::string_view daemon_name);

/// True for 127.0.0.0/8, ::1 and names that mean this machine.
bool is_loopback_host(std::string_view host);

/// The first address of an interface that others may reach, IPv4 before IPv6; empty for none.
std::string find_own_address();

/// URI at which other members reach what is served at an address, with `host` in the place of
/// "every address". Empty where they cannot: Unix sockets, shared memory, and loopback addresses,
/// unless the own host is one, which is for several daemons of one machine.
std::string uri_for_others(const runtime::opened_address& at, std::string_view host);

/// The entry: `identity` with the runtimes as they are now, at most cluster::max_runtimes, running
/// ones first. Connections are those of the last refresh.
cluster::member_info describe_own_member(cluster::member_info identity,
                                         const runtime_registry& all);

/// Takes the numbers of open connections from `before` where they have changed by little, so that
/// the two are equal if nothing else has changed.
void keep_similar_loads(cluster::member_info& now, const cluster::member_info& before) noexcept;

/// Addresses of this daemon, by which those of others are judged.
struct own_places {
    std::set<std::string, std::less<>> addresses = {};  ///< of its runtimes, as URIs
    bool is_loopback = false;                           ///< the others are on this machine, too

    static own_places of(const cluster::member_info& own);
    friend bool operator==(const own_places&, const own_places&) = default;
};

/// The runtimes of another member that a group may have here: running ones, at addresses which
/// are no own ones.
std::vector<runtime::remote_runtime> usable_runtimes(const cluster::member_info& of,
                                                     const own_places& own);

}  // namespace eddy::daemon
