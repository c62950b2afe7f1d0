// Eviction policies, and the probation queue of new keys, from which unused ones are evicted first.
#pragma once

#include "cache/memory/slab.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// Eviction policy at max_memory; Redis's maxmemory-policy. "volatile" ones choose among the keys
/// that have an expiry.
enum class eviction : std::uint8_t {
    none,  ///< commands that need memory are refused with OOM
    allkeys_lru,
    allkeys_lfu,
    allkeys_s3fifo,  ///< none of Redis's: remembers which keys have gone, too
    allkeys_random,
    volatile_lru,
    volatile_lfu,
    volatile_random,
    volatile_ttl,  ///< the one that expires soonest, of a sample
};

struct eviction_name {
    eviction policy;
    std::string_view name;  ///< as in CONFIG and INFO
};
inline constexpr eviction_name eviction_names[] = {
    {eviction::none, "noeviction"},
    {eviction::allkeys_lru, "allkeys-lru"},
    {eviction::allkeys_lfu, "allkeys-lfu"},
    {eviction::allkeys_s3fifo, "allkeys-s3fifo"},
    {eviction::allkeys_random, "allkeys-random"},
    {eviction::volatile_lru, "volatile-lru"},
    {eviction::volatile_lfu, "volatile-lfu"},
    {eviction::volatile_random, "volatile-random"},
    {eviction::volatile_ttl, "volatile-ttl"},
};

constexpr bool is_volatile(eviction policy) noexcept { return policy >= eviction::volatile_lru; }

/// Maximum of a key's counted uses: none where the policy needs none, one bit for LRU.
constexpr std::uint8_t counted_uses(eviction policy) noexcept {
    switch (policy) {
        case eviction::allkeys_lru:
        case eviction::volatile_lru: return 1;
        case eviction::allkeys_lfu:
        case eviction::allkeys_s3fifo:
        case eviction::volatile_lfu: return 3;
        default: return 0;
    }
}

/// Probation queue of S3-FIFO: the hashes of the newest keys, oldest first, some of them removed
/// since. Its owner gives it the same slab each time, and clears it.
class probation_queue {
public:
    probation_queue() noexcept = default;
    probation_queue(const probation_queue&) = delete;
    probation_queue& operator=(const probation_queue&) = delete;

    std::size_t size() const noexcept { return count_; }
    void push(slab& memory, std::uint64_t hash);
    /// The oldest, or nothing.
    std::optional<std::uint64_t> pop(slab& memory) noexcept;
    void clear(slab& memory) noexcept;

private:
    // Blocks in a chain: to copy all of them into more room would hold up a command.
    struct block {
        static constexpr std::size_t room = 511;
        block* next = nullptr;
        std::uint64_t hashes[room];
    };

    block* first_ = nullptr;
    block* last_ = nullptr;
    std::size_t taken_ = 0;   // of the first block
    std::size_t filled_ = 0;  // of the last one
    std::size_t count_ = 0;
};

/// Ghost queue of S3-FIFO: keys evicted lately, four bytes of hash and time each, so that now and
/// then one is taken for another, or dropped too soon. Time is counted in evicted keys. Its owner
/// gives it the same slab each time, and clears it.
class ghost_queue {
public:
    ghost_queue() noexcept = default;
    ghost_queue(const ghost_queue&) = delete;
    ghost_queue& operator=(const ghost_queue&) = delete;

    /// Adds an evicted key; drops those older than the last `room`, or twice as many.
    void push(slab& memory, std::uint64_t hash, std::size_t room);
    /// Removes the key; returns whether it was there.
    bool take(std::uint64_t hash) noexcept;
    void clear(slab& memory) noexcept;

private:
    /// A room has so many epochs.
    static constexpr std::uint16_t epochs_a_room = 1024;

    struct mark {
        std::uint16_t tag;
        std::uint16_t epoch;
    };
    struct alignas(64) bucket {
        mark marks[16];
    };
    struct segment {
        bucket buckets[512];
    };

    std::uint16_t age(const mark& of) const noexcept {
        return static_cast<std::uint16_t>(epoch_ - of.epoch);
    }
    void make_room(slab& memory, std::size_t room);
    segment*& segment_of(std::uint64_t hash) noexcept {
        return segments_[(hash >> 48) & (segments_.size() - 1)];
    }
    static bucket& bucket_of(segment& in, std::uint64_t hash) noexcept {
        return in.buckets[(hash >> 32) % std::size(in.buckets)];
    }

    std::vector<segment*> segments_;  // a power of two; null: none of its keys has gone yet
    std::size_t pushed_ = 0;          // in this epoch
    std::uint16_t epoch_ = epochs_a_room;
};

}  // namespace eddy::cache
