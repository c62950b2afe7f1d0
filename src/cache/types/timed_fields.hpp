// Expiring fields of a hash.
//
// A hash that has ever had an expiring field is a dictionary beside a tree that orders those fields
// by their expiry. A field's entry stores its expiration as a key's entry does, so a field without
// one takes no more memory than in any other table. The field_clock orders all such hashes by their
// next expiry: a sweep visits only hashes with an expired field.
#pragma once

#include "cache/keyspace/dictionary.hpp"
#include "cache/memory/entry.hpp"
#include "cache/types/sorted_sets/score_tree.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace eddy::cache {

class keyspace;

/// Fields of a hash, with an order of the expiring ones. An entry's expiration and its position in
/// the order change together.
struct timed_table final : dictionary {
    static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

    explicit timed_table(dictionary&& fields) noexcept : dictionary(std::move(fields)) {}

    /// The table of the hash that the entry holds.
    static timed_table* of(const entry& holder) noexcept {
        return static_cast<timed_table*>(holder.pointer<dictionary>());
    }

    /// The field must have no expiration before.
    void enter_order(slab& memory, entry* field, expiry_time at_ms);
    void leave_order(slab& memory, entry* field) noexcept;
    /// Expiration of the first field; there must be one.
    expiry_time first_end() const noexcept { return static_cast<expiry_time>(order.at(0).score()); }

    score_tree order;             // milliseconds since 1970: all of them are exact as doubles
    keyspace* home = nullptr;     // database of the key; null while there is none
    std::uint64_t key_hash = 0;   // of that key
    std::uint64_t contents = 0;   // of that database, see keyspace::contents()
    std::uint64_t counted = 0;    // contents for which the field_clock counts it; 0: none
    std::size_t place = nowhere;  // index in the field_clock
};

/// Heap of hashes with expiring fields, by their first expiration. Belongs to an environment; does
/// not own the tables. All functions are O(log n). One thread.
class field_clock {
public:
    /// The latest expiration of a field: Redis's limit in files.
    static constexpr expiry_time latest_end = (std::int64_t{1} << 48) - 2;
    /// The latest one that a command may set.
    static constexpr expiry_time latest_given_end = latest_end / 4;

    std::uint64_t ended = 0;  ///< expired fields, for INFO

    /// Number of hashes in it.
    std::size_t size() const noexcept { return heap_.size(); }
    /// Number of a database's hashes in it; one whose memory is freed in slices still counts.
    std::size_t size_in(std::uint64_t contents) const noexcept {
        const auto found = counts_.find(contents);
        return found == counts_.end() ? 0 : found->second;
    }
    /// The database was flushed: hashes that were in it no longer count.
    void drop_count(std::uint64_t contents) noexcept { counts_.erase(contents); }
    /// The hash whose field may expire first, not before first_end(); there must be one. Fields
    /// removed since note() are not considered.
    timed_table& first() const noexcept { return *heap_.front().of; }
    expiry_time first_end() const noexcept { return heap_.front().at_ms; }

    /// Updates the hash after a change of its fields' order or of its key.
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
    void count(timed_table& of, std::uint64_t contents);

    std::vector<item> heap_;
    std::map<std::uint64_t, std::size_t> counts_;  // by contents
};

}  // namespace eddy::cache
