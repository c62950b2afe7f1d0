// An ordered index of small items: a B+-tree whose nodes come from the slabs.
//
// A tree of few items is one small node that grows; nodes filled in ascending order are full. An
// inner node has the exact first key of each child. Nodes of one level are linked.
//
//   find, insert, erase, lower_bound   O(log n)
//   first, last                        O(height)
//   next, previous                     O(1)
#pragma once

#include <eddy/base/assert.hpp>

#include "cache/memory/slab.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace eddy::cache {

/// `Traits` has the types `item` and `key`, both trivially copyable, `key key_of(const item&)` and
/// `std::strong_ordering compare(key, probe)` for each type of probe that is used. Keeps no
/// reference to the slab: the owner of the tree passes the same slab to each call that allocates or
/// frees. Positions are valid until the next change. A copy is another handle of the same nodes.
/// One thread.
template <class Traits>
class ordered_tree {
public:
    using item = typename Traits::item;
    using key = typename Traits::key;

    static constexpr std::size_t node_bytes = 768;
    static constexpr std::size_t first_node_bytes = 48;

private:
    struct node {
        std::uint32_t count;
        std::uint32_t bytes;  // of the block
        node* previous;
        node* next;
    };
    struct branch {
        key first;
        node* child;
    };
    static constexpr unsigned room(std::size_t bytes, std::size_t each) noexcept {
        return static_cast<unsigned>((bytes - sizeof(node)) / each);
    }

public:
    static constexpr unsigned leaf_items = room(node_bytes, sizeof(item));
    static constexpr unsigned inner_items = room(node_bytes, sizeof(branch));
    static_assert(leaf_items >= 8 && inner_items >= 8);

    /// Position of an item; null after the last item and before the first.
    class position {
    public:
        position() noexcept = default;
        explicit operator bool() const noexcept { return leaf_ != nullptr; }
        item& operator*() const noexcept { return items(leaf_)[index_]; }
        item* operator->() const noexcept { return &items(leaf_)[index_]; }
        void forward() noexcept {
            if (++index_ < leaf_->count) return;
            leaf_ = leaf_->next;
            index_ = 0;
        }
        void backward() noexcept {
            if (index_ > 0) {
                --index_;
                return;
            }
            leaf_ = leaf_->previous;
            if (leaf_ != nullptr) index_ = leaf_->count - 1;
        }

    private:
        friend class ordered_tree;
        position(node* leaf, unsigned index) noexcept : leaf_(leaf), index_(index) {}
        node* leaf_ = nullptr;
        unsigned index_ = 0;
    };

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

    position first() const noexcept {
        node* n = root_;
        for (unsigned level = height_; level > 0; --level) n = branches(n)[0].child;
        return {n, 0};
    }
    position last() const noexcept {
        node* n = root_;
        if (n == nullptr) return {};
        for (unsigned level = height_; level > 0; --level) n = branches(n)[n->count - 1].child;
        return {n, n->count - 1};
    }

    /// The item with this key, or none.
    template <class Probe>
    position find(const Probe& probe) const noexcept {
        const position at = lower_bound(probe);
        return at && Traits::compare(Traits::key_of(*at), probe) == 0 ? at : position{};
    }
    /// The first item whose key is not less than the probe.
    template <class Probe>
    position lower_bound(const Probe& probe) const noexcept {
        if (root_ == nullptr) return {};
        step path[max_height];
        node* const leaf = descend(probe, path);
        const unsigned i = lower(leaf, probe);
        return i < leaf->count ? position{leaf, i} : position{leaf->next, 0};
    }
    /// The last item whose key is not greater than the probe.
    template <class Probe>
    position last_up_to(const Probe& probe) const noexcept {
        if (root_ == nullptr) return {};
        step path[max_height];
        node* const leaf = descend(probe, path);
        unsigned i = lower(leaf, probe);
        if (i < leaf->count && Traits::compare(Traits::key_of(items(leaf)[i]), probe) == 0) ++i;
        if (i > 0) return {leaf, i - 1};
        return leaf->previous == nullptr ? position{}
                                         : position{leaf->previous, leaf->previous->count - 1};
    }

