// What INFO and ROLE tell of masters and replicas.
#pragma once

#include "cache/replication/replication.hpp"

#include <string>
#include <string_view>

namespace eddy::cache {

/// ROLE's word.
std::string_view link_name(link_state now) noexcept;

/// Where the replica is, for who wants to reach it.
std::string replica_host(const replica& of);

/// Lines of INFO's section, below its head.
std::string replication_info(const engine::state& s);

}  // namespace eddy::cache
