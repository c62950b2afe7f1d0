// Sorted set: members, each with a score, in the order of their scores and then of their bytes.
//
// A small one is a packed block in that order, searched from its start; above `max_packed_members`,
// with a member longer than `max_packed_text` or when the block would pass 4 KiB it becomes a
// dictionary from member to score and a tree that keeps the order. It never goes back.
//
//   find, score       O(1)
//   add, change,      O(log n)
//     erase, rank
//   walk              O(log n) to its first member, O(1) from one to the next
//   erase_range       O(log n + the members erased)
//
// A packed block has a bounded size, so that all of these are O(1) there.
#pragma once

#include "cache/keyspace/environment.hpp"
#include "cache/types/collection.hpp"
#include "cache/types/sorted_sets/score_tree.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// A big sorted set. Its members' entries have the score as their value, eight bytes.
struct sorted_table {
    sorted_table(slab& memory, const key_hash& hash) noexcept : members(memory, hash) {}
    dictionary members;
    score_tree order;
    /// Whether Redis would still hold it as a listpack, as shown by OBJECT ENCODING.
    bool listed = true;
};

/// A view of the sorted set that an entry holds; copy it freely. Its texts are valid until the next
/// change. A key's entry itself never moves by a function here. Scores are any doubles but NaN.
class sorted_set {
public:
    static constexpr std::size_t max_packed_members = 128;
    static constexpr std::size_t max_packed_text = 64;
    static constexpr std::size_t max_packed_bytes = slab::max_small - sizeof(packed_block);
    /// A block of one or few short members, and the next one.
    static constexpr std::size_t first_capacity = 24;
    static constexpr std::size_t second_capacity = 56;

    struct element {
        std::string_view member;
        double score = 0;
    };

    /// Where a member is, or that it is not there. Ends with the next change.
    struct place {
        explicit operator bool() const noexcept { return at != nullptr; }
        void* at = nullptr;  // in the packed block, or the dictionary's slot
        double score = 0;
        std::uint64_t hash = 0;  // of the member, in a dictionary
    };

    sorted_set(environment& env, entry& holder) noexcept : env_(&env), holder_(&holder) {}

    /// Gives a new entry, with room for a pointer as its value, an empty sorted set.
    static void make(environment& env, entry& holder);
    /// Gives `to`, a new entry likewise, a copy of what this one holds. O(n).
    void copy_to(entry& to) const;

    std::size_t size() const noexcept;
    bool empty() const noexcept { return size() == 0; }
    /// Whether Redis would hold it as a listpack, with its limits as they come.
    bool is_listed() const noexcept {
        return is_packed() ? (packed().flags & packed_block::spread) == 0 : table().listed;
    }
    /// The same once this member is in it.
    bool is_listed_with(std::string_view added) const noexcept {
        return is_listed() && size() < env_->limits.sorted_set_members &&
               added.size() <= env_->limits.sorted_set_text;
    }

    /// Before a command puts so many members, of which the longest has so many bytes: beyond a
    /// limit it is no listpack any more, whether they are new or not.
    void expect(std::size_t count, std::size_t longest) noexcept {
        const encoding_limits& limits = env_->limits;
        if (count <= limits.sorted_set_members && longest <= limits.sorted_set_text) return;
        if (is_packed()) {
            packed().flags = packed_block::spread;
        } else {
            table().listed = false;
        }
    }

    /// Makes a table of it, which is no listpack to Redis either.
    void spread();

    place find(std::string_view member) const noexcept;

    /// Adds a member that is not there; `missing` is what find() said. The text may not point into
    /// this set.
    void add(std::string_view member, double score, const place& missing);
    /// Gives a member another score.
    void change(const place& of, double score);
    void erase(const place& gone);
    bool erase(std::string_view member) {
        const place at = find(member);
        if (at) erase(at);
        return static_cast<bool>(at);
    }
    /// Erases `count` members from this rank on; as many are there.
    void erase_range(std::size_t rank, std::size_t count);

    /// How many members stand before this one, which is there.
    std::size_t rank(const place& of) const noexcept;
    /// The number of members with a lower score; with `and_equal` of those with this score, too.
    std::size_t count_below(double score, bool and_equal) const noexcept;
    /// The same by text, where all members have one score; else it is some number up to size().
    std::size_t count_below(std::string_view text, bool and_equal) const noexcept;

    /// `rank` < size().
    element at(std::size_t rank) const;

    /// As dictionary::scan(); a packed set is visited at once, in order.
    std::uint64_t scan(std::uint64_t cursor, std::vector<element>& found) const;

    /// Members in order, or in reverse order, from a rank on to the last or the first. Ends with
    /// the next change.
    class walk {
    public:
        /// From the first member on, or, backward, from the last.
        explicit walk(const sorted_set& over, bool backward = false)
            : walk(over, backward && !over.empty() ? over.size() - 1 : 0, backward) {}
        /// A rank of size() or more ends at once.
        walk(const sorted_set& over, std::size_t rank, bool backward);
        /// False at the end.
        bool next(element& to) noexcept;

    private:
        score_tree::position tree_;
        const char* data_ = nullptr;  // of a packed block
        const char* at_ = nullptr;
        const char* end_ = nullptr;
        bool backward_;
        std::uint16_t left_ = 0;  // backward in a packed block: offsets still to visit
        std::uint16_t offsets_[max_packed_members];
    };

private:
    bool is_packed() const noexcept { return holder_->held_as == encoding::packed; }
    packed_block& packed() const noexcept { return *holder_->pointer<packed_block>(); }
    sorted_table& table() const noexcept { return *holder_->pointer<sorted_table>(); }

    void add_packed(std::string_view member, double score, std::size_t before);
    void erase_packed(char* from, char* to, std::size_t members) noexcept;
    void shrink_packed();
    void add_to_table(sorted_table& to, std::string_view member, double score, std::uint64_t hash);
    void become_table();

    environment* env_;
    entry* holder_;
};

}  // namespace eddy::cache
