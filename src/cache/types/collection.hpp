// Unordered collections: a set's members, or a hash's fields with their values.
//
// A small one is a packed block, searched from its start; above `max_packed_fields` fields, or with
// a field or value longer than `max_packed_text`, it becomes a dictionary of entries, whose value
// is empty for a set. It never goes back. All operations are O(1): a packed block has a bounded
// size.
//
// A hash with an expiring field becomes a table that also keeps their order (timed_fields.hpp), and
// stays one. An expired field is invisible to all functions here, until it is removed; but for the
// commands of this server's master (expired_keys::stay).
//
// The room types holds the values of keys. Files in reading order:
//
//   collection.hpp, timed_fields.hpp     sets and hashes, expiring fields; ordered_tree.hpp
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

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// Fields (and, in a hash, values in turn) behind one another, each with its size in a byte before
/// it.
struct packed_block {
    std::uint16_t capacity;
    std::uint16_t used;
    std::uint16_t count;  // of fields
    std::uint16_t unused;

    char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
    const char* data() const noexcept { return reinterpret_cast<const char*>(this + 1); }
};
static_assert(sizeof(packed_block) == 8);

/// A view of the set or hash that an entry holds; copy it freely. Its texts are valid until the
/// next change. A key's entry itself never moves by a function here.
class collection {
public:
    static constexpr std::size_t max_packed_fields = 32;
    static constexpr std::size_t max_packed_text = 64;
    static constexpr std::size_t first_capacity = 56;

    /// A field with its value, which is empty in a set.
    struct element {
        std::string_view field;
        std::string_view value;
    };

    collection(environment& env, entry& holder) noexcept : env_(&env), holder_(&holder) {}

    /// Gives a new entry, with room for a pointer as its value, an empty set or hash.
    static void make(environment& env, entry& holder, value_type type);

    value_type type() const noexcept { return holder_->type; }
    std::size_t size() const noexcept;
    bool empty() const noexcept { return size() == 0; }
    /// The same with fields that are over and not removed yet.
    std::size_t all() const noexcept { return is_packed() ? packed().count : table().size(); }
    bool contains(std::string_view field) const noexcept;
    /// The field's value.
    std::optional<std::string_view> get(std::string_view field) const noexcept;

    /// Adds the field, or replaces its value; true when it was added. Neither text may point into
    /// this collection. The field's expiry is removed, unless `keeps_expiry`.
    bool put(std::string_view field, std::string_view value = {}, bool keeps_expiry = false);
    bool erase(std::string_view field);

    /// When a field of a hash ends: milliseconds since 1970. No_expiry for one that does not, and
    /// for one that is not there.
    expiry_time ends_at(std::string_view field) const noexcept;
    /// Gives a field of a hash, which is there, such a time, which may be over already. See
    /// keyspace::watch_fields(). O(log n), but for the first time.
    void set_end(std::string_view field, expiry_time at_ms);
    /// Takes it away; false when there was none.
    bool drop_end(std::string_view field);
    /// Whether some field ends.
    bool has_expiring_fields() const noexcept;
    /// How many fields are over and not removed yet. O(log n).
    std::size_t ended() const noexcept;
    /// Removes those of these that are named, and then up to `most` more, the oldest first; appends
    /// their names.
    void remove_expired(std::size_t most, std::span<const std::string_view> first,
                        std::vector<std::string>& names);

    /// One element, each about as likely as any other; the collection must not be empty.
    element random() const;

    /// As dictionary::scan(); a packed collection is visited at once.
    std::uint64_t scan(std::uint64_t cursor, std::vector<element>& found) const;

    /// Whether a walk also shows fields whose time is over.
    enum class also : std::uint8_t { none, ended };

    /// All elements in turn. Ends with the next change.
    class walk {
    public:
        explicit walk(const collection& over, also what = also::none) noexcept;
        /// False at the end.
        bool next(element& to) noexcept;
        /// When the last field ends.
        expiry_time ends_at() const noexcept { return ends_at_; }

    private:
        const environment* skips_expired_ = nullptr;  // whose clock says which
        expiry_time ends_at_ = no_expiry;
        const char* at_ = nullptr;
        const char* end_ = nullptr;
        bool has_values_;
        std::optional<dictionary::iterator> table_;
    };

private:
    bool has_values() const noexcept { return holder_->type == value_type::hash; }
    bool is_packed() const noexcept { return holder_->held_as == encoding::packed; }
    bool is_timed() const noexcept { return holder_->held_as == encoding::timed_table; }
    bool is_over(const entry& field) const noexcept {
        const expiry_time at_ms = field.expiry();
        return at_ms != no_expiry && env_->now_ms > at_ms && env_->expired != expired_keys::stay;
    }
    // The entry of a field that is there in a table, or null.
    entry* find_entry(std::string_view field) const noexcept {
        const dictionary::slot* const place = table().find(field, env_->hash(field));
        if (place == nullptr || is_over(*dictionary::entry_of(*place))) return nullptr;
        return dictionary::entry_of(*place);
    }
    packed_block& packed() const noexcept { return *holder_->pointer<packed_block>(); }
    dictionary& table() const noexcept { return *holder_->pointer<dictionary>(); }

    char* find_packed(std::string_view field) const noexcept;
    bool put_packed(std::string_view field, std::string_view value);
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
