// Hash table of entries: the keyspace, and every big set and hash.
//
// Extendible hashing over segments (Dash, VLDB 2020). The first bits of a key's hash choose a
// segment through the directory; eight more bits choose one of its 256 buckets. A bucket is two
// cache lines: fourteen one-byte tags, compared at once, and fourteen slots. A slot is an entry's
// address with the hash's first fifteen bits above it, which exclude nearly all false matches and
// determine, without access to the entry, its segment after a split. An entry whose bucket is full
// overflows into the next one, and the bucket counts the entries that overflowed past it, so that a
// search stops in time and erasing leaves no tombstones.
//
//   find, insert, erase   O(1): one directory slot, two lines of a bucket, one or two of the entry
//   growth                one segment splits (some 10 microseconds); nothing else moves, and the
//                         directory, 16 bytes a segment, doubles now and then
//   memory                128 / 14 bytes a slot; a segment splits when it is 7/8 full, so an entry
//                         costs 10.5 to 21 bytes beside its own block
//
// A table begins with one small segment that doubles up to full size; it shrinks by the same steps.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>

#include "cache/memory/entry.hpp"
#include "cache/memory/key_hash.hpp"
#include "cache/memory/slab.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define EDDY_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EDDY_THREAD_SANITIZER 1
#endif
#endif

// The thread sanitizer takes a failed attempt at `overflow` for a write, and these loads for reads
// of it, whatever they make of that byte.
#if defined(__SSE2__) && !defined(EDDY_THREAD_SANITIZER)
#define EDDY_BUCKET_IN_ONE_LOAD 1
#endif

namespace eddy::cache {

/// Prefetches a cache line for writing: another core releases it now, not at the first write.
inline void prefetch_to_write(const void* at) noexcept {
#if defined(__x86_64__)
    // The compiler's builtin would fetch a shared copy only, for the oldest processors; there this
    // instruction has no effect.
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
    __builtin_prefetch(at, 1);
#endif
}

/// Fourteen slots in two cache lines.
struct alignas(128) bucket {
    static constexpr unsigned width = 14;
    static constexpr unsigned full_mask = (1U << width) - 1;

    std::uint8_t tags[width];  // 0: free
    std::uint8_t passed_over;  // entries with this home bucket stored in later ones; saturates at
                               // 255
    std::uint8_t overflow;     // entries stored here with an earlier home bucket
    std::uint64_t slots[width];

    /// Lock bit in `overflow`: one thread has locked the bucket. So a lock needs no cache line
    /// beyond the search's.
    static constexpr std::uint8_t lock_bit = 0x80;

    /// Fails at once if the bucket is locked.
    bool try_lock() noexcept {
        const std::atomic_ref word(overflow);
        std::uint8_t now = word.load(std::memory_order_relaxed);
        return (now & lock_bit) == 0 &&
               word.compare_exchange_strong(now, now | lock_bit, std::memory_order_acquire,
                                            std::memory_order_relaxed);
    }
    void unlock() noexcept {
        const std::atomic_ref word(overflow);
        word.store(word.load(std::memory_order_relaxed) & ~lock_bit & 0xff,
                   std::memory_order_release);
    }
    /// By the lock's owner, while other threads try.
    void add_overflow(int more) noexcept {
        const std::atomic_ref word(overflow);
        word.store(static_cast<std::uint8_t>(word.load(std::memory_order_relaxed) + more),
                   std::memory_order_relaxed);
    }

