// Metrics that only a cache has.
#pragma once

#include "cache/keyspace/statistics.hpp"
#include "cache/read_through/read_through.hpp"
#include "runtime/metrics.hpp"

#include <cstddef>
#include <cstdint>

namespace eddy::runtime::cache {

void add_samples(metrics& to, const eddy::cache::statistics& now);
void add_samples(metrics& to, const eddy::cache::hook_counts& now);
/// Commands of scripts of other runtimes.
void add_script_commands(metrics& to, std::uint64_t count);
/// The memory limit in bytes; 0 where there is none.
void add_memory_limit(metrics& to, std::size_t limit);

}  // namespace eddy::runtime::cache
