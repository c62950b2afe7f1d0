// DNS queries through c-ares: the addresses of a host, and the records of a service. Each has a
// channel of its own in the calling coroutine, so cancelling that ends the query at once.
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/net/resolver.hpp>

#include "net/address_order.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace eddy {

/// Addresses of a host, without a port and without their sources.
struct dns_addresses {
    std::vector<address_route> routes;  ///< as the server has sorted each family
    duration valid_for;                 ///< the shortest TTL
};

/// Queries IPv4 and IPv6 addresses at once. Yields a result<dns_addresses>, never empty: at most
/// `limit` of a family, and those of one family only when the other one is more than `delay` later.
/// `servers` as resolver_options::servers. Errors are those of resolver::resolve(). The loop's
/// thread; not on the simulator.
task<result<dns_addresses>> query_addresses(std::string host, std::string servers,
                                            std::size_t limit, duration delay);

/// Queries SRV records. Yields a result<service_records>, never empty; otherwise as above.
task<result<service_records>> query_services(std::string name, std::string servers);

/// SRV records of a response (RFC 1035, RFC 2782), at most resolver::max_services;
/// errc::malformed for a response that breaks off. Any thread.
[[nodiscard]] result<service_records> parse_services(const_bytes response);

}  // namespace eddy
