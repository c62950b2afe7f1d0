// Keyspace: one database of keys, with their values and expiration.
//
// An expired key is removed on lookup, or by the sweep. All functions are O(1), unless they say
// otherwise.
//
// The room keyspace holds databases and their hash table. Files in reading order:
//
//   keyspace.hpp      one database: lookup, change, expiration, sweep; strings, too
//   environment.hpp   memory, hash, time and deferred release for all databases of an engine
//   dataset.hpp       all databases of an engine
//   dictionary.hpp    the hash table (extendible hashing)
//   eviction.hpp      eviction policies and queues; keyspace_eviction.cpp the choice of a key
//   key_event.hpp     events; statistics.hpp counters
//
// It stands on memory, and shares a floor with types: values live in entries of a keyspace, and big
// collections are dictionaries.
#pragma once

#include "cache/keyspace/environment.hpp"
#include "cache/keyspace/eviction.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// Observer of every entry before it changes: a snapshot that is being written.
class entry_keeper {
public:
    /// Called before the value or the expiry changes.
    virtual void before_change(entry& e, std::uint64_t hash) noexcept = 0;
    /// Called after the entry was taken out of the table. True: the keeper releases it later.
    virtual bool removed(entry& e, std::uint64_t hash) noexcept = 0;
    virtual void added(entry& e, std::uint64_t hash) noexcept = 0;
    /// Called when all entries are removed. The keeper releases them, and gets no further calls.
    virtual void cleared(dictionary&& all) noexcept = 0;
    /// True if before_change() would block other clients for too long.
    virtual bool takes_long(const entry& e, std::uint64_t hash) const noexcept = 0;
    /// Starts to write such an entry in slices. The keeper notifies when one of them is done.
    virtual void prepare(entry& e) noexcept = 0;
    /// True if before_change() or removed() would have to copy or keep the value.
    virtual bool lacks(const entry& e, std::uint64_t hash) const noexcept = 0;

protected:
    ~entry_keeper() = default;
};

/// Owns its entries. Slots and entries are valid until the next call that adds, removes or
/// reshapes.
class keyspace {
public:
    using slot = dictionary::slot;

    /// Longer strings are in a block of their own, so that moving the entry does not move them.
    static constexpr std::size_t max_inline_text = 2048;
    /// At most so many used keys are passed over by one eviction; then the next key is evicted,
    /// used or not, so that no command waits for a walk over all keys.
    static constexpr std::size_t max_spared = 256;
    /// At most so many buckets are searched by one eviction for a key that may be evicted: few of
    /// very many keys may have an expiry.
    static constexpr std::size_t max_buckets_passed = 32 * 1024;
    /// Weight of a scanned bucket: the clock is read after 16 of them.
    static constexpr std::size_t bucket_weight = slice_limit::a_look / 16;
    /// One key in so many is in the probation queue.
    static constexpr std::size_t probation_share = 10;
    static constexpr std::size_t least_probation = 64;
    /// While new keys are evicted, the clock hand passes one bucket, some ten keys, per so many
    /// evictions.
    static constexpr std::size_t evictions_a_bucket = 16;

    /// `number` is passed to observers of its keys.
    explicit keyspace(environment& env, unsigned number = 0) noexcept
        : env_(env),
          table_(env.memory, env.hash, true),
          number_(number),
          contents_(++env.keyspace_contents) {}
    ~keyspace() { clear(); }

    std::size_t size() const noexcept { return table_.size(); }
    std::size_t expiring() const noexcept { return expiring_; }
    /// Approximate mean TTL of keys with an expiry, from the last sweeps mostly. 0: no such key was
    /// swept.
    std::int64_t average_ttl_ms() const noexcept { return expiring_ == 0 ? 0 : average_ttl_ms_; }
    std::size_t table_bytes() const noexcept { return table_.table_bytes(); }
    const dictionary& table() const noexcept { return table_; }
    unsigned number() const noexcept { return number_; }
    /// Number of the keys that it holds since it was made or flushed, unique within the
    /// environment.
    std::uint64_t contents() const noexcept { return contents_; }
    /// Number of hashes with expiring fields.
    std::size_t with_expiring_fields() const noexcept;
    void set_number(unsigned number) noexcept { number_ = number; }

    std::uint64_t hash(std::string_view key) const noexcept { return env_.hash(key); }
    static entry* at(const slot* place) noexcept { return dictionary::entry_of(*place); }

