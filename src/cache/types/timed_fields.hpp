// Expiring fields of a hash.
//
// A hash that has ever had an expiring field is a dictionary beside a tree that orders those fields
// by their expiry. The field's entry keeps its time as a key's entry does, so that a field without
// one takes no more than in any other table. The field_clock orders all such hashes by their next
// expiry: a sweep visits only hashes with an expired field.
#pragma once

#include "cache/keyspace/dictionary.hpp"
#include "cache/memory/entry.hpp"
#include "cache/types/sorted_sets/score_tree.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace eddy::cache {

class keyspace;

/// Fields of a hash, with the expiring ones in order. An entry's time and its place in the order
/// change together.
struct timed_table final : dictionary {
    static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

    explicit timed_table(dictionary&& fields) noexcept : dictionary(std::move(fields)) {}

    /// Of the hash that the entry holds.
    static timed_table* of(const entry& holder) noexcept {
        return static_cast<timed_table*>(holder.pointer<dictionary>());
    }

    /// The field does not end, or has no room for its time, before.
    void enter_order(slab& memory, entry* field, expiry_time at_ms);
    void leave_order(slab& memory, entry* field) noexcept;
    /// When the first field ends; there is one.
    expiry_time first_end() const noexcept { return static_cast<expiry_time>(order.at(0).score()); }

    score_tree order;             // milliseconds since 1970: all of them are exact as doubles
    keyspace* home = nullptr;     // whose key this is; null while it is nobody's
    std::uint64_t key_hash = 0;   // of that key
    std::size_t place = nowhere;  // in the field_clock
};

/// Hashes of which fields end, the one whose time comes first in front. Belongs to an environment;
/// keeps no table alive. All functions are O(log n). One thread.
class field_clock {
public:
    /// The last time that a field may have: Redis's, in its files.
    static constexpr expiry_time latest_end = (std::int64_t{1} << 48) - 2;
    /// The last one that a command may give.
    static constexpr expiry_time latest_given_end = latest_end / 4;

    std::uint64_t ended = 0;  ///< fields that have ended by themselves, for INFO

    /// Hashes in it.
    std::size_t size() const noexcept { return heap_.size(); }
    /// The hash whose field may end first, and not before this time; there is one. What was removed
    /// from the hash since note() is not known here.
    timed_table& first() const noexcept { return *heap_.front().of; }
    expiry_time first_end() const noexcept { return heap_.front().at_ms; }

    /// The order of the hash's fields, or its key, has changed.
    void note(timed_table& of);
    void forget(timed_table& gone) noexcept;

private:
    struct item {
        expiry_time at_ms;
        timed_table* of;
    };
    void put(std::size_t place, item what) noexcept;
    void raise(std::size_t place, item what) noexcept;
    void sink(std::size_t place, item what) noexcept;

    std::vector<item> heap_;
};

}  // namespace eddy::cache
