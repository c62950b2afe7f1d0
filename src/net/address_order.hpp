// Order of trial of a host's addresses: RFC 6724, section 6.
#pragma once

#include <eddy/io/endpoint.hpp>

#include <vector>

namespace eddy {

/// An address to connect to, and the one of this machine that would be used for that; `from` is
/// empty where nothing leads there.
struct address_route {
    endpoint to;
    endpoint from = {};
};

/// Asks the kernel for `from` of each. It sends nothing.
void find_sources(std::vector<address_route>& routes) noexcept;

/// Sorts by `to` and `from`, best first; what is equally good stays in its order.
void order_routes(std::vector<address_route>& routes);

}  // namespace eddy
