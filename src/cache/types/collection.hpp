// Unordered collections: a set's members, or a hash's fields with their values.
//
// A small one is a packed block in insertion order, as Redis's listpack; a set of integers alone is
// sorted, as an intset. Above `max_packed_fields` fields the block gets an index. Beyond a limit of
// encoding_limits, where Redis uses its hash table, it becomes a dictionary of entries, whose
// values are empty for a set; so it does beyond an indexed block's own limits and with texts of
// more than 255 bytes. It never converts back. A block that is less than half full is replaced by a
// smaller one. All operations are O(1): a block has a bounded size.
//
// A hash with an expiring field becomes a table that also keeps their order (timed_fields.hpp), and
// stays one. An expired field is invisible to all functions here until its removal, except for
// commands of this server's master (expired_keys::stay).
//
// The room types holds the values of keys. Files in reading order:
//
//   collection.hpp, timed_fields.hpp     sets and hashes, expiring fields; ordered_tree.hpp
//   packed_block.hpp, encoding_limits.hpp  small ones in a block, and their limits
//   list.hpp                             lists
//   sorted_set.hpp, score_tree.hpp       sorted sets; geo.hpp positions in them
//   stream.hpp, stream_id.hpp            streams; listpack.hpp their blocks
//   bits.hpp, hyperloglog.hpp            operations on strings; number.hpp numbers in them
//   packed.hpp                           Redis's compact encodings, from untrusted input
//   encoding_name.hpp, sha256.hpp        OBJECT ENCODING; passwords
//
// It stands on memory, and shares a floor with keyspace.
#pragma once

#include "cache/keyspace/environment.hpp"
#include "cache/types/packed_block.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// View of the set or hash that an entry holds; freely copied. Its texts are valid until the next
/// change. No function here moves a key's entry.
class collection {
public:
    static constexpr std::size_t max_packed_fields = 32;
    /// Capacity of the smallest block, for one or few short fields, and of the next one.
    static constexpr std::size_t first_capacity = 24;
    static constexpr std::size_t second_capacity = 56;

    /// A field with its value, which is empty in a set.
    struct element {
        std::string_view field;
        std::string_view value;
    };

    collection(environment& env, entry& holder) noexcept : env_(&env), holder_(&holder) {}

    /// Stores an empty set or hash in a new entry, with room for a pointer as its value.
    static void make(environment& env, entry& holder, value_type type);
    /// Stores a copy in `to`, such an entry, including expired fields. O(n).
    void copy_to(entry& to) const;

    value_type type() const noexcept { return holder_->type; }
    std::size_t size() const noexcept;
    bool empty() const noexcept { return size() == 0; }
    /// Number of fields, including expired ones that are not removed.
    std::size_t all() const noexcept {
        if (is_packed()) return packed().count;
        return is_indexed() ? indexed().count : table().size();
    }
    /// True if Redis would use a listpack or an intset, not a table.
    bool is_listed() const noexcept { return is_packed() || is_indexed(); }
    /// True for a sorted set of integers: Redis's intset.
    bool is_integers() const noexcept {
        return type() == value_type::set && is_listed() && (flags() & packed_block::integers) != 0;
    }
    bool contains(std::string_view field) const noexcept;
    /// The field's value.
    std::optional<std::string_view> get(std::string_view field) const noexcept;

    /// Adds the field, or replaces its value; true when it was added. The texts must not be views
    /// into this collection. The field's expiry is removed, unless `keeps_expiry`.
    bool put(std::string_view field, std::string_view value = {}, bool keeps_expiry = false);
    bool erase(std::string_view field);

    /// Before a command puts `count` fields, starting with `first`: converts to a table at once if
    /// the number alone exceeds a limit, as Redis does, whether they are new or not.
    void expect(std::string_view first, std::size_t count) {
        // A single put() does this itself, except for a set with a limit of 0.
        if (count > 1 || env_->limits.set_integers == 0 || env_->limits.set_members == 0)
            expect_several(first, count);
    }
    /// An empty set keeps insertion order, even for integers.
    void keep_order() noexcept;
    /// Sorts a set with insertion order, or a table, if it has only integers within an intset's
    /// limit.
    void order_integers();

