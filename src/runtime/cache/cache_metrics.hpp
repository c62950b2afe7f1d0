// Metrics that only a cache has.
#pragma once

#include "cache/keyspace/statistics.hpp"
#include "cache/read_through/read_through.hpp"
#include "runtime/metrics.hpp"

namespace eddy::runtime::cache {

void add_samples(metrics& to, const eddy::cache::statistics& now);
void add_samples(metrics& to, const eddy::cache::hook_counts& now);

}  // namespace eddy::runtime::cache