    /// A bit for each slot with this tag.
    unsigned match(std::uint8_t tag) const noexcept {
#ifdef EDDY_BUCKET_IN_ONE_LOAD
        const __m128i line = _mm_load_si128(reinterpret_cast<const __m128i*>(tags));
        const __m128i wanted = _mm_set1_epi8(static_cast<char>(tag));
        return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(line, wanted))) & full_mask;
#else
        unsigned found = 0;
        for (unsigned i = 0; i < width; ++i) found |= static_cast<unsigned>(tags[i] == tag) << i;
        return found;
#endif
    }
    /// A bit for each slot in use.
    unsigned occupied() const noexcept {
#ifdef EDDY_BUCKET_IN_ONE_LOAD
        const __m128i line = _mm_load_si128(reinterpret_cast<const __m128i*>(tags));
        return static_cast<unsigned>(_mm_movemask_epi8(line)) & full_mask;
#else
        return ~match(0) & full_mask;
#endif
    }
};
static_assert(sizeof(bucket) == 128);

/// Owns its buckets, not its entries. Keys are unique. Slots are valid until the next insert() or
/// erase(). One thread, or several that each have locked the buckets of the keys that they look up,
/// add and erase, and do nothing else meanwhile: see `holding`.
class dictionary {
public:
    using slot = std::uint64_t;

    /// Set in the slots of keys that have an expiry, so that the sweep for expired ones skips the
    /// others.
    static constexpr slot expires_bit = slot{1} << 48;
    static constexpr unsigned hash_bits_in_slot = 15;
    static constexpr unsigned max_bucket_bits = 8;
    static constexpr std::size_t full_buckets = std::size_t{1} << max_bucket_bits;
    /// Some 2^26 segments of 2,000 entries or more: beyond any memory.
    static constexpr unsigned max_depth = 26;
    /// At most so many entries are moved by one insert() or erase(): a full segment's.
    static constexpr std::size_t max_moved = full_buckets * bucket::width * 7 / 8;

    /// Buckets locked by one thread. With the buckets of a key it can find, add and erase the key
    /// while other threads use theirs.
    class holding {
    public:
        /// At most so many at a time; further ones are refused.
        static constexpr std::size_t most = 64;

        /// At most one per thread.
        holding() noexcept {
            EDDY_ASSERT(in_use_ == nullptr);
            in_use_ = this;
        }
        holding(const holding&) = delete;
        holding& operator=(const holding&) = delete;
        ~holding() {
            give_back();
            in_use_ = nullptr;
        }

        /// Locks the buckets of a search for the key, unless locked already. False when another
        /// thread has locked one of them, or at the limit.
        [[gnu::always_inline]] bool take(const dictionary& of, std::uint64_t hash) noexcept {
            bucket* const home = of.root(hash).buckets + of.home(hash);
            return take(home) && (home->passed_over == 0 || take_further(of, hash));
        }
        /// The same for a key whose search was locked, after this thread has added others.
        [[gnu::always_inline]] bool take_more(const dictionary& of, std::uint64_t hash) noexcept {
            const bucket* const home = of.root(hash).buckets + of.home(hash);
            return home->passed_over == 0 || take_further(of, hash);
        }
        /// For an absent key whose search is locked: also locks the buckets needed to add it, for
        /// one key. False when another thread has locked one of them, or when the table must grow
        /// first.
        bool take_place(const dictionary& of, std::uint64_t hash) noexcept;

        /// True at the limit: no further bucket can be locked.
        bool is_full() const noexcept { return count_ == most; }

        void give_back() noexcept {
            while (count_ > 0) at_[--count_]->unlock();
        }

        /// Numbers of keys added and erased by this thread. One count for all threads would be
        /// contended at each addition: the exclusive path calls count_in() with their sum.
        struct counts {
            std::ptrdiff_t keys = 0;
            std::ptrdiff_t expiring = 0;  ///< counted by the keyspace
        };
        const counts& counted() const noexcept { return counted_; }
        /// The counts of this thread's holding; it must have one.
        static counts& current() noexcept { return in_use_->counted_; }

    private:
        bool has(const bucket* which) const noexcept {
            for (std::size_t i = 0; i < count_; ++i) {
                if (at_[i] == which) return true;
            }
            return false;
        }
        bool take_further(const dictionary& of, std::uint64_t hash) noexcept;
        bool take(bucket* which) noexcept {
            if (count_ == most || !which->try_lock()) return has(which);
            at_[count_++] = which;
            return true;
        }