    /// Expiration of a field of a hash: milliseconds since 1970. No_expiry for a field without one,
    /// and for a missing field.
    expiry_time ends_at(std::string_view field) const noexcept;
    /// Sets the expiration of an existing field, which may be in the past. See
    /// keyspace::watch_fields(). O(log n), except for the first one.
    void set_end(std::string_view field, expiry_time at_ms);
    /// Removes it; false when there was none.
    bool drop_end(std::string_view field);
    /// True if some field has an expiration.
    bool has_expiring_fields() const noexcept;
    /// Number of expired fields that are not removed. O(log n).
    std::size_t ended() const noexcept;
    /// Removes the expired ones of the fields `first`, and then up to `most` more, the oldest
    /// first; appends their names.
    void remove_expired(std::size_t most, std::span<const std::string_view> first,
                        std::vector<std::string>& names);

    /// A random element, nearly uniform; the collection must not be empty.
    element random() const;

    /// As dictionary::scan(); a packed collection is visited at once.
    std::uint64_t scan(std::uint64_t cursor, std::vector<element>& found) const;

    /// Selects expired fields for a walk as well.
    enum class also : std::uint8_t { none, ended };

    /// Walk over all elements; invalidated by the next change.
    class walk {
    public:
        explicit walk(const collection& over, also what = also::none) noexcept;
        /// False at the end.
        bool next(element& to) noexcept;
        /// Expiration of the last field.
        expiry_time ends_at() const noexcept { return ends_at_; }

    private:
        const environment* skips_expired_ = nullptr;  // clock for skipping expired fields, or null
        expiry_time ends_at_ = no_expiry;
        const char* at_ = nullptr;
        const char* end_ = nullptr;
        bool has_values_;
        std::optional<dictionary::iterator> table_;
    };

private:
    bool has_values() const noexcept { return holder_->type == value_type::hash; }
    bool is_packed() const noexcept { return holder_->held_as == encoding::packed; }
    bool is_indexed() const noexcept { return holder_->held_as == encoding::indexed; }
    bool is_timed() const noexcept { return holder_->held_as == encoding::timed_table; }
    bool is_over(const entry& field) const noexcept {
        const expiry_time at_ms = field.expiry();
        return at_ms != no_expiry && env_->now_ms > at_ms && env_->expired != expired_keys::stay;
    }
    // The entry of an existing field in a table, or null.
    entry* find_entry(std::string_view field) const noexcept {
        const dictionary::slot* const place = table().find(field, env_->hash(field));
        if (place == nullptr || is_over(*dictionary::entry_of(*place))) return nullptr;
        return dictionary::entry_of(*place);
    }
    packed_block& packed() const noexcept { return *holder_->pointer<packed_block>(); }
    indexed_block& indexed() const noexcept { return *holder_->pointer<indexed_block>(); }
    std::uint16_t& flags() const noexcept { return is_packed() ? packed().flags : indexed().flags; }
    dictionary& table() const noexcept { return *holder_->pointer<dictionary>(); }

    void expect_several(std::string_view first, std::size_t count);
    // Effect of an added field on a block.
    enum class addition : std::uint8_t { appended, sorted, table };
    addition adding(std::string_view field, std::size_t count) noexcept;
    bool are_members_within(std::size_t longest) const noexcept;
    bool fits(std::string_view field, std::string_view value) const noexcept;

    char* find_packed(std::string_view field) const noexcept;
    packed_block& packed_with_room(std::size_t more);
    bool put_packed(std::string_view field, std::string_view value);
    std::uint8_t tag(std::string_view field) const noexcept;
    indexed_block& indexed_with_room(std::size_t more, std::size_t fields);
    bool put_indexed(std::string_view field, std::string_view value);
    void become_indexed();
    void become_packed();
    void shrink_packed();
    void shrink_indexed();
    bool put_table(std::string_view field, std::string_view value, bool keeps_expiry);
    void add_to_table(dictionary& to, std::string_view field, std::string_view value,
                      std::uint64_t hash);
    void become_table();
    void become_timed();
    void enter_order(entry* field, expiry_time at_ms);
    void leave_order(entry* field) noexcept;
    element random_live() const;
    static entry* with_room(environment& env, dictionary& in, dictionary::slot* place);

    environment* env_;
    entry* holder_;
};

}  // namespace eddy::cache
