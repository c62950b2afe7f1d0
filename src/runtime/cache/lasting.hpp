// The tasks that a cache lives by: they end when they are cancelled, and not for want of memory.
#pragma once

#include <eddy/io/task.hpp>

#include "runtime/journal.hpp"
#include "runtime/metrics.hpp"

#include <functional>

namespace eddy::runtime::cache {

/// Runs the task that `make` gives until it ends. When it runs out of memory that is counted, and
/// a second later another one goes on: what it works on must allow that. One loop's thread; the
/// counters and the journal outlive it.
task<void> lasting(std::function<task<void>()> make, counters& counted, journal& events);

}  // namespace eddy::runtime::cache