    /// The key's slot, or null when it is missing or expired. The caller may change the value.
    slot* find(std::string_view key, std::uint64_t hash) {
        slot* const place = find_to_read(key, hash);
        if (keeper_ != nullptr && place != nullptr) [[unlikely]]
            keeper_->before_change(*at(place), hash);
        return place;
    }
    /// The same for callers that change the value only through this keyspace's functions, if at
    /// all: neither the content of a list, set, hash or sorted set nor a string's bytes.
    slot* find_to_read(std::string_view key, std::uint64_t hash) {
        slot* const place = table_.find(key, hash);
        if (place == nullptr) return nullptr;
        if ((*place & dictionary::expires_bit) != 0 && is_over(*at(place))) [[unlikely]] {
            if (env_.expired != expired_keys::hide) expire(place, hash);
            return nullptr;
        }
        if (env_.most_uses != 0) at(place)->count_use(env_.most_uses);
        return place;
    }
    slot* find(std::string_view key) { return find(key, hash(key)); }
    slot* find_to_read(std::string_view key) { return find_to_read(key, hash(key)); }

    /// The key's entry, even if expired, or null; without side effects.
    const entry* look_at(std::string_view key) const noexcept {
        const slot* const place = table_.find(key, hash(key));
        return place == nullptr ? nullptr : at(place);
    }

    /// The key's entry, if before_change() would take too long for it, or null.
    entry* find_slow(std::string_view key) const noexcept {
        if (keeper_ == nullptr) return nullptr;
        const std::uint64_t its_hash = hash(key);
        const slot* const place = table_.find(key, its_hash);
        return place != nullptr && keeper_->takes_long(*at(place), its_hash) ? at(place) : nullptr;
    }

    /// True if the keeper has to keep the key's value when it changes or is removed.
    bool is_lacked(std::string_view key) const noexcept {
        if (keeper_ == nullptr) return false;
        const std::uint64_t its_hash = hash(key);
        const slot* const place = table_.find(key, its_hash);
        return place != nullptr && keeper_->lacks(*at(place), its_hash);
    }

    /// Adds a new key, with room for so many bytes of value, which the caller writes.
    slot* add(std::string_view key, std::uint64_t hash, std::size_t value_size);

    /// Adds an empty list, set, hash, sorted set or stream under a new key.
    slot* add(std::string_view key, std::uint64_t hash, value_type type);

    /// Stores a string: over any value in the slot, or under a new key when `place` is null. A
    /// canonical decimal number is stored as an integer. Removes the key's expiry unless
    /// `keep_expiry`.
    slot* put_text(slot* place, std::string_view key, std::uint64_t hash, std::string_view text,
                   bool keep_expiry = false);
    slot* put_integer(slot* place, std::string_view key, std::uint64_t hash, std::int64_t number);

    /// Resizes the slot's string to `size` bytes (at most 512 MB), in one block open to changes;
    /// added bytes are zero. Returns its begin. Its encoding becomes "raw".
    char* open_text(slot* place, std::size_t size);

    /// Stores a string of `size` bytes, which the caller must write at once, over any value in the
    /// slot or under a new key. Removes the key's expiry; the encoding is "raw".
    char* put_blank(slot* place, std::string_view key, std::uint64_t hash, std::size_t size);

    void remove(slot* place, std::uint64_t hash);
    bool remove(std::string_view key, std::uint64_t hash);

    /// `at_ms` must not be no_expiry.
    void set_expiry(slot* place, expiry_time at_ms);
    /// Returns true if the key had an expiry.
    bool drop_expiry(slot* place);
    bool is_over(const entry& e) const noexcept {
        const expiry_time at_ms = e.expiry();
        return at_ms != no_expiry && env_.now_ms > at_ms && env_.expired != expired_keys::stay;
    }

    /// Moves the value and expiry of `from` (a slot of this or another keyspace) to the new key and
    /// removes the old one.
    void move_value(keyspace& source, slot* from, std::uint64_t from_hash, std::string_view to,
                    std::uint64_t to_hash);
    /// Records the next expiry among the fields of the slot's hash, if any: after a hash has got
    /// its first expiring field. See timed_fields.hpp.
    void watch_fields(const slot* place, std::uint64_t hash);
    /// As move_value(), with a copy of the whole value. O(its size).
    void copy_value(const slot* from, std::string_view to, std::uint64_t to_hash);

