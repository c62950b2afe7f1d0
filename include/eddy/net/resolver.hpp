// Resolution of host names to addresses, without blocking the loop.
//
// Numeric addresses, "localhost" and the hosts file are answered here; the rest by DNS, through
// c-ares, over sockets that the loop watches. Each lookup has its own c-ares channel that lives in
// the calling coroutine, so cancelling the coroutine ends the lookup at once.
#pragma once

#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy {

/// Options of a resolver.
struct resolver_options {
    /// Name servers, as "10.0.0.1,[2001:db8::1]:5353"; empty for those of /etc/resolv.conf.
    std::string servers;
    /// hosts(5); read again when it changes. Empty for none.
    std::string hosts_file = "/etc/hosts";
    /// So long after it was awaited a lookup fails with errc::timed_out.
    duration timeout = std::chrono::seconds(10);
    /// Concurrent lookups by DNS, each of which queries IPv4 and IPv6 addresses at once; further
    /// ones wait, first come, first served.
    std::size_t max_concurrent = 64;
    /// Lookups that wait; a further one fails with errc::limit_reached.
    std::size_t max_waiting = 4096;
};

/// Addresses of a host, as they are for some time.
struct host_addresses {
    std::vector<endpoint> all;  ///< with port 0
    duration valid_for{};       ///< the shortest TTL
};

/// SRV record (RFC 2782): a server of a service.
struct service_record {
    std::string host;            ///< its name; empty if the service is not available
    std::uint16_t port = 0;      ///< in host order
    std::uint16_t priority = 0;  ///< those of the lowest one are tried first
    std::uint16_t weight = 0;    ///< share of the clients among those of one priority

    /// The same in every part.
    friend bool operator==(const service_record&, const service_record&) = default;
};

/// Servers of a service, as they are for some time.
struct service_records {
    std::vector<service_record> all;  ///< as the name server has sorted them
    duration valid_for{};             ///< the shortest TTL
};

/// Looks names up. One loop's thread. No lookup may be running when it dies.
class resolver {
public:
    /// Addresses in one answer; further ones are dropped.
    static constexpr std::size_t max_addresses = 64;
    /// Once DNS has returned addresses of one family, the other one has so much longer (RFC 8305,
    /// section 3). Some name servers and firewalls never answer for a family.
    static constexpr duration resolution_delay = std::chrono::milliseconds(50);
    /// Addresses of a family in one answer of look_up().
    static constexpr std::size_t max_looked_up = 512;
    /// As resolution_delay, of look_up(): an answer without one family would look like a change.
    static constexpr duration look_up_delay = std::chrono::milliseconds(500);
    /// Records in one answer of look_up_service(); further ones are dropped.
    static constexpr std::size_t max_services = 1024;
    /// Time for which names of the hosts file are valid: it may be edited at any time.
    static constexpr duration hosts_file_time = std::chrono::seconds(10);
    /// Bytes of a hosts file that are read.
    static constexpr std::size_t max_hosts_file = 1024 * 1024;

    /// Reads no file and sends no query yet.
    explicit resolver(resolver_options options = {});
    ~resolver();
    resolver(const resolver&) = delete;
    resolver& operator=(const resolver&) = delete;

    /// A resolver with default options, made on first use, one a thread.
    static resolver& of_this_thread();

    /// Yields the IPv6 and IPv4 addresses of `host`, each with `port`, in the order in which they
    /// should be tried (RFC 6724 for DNS answers); never empty. Of DNS it may be those of one
    /// family only: see resolution_delay. Fails with errc::bad_address when `host` cannot be a name
    /// (RFC 1123), errc::name_not_found, errc::timed_out, errc::resolver_failed,
    /// errc::limit_reached or errc::cancelled. The simulator has no DNS: there every name outside
    /// the hosts file is errc::name_not_found.
    task<result<std::vector<endpoint>>> resolve(std::string host, std::uint16_t port);

    /// Yields all addresses of `host` that this machine has a route to (all, where it has none to
    /// any), for callers that use each of them and follow their changes; never empty, in no certain
    /// order. Errors as above.
    task<result<host_addresses>> look_up(std::string host);

    /// Yields the SRV records of `name`, such as "_http._tcp.example.org", which is not completed
    /// by a search list; never empty. Errors as above.
    task<result<service_records>> look_up_service(std::string name);

    /// Lookups by DNS that are running.
    std::size_t running() const noexcept;
    /// Lookups that wait for a running one to end.
    std::size_t waiting() const noexcept;

private:
    class impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace eddy
