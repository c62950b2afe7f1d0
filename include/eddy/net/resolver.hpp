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

/// Looks names up. One loop's thread. No lookup may be running when it dies.
class resolver {
public:
    /// Addresses in one answer; further ones are dropped.
    static constexpr std::size_t max_addresses = 64;
    /// Once DNS has returned addresses of one family, the other one has so much longer (RFC 8305,
    /// section 3). Some name servers and firewalls never answer for a family.
    static constexpr duration resolution_delay = std::chrono::milliseconds(50);
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

    /// Lookups by DNS that are running.
    std::size_t running() const noexcept;
    /// Lookups that wait for a running one to end.
    std::size_t waiting() const noexcept;

private:
    class impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace eddy