        std::array<bucket*, most> at_;
        std::size_t count_ = 0;
        counts counted_;
        inline static thread_local constinit holding* in_use_ = nullptr;
    };

    /// Both must outlive it. While stocks of `memory` are in use, threads lock the buckets of an
    /// `is_shared` table; any other table is used by one thread at a time.
    dictionary(slab& memory, const key_hash& hash, bool is_shared = false) noexcept
        : is_shared_(is_shared), memory_(memory), hash_(hash) {}
    /// Takes over the other's entries and leaves it empty.
    dictionary(dictionary&& other) noexcept;
    dictionary(const dictionary&) = delete;
    dictionary& operator=(const dictionary&) = delete;
    /// Frees the buckets. The owner must have released the entries before.
    ~dictionary() { drop_buckets(); }

    std::size_t size() const noexcept { return count_; }
    /// Entries moved or checked by growing and shrinking, since construction; wraps at 2^32.
    std::uint32_t moved() const noexcept { return moved_; }
    std::uint64_t hash(std::string_view key) const noexcept { return hash_(key); }

    static entry* entry_of(slot s) noexcept {
        return reinterpret_cast<entry*>(static_cast<std::uintptr_t>(s & address_mask));
    }
    /// Replaces the entry in the slot by another one with the same key.
    static void replace(slot* place, entry* with) noexcept {
        *place = (*place & ~address_mask) | address(with);
    }

    /// The slot of `key`, or null. Nearly always it is the first one with the tag in its home
    /// bucket, or no slot has the tag; that path has no call and saves no register.
    slot* find(std::string_view key, std::uint64_t hash) const noexcept {
        bucket& b = root(hash).buckets[home(hash)];
        const unsigned found = b.match(tag(hash));
        if (found != 0 && key.size() <= max_short_bytes) [[likely]] {
            slot& place = b.slots[__builtin_ctz(found)];
            const entry& e = *entry_of(place);
            if (((place ^ hash) & hash_mask) == 0 && e.key_size() == key.size() &&
                same_short_bytes(e.key().data(), key.data(), key.size())) [[likely]] {
                return &place;
            }
        } else if (found == 0 && b.passed_over == 0) {
            return nullptr;
        }
        return search(key, hash);
    }
    /// The slot of an entry that likely has this hash and for which `fits` is true, or null.
    template <class Fits>
    slot* find_hash(std::uint64_t hash, Fits fits) const noexcept {
        bucket* const buckets = root(hash).buckets;
        const std::size_t mask = bucket_mask_;
        std::size_t at = home(hash);
        for (std::size_t probes = 0;;) {
            bucket& b = buckets[at];
            for (unsigned found = b.match(tag(hash)); found != 0; found &= found - 1) {
                slot& place = b.slots[__builtin_ctz(found)];
                if (((place ^ hash) & hash_mask) != 0) continue;
                if (fits(*entry_of(place))) return &place;
            }
            if (b.passed_over == 0 || probes++ == mask) [[likely]]
                return nullptr;
            at = (at + 1) & mask;
        }
    }

    /// Adds an entry with a new key. Returns its slot.
    slot* insert(entry* added, std::uint64_t hash);

    /// True if resize_around() would change the segment of this hash, after additions and removals
    /// under locked buckets, which do not resize the table.
    bool is_to_resize(std::uint64_t hash) const noexcept {
        const std::uint32_t keys = keys_of_segment(hash);
        return keys >= fill_limit(full_buckets) || keys < merge_limit;
    }
    /// True if both hashes are in the same segment.
    bool are_close(std::uint64_t a, std::uint64_t b) const noexcept {
        return root(a).owner == root(b).owner;
    }
    /// Exclusively: adds the count of a holding.
    void count_in(std::ptrdiff_t keys) noexcept { count_ += static_cast<std::size_t>(keys); }
    /// Exclusively: splits the hash's segment if it is full, or joins it if it is nearly empty.
    void resize_around(std::uint64_t hash);