    /// Adds the counts of a database that several threads have used.
    void count_in(const dictionary::holding::counts& counted) noexcept {
        table_.count_in(counted.keys);
        expiring_ += static_cast<std::size_t>(counted.expiring);
    }
    /// As dictionary::resize_around().
    void resize_around(std::uint64_t hash) { table_.resize_around(hash); }

    void prefetch_bucket(std::uint64_t hash) const noexcept { table_.prefetch_bucket(hash); }
    void prefetch_to_hold(std::uint64_t hash) const noexcept { table_.prefetch_to_hold(hash); }
    void prefetch_entry(std::uint64_t hash, bool to_write = false) const noexcept {
        table_.prefetch_entry(hash, to_write);
    }

    /// As dictionary::scan(), without expired keys: these are appended to `over`.
    std::uint64_t scan(std::uint64_t cursor, std::vector<slot>& found,
                       std::vector<slot>& over) const;
    /// A random key, or null when there is none. It may have expired.
    entry* random() const noexcept { return table_.random(env_.random); }

    /// Result of a sweep().
    struct swept {
        std::size_t removed = 0;
        std::size_t expiring = 0;  ///< keys with an expiry, the removed ones included
        std::size_t passed = 0;    ///< buckets
        /// True if it removed so many that another sweep at once is worth it.
        bool many = false;
    };
    /// Continues the pass over keys with an expiry, through `buckets` buckets at most and until the
    /// end of the slice, and removes expired ones. The next sweep starts where it stopped.
    swept sweep(std::size_t buckets, slice_limit& slice);
    /// The same in a slice of its own.
    swept sweep(std::size_t buckets) {
        slice_limit slice(env_.slice_time, longest_slice_ns);
        return sweep(buckets, slice);
    }

    /// Result of an eviction.
    enum class evicted : std::uint8_t {
        one,    ///< a key was evicted
        none,   ///< no key may be evicted
        later,  ///< such a key exists but was not found yet: the next eviction continues the search
    };
    /// Evicts one key by the environment's policy. If few of many keys may be evicted, at most
    /// max_buckets_passed buckets are searched, until the end of the slice.
    evicted evict_one(slice_limit& slice);

    /// Removes all keys. Their memory is freed later, by environment::free_some().
    void clear();

    /// Observer of changes, or null. It must outlive the keyspace, or detach itself before.
    void set_keeper(entry_keeper* keeper) noexcept { keeper_ = keeper; }
    entry_keeper* keeper() const noexcept { return keeper_; }

private:
    void expire(slot* place, std::uint64_t hash);
    void note_new_key(std::uint64_t hash);
    const entry* unused(slice_limit& slice);
    const entry* unused_on_probation();
    const entry* pass_bucket(std::size_t& spared);
    std::uint64_t look_at_bucket();
    const entry* some_volatile(slice_limit& slice);
    const entry* soonest(slice_limit& slice);
    void before_change(slot* place) {
        if (keeper_ != nullptr) [[unlikely]]
            keeper_->before_change(*at(place), hash(at(place)->key()));
    }
    void notify_added(std::string_view key) {
        if (env_.observer != nullptr) [[unlikely]]
            env_.observer->key_happened(number_, key_event::new_key, "new", key);
    }
    void count_expiring(int more) noexcept {
        if (env_.memory.is_in_shared_use()) [[unlikely]]
            dictionary::holding::current().expiring += more;
        else
            expiring_ += static_cast<std::size_t>(more);
    }
    entry* reshape(slot* place, std::size_t value_size, bool with_expiry, bool keep_value);
    void set_aside(slot* place, std::uint64_t hash);
    static text_block* make_external(slab& memory, std::size_t size, std::size_t capacity);

    environment& env_;
    dictionary table_;
    unsigned number_;
    std::uint64_t contents_;
    entry_keeper* keeper_ = nullptr;
    std::size_t expiring_ = 0;
    std::uint64_t sweep_cursor_ = 0;
    std::int64_t average_ttl_ms_ = 0;
    std::uint64_t clock_hand_ = 0;
    std::size_t evictions_ = 0;
    bool clock_hand_stays_ = false;  // its bucket has another candidate
    probation_queue probation_;
    ghost_queue ghosts_;
    std::vector<slot> seen_;
};

/// The text of a string entry. An integer is written into `digits`, and the view is valid as long
/// as these; otherwise the view points into the entry and is valid until its next change.
struct text_view {
    char digits[24];
    std::string_view operator()(const entry& e) noexcept;
};

/// Length of a string entry's text in bytes.
std::size_t text_size(const entry& e) noexcept;

}  // namespace eddy::cache