    /// Adds an item; false, without an effect, if its key exists.
    bool insert(slab& memory, const item& added) {
        const key its = Traits::key_of(added);
        if (root_ == nullptr) {
            root_ = make(memory, first_node_bytes);
            put(items(root_), 0, 0, added);
            root_->count = 1;
            size_ = 1;
            return true;
        }
        step path[max_height];
        node* leaf = descend(its, path);
        unsigned at = lower(leaf, its);
        if (at < leaf->count && Traits::compare(Traits::key_of(items(leaf)[at]), its) == 0) {
            return false;
        }
        ++size_;
        if (leaf->count == room(leaf->bytes, sizeof(item))) {
            if (leaf->bytes < node_bytes) {
                leaf = grow_root(memory);
            } else {
                const bool appends = leaf->next == nullptr && at == leaf->count;
                node* const right = make_behind(memory, leaf);
                if (appends) {
                    put(items(right), 0, 0, added);
                    right->count = 1;
                    add_branch(memory, path, height_, leaf, {its, right});
                    return true;
                }
                constexpr unsigned kept = leaf_items / 2;
                move_tail(items(leaf), items(right), leaf, right, kept);
                node* const into = at <= kept ? leaf : right;
                if (into == right) at -= kept;
                put(items(into), into->count++, at, added);
                if (at == 0 && into == leaf) set_first(path, height_, its);
                add_branch(memory, path, height_, leaf, {Traits::key_of(items(right)[0]), right});
                return true;
            }
        }
        put(items(leaf), leaf->count++, at, added);
        if (at == 0) set_first(path, height_, its);
        return true;
    }

    /// False without such a key.
    template <class Probe>
    bool erase(slab& memory, const Probe& probe) noexcept {
        if (root_ == nullptr) return false;
        step path[max_height];
        node* const leaf = descend(probe, path);
        const unsigned at = lower(leaf, probe);
        if (at == leaf->count || Traits::compare(Traits::key_of(items(leaf)[at]), probe) != 0) {
            return false;
        }
        --size_;
        take(items(leaf), leaf->count--, at);
        if (leaf->count == 0) {
            drop(memory, path, height_, leaf);
        } else {
            if (at == 0) set_first(path, height_, Traits::key_of(items(leaf)[0]));
            if (leaf->count < leaf_items / 4) join<item>(memory, path, height_);
        }
        lower_root(memory);
        return true;
    }

    /// Frees nodes with their items, calling `last(item)` for each, until `steps` are used up: one
    /// for each node and item. True while any remain; until the end the tree allows no other call.
    template <class F>
    bool free_some(slab& memory, std::size_t& steps, F&& last) noexcept {
        while (root_ != nullptr) {
            if (steps == 0) return true;
            node* const gone = root_;
            const std::size_t cost = 1 + (height_ == 0 ? gone->count : 0);
            steps -= cost < steps ? cost : steps;
            if (height_ == 0) {
                for (unsigned i = 0; i < gone->count; ++i) last(items(gone)[i]);
            }
            // Level by level. `previous` passes the first node of the next level from node to node.
            node* const below = height_ == 0                ? nullptr
                                : gone->previous == nullptr ? branches(gone)[0].child
                                                            : gone->previous;
            if (gone->next != nullptr) {
                root_ = gone->next;
                root_->previous = below;
            } else {
                root_ = below;
                if (height_ > 0) --height_;
            }
            memory.release(gone, gone->bytes);
        }
        *this = ordered_tree();
        return false;
    }

    /// Bytes in nodes.
    std::size_t memory_bytes() const noexcept {
        return root_ == nullptr ? 0 : nodes_ * slab::capacity(root_->bytes);
    }

