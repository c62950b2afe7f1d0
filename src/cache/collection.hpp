// A set's members, or a hash's fields with their values: the unordered collections.
//
// A small one is a packed block, searched from its start; above `max_packed_fields` fields, or with
// a field or value longer than `max_packed_text`, it becomes a dictionary of entries, whose value
// is empty for a set. It never goes back. All operations are O(1): a packed block has a bounded
// size.
#pragma once

#include "cache/environment.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// A view of the set or hash that an entry holds; copy it freely. The texts that it hands out end
/// with the next change. A key's entry itself never moves by what is done here.
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
    bool contains(std::string_view field) const noexcept;
    /// The field's value.
    std::optional<std::string_view> get(std::string_view field) const noexcept;

    /// Adds the field, or replaces its value; true when it was added. Neither text may point into
    /// this collection.
    bool put(std::string_view field, std::string_view value = {});
    bool erase(std::string_view field);

    /// One element, each about as likely as any other; the collection must not be empty.
    element random() const;

    /// As dictionary::scan(); a packed collection is visited at once.
    std::uint64_t scan(std::uint64_t cursor, std::vector<element>& found) const;

    /// All elements in turn. Ends with the next change.
    class walk {
    public:
        explicit walk(const collection& over) noexcept;
        /// False at the end.
        bool next(element& to) noexcept;

    private:
        const char* at_ = nullptr;
        const char* end_ = nullptr;
        bool has_values_;
        std::optional<dictionary::iterator> table_;
    };

private:
    bool has_values() const noexcept { return holder_->type == value_type::hash; }
    bool is_packed() const noexcept { return holder_->held_as == encoding::packed; }
    packed_block& packed() const noexcept { return *holder_->pointer<packed_block>(); }
    dictionary& table() const noexcept { return *holder_->pointer<dictionary>(); }

    char* find_packed(std::string_view field) const noexcept;
    bool put_packed(std::string_view field, std::string_view value);
    bool put_table(std::string_view field, std::string_view value);
    void add_to_table(dictionary& to, std::string_view field, std::string_view value,
                      std::uint64_t hash);
    void become_table();

    environment* env_;
    entry* holder_;
};

}  // namespace eddy::cache
