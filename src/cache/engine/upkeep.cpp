// Upkeep between batches: eviction, expiration, and the freeing of what was deleted.
#include <eddy/base/assert.hpp>

#include "cache/clients/closing.hpp"
#include "cache/clients/serving.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/engine/field_expiry.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <iterator>

namespace eddy::cache {
namespace {

// Memory held by a snapshot does not count.
bool is_over_limit(const engine_state& s) noexcept {
    const std::size_t used = s.used_memory();
    if (used <= s.settings.options.max_memory || s.persistence.snapshot == nullptr)
        return used > s.settings.options.max_memory;
    return used - std::min(used, s.persistence.snapshot->held_bytes()) >
           s.settings.options.max_memory;
}

// Share of the buckets that a sweep has passed, estimated from the number of keys: exact counts
// would take longer than the sweep of a small table.
double share_of(const engine_state& s, std::size_t buckets) noexcept {
    constexpr double keys_a_bucket = 10;
    std::size_t keys = 0;
    for (const auto& each : s.data.keyspaces) {
        if (each != nullptr && each->expiring() > 0) keys += each->size();
    }
    const double passed = static_cast<double>(buckets + 1) * keys_a_bucket;
    return keys == 0 ? 1 : std::min(passed / static_cast<double>(keys), 1.0);
}

bool ends_snapshot(const engine_state& s) noexcept {
    return s.persistence.snapshot != nullptr && s.persistence.snapshot->has_ended();
}

bool free_some(engine_state& s, std::size_t steps, slice_limit& slice) {
    const bool more = s.data.env.free_some(steps, slice);
    if (!ends_snapshot(s)) return more;
    if (slice.is_over()) return true;
    constexpr std::size_t entries_a_bucket = 8;
    if (s.persistence.snapshot->clear_some(steps / entries_a_bucket + 1, slice)) return true;
    s.persistence.snapshot.reset();
    s.note_obstacle_ended();
    return more;
}

bool evict_some(engine_state& s, std::size_t, slice_limit& slice) {
    const std::uint64_t before = s.data.env.counters.evicted_keys;
    const bool is_later = s.make_room(slice) == engine_state::room::later;
    s.note_limit();
    // If nothing is left to evict, another turn changes nothing.
    return (is_later || s.data.env.counters.evicted_keys != before) && is_over_limit(s);
}

// While a script is suspended no key is removed in the background.
bool may_sweep(const engine_state& s) noexcept {
    constexpr auto keeping = slow_path::replica | slow_path::loading | slow_path::pause;
    return s.sweeps && (s.clients.slow_path & keeping) == 0 && !scripting::is_late(s);
}

// Expirations of a replica's own keys; all others are left to its master.
bool has_own_expirations(const engine_state& s) {
    constexpr auto keeping = slow_path::loading | slow_path::pause;
    return s.sweeps && (s.clients.slow_path & keeping) == 0 && !scripting::is_late(s) &&
           s.replication.replicating != nullptr &&
           s.replication.replicating->expirations().is_due(s.data.env.now_ms);
}

bool sweep_keys(engine_state& s, std::size_t steps, slice_limit& slice) {
    keyspace* one = nullptr;
    for (std::size_t tried = 0; one == nullptr && tried < engine_databases; ++tried) {
        keyspace* const next = s.data.keyspaces[s.upkeep_database].get();
        s.upkeep_database = (s.upkeep_database + 1) % engine_databases;
        if (next != nullptr && next->expiring() > 0) one = next;
    }
    if (one == nullptr) return false;
    statistics& n = s.data.env.counters;
    const std::int64_t began_ns = slice.seen_ns();
    const keyspace::swept done = one->sweep(steps, slice);
    const std::int64_t ended_ns = slice.is_over() ? slice.seen_ns() : slice.read_clock();
    n.sweep_ns += static_cast<std::uint64_t>(ended_ns - began_ns);
    n.sweeps_cut += slice.is_over() ? 1 : 0;
    // As in Redis: each sweep moves the average by a fraction.
    constexpr double part = 0.05;
    const double share =
        done.expiring == 0 ? 0
                           : static_cast<double>(done.removed) / static_cast<double>(done.expiring);
    n.expired_share += (share - n.expired_share) * part;
    s.swept_share = share_of(s, done.passed);
    // A database full of expired keys is worth another round at once.
    return done.many;
}

struct upkeep_part {
    bool (*has_work)(const engine_state&);
    bool (*work)(engine_state&, std::size_t steps, slice_limit&);  // true: there is more
};
constexpr upkeep_part upkeep_parts[] = {
    {[](const engine_state& s) { return s.data.env.discarded() > 0 || ends_snapshot(s); },
     free_some},
    {[](const engine_state& s) {
         return s.settings.options.max_memory != 0 && is_over_limit(s) && !scripting::is_late(s);
     },
     evict_some},
    {[](const engine_state& s) {
         return may_sweep(s) && std::ranges::any_of(s.data.keyspaces, [](const auto& each) {
                    return each != nullptr && each->expiring() > 0;
                });
     },
     sweep_keys},
    {[](const engine_state& s) { return may_sweep(s) && has_fields_to_end(s); }, sweep_fields},
    {has_own_expirations,
     [](engine_state& s, std::size_t steps, slice_limit& slice) {
         return s.replication.replicating->expirations().expire_some(
             s.data.env, s.data.keyspaces, steps, slice,
             [&s](keyspace& in, keyspace::slot* place, std::uint64_t hash) {
                 return expire_fields(s, in, place, hash, fields_expired_by_command);
             });
     }},
    {is_over_tracking_limit, shrink_tracking_table}};

}  // namespace

// A search without a result yet is no reason to refuse a command: each continues the walk, which
// passes all keys in the end, and upkeep() continues it without commands.
bool engine_state::make_room() {
    if (settings.options.max_memory == 0 || used_memory() <= settings.options.max_memory)
        [[likely]] {
        if (data.env.counters.over_limit_since_us != 0) note_limit();
        return true;
    }
    slice_limit slice(data.env.slice_time, longest_slice_ns);
    const room found = make_room(slice);
    note_limit();
    return found != room::none;
}

void engine_state::note_obstacle_ended() noexcept {
    if (server != nullptr) server->obstacle_ended();
}

void engine_state::note_limit() noexcept {
    statistics& n = data.env.counters;
    const bool was_over = n.over_limit_since_us != 0;
    if (was_over == (settings.options.max_memory != 0 && is_over_limit(*this))) return;
    if (was_over) n.over_limit_us += data.env.steady_us - n.over_limit_since_us;
    n.over_limit_since_us = was_over ? 0 : data.env.steady_us;
}

engine_state::room engine_state::make_room(slice_limit& slice) {
    const std::size_t limit = settings.options.max_memory;
    // The master, or a file, decides which keys exist.
    if ((clients.slow_path & (slow_path::replica | slow_path::loading)) != 0) return room::there;
    // While a script is suspended no key is evicted. Commands that need memory wait as well.
    if (scripting::is_late(*this)) return room::there;
    // During a pause no change is sent to replicas. Commands that need memory wait as well.
    if ((clients.slow_path & slow_path::pause) != 0) return room::there;
    // No client adds a key. Hooks do, and may evict keys.
    if (settings.options.mode == access_mode::readonly && hooked == nullptr) return room::there;
    if (limit == 0 || used_memory() <= limit) return room::there;
    // Deleted but not freed memory comes first. A huge value is freed in slices, more in each than
    // a command adds, so no other key need be evicted for it.
    const auto is_coming = [&] {
        for (int i = 0; i < engine::max_evictions && !slice.is_over() && is_over_limit(*this);
             ++i) {
            if (!data.env.free_some(engine::max_evictions, slice)) break;
        }
        return !is_over_limit(*this) || data.env.discarded() > 0;
    };
    if (is_coming()) return room::there;
    if (settings.options.policy == eviction::none) return room::none;
    for (int i = 0; i < engine::max_evictions; ++i) {
        // After some evictions this command may run; the next one continues, as in Redis.
        if (i > 0 && slice.is_over_after(slice_limit::a_look / 4)) return room::there;
        bool is_later = false;
        bool evicted = false;
        for (std::size_t tried = 0; tried < engine_databases && !evicted && !is_later; ++tried) {
            keyspace* const victim = data.keyspaces[evict_database % engine_databases].get();
            ++evict_database;
            if (victim == nullptr) continue;
            const keyspace::evicted what = victim->evict_one(slice);
            evicted = what == keyspace::evicted::one;
            is_later = what == keyspace::evicted::later;
        }
        if (is_later) return room::later;
        if (!evicted) return room::none;
        if (is_coming()) return room::there;
    }
    return room::there;
}

double engine::swept_share() const noexcept { return state_->swept_share; }

bool engine::upkeep(std::size_t steps) {
    state& s = *state_;
    s.swept_share = 1;
    static_cast<void>(is_client_paused(s));
    slice_limit slice(s.data.env.slice_time, longest_slice_ns);
    const std::size_t first = s.upkeep_part;
    bool more = false;
    for (std::size_t i = 0; i < std::size(upkeep_parts); ++i) {
        const std::size_t turn = (first + i) % std::size(upkeep_parts);
        const upkeep_part& its = upkeep_parts[turn];
        if (!its.has_work(s)) continue;
        if (slice.is_over()) {
            // This part comes first the next time, so that no part waits for two slices.
            s.upkeep_part = turn;
            more = true;
            break;
        }
        more |= its.work(s, steps, slice);
    }
    // Clients that wait for a key may have been notified of its expiration.
    retire_closed(s);
    if (s.clients.has_effects && !scripting::is_late(s)) serve_waiting(s);
    if (!s.clients.tracking.changes.empty()) send_broadcasts(s);
    return more;
}

bool engine::wind_up() {
    EDDY_ASSERT(state_->clients.sessions.empty());
    state_->data.env.observer = nullptr;
    for (const auto& each : state_->data.keyspaces) {
        if (each != nullptr && each->size() > 0) each->clear();
    }
    return upkeep();
}

}  // namespace eddy::cache
