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
    /// The value or the expiry may change from now on.
    virtual void before_change(entry& e, std::uint64_t hash) noexcept = 0;
    /// The entry was taken out of the table. True: the keeper releases it later.
    virtual bool removed(entry& e, std::uint64_t hash) noexcept = 0;
    virtual void added(entry& e, std::uint64_t hash) noexcept = 0;
    /// All entries are removed. The keeper releases them, and is not called again.
    virtual void cleared(dictionary&& all) noexcept = 0;
    /// Whether before_change() would take longer than others may wait.
    virtual bool takes_long(const entry& e, std::uint64_t hash) const noexcept = 0;
    /// Of such an entry: it is to take no longer soon. The keeper says when one of them is ready.
    virtual void prepare(entry& e) noexcept = 0;
    /// Whether before_change() or removed() would have to keep what there is.
    virtual bool lacks(const entry& e, std::uint64_t hash) const noexcept = 0;

protected:
    ~entry_keeper() = default;
};

/// Owns its entries. Slots and entries are good until the next call that adds, removes or reshapes.
/// `hash` is always the key's own, from hash(). One thread, or several: see dictionary::holding.
class keyspace {
public:
    using slot = dictionary::slot;

    /// Longer strings stand in a block of their own, so that moving the entry does not move them.
    static constexpr std::size_t max_inline_text = 2048;
    /// Used keys that one eviction passes over at most; then the next key goes, used or not, so
    /// that no command waits for a walk over all keys.
    static constexpr std::size_t max_spared = 256;
    /// Buckets that one eviction looks through at most for a key that may go: few among very many
    /// may have an expiry.
    static constexpr std::size_t max_buckets_passed = 32 * 1024;
    /// Weight of a scanned bucket: the clock is read after 16 of them.
    static constexpr std::size_t bucket_weight = slice_limit::a_look / 16;
    /// One key in so many waits in the queue of new ones.
    static constexpr std::size_t probation_share = 10;
    static constexpr std::size_t least_probation = 64;
    /// While new keys are evicted, the clock hand passes a bucket, some ten keys, for so many of
    /// them.
    static constexpr std::size_t evictions_a_bucket = 16;

    /// `number` is passed to observers of its keys.
    explicit keyspace(environment& env, unsigned number = 0) noexcept
        : env_(env), table_(env.memory, env.hash, true), number_(number) {}
    ~keyspace() { clear(); }

    std::size_t size() const noexcept { return table_.size(); }
    std::size_t expiring() const noexcept { return expiring_; }
    /// How long keys with an expiry still have, about: of those that sweeps have passed, the last
    /// ones most. 0: none was.
    std::int64_t average_ttl_ms() const noexcept { return expiring_ == 0 ? 0 : average_ttl_ms_; }
    std::size_t table_bytes() const noexcept { return table_.table_bytes(); }
    const dictionary& table() const noexcept { return table_; }
    unsigned number() const noexcept { return number_; }
    void set_number(unsigned number) noexcept { number_ = number; }

    std::uint64_t hash(std::string_view key) const noexcept { return env_.hash(key); }
    static entry* at(const slot* place) noexcept { return dictionary::entry_of(*place); }

    /// The key's slot, or null when it is not there or its time is over. What is found may be
    /// changed.
    slot* find(std::string_view key, std::uint64_t hash) {
        slot* const place = find_to_read(key, hash);
        if (keeper_ != nullptr && place != nullptr) [[unlikely]]
            keeper_->before_change(*at(place), hash);
        return place;
    }
    /// The same for callers that change the slot only by this keyspace's functions, if at all:
    /// neither the content of a list, set, hash or sorted set nor a string's bytes.
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

    /// The key's entry, also when its time is over, or null; nothing changes.
    const entry* look_at(std::string_view key) const noexcept {
        const slot* const place = table_.find(key, hash(key));
        return place == nullptr ? nullptr : at(place);
    }

    /// The key's entry, if the keeper takes long when that changes, or null.
    entry* find_slow(std::string_view key) const noexcept {
        if (keeper_ == nullptr) return nullptr;
        const std::uint64_t its_hash = hash(key);
        const slot* const place = table_.find(key, its_hash);
        return place != nullptr && keeper_->takes_long(*at(place), its_hash) ? at(place) : nullptr;
    }

    /// Whether the keeper has to keep the key's value when that changes or goes.
    bool is_lacked(std::string_view key) const noexcept {
        if (keeper_ == nullptr) return false;
        const std::uint64_t its_hash = hash(key);
        const slot* const place = table_.find(key, its_hash);
        return place != nullptr && keeper_->lacks(*at(place), its_hash);
    }

