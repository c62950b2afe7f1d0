// Order of a big sorted set: a B+-tree over (score, member) with subtree counts.
//
// A leaf holds up to 62 members, their scores side by side, so that a search mostly reads scores
// alone: two or three lines of the processor's cache a node. Members that share a score are
// compared byte by byte, as Redis does. An inner node holds up to 63 children with the first item
// and the number of items of each, which makes ranks as cheap as searches. Leaves are linked in
// order.
//
//   insert, erase, rank, at   O(log n): with a million members three or four nodes
//   next, previous            O(1)
//   memory                    16 bytes an item, in nodes that are 3/4 full or more after random
//                             insertions and full after ascending or descending ones
//
// A full node first shares its items with a neighbour that has room, and splits only when none has;
// one that becomes nearly empty is joined with a neighbour, or takes some of its items.
#pragma once

#include "cache/memory/entry.hpp"
#include "cache/memory/slab.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache {

/// Points to entries, which stay where they are as long as they are in it. Keeps no reference to
/// the slab: the owner of the tree gives it with each call that allocates or frees, always the
/// same. Positions are valid until the next change. A copy is another handle of the same nodes. One
/// thread.
class score_tree {
public:
    static constexpr unsigned leaf_items = 62;
    static constexpr unsigned inner_items = 63;

    struct leaf;

    /// One item's place; `block` is null behind the last item and before the first.
    struct position {
        position() noexcept = default;
        position(const leaf* in, unsigned at) noexcept : block(in), index(at) {}

        const leaf* block = nullptr;
        unsigned index = 0;
        explicit operator bool() const noexcept { return block != nullptr; }
        double score() const noexcept;
        entry* member() const noexcept;
        void forward() noexcept;
        void backward() noexcept;
        /// Prefetches the members of the next items in this leaf, so that a walk does not wait for
        /// each of them.
        void fetch(bool backward) const noexcept {
            for (unsigned ahead = 0; ahead < fetched_ahead; ++ahead) fetch_at(backward, ahead);
        }
        /// The same after each step of the walk.
        void fetch_next(bool backward) const noexcept {
            if (at_edge(backward)) return fetch(backward);
            fetch_at(backward, fetched_ahead - 1);
        }

    private:
        static constexpr unsigned fetched_ahead = 8;
        void fetch_at(bool backward, unsigned ahead) const noexcept;
        bool at_edge(bool backward) const noexcept;
    };

    std::size_t size() const noexcept { return size_; }

    /// Adds an item that is not there; its member's key is its text.
    void insert(slab& memory, double score, entry* member);
    /// Takes out an item that is there.
    void erase(slab& memory, double score, const entry* member) noexcept;
    /// Gives an item that is there another score.
    void change(slab& memory, double from, double to, entry* member);
    /// Removes up to `most` items from this rank on, but only those of one leaf; returns how many.
    /// Reads no member. `rank` < size().
    std::size_t erase_at(slab& memory, std::size_t rank, std::size_t most) noexcept;

    /// The number of items before one that is there.
    std::size_t rank(double score, const entry* member) const noexcept;
    /// The number of items with a lower score; with `and_equal` of those with this score, too.
    std::size_t count_below(double score, bool and_equal) const noexcept;
    /// The same by text, where all items have one score.
    std::size_t count_below(std::string_view text, bool and_equal) const noexcept;
    /// `rank` < size().
    position at(std::size_t rank) const noexcept;

    /// Frees up to `blocks` nodes, and their items are gone; returns whether any are left.
    bool free_some(slab& memory, std::size_t blocks) noexcept;
    /// Bytes in nodes.
    std::size_t memory_bytes() const noexcept;

    /// For tests: ends the process when a node's order, counts, fill or links are wrong.
    void check() const;

private:
    struct node;
    struct inner;
    struct item_moves;
    // An inner node on the way down, and which child was taken.
    struct step {
        inner* above;
        unsigned index;
    };
    // An inner node has 15 children or more, the root two, so the way down never has more steps.
    static constexpr unsigned max_height = 14;
    static constexpr unsigned fewest_leaf_items = 15;
    static constexpr unsigned fewest_children = 15;

    template <class Before>
    leaf* descend(Before before, step* path, unsigned& place) const noexcept;
    template <class Before>
    std::size_t count(Before before) const noexcept;
    leaf* descend_to(std::size_t rank, step* path, unsigned& place) const noexcept;

    void insert_at(leaf& into, unsigned place, const step* path, double score,
                   entry* member) noexcept;
    void erase_from(slab& memory, leaf& from, unsigned place, unsigned items,
                    const step* path) noexcept;
    void make_room(slab& memory, const step* path, unsigned level, unsigned place);
    void rebalance(slab& memory, const step* path) noexcept;
    static void set_first(const step* path, unsigned level, double score, entry* member) noexcept;

    template <class Node>
    void make_room_in(slab& memory, const step* path, unsigned level, unsigned place);
    template <class Node>
    static void share(inner& parent, unsigned left) noexcept;
    template <class Node>
    void split(slab& memory, inner& parent, unsigned index, unsigned keep);
    template <class Node>
    void join(slab& memory, inner& parent, unsigned left) noexcept;

    leaf* make_leaf(slab& memory);
    inner* make_inner(slab& memory);
    void release(slab& memory, leaf* gone) noexcept;
    void release(slab& memory, inner* gone) noexcept;
    void check(const node* at, unsigned level, const leaf*& last, std::size_t& total) const;

    node* root_ = nullptr;
    std::uint64_t size_ = 0;
    std::uint32_t height_ = 0;  // levels of inner nodes
    std::uint32_t inners_ = 0;
    std::uint64_t leaves_ = 0;
};

struct score_tree::node {
    std::uint32_t count;
};

struct score_tree::leaf : node {
    leaf* previous;
    leaf* next;
    double scores[leaf_items];
    entry* members[leaf_items];
};

inline double score_tree::position::score() const noexcept { return block->scores[index]; }
inline entry* score_tree::position::member() const noexcept { return block->members[index]; }
// Before the leaf's first item the index wraps, and is beyond its count as well.
inline void score_tree::position::fetch_at(bool backward, unsigned ahead) const noexcept {
    const unsigned i = backward ? index - ahead : index + ahead;
    if (i < block->count) __builtin_prefetch(block->members[i]);
}
inline bool score_tree::position::at_edge(bool backward) const noexcept {
    return index == (backward ? block->count - 1 : 0);
}
inline void score_tree::position::forward() noexcept {
    if (++index < block->count) return;
    block = block->next;
    index = 0;
}
inline void score_tree::position::backward() noexcept {
    if (index > 0) {
        --index;
        return;
    }
    block = block->previous;
    if (block != nullptr) index = block->count - 1;
}

}  // namespace eddy::cache
