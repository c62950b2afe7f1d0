// JSON view of runtimes and types, as the control API shows them. Secrets are masked.
#pragma once

#include <eddy/io/timer.hpp>

#include "daemon/control/json.hpp"
#include "daemon/runtimes/managed_runtime.hpp"
#include "runtime/type.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::daemon {

/// A runtime by its desired and its running state.
json show_runtime(const managed_runtime& which, time_point now);

// Members of it.

/// Connections, including those of replaced instances.
std::uint64_t connections_of(const managed_runtime& which);
/// Seconds; none without an instance that serves.
std::optional<double> uptime_of(const running_state& running, time_point now);
/// Reason of its failure or degradation; empty for none.
std::string_view reason_of(const managed_runtime& which);
/// Empty for none.
std::string_view detail_of(const managed_runtime& which);

/// Counters of a runtime as of the last refresh; 0 before the first.
json show_stats(const managed_runtime& which, time_point now);

/// Effect of an edit, done or planned, and what its restart means for clients.
json show_edit(const edit_plan& plan);

/// A removed runtime, what was lost with it, and the runtimes that were removed with it.
json show_removal(const managed_runtime& gone);

/// A type with the table of its options.
json show_type(const runtime::type& type);

}  // namespace eddy::daemon
