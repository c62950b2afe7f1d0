// Metrics of a cache: their descriptions, and samples of what the engine and its hooks have
// counted.
#include "runtime/cache/cache_metrics.hpp"

namespace eddy::runtime::cache {
namespace {

using enum metric_kind;
using eddy::cache::hook_counts;
using eddy::cache::statistics;

template <class Counts>
struct counted_metric {
    metric of;
    double (*value)(const Counts& now);
};

constexpr counted_metric<statistics> engine_metrics[] = {
    {{"hits_total", counter, "Reads that found their key."},
     [](const statistics& now) { return static_cast<double>(now.hits); }},
    {{"misses_total", counter, "Reads that did not find their key."},
     [](const statistics& now) { return static_cast<double>(now.misses); }},
    {{"expired_keys_total", counter, "Keys deleted because their time to live ended."},
     [](const statistics& now) { return static_cast<double>(now.expired_keys); }},
    {{"parallel_commands_total", counter, "Commands that threads executed at the same time."},
     [](const statistics& now) { return static_cast<double>(now.parallel_commands); }},
    {{"evicted_clients_total", counter, "Clients disconnected for the memory that they took."},
     [](const statistics& now) { return static_cast<double>(now.evicted_clients); }},
    {{"evicted_keys_total", counter, "Keys deleted to keep to the memory limit."},
     [](const statistics& now) { return static_cast<double>(now.evicted_keys); }},
    {{"keys", gauge, "Keys in all databases."},
     [](const statistics& now) { return static_cast<double>(now.keys); }},
    {{"used_memory_bytes", gauge, "Memory of keys, values and tables."},
     [](const statistics& now) { return static_cast<double>(now.used_memory); }},
};

constexpr counted_metric<hook_counts> hook_metrics[] = {
    {{"hook_misses_total", counter, "Calls of on_miss that have ended."},
     [](const hook_counts& now) { return static_cast<double>(now.misses); }},
    {{"hook_misses_joined_total", counter, "Misses that joined a call for the same key."},
     [](const hook_counts& now) { return static_cast<double>(now.joined); }},
    {{"hook_misses_known_total", counter, "Misses of keys that the backend is known not to have."},
     [](const hook_counts& now) { return static_cast<double>(now.negative); }},
    {{"hook_changes_total", counter, "Changes that hooks have passed on."},
     [](const hook_counts& now) { return static_cast<double>(now.changes.done); }},
    {{"hook_changes_coalesced_total", counter, "Changes replaced by a later one of the same key."},
     [](const hook_counts& now) { return static_cast<double>(now.changes.coalesced); }},
    {{"hook_retries_total", counter, "Repeated calls for changes."},
     [](const hook_counts& now) { return static_cast<double>(now.changes.retries); }},
    {{"hook_errors_total", counter, "Calls of hooks that failed."},
     [](const hook_counts& now) { return static_cast<double>(now.failed); }},
    {{"hook_timeouts_total", counter, "Waits for a hook that ended by their deadline."},
     [](const hook_counts& now) { return static_cast<double>(now.timeouts); }},
    {{"hook_refused_total", counter, "Misses and writes refused by a limit of the hooks."},
     [](const hook_counts& now) { return static_cast<double>(now.refused); }},
    {{"hook_stale_served_total", counter, "Stale values served in place of a failed call."},
     [](const hook_counts& now) { return static_cast<double>(now.stale); }},
    {{"hook_lost_total", counter, "Changes that no hook has passed on."},
     [](const hook_counts& now) { return static_cast<double>(now.changes.lost); }},
    {{"hook_waiting_clients", gauge, "Clients that wait for a hook."},
     [](const hook_counts& now) { return static_cast<double>(now.waiting); }},
    {{"hook_waiting_misses", gauge, "Keys that on_miss is called for, or will be."},
     [](const hook_counts& now) { return static_cast<double>(now.asked); }},
    {{"hook_queued_keys", gauge, "Keys with changes that are not passed on yet."},
     [](const hook_counts& now) { return static_cast<double>(now.queued_keys); }},
    {{"hook_queued_bytes", gauge, "Memory of the changes that are not passed on yet."},
     [](const hook_counts& now) { return static_cast<double>(now.queued_bytes); }},
};

constexpr metric memory_limit = {"maxmemory_bytes", gauge,
                                 "Memory limit of keys, values and tables; 0 where there is none."};

constexpr metric script_commands = {"script_commands_total", counter,
                                    "Commands of scripts of other runtimes, without a socket."};

}  // namespace

void add_samples(metrics& to, const statistics& now) {
    for (const auto& each : engine_metrics) to.add_sample(each.of, each.value(now));
}

void add_samples(metrics& to, const hook_counts& now) {
    for (const auto& each : hook_metrics) to.add_sample(each.of, each.value(now));
}

void add_script_commands(metrics& to, std::uint64_t count) {
    to.add_sample(script_commands, static_cast<double>(count));
}

void add_memory_limit(metrics& to, std::size_t limit) {
    to.add_sample(memory_limit, static_cast<double>(limit));
}

}  // namespace eddy::runtime::cache