    /// Removes the entry from its slot; the caller releases its block. `hash` is its key's.
    void erase(slot* place, std::uint64_t hash) noexcept;

    /// Removes all entries and frees the buckets.
    void clear() noexcept;

    /// Prefetch for a pipelined batch: first the buckets of all its keys, then the entries.
    void prefetch_bucket(std::uint64_t hash) const noexcept {
        const bucket* const b = root(hash).buckets + home(hash);
        __builtin_prefetch(b);
        __builtin_prefetch(reinterpret_cast<const char*>(b) + 64);
    }
    /// The same before locking it.
    void prefetch_to_hold(std::uint64_t hash) const noexcept {
        const bucket* const b = root(hash).buckets + home(hash);
        prefetch_to_write(b);
        __builtin_prefetch(reinterpret_cast<const char*>(b) + 64);
    }
    /// Other threads may lock the bucket and change it meanwhile; the prefetch is useless then.
    void prefetch_entry([[maybe_unused]] std::uint64_t hash,
                        [[maybe_unused]] bool to_write = false) const noexcept {
#ifndef EDDY_THREAD_SANITIZER  // which would not know that
        const bucket& b = root(hash).buckets[home(hash)];
        for (unsigned found = b.match(tag(hash)); found != 0; found &= found - 1) {
            const slot place = b.slots[__builtin_ctz(found)];
            if (((place ^ hash) & hash_mask) != 0) continue;
            const char* const at = reinterpret_cast<const char*>(entry_of(place));
            if (to_write) {
                prefetch_to_write(at);
                prefetch_to_write(at + 64);
            } else {
                __builtin_prefetch(at);
                __builtin_prefetch(at + 64);
            }
            return;
        }
#endif
    }

    /// clear() in steps: removes all entries, and frees the buckets of one segment a call. `at` is
    /// the position, 0 at first. True while more remain; until the end the table allows no other
    /// call.
    bool drop_some(std::size_t& at) noexcept;

    /// Bytes in buckets and directory.
    std::size_t table_bytes() const noexcept;

    /// Visits a part of the table: appends to `found` the slots of one home bucket's entries and
    /// returns the next cursor; 0 begins and ends. An entry present from the first call to the last
    /// is found at least once, however the table grows or shrinks between calls.
    std::uint64_t scan(std::uint64_t cursor, std::vector<slot>& found) const;

    /// Position of a walk in the order of the hashes. The order is fixed while a walk lasts,
    /// whatever is added, erased, split or joined meanwhile: an entry's hash alone determines
    /// whether the walk has passed it.
    struct order_cursor {
        /// True at the end of all hashes.
        bool at_end() const noexcept { return prefix >> 32 != 0; }
        bool passed(std::uint64_t hash) const noexcept {
            const std::uint64_t first = hash >> 32;
            const std::uint64_t region = first & ~((std::uint64_t{1} << (32 - depth)) - 1);
            return region < prefix || (region == prefix && (hash & 0xff) < bucket);
        }
        /// Moves past the entries of the last visit.
        void advance() noexcept {
            bucket = next_bucket;
            if (bucket < full_buckets) return;
            bucket = 0;
            prefix += std::uint64_t{1} << (32 - depth);
        }

        std::uint64_t prefix = 0;  // the region's first hash: its first 32 bits
        unsigned depth = 0;        // how many of them the region's hashes share
        unsigned bucket = 0;       // the eight bits that choose a bucket in a full segment
        unsigned next_bucket = 0;  // the bucket after the visited one
    };
    /// Replaces `found` by the entries at the cursor, which does not move: those of one bucket,
    /// also in segments split off since the walk reached it.
    void visit(order_cursor& at, std::vector<slot>& found) const;

    /// A random entry, nearly uniform; null when the table is empty.
    entry* random(random_generator& random) const noexcept;

