// JSON view of runtimes and types, as the control API shows them. Secrets are masked.
#pragma once

#include <eddy/io/timer.hpp>

#include "daemon/control/json.hpp"
#include "daemon/runtimes/managed_runtime.hpp"
#include "runtime/type.hpp"

namespace eddy::daemon {

/// A runtime by its desired and its running state.
json show_runtime(const managed_runtime& which, time_point now);

/// Counters of a runtime as of the last refresh; 0 before the first.
json show_stats(const managed_runtime& which, time_point now);

/// Effect of an edit, done or planned, and what its restart means for clients.
json show_edit(const edit_plan& plan);

/// A removed runtime, what was lost with it, and the runtimes that were removed with it.
json show_removal(const managed_runtime& gone);

/// A type with the table of its options.
json show_type(const runtime::type& type);

}  // namespace eddy::daemon
