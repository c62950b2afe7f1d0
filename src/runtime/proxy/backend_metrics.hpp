// Metrics of the backends of a proxy, whatever it forwards.
#pragma once

#include "proxy/balancer.hpp"
#include "runtime/metrics.hpp"

namespace eddy::runtime::proxy {

/// Adds their states, connections, failures and bytes, labelled by backend.
void add_backend_metrics(metrics& to, const eddy::proxy::backend_list& of);

}  // namespace eddy::runtime::proxy
