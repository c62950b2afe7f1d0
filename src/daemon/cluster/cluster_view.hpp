// JSON of a cluster, as the control API and scripts show it.
#pragma once

#include "cluster/membership.hpp"
#include "daemon/cluster/cluster_service.hpp"
#include "daemon/control/json.hpp"

#include <string_view>

namespace eddy::daemon {

/// The members, with counts in the place of their runtimes.
json show_cluster(const cluster_service& of);
/// The runtimes of all members that match: a pattern of names, "@" and one of groups, or
/// "MEMBER/" and one of names there.
json show_cluster_runtimes(const cluster_service& of, std::string_view pattern);
/// The groups whose name matches a pattern, with their runtimes.
json show_cluster_groups(const cluster_service& of, std::string_view pattern);
/// A member with its runtimes. Refuses (404) an unknown name.
outcome<json> show_member(const cluster_service& of, std::string_view name);

}  // namespace eddy::daemon
