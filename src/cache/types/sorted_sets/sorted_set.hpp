// Sorted set: members, each with a score, in the order of their scores and then of their bytes.
//
// A small one is a packed block in that order, searched from its start; above `max_packed_members`,
// with a member longer than `max_packed_text` or when the block would pass 4 KiB it becomes a
// dictionary from member to score and a tree that keeps the order. It never converts back.
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

/// Large sorted set. The entries of its members have the score as their value, eight bytes.
struct sorted_table {
    sorted_table(slab& memory, const key_hash& hash) noexcept : members(memory, hash) {}
    dictionary members;
    score_tree order;
    /// True if Redis would still use a listpack, as OBJECT ENCODING shows.
    bool listed = true;
};

/// View of the sorted set that an entry holds; freely copied. Its texts are valid until the next
/// change. No function here moves a key's entry. Scores are any doubles but NaN.
class sorted_set {
public:
    static constexpr std::size_t max_packed_members = 128;
    static constexpr std::size_t max_packed_text = 64;
    static constexpr std::size_t max_packed_bytes = slab::max_small - sizeof(packed_block);
    /// Capacity of the smallest block, for one or few short members, and of the next one.
    static constexpr std::size_t first_capacity = 24;
    static constexpr std::size_t second_capacity = 56;

    struct element {
        std::string_view member;
        double score = 0;
    };

    /// Position of a member, or none. Valid until the next change.
    struct place {
        explicit operator bool() const noexcept { return at != nullptr; }
        void* at = nullptr;  // in the packed block, or the dictionary's slot
        double score = 0;
        std::uint64_t hash = 0;  // of the member, in a dictionary
    };

    sorted_set(environment& env, entry& holder) noexcept : env_(&env), holder_(&holder) {}

    /// Stores an empty sorted set in a new entry, with room for a pointer as its value.
    static void make(environment& env, entry& holder);
    /// Stores a copy in `to`, such an entry. O(n).
    void copy_to(entry& to) const;

    std::size_t size() const noexcept;
    bool empty() const noexcept { return size() == 0; }
    /// True if Redis would use a listpack, under the limits at the time of each change.
    bool is_listed() const noexcept {
        return is_packed() ? (packed().flags & packed_block::spread) == 0 : table().listed;
    }
    /// The same after adding this member.
    bool is_listed_with(std::string_view added) const noexcept {
        return is_listed() && size() < env_->limits.sorted_set_members &&
               added.size() <= env_->limits.sorted_set_text;
    }

    /// Before a command puts `count` members, the longest of so many bytes: beyond a limit it is no
    /// listpack any more, whether they are new or not.
    void expect(std::size_t count, std::size_t longest) noexcept {
        const encoding_limits& limits = env_->limits;
        if (count <= limits.sorted_set_members && longest <= limits.sorted_set_text) return;
        if (is_packed()) {
            packed().flags = packed_block::spread;
        } else {
            table().listed = false;
        }
    }

    /// Converts to a table, which is no listpack to Redis either.
    void spread();

    place find(std::string_view member) const noexcept;

    /// Adds a new member; `missing` is the result of find(). The text must not be a view into this
    /// set.
    void add(std::string_view member, double score, const place& missing);
    /// Changes the score of a member.
    void change(const place& of, double score);
    void erase(const place& gone);
    bool erase(std::string_view member) {
        const place at = find(member);
        if (at) erase(at);
        return static_cast<bool>(at);
    }
    /// Erases `count` members from this rank on; so many must exist.
    void erase_range(std::size_t rank, std::size_t count);

    /// Number of members before this one, which must exist.
    std::size_t rank(const place& of) const noexcept;
    /// Number of members with a lower score; if `and_equal`, also those of this score.
    std::size_t count_below(double score, bool and_equal) const noexcept;
    /// The same by text, if all members have one score; otherwise some number up to size().
    std::size_t count_below(std::string_view text, bool and_equal) const noexcept;

    /// `rank` must be less than size().
    element at(std::size_t rank) const;

    /// As dictionary::scan(); a packed set is visited at once, in order.
    std::uint64_t scan(std::uint64_t cursor, std::vector<element>& found) const;

    /// Walk over members in order, or in reverse order, from a rank to the end. Invalidated by the
    /// next change.
    class walk {
    public:
        /// From the first member on, or, if `backward`, from the last.
        explicit walk(const sorted_set& over, bool backward = false)
            : walk(over, backward && !over.empty() ? over.size() - 1 : 0, backward) {}
        /// Empty for a rank of size() or more.
        walk(const sorted_set& over, std::size_t rank, bool backward);
        /// False at the end.
        bool next(element& to) noexcept;

    private:
        score_tree::position tree_;
        const char* data_ = nullptr;  // of a packed block
        const char* at_ = nullptr;
        const char* end_ = nullptr;
        bool backward_;
        std::uint16_t left_ = 0;  // backward in a packed block: offsets that remain
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
