// Lack of backends: why none of a proxy's serves its clients.
#pragma once

#include "proxy/balancer.hpp"

#include <string>

namespace eddy::runtime::proxy {

/// Each of these backends and why it takes no clients, or fails them, at most the first of some, in
/// words; empty when one serves.
std::string lack_of(const eddy::proxy::backend_list& all, const eddy::proxy::ejection_rules& rules);

}  // namespace eddy::runtime::proxy
