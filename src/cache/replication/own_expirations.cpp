// A replica's own expirations, in the order of their times.
#include "cache/replication/own_expirations.hpp"

#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <utility>

namespace eddy::cache {
namespace {

// Weight of a removal in a slice.
constexpr std::size_t removal_weight = 4;

constexpr std::int64_t snapshot_pause_ms = 100;

// Time at which the key ends: its own, or that of its last field.
expiry_time end_of(const entry& e) noexcept {
    const expiry_time its_own = e.expiry();
    if (e.held_as != encoding::timed_table) return its_own;
    const timed_table& fields = *timed_table::of(e);
    const std::size_t ending = fields.order.size();
    if (ending == 0 || ending < fields.size()) return its_own;
    const auto last = static_cast<expiry_time>(fields.order.at(ending - 1).score());
    return its_own == no_expiry ? last : std::min(its_own, last);
}

std::string name_of(unsigned database, std::string_view key) {
    std::string name(1, static_cast<char>(database));
    name += key;
    return name;
}

}  // namespace

void own_expirations::note_change(const keyspace& in, std::string_view key) {
    const entry* const e = in.look_at(key);
    const expiry_time end = e == nullptr ? no_expiry : end_of(*e);
    if (end != no_expiry) record(name_of(in.number(), key), end);
}

void own_expirations::record(std::string name, expiry_time end) {
    const auto found = keys_.find(name);
    if (found != keys_.end()) {
        if (found->second == end) return;
        forget(found);
    } else if (keys_.size() >= most) {
        return;
    }
    const auto made = keys_.emplace(std::move(name), end).first;
    try {
        times_.emplace(made->second, &made->first);
    } catch (...) {
        keys_.erase(made);
        throw;
    }
}

bool own_expirations::is_due(std::int64_t now_ms) const noexcept {
    return !times_.empty() && times_.begin()->first < now_ms;
}

bool own_expirations::expire_some(environment& env,
                                  std::span<const std::unique_ptr<keyspace>> databases,
                                  std::size_t steps, slice_limit& slice,
                                  const fields_expiry& expire_fields) {
    const expired_keys before = std::exchange(env.expired, expired_keys::go);
    for (; steps > 0 && is_due(env.now_ms); --steps) {
        const std::string name = *times_.begin()->second;
        forget(keys_.find(name));
        const auto database = static_cast<unsigned char>(name[0]);
        const std::string_view key = std::string_view(name).substr(1);
        keyspace* const in = databases[database].get();
        // Removed if it exists and has expired; it may have another expiration by now.
        const std::uint64_t hash = in == nullptr ? 0 : in->hash(key);
        keyspace::slot* const place = in == nullptr ? nullptr : in->find_to_read(key, hash);
        if (place != nullptr) {
            const entry& e = *keyspace::at(place);
            const expiry_time end = end_of(e);
            const bool is_over = end != no_expiry && end < env.now_ms;
            const bool is_of_fields = e.held_as == encoding::timed_table;
            if (is_over && !(is_of_fields && expire_fields(*in, place, hash) > 0)) {
                // A snapshot has to write it first.
                record(name, env.now_ms + snapshot_pause_ms);
            } else {
                note_change(*in, key);
            }
        }
        if (slice.is_over_after(removal_weight)) break;
    }
    env.expired = before;
    return is_due(env.now_ms);
}

void own_expirations::forget(recorded::iterator gone) noexcept {
    times_.erase({gone->second, &gone->first});
    keys_.erase(gone);
}

void own_expirations::clear() noexcept {
    keys_.clear();
    times_.clear();
}

}  // namespace eddy::cache