    /// Adds a key that is not there, with room for this many bytes of value; what they are is the
    /// caller's to say.
    slot* add(std::string_view key, std::uint64_t hash, std::size_t value_size);

    /// Adds an empty list, set, hash, sorted set or stream under a key that is not there.
    slot* add(std::string_view key, std::uint64_t hash, value_type type);

    /// Stores a string: over whatever the slot holds, or under a new key when `place` is null.
    /// A number in its usual writing is kept as a number. The key's expiry goes, if not kept.
    slot* put_text(slot* place, std::string_view key, std::uint64_t hash, std::string_view text,
                   bool keep_expiry = false);
    slot* put_integer(slot* place, std::string_view key, std::uint64_t hash, std::int64_t number);

    /// Makes the slot's string `size` bytes long (at most 512 MB), each of them in place and open
    /// to changes; added ones are zero. Returns where the string begins. Its encoding becomes
    /// "raw".
    char* open_text(slot* place, std::size_t size);

    /// Stores a string of `size` bytes, which are the caller's to write at once, over whatever the
    /// slot holds or under a new key. The key's expiry goes; its encoding is "raw".
    char* put_blank(slot* place, std::string_view key, std::uint64_t hash, std::size_t size);

    void remove(slot* place, std::uint64_t hash);
    bool remove(std::string_view key, std::uint64_t hash);

    /// `at_ms` is not no_expiry.
    void set_expiry(slot* place, expiry_time at_ms);
    /// Whether there was one.
    bool drop_expiry(slot* place);
    bool is_over(const entry& e) const noexcept {
        const expiry_time at_ms = e.expiry();
        return at_ms != no_expiry && env_.now_ms > at_ms && env_.expired != expired_keys::stay;
    }

    /// Gives the value of `from` (a slot of this or another keyspace) to the new key, with its
    /// expiry. The old key is removed.
    void move_value(keyspace& source, slot* from, std::uint64_t from_hash, std::string_view to,
                    std::uint64_t to_hash);
    /// Records the next expiry among the fields of the slot's hash, if any: after a hash has got
    /// its first expiring field. See timed_fields.hpp.
    void watch_fields(const slot* place, std::uint64_t hash);
    /// As move_value, with a copy of all that the value holds. O(its size).
    void copy_value(const slot* from, std::string_view to, std::uint64_t to_hash);

    /// Takes in what was counted in a database that several threads have used.
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

    /// As dictionary::scan(), without the keys whose time is over: these are appended to `over`.
    std::uint64_t scan(std::uint64_t cursor, std::vector<slot>& found,
                       std::vector<slot>& over) const;
    /// A key that is there, or null when there is none. Its time may be over.
    entry* random() const noexcept { return table_.random(env_.random); }

    /// Result of a sweep().
    struct swept {
        std::size_t removed = 0;
        std::size_t expiring = 0;  ///< keys with an expiry, the removed ones included
        std::size_t passed = 0;    ///< buckets
        /// It removed so many that another one at once is worth it.
        bool many = false;
    };
    /// Looks on through the keys that expire, through `buckets` buckets at most and until the slice
    /// is over, and removes those whose time is over. The next one goes on where it stopped.
    swept sweep(std::size_t buckets, slice_limit& slice);
    /// The same in a slice of its own.
    swept sweep(std::size_t buckets) {
        slice_limit slice(env_.slice_time, longest_slice_ns);
        return sweep(buckets, slice);
    }

    /// Result of an eviction.
    enum class evicted : std::uint8_t {
        one,    ///< a key has gone
        none,   ///< there is none that may go
        later,  ///< there is one, and it was not found yet: the next eviction looks on for it
    };
    /// Evicts one key by the environment's policy. Where few of many keys may be evicted, at most
    /// max_buckets_passed buckets are searched, until the slice is over.
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
    entry_keeper* keeper_ = nullptr;
    std::size_t expiring_ = 0;
    std::uint64_t sweep_cursor_ = 0;
    std::int64_t average_ttl_ms_ = 0;
    std::uint64_t clock_hand_ = 0;
    std::size_t evictions_ = 0;
    bool clock_hand_stays_ = false;  // more of its bucket may go
    probation_queue probation_;
    ghost_queue ghosts_;
    std::vector<slot> seen_;
};

/// The text of a string entry. A number is written into `digits`, and the view ends with it;
/// otherwise the view points into the entry and ends with the next change.
struct text_view {
    char digits[24];
    std::string_view operator()(const entry& e) noexcept;
};

/// The bytes of a string entry's text.
std::size_t text_size(const entry& e) noexcept;

}  // namespace eddy::cache
