// Expirations of a replica's own, in the order of their times.
#include "cache/replication/own_expirations.hpp"

#include <utility>

namespace eddy::cache {
namespace {

// What a removal weighs in a slice.
constexpr std::size_t removal_weight = 4;

std::string name_of(unsigned database, std::string_view key) {
    std::string name(1, static_cast<char>(database));
    name += key;
    return name;
}

}  // namespace

void own_expirations::note_change(const keyspace& in, std::string_view key) {
    const entry* const e = in.look_at(key);
    if (e == nullptr || e->expiry() == no_expiry) return;
    std::string name = name_of(in.number(), key);
    const auto found = keys_.find(name);
    if (found != keys_.end()) {
        if (found->second == e->expiry()) return;
        forget(found);
    } else if (keys_.size() >= most) {
        return;
    }
    const auto made = keys_.emplace(std::move(name), e->expiry()).first;
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
                                  std::size_t steps, slice_limit& slice) {
    const expired_keys before = std::exchange(env.expired, expired_keys::go);
    for (; steps > 0 && is_due(env.now_ms); --steps) {
        const std::string name = *times_.begin()->second;
        forget(keys_.find(name));
        const auto database = static_cast<unsigned char>(name[0]);
        const std::string_view key = std::string_view(name).substr(1);
        // It is removed if it is still there and over; else it may have another time by now.
        keyspace* const in = databases[database].get();
        if (in != nullptr && in->find_to_read(key, in->hash(key)) != nullptr) note_change(*in, key);
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
