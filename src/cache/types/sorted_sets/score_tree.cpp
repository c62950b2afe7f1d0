// Search, split, sharing and joining of nodes.
#include "cache/types/sorted_sets/score_tree.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <type_traits>

namespace eddy::cache {
namespace {

// Neighbours with at most so many items together are joined; a node with at most so many shares
// with a full neighbour.
constexpr unsigned joined_leaf_items = score_tree::leaf_items * 3 / 4;
constexpr unsigned joined_children = score_tree::inner_items * 3 / 4;

template <class T>
void move_array(T* to, const T* from, unsigned count) noexcept {
    if (to <= from) {
        std::copy(from, from + count, to);
    } else {
        std::copy_backward(from, from + count, to + count);
    }
}

// Index of the first of `count` items for which before() is false.
template <class Before>
unsigned partition(const double* scores, entry* const* members, unsigned count,
                   Before before) noexcept {
    unsigned low = 0;
    while (count > 0) {
        const unsigned half = count / 2;
        if (before(scores[low + half], members[low + half])) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

// True for items up to this one, inclusive: the descent ends in the leaf that has it.
auto up_to(double score, std::string_view text) noexcept {
    return [score, text](double s, const entry* member) {
        return s < score || (s == score && member->key() <= text);
    };
}

}  // namespace

// A child's key is its first item.
struct score_tree::inner : node {
    double scores[inner_items];
    entry* members[inner_items];
    std::uint64_t sizes[inner_items];
    node* children[inner_items];
};

// Moves of items in leaves and in inner nodes.
struct score_tree::item_moves {
    static void move(leaf& to, unsigned to_at, const leaf& from, unsigned from_at,
                     unsigned count) noexcept {
        move_array(to.scores + to_at, from.scores + from_at, count);
        move_array(to.members + to_at, from.members + from_at, count);
    }
    static void move(inner& to, unsigned to_at, const inner& from, unsigned from_at,
                     unsigned count) noexcept {
        move_array(to.scores + to_at, from.scores + from_at, count);
        move_array(to.members + to_at, from.members + from_at, count);
        move_array(to.sizes + to_at, from.sizes + from_at, count);
        move_array(to.children + to_at, from.children + from_at, count);
    }
    // Number of the tree's items at these indexes.
    static std::uint64_t weight(const leaf&, unsigned, unsigned count) noexcept { return count; }
    static std::uint64_t weight(const inner& of, unsigned from, unsigned count) noexcept {
        std::uint64_t sum = 0;
        for (unsigned i = from; i < from + count; ++i) sum += of.sizes[i];
        return sum;
    }
    template <class Node>
    static void set_child(inner& parent, unsigned index, Node& child) noexcept {
        parent.scores[index] = child.scores[0];
        parent.members[index] = child.members[0];
        parent.children[index] = &child;
    }
};

score_tree::leaf* score_tree::make_leaf(slab& memory) {
    auto* const made = static_cast<leaf*>(memory.allocate(sizeof(leaf)));
    made->count = 0;
    made->previous = made->next = nullptr;
    ++leaves_;
    return made;
}

score_tree::inner* score_tree::make_inner(slab& memory) {
    auto* const made = static_cast<inner*>(memory.allocate(sizeof(inner)));
    made->count = 0;
    ++inners_;
    return made;
}

void score_tree::release(slab& memory, leaf* gone) noexcept {
    --leaves_;
    memory.release(gone, sizeof(leaf));
}

void score_tree::release(slab& memory, inner* gone) noexcept {
    --inners_;
    memory.release(gone, sizeof(inner));
}

template <class Before>
score_tree::leaf* score_tree::descend(Before before, step* path, unsigned& place) const noexcept {
    node* at = root_;
    for (unsigned level = 0; level < height_; ++level) {
        auto* const in = static_cast<inner*>(at);
        const unsigned i = partition(in->scores + 1, in->members + 1, in->count - 1, before);
        path[level] = {in, i};
        at = in->children[i];
        // The cache lines of scores are fetched in parallel.
        for (unsigned ahead = 0; ahead < 512; ahead += 64) {
            __builtin_prefetch(reinterpret_cast<const char*>(at) + ahead);
        }
    }
    auto* const found = static_cast<leaf*>(at);
    place = partition(found->scores, found->members, found->count, before);
    return found;
}

template <class Before>
std::size_t score_tree::count(Before before) const noexcept {
    if (root_ == nullptr) return 0;
    step path[max_height];
    unsigned place = 0;
    descend(before, path, place);
    std::size_t rank = place;
    for (unsigned level = 0; level < height_; ++level) {
        rank += item_moves::weight(*path[level].above, 0, path[level].index);
    }
    return rank;
}

std::size_t score_tree::rank(double score, const entry* member) const noexcept {
    return count(up_to(score, member->key())) - 1;
}

std::size_t score_tree::count_below(double score, bool and_equal) const noexcept {
    if (and_equal) return count([score](double s, const entry*) { return s <= score; });
    return count([score](double s, const entry*) { return s < score; });
}

std::size_t score_tree::count_below(std::string_view text, bool and_equal) const noexcept {
    if (and_equal) return count([text](double, const entry* m) { return m->key() <= text; });
    return count([text](double, const entry* m) { return m->key() < text; });
}

score_tree::leaf* score_tree::descend_to(std::size_t rank, step* path,
                                         unsigned& place) const noexcept {
    EDDY_ASSERT(rank < size_);
    node* at = root_;
    for (unsigned level = 0; level < height_; ++level) {
        auto* const in = static_cast<inner*>(at);
        unsigned i = 0;
        while (rank >= in->sizes[i]) rank -= in->sizes[i++];
        path[level] = {in, i};
        at = in->children[i];
    }
    place = static_cast<unsigned>(rank);
    return static_cast<leaf*>(at);
}

score_tree::position score_tree::at(std::size_t rank) const noexcept {
    step path[max_height];
    unsigned place = 0;
    const leaf* const found = descend_to(rank, path, place);
    return {found, place};
}

// The node on this level of the path has another first item.
void score_tree::set_first(const step* path, unsigned level, double score, entry* member) noexcept {
    while (level-- > 0) {
        inner& above = *path[level].above;
        above.scores[path[level].index] = score;
        above.members[path[level].index] = member;
        if (path[level].index != 0) return;
    }
}

void score_tree::insert_at(leaf& into, unsigned place, const step* path, double score,
                           entry* member) noexcept {
    item_moves::move(into, place + 1, into, place, into.count - place);
    into.scores[place] = score;
    into.members[place] = member;
    ++into.count;
    ++size_;
    for (unsigned level = 0; level < height_; ++level) {
        ++path[level].above->sizes[path[level].index];
    }
    if (place == 0) set_first(path, height_, score, member);
}

void score_tree::insert(slab& memory, double score, entry* member) {
    if (root_ == nullptr) root_ = make_leaf(memory);
    const std::string_view text = member->key();
    step path[max_height];
    for (;;) {
        unsigned place = 0;
        leaf* const into = descend(up_to(score, text), path, place);
        if (into->count < leaf_items) return insert_at(*into, place, path, score, member);
        make_room(memory, path, height_, place);
    }
}

// The node on this level is full, and a new item would be inserted at `place`. Does one step to
// make room; then the descent starts again.
void score_tree::make_room(slab& memory, const step* path, unsigned level, unsigned place) {
    if (level > 0) {
        if (level == height_) return make_room_in<leaf>(memory, path, level, place);
        return make_room_in<inner>(memory, path, level, place);
    }
    EDDY_ASSERT(height_ + 1 < max_height);
    inner* const above = make_inner(memory);
    above->count = 1;
    above->sizes[0] = size_;
    if (height_ == 0) {
        item_moves::set_child(*above, 0, *static_cast<leaf*>(root_));
    } else {
        item_moves::set_child(*above, 0, *static_cast<inner*>(root_));
    }
    root_ = above;
    ++height_;
}

template <class Node>
void score_tree::make_room_in(slab& memory, const step* path, unsigned level, unsigned place) {
    constexpr bool is_leaf = std::is_same_v<Node, leaf>;
    constexpr unsigned roomy = is_leaf ? joined_leaf_items : joined_children;
    inner& parent = *path[level - 1].above;
    const unsigned i = path[level - 1].index;
    if (i > 0 && parent.children[i - 1]->count <= roomy) return share<Node>(parent, i - 1);
    if (i + 1 < parent.count && parent.children[i + 1]->count <= roomy) {
        return share<Node>(parent, i);
    }
    if (parent.count == inner_items) return make_room(memory, path, level - 1, i);
    // Growth at the tree's ends must not leave half-filled nodes behind.
    const Node& full = static_cast<Node&>(*parent.children[i]);
    unsigned keep = full.count / 2;
    if constexpr (is_leaf) {
        if (full.next == nullptr && place == full.count) keep = full.count - 1;
        if (full.previous == nullptr && place == 0) keep = 1;
    } else {
        if (place + 1 == full.count) keep = full.count - fewest_children;
        if (place == 0) keep = fewest_children;
    }
    split<Node>(memory, parent, i, keep);
}

// Gives two neighbours the same number of items.
template <class Node>
void score_tree::share(inner& parent, unsigned left) noexcept {
    Node& l = static_cast<Node&>(*parent.children[left]);
    Node& r = static_cast<Node&>(*parent.children[left + 1]);
    const unsigned total = l.count + r.count;
    const unsigned wanted = total / 2;
    if (l.count < wanted) {
        const unsigned moved = wanted - l.count;
        const std::uint64_t weight = item_moves::weight(r, 0, moved);
        item_moves::move(l, l.count, r, 0, moved);
        item_moves::move(r, 0, r, moved, r.count - moved);
        parent.sizes[left] += weight;
        parent.sizes[left + 1] -= weight;
    } else {
        const unsigned moved = l.count - wanted;
        const std::uint64_t weight = item_moves::weight(l, wanted, moved);
        item_moves::move(r, moved, r, 0, r.count);
        item_moves::move(r, 0, l, wanted, moved);
        parent.sizes[left] -= weight;
        parent.sizes[left + 1] += weight;
    }
    l.count = wanted;
    r.count = total - wanted;
    item_moves::set_child(parent, left, l);
    item_moves::set_child(parent, left + 1, r);
}

template <class Node>
void score_tree::split(slab& memory, inner& parent, unsigned index, unsigned keep) {
    Node& l = static_cast<Node&>(*parent.children[index]);
    Node* made;
    if constexpr (std::is_same_v<Node, leaf>) {
        made = make_leaf(memory);
        made->previous = &l;
        made->next = l.next;
        if (l.next != nullptr) l.next->previous = made;
        l.next = made;
    } else {
        made = make_inner(memory);
    }
    made->count = l.count - keep;
    item_moves::move(*made, 0, l, keep, made->count);
    l.count = keep;
    item_moves::move(parent, index + 2, parent, index + 1, parent.count - index - 1);
    ++parent.count;
    parent.sizes[index + 1] = item_moves::weight(*made, 0, made->count);
    parent.sizes[index] -= parent.sizes[index + 1];
    item_moves::set_child(parent, index + 1, *made);
}

template <class Node>
void score_tree::join(slab& memory, inner& parent, unsigned left) noexcept {
    Node& l = static_cast<Node&>(*parent.children[left]);
    Node& r = static_cast<Node&>(*parent.children[left + 1]);
    item_moves::move(l, l.count, r, 0, r.count);
    l.count += r.count;
    if constexpr (std::is_same_v<Node, leaf>) {
        l.next = r.next;
        if (r.next != nullptr) r.next->previous = &l;
    }
    parent.sizes[left] += parent.sizes[left + 1];
    item_moves::move(parent, left + 1, parent, left + 2, parent.count - left - 2);
    --parent.count;
    item_moves::set_child(parent, left, l);
    release(memory, &r);
}

void score_tree::erase_from(slab& memory, leaf& from, unsigned place, unsigned items,
                            const step* path) noexcept {
    item_moves::move(from, place, from, place + items, from.count - place - items);
    from.count -= items;
    size_ -= items;
    for (unsigned level = 0; level < height_; ++level) {
        path[level].above->sizes[path[level].index] -= items;
    }
    if (height_ == 0) {
        if (from.count > 0) return;
        release(memory, &from);
        root_ = nullptr;
        return;
    }
    if (place == 0 && from.count > 0) {
        set_first(path, height_, from.scores[0], from.members[0]);
    }
    if (from.count < fewest_leaf_items) rebalance(memory, path);
}

// The leaf at the end of the path has too few items.
void score_tree::rebalance(slab& memory, const step* path) noexcept {
    for (unsigned level = height_; level > 0; --level) {
        const bool is_leaf = level == height_;
        inner& parent = *path[level - 1].above;
        const unsigned i = path[level - 1].index;
        if (parent.children[i]->count >= (is_leaf ? fewest_leaf_items : fewest_children)) break;
        EDDY_ASSERT(parent.count > 1);
        const unsigned left = i + 1 < parent.count ? i : i - 1;
        const unsigned together = parent.children[left]->count + parent.children[left + 1]->count;
        const bool joins = together <= (is_leaf ? joined_leaf_items : joined_children);
        if (is_leaf) {
            joins ? join<leaf>(memory, parent, left) : share<leaf>(parent, left);
        } else {
            joins ? join<inner>(memory, parent, left) : share<inner>(parent, left);
        }
        if (left == 0) set_first(path, level - 1, parent.scores[0], parent.members[0]);
        if (!joins) break;
    }
    while (height_ > 0 && root_->count == 1) {
        auto* const gone = static_cast<inner*>(root_);
        root_ = gone->children[0];
        --height_;
        release(memory, gone);
    }
}

void score_tree::erase(slab& memory, double score, const entry* member) noexcept {
    step path[max_height];
    unsigned place = 0;
    leaf* const from = descend(up_to(score, member->key()), path, place);
    EDDY_ASSERT(place > 0 && from->members[place - 1] == member);
    erase_from(memory, *from, place - 1, 1, path);
}

void score_tree::change(slab& memory, double from, double to, entry* member) {
    const std::string_view text = member->key();
    step path[max_height];
    unsigned place = 0;
    leaf* const home = descend(up_to(from, text), path, place);
    EDDY_ASSERT(place > 0 && home->members[place - 1] == member);
    --place;
    // Mostly its position does not change.
    const auto before = up_to(to, text);
    const auto stands_before = [&](unsigned i) {
        return before(home->scores[i], home->members[i]);
    };
    if (place > 0 && place + 1 < home->count && stands_before(place - 1) &&
        !stands_before(place + 1)) {
        home->scores[place] = to;
        return;
    }
    erase_from(memory, *home, place, 1, path);
    insert(memory, to, member);
}

std::size_t score_tree::erase_at(slab& memory, std::size_t rank, std::size_t most) noexcept {
    step path[max_height];
    unsigned place = 0;
    leaf* const from = descend_to(rank, path, place);
    const auto items = static_cast<unsigned>(std::min<std::size_t>(most, from->count - place));
    erase_from(memory, *from, place, items, path);
    return items;
}

// From the last leaf on, so that no node loses its parent.
bool score_tree::free_some(slab& memory, std::size_t blocks) noexcept {
    for (; root_ != nullptr && blocks > 0; --blocks) {
        inner* parent = nullptr;
        node* last = root_;
        unsigned level = 0;
        for (; level < height_ && last->count > 0; ++level) {
            parent = static_cast<inner*>(last);
            last = parent->children[parent->count - 1];
        }
        if (level == height_) {
            release(memory, static_cast<leaf*>(last));
        } else {
            release(memory, static_cast<inner*>(last));
        }
        if (parent != nullptr) {
            --parent->count;
        } else {
            root_ = nullptr;
        }
    }
    if (root_ != nullptr) return true;
    *this = score_tree();
    return false;
}

std::size_t score_tree::memory_bytes() const noexcept {
    return leaves_ * slab::capacity(sizeof(leaf)) + inners_ * slab::capacity(sizeof(inner));
}

void score_tree::check() const {
    if (root_ == nullptr) {
        EDDY_ASSERT(size_ == 0 && height_ == 0 && leaves_ == 0 && inners_ == 0);
        return;
    }
    const leaf* last = nullptr;
    std::size_t total = 0;
    check(root_, 0, last, total);
    EDDY_ASSERT(total == size_ && last->next == nullptr);
}

void score_tree::check(const node* at, unsigned level, const leaf*& last,
                       std::size_t& total) const {
    const auto in_order = [](const auto& of, unsigned i) {
        return of.scores[i - 1] < of.scores[i] || (of.scores[i - 1] == of.scores[i] &&
                                                   of.members[i - 1]->key() < of.members[i]->key());
    };
    EDDY_ASSERT(at->count > 0);
    if (level == height_) {
        const auto& one = *static_cast<const leaf*>(at);
        EDDY_ASSERT(one.count <= leaf_items && one.previous == last);
        EDDY_ASSERT(last == nullptr || last->next == &one);
        for (unsigned i = 1; i < one.count; ++i) EDDY_ASSERT(in_order(one, i));
        last = &one;
        total += one.count;
        return;
    }
    const auto& in = *static_cast<const inner*>(at);
    EDDY_ASSERT(in.count <= inner_items && in.count >= (level == 0 ? 2 : fewest_children));
    for (unsigned i = 0; i < in.count; ++i) {
        if (i > 0) EDDY_ASSERT(in_order(in, i));
        const std::size_t before = total;
        const leaf* const left = last;
        check(in.children[i], level + 1, last, total);
        EDDY_ASSERT(total - before == in.sizes[i]);
        const position first = left == nullptr ? this->at(0) : position{left->next, 0};
        EDDY_ASSERT(first.member() == in.members[i] && first.score() == in.scores[i]);
    }
}

}  // namespace eddy::cache
