// Supervised tasks: they run as long as the cache, and are restarted when they run out of memory.
#pragma once

#include <eddy/io/task.hpp>

#include "serving/counters.hpp"
#include "serving/journal.hpp"

#include <functional>

namespace eddy::runtime::cache {

/// Runs the task of `make` until it ends. When it runs out of memory that is counted, and another
/// one of `make` continues a second later: the task's state must allow that. One loop's thread; the
/// counters and the journal must outlive it.
task<void> supervised(std::function<task<void>()> make, serving::counters& counted,
                      serving::journal& events);

}  // namespace eddy::runtime::cache