    /// Iterator over all slots. Invalidated by insert() and erase().
    class iterator {
    public:
        explicit iterator(const dictionary& over) noexcept : over_(over) {}
        /// The next slot in use, or null at the end.
        slot* next() noexcept;

    private:
        const dictionary& over_;
        std::size_t segment_ = 0;  // index into the directory
        std::size_t bucket_ = 0;
        unsigned left_ = 0;  // places of the current bucket still to visit
        bucket* current_ = nullptr;
    };

private:
    struct segment {
        bucket* buckets;
        std::uint32_t count;
        std::uint32_t depth;  // number of first bits of the hash that all its entries share
    };
    struct directory_slot {
        bucket* buckets;
        segment* owner;
    };

    slot* search(std::string_view key, std::uint64_t hash) const noexcept;

    static constexpr slot address_mask = (slot{1} << 48) - 1;
    static constexpr slot hash_mask = ~((slot{1} << 49) - 1);

    // A segment with fewer keys is joined with its other half if possible: an eighth of its slots.
    static constexpr std::uint32_t merge_limit = full_buckets * bucket::width / 8;
    // At most so many keys beyond the fill limit are added to a segment under locked buckets.
    static constexpr std::uint32_t overfill = 128;

    static std::uint64_t address(const entry* e) noexcept {
        return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(e));
    }
    static std::uint8_t tag(std::uint64_t hash) noexcept {
        return static_cast<std::uint8_t>(0x80 | (hash >> max_bucket_bits));
    }
    static constexpr std::size_t fill_limit(std::size_t buckets) noexcept {
        return buckets * bucket::width * 7 / 8;
    }
    // The lowest eight bits of the hash choose a bucket; a smaller segment uses the upper ones of
    // them, so that buckets keep their order when it doubles, which scan() requires.
    std::size_t home(std::uint64_t hash) const noexcept { return (hash & 0xff) >> bucket_shift_; }
    std::size_t bucket_count() const noexcept { return bucket_mask_ + 1; }
    std::size_t directory_index(std::uint64_t hash) const noexcept {
        return (hash >> 1) >> (63 - depth_);
    }
    const directory_slot& root(std::uint64_t hash) const noexcept {
        return directory_[directory_index(hash)];
    }

    std::uint32_t keys_of_segment(std::uint64_t hash) const noexcept {
        return std::atomic_ref(root(hash).owner->count).load(std::memory_order_relaxed);
    }
    bool is_held() const noexcept { return is_shared_ && memory_.is_in_shared_use(); }
    void count(segment& owner, int more) noexcept;
    slot* place(bucket* buckets, slot with, std::uint64_t hash) const noexcept;
    void grow(std::uint64_t hash);
    void resize_first(unsigned bucket_bits);
    void split(std::uint64_t hash);
    void double_directory();
    void merge(std::uint64_t hash) noexcept;
    void shrink_directory() noexcept;
    void point_directory(std::size_t first, std::size_t slots, segment* owner) noexcept;
    bucket* allocate_buckets(std::size_t buckets);
    void release_buckets(bucket* buckets, std::size_t count) noexcept;
    segment* allocate_segment(bucket* buckets, unsigned depth);
    void drop_buckets() noexcept;
    void forget() noexcept;
    void collect(const bucket* buckets, std::size_t home_bucket, std::vector<slot>& found) const;

    static bucket no_buckets[1];  // stands for the buckets of an empty table; never written

    directory_slot first_{no_buckets, nullptr};  // the directory while it has one slot
    directory_slot* directory_ = &first_;
    std::size_t bucket_mask_ = 0;
    std::uint8_t bucket_shift_ = max_bucket_bits;
    std::uint8_t depth_ = 0;
    bool is_shared_ = false;
    std::uint32_t moved_ = 0;
    std::size_t count_ = 0;
    slab& memory_;
    const key_hash& hash_;
};

}  // namespace eddy::cache