    /// For tests: ends the process if a node's order, first keys, fill or links are wrong.
    void check() const {
        std::size_t total = 0;
        std::size_t nodes = 0;
        for (unsigned level = height_; root_ != nullptr; --level) {
            node* first = root_;
            for (unsigned up = height_; up > level; --up) first = branches(first)[0].child;
            EDDY_ASSERT(first->previous == nullptr);
            for (const node* n = first; n != nullptr; n = n->next, ++nodes) {
                EDDY_ASSERT(n->count > 0);
                EDDY_ASSERT(n->next == nullptr || n->next->previous == n);
                if (level == 0) total += n->count;
                for (unsigned i = 0; i < n->count; ++i) {
                    const key its = key_at(n, i, level);
                    if (i + 1 < n->count) {
                        EDDY_ASSERT(Traits::compare(its, key_at(n, i + 1, level)) < 0);
                    } else if (n->next != nullptr) {
                        EDDY_ASSERT(Traits::compare(its, key_at(n->next, 0, level)) < 0);
                    }
                    if (level > 0) {
                        EDDY_ASSERT(
                            Traits::compare(key_at(branches(n)[i].child, 0, level - 1), its) == 0);
                    }
                }
            }
            if (level == 0) break;
        }
        EDDY_ASSERT(total == size_ && nodes == nodes_);
    }

private:
    // A node on the path from the root, and the index of the chosen child.
    struct step {
        node* at;
        unsigned index;
    };
    // Two neighbours that are both nearly empty are joined, so each level has at most half as many
    // nodes as the one below.
    static constexpr unsigned max_height = 24;

    static item* items(const node* of) noexcept {
        return reinterpret_cast<item*>(const_cast<node*>(of) + 1);
    }
    static branch* branches(const node* of) noexcept {
        return reinterpret_cast<branch*>(const_cast<node*>(of) + 1);
    }
    static key key_at(const node* n, unsigned i, unsigned level) noexcept {
        return level == 0 ? Traits::key_of(items(n)[i]) : branches(n)[i].first;
    }
    template <class T>
    static T* elements(const node* of) noexcept {
        return reinterpret_cast<T*>(const_cast<node*>(of) + 1);
    }

    template <class T>
    static void put(T* of, unsigned count, unsigned at, const T& added) noexcept {
        if (at < count) std::memmove(of + at + 1, of + at, (count - at) * sizeof(T));
        std::memcpy(of + at, &added, sizeof(T));
    }
    template <class T>
    static void take(T* of, unsigned count, unsigned at) noexcept {
        std::memmove(of + at, of + at + 1, (count - at - 1) * sizeof(T));
    }
    // Moves the elements after the first `kept` to the node on the right, which is empty.
    template <class T>
    static void move_tail(T* from, T* to, node* left, node* right, unsigned kept) noexcept {
        right->count = left->count - kept;
        std::memcpy(to, from + kept, right->count * sizeof(T));
        left->count = kept;
    }

    // Number of the leaf's items that are less than the probe.
    template <class Probe>
    static unsigned lower(const node* leaf, const Probe& probe) noexcept {
        const item* const of = items(leaf);
        unsigned low = 0;
        for (unsigned count = leaf->count; count > 0;) {
            const unsigned half = count / 2;
            if (Traits::compare(Traits::key_of(of[low + half]), probe) < 0) {
                low += half + 1;
                count -= half + 1;
            } else {
                count = half;
            }
        }
        return low;
    }

    template <class Probe>
    node* descend(const Probe& probe, step* path) const noexcept {
        node* n = root_;
        for (unsigned level = height_; level > 0; --level) {
            const branch* const of = branches(n);
            // The last child whose first key is not greater than the probe, or the first one.
            unsigned low = 0;
            for (unsigned count = n->count; count > 0;) {
                const unsigned half = count / 2;
                if (Traits::compare(of[low + half].first, probe) <= 0) {
                    low += half + 1;
                    count -= half + 1;
                } else {
                    count = half;
                }
            }
            if (low > 0) --low;
            *path++ = {n, low};
            n = of[low].child;
        }
        return n;
    }

    node* make(slab& memory, std::size_t bytes) {
        auto* const made = static_cast<node*>(memory.allocate(bytes));
        *made = {0, static_cast<std::uint32_t>(bytes), nullptr, nullptr};
        ++nodes_;
        return made;
    }
    node* make_behind(slab& memory, node* left) {
        node* const made = make(memory, node_bytes);
        made->previous = left;
        made->next = left->next;
        if (left->next != nullptr) left->next->previous = made;
        left->next = made;
        return made;
    }
    void release(slab& memory, node* gone) noexcept {
        if (gone->previous != nullptr) gone->previous->next = gone->next;
        if (gone->next != nullptr) gone->next->previous = gone->previous;
        --nodes_;
        memory.release(gone, gone->bytes);
    }
    node* grow_root(slab& memory) {
        node* const wider = make(memory, std::size_t{root_->bytes} * 2);
        wider->count = root_->count;
        std::memcpy(items(wider), items(root_), root_->count * sizeof(item));
        release(memory, root_);
        root_ = wider;
        return wider;
    }

