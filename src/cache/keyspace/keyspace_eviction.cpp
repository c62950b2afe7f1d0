// Eviction: the choice of a key to evict, in functions of `keyspace`.
//
// Most keys that are ever stored are never read again. So a new key enters a probation queue of a
// tenth of all keys: unused when it reaches the front, it is evicted, while used keys stay. Behind
// the queue a clock hand sweeps the table in the table's own order, decrements the uses of each key
// that it passes, and evicts one without uses: when the queue is short, and at intervals while it
// is not, so that keys that were useful once do not stay forever. This is the small queue of
// S3-FIFO (SOSP 2023) before a CLOCK, for one bit and 0.8 bytes a key.
//
// allkeys-s3fifo has no such intervals, and has a ghost queue of the keys evicted from probation: a
// key that is stored again soon after skips probation.
#include <eddy/base/assert.hpp>

#include "cache/keyspace/keyspace.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace eddy::cache {

void keyspace::note_new_key(std::uint64_t hash) {
    if (env_.policy != eviction::allkeys_s3fifo) {
        ghosts_.clear(env_.memory);
    } else if (ghosts_.take(hash)) {
        return;
    }
    probation_.push(env_.memory, hash);
    // Without evictions the oldest keys leave probation and stay.
    if (probation_.size() > size() / probation_share + least_probation) probation_.pop(env_.memory);
}

keyspace::evicted keyspace::evict_one(slice_limit& slice) {
    if (env_.policy != eviction::allkeys_s3fifo || size() == 0) ghosts_.clear(env_.memory);
    const bool expiring_only = is_volatile(env_.policy);
    if (expiring_only ? expiring_ == 0 : size() == 0) return evicted::none;
    const entry* chosen = nullptr;
    switch (env_.policy) {
        case eviction::none: return evicted::none;
        case eviction::allkeys_random: chosen = table_.random(env_.random); break;
        case eviction::volatile_random: chosen = some_volatile(slice); break;
        case eviction::volatile_ttl: chosen = soonest(slice); break;
        default: chosen = unused(slice); break;
    }
    if (chosen == nullptr) return evicted::later;
    ++env_.counters.evicted_keys;
    if (env_.observer != nullptr) [[unlikely]]
        env_.observer->key_happened(number_, key_event::evicted, "evicted", chosen->key());
    const std::uint64_t its = hash(chosen->key());
    remove(table_.find(chosen->key(), its), its);
    return evicted::one;
}

const entry* keyspace::unused(slice_limit& slice) {
    const entry* chosen = nullptr;
    std::size_t spared = 0;
    const bool is_s3fifo = env_.policy == eviction::allkeys_s3fifo;
    if (!is_s3fifo && (clock_hand_stays_ || ++evictions_ % evictions_a_bucket == 0))
        chosen = pass_bucket(spared);
    if (chosen == nullptr) {
        chosen = unused_on_probation();
        if (is_s3fifo && chosen != nullptr) ghosts_.push(env_.memory, hash(chosen->key()), size());
    }
    for (std::size_t n = 0; chosen == nullptr && n < max_buckets_passed; ++n) {
        chosen = pass_bucket(spared);
        if (slice.is_over_after(bucket_weight)) break;
    }
    return chosen;
}

/// An unused key of the clock hand's bucket. When it was the last unused one, the others lose a use
/// and the clock hand moves on.
const entry* keyspace::pass_bucket(std::size_t& spared) {
    const std::uint64_t next = look_at_bucket();
    const entry* chosen = nullptr;
    std::size_t unused = 0;
    for (const slot s : seen_) {
        const entry* const e = dictionary::entry_of(s);
        if (e->uses() != 0 && spared < max_spared) continue;
        chosen = e;
        ++unused;
    }
    clock_hand_stays_ = unused > 1;
    if (clock_hand_stays_) return chosen;
    for (const slot s : seen_) spared += dictionary::entry_of(s)->take_use();
    clock_hand_ = next;
    return chosen;
}

/// Null when the queue is short, or at max_spared used keys.
const entry* keyspace::unused_on_probation() {
    for (std::size_t looks = 0; looks < max_spared; ++looks) {
        if (probation_.size() * probation_share <= size()) return nullptr;
        const auto oldest = probation_.pop(env_.memory);
        if (!oldest) return nullptr;
        const slot* const place =
            table_.find_hash(*oldest, [&](const entry& e) { return hash(e.key()) == *oldest; });
        if (place == nullptr) continue;
        if (is_volatile(env_.policy) && (*place & dictionary::expires_bit) == 0) continue;
        if (!at(place)->drop_uses()) return at(place);
    }
    return nullptr;
}

/// Fills seen_ with the bucket's keys that may be evicted; returns the next position.
std::uint64_t keyspace::look_at_bucket() {
    seen_.clear();
    const std::uint64_t next = table_.scan(clock_hand_, seen_);
    if (is_volatile(env_.policy))
        std::erase_if(seen_, [](slot s) { return (s & dictionary::expires_bit) == 0; });
    return next;
}

const entry* keyspace::some_volatile(slice_limit& slice) {
    for (std::size_t n = 0; n < max_buckets_passed; ++n) {
        clock_hand_ = look_at_bucket();
        // Random, as the first keys of a bucket are the oldest ones.
        if (!seen_.empty()) return dictionary::entry_of(seen_[env_.random.below(seen_.size())]);
        if (slice.is_over_after(bucket_weight)) break;
    }
    return nullptr;
}

const entry* keyspace::soonest(slice_limit& slice) {
    constexpr std::size_t samples = 16;
    const entry* best = nullptr;
    std::size_t looked_at = 0;
    for (std::size_t n = 0; looked_at < samples && n < max_buckets_passed; ++n) {
        clock_hand_ = look_at_bucket();
        for (const slot s : seen_) {
            const entry* const e = dictionary::entry_of(s);
            if (best == nullptr || e->expiry() < best->expiry()) best = e;
        }
        looked_at += seen_.size();
        if (slice.is_over_after(bucket_weight)) break;
    }
    return best;
}

}  // namespace eddy::cache
