// INFO and ROLE: masters and replicas.
#pragma once

#include "cache/replication/replication.hpp"

#include <string>
#include <string_view>

namespace eddy::cache {

/// ROLE's word.
std::string_view link_name(link_state now) noexcept;

/// Address of the replica for its clients.
std::string replica_host(const replica& of);

/// Lines of INFO's section, below its head.
std::string replication_info(const engine_state& s);

}  // namespace eddy::cache