    // The node at the end of `depth` steps has another first key.
    static void set_first(const step* path, unsigned depth, const key& its) noexcept {
        while (depth-- > 0) {
            branches(path[depth].at)[path[depth].index].first = its;
            if (path[depth].index != 0) return;
        }
    }

    // Adds a new node to the right of the one at the end of `depth` steps.
    void add_branch(slab& memory, const step* path, unsigned depth, node* left,
                    const branch& added) {
        if (depth == 0) {
            node* const above = make(memory, node_bytes);
            branches(above)[0] = {key_at(left, 0, height_), left};
            branches(above)[1] = added;
            above->count = 2;
            root_ = above;
            ++height_;
            EDDY_ASSERT(height_ < max_height);
            return;
        }
        node* const parent = path[depth - 1].at;
        unsigned at = path[depth - 1].index + 1;
        if (parent->count < inner_items) {
            put(branches(parent), parent->count++, at, added);
            return;
        }
        const bool appends = parent->next == nullptr && at == parent->count;
        node* const right = make_behind(memory, parent);
        if (appends) {
            branches(right)[0] = added;
            right->count = 1;
        } else {
            constexpr unsigned kept = inner_items / 2;
            move_tail(branches(parent), branches(right), parent, right, kept);
            node* const into = at <= kept ? parent : right;
            if (into == right) at -= kept;
            put(branches(into), into->count++, at, added);
        }
        add_branch(memory, path, depth - 1, parent, {branches(right)[0].first, right});
    }

    // Removes the empty node at the end of `depth` steps.
    void drop(slab& memory, const step* path, unsigned depth, node* gone) noexcept {
        release(memory, gone);
        if (depth == 0) {
            root_ = nullptr;
            height_ = 0;
            return;
        }
        take_branch(memory, path, depth - 1, path[depth - 1].index);
    }

    // Removes a child from the inner node at the end of `depth` steps.
    void take_branch(slab& memory, const step* path, unsigned depth, unsigned index) noexcept {
        node* const from = path[depth].at;
        take(branches(from), from->count--, index);
        if (from->count == 0) return drop(memory, path, depth, from);
        if (index == 0) set_first(path, depth, branches(from)[0].first);
        if (from->count < inner_items / 4) join<branch>(memory, path, depth);
    }

    // Joins the node at the end of `depth` steps with a neighbour, if both have few elements.
    template <class T>
    void join(slab& memory, const step* path, unsigned depth) noexcept {
        if (depth == 0) return;
        const node* const parent = path[depth - 1].at;
        const unsigned index = path[depth - 1].index;
        constexpr unsigned most = room(node_bytes, sizeof(T)) * 3 / 4;
        for (const unsigned left_at : {index, index - 1}) {
            if (left_at + 1 >= parent->count || left_at > index) continue;
            node* const left = branches(parent)[left_at].child;
            node* const right = branches(parent)[left_at + 1].child;
            if (left->count + right->count > most) continue;
            std::memcpy(elements<T>(left) + left->count, elements<T>(right),
                        right->count * sizeof(T));
            left->count += right->count;
            release(memory, right);
            return take_branch(memory, path, depth - 1, left_at + 1);
        }
    }

    void lower_root(slab& memory) noexcept {
        while (height_ > 0 && root_->count == 1) {
            node* const gone = root_;
            root_ = branches(gone)[0].child;
            --height_;
            release(memory, gone);
        }
    }

    node* root_ = nullptr;
    std::uint64_t size_ = 0;
    std::uint32_t height_ = 0;  // levels of inner nodes
    std::uint32_t nodes_ = 0;
};

}  // namespace eddy::cache
