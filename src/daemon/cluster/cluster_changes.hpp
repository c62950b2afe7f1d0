// Changes of a cluster as events: members that joined and left, and what their runtimes did.
#pragma once

#include "cluster/membership.hpp"
#include "daemon/journal/event_feed.hpp"

#include <string_view>
#include <vector>

namespace eddy::daemon {

/// Types of events that are about no runtime.
inline constexpr std::string_view member_type = "member";
inline constexpr std::string_view cluster_type = "cluster";

/// Events from one snapshot to the next. A member is one of `member_type`; a runtime is called
/// MEMBER/NAME. The runtimes of a member that joins or leaves have none of their own.
std::vector<runtime_event> changes_between(const cluster::snapshot& before,
                                           const cluster::snapshot& after);

/// True for an event of a member that the daemon's own feed has, too.
bool is_member_event(const runtime_event& of) noexcept;

}  // namespace eddy::daemon
