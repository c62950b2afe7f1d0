// Ordered packed blocks, tables, and conversion between them.
#include "cache/types/sorted_sets/sorted_set.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace eddy::cache {
namespace {

// Layout of a packed block: the member's size in a byte, the member, the score. Most scores are
// 32-bit integers, which take four bytes; the size's upper bit marks them.
constexpr std::uint8_t short_score = 0x80;
static_assert(sorted_set::max_packed_text < short_score);

bool is_short(double score) noexcept {
    if (!(score >= INT32_MIN && score <= INT32_MAX)) return false;
    const auto whole = static_cast<double>(static_cast<std::int32_t>(score));
    return std::bit_cast<std::uint64_t>(whole) == std::bit_cast<std::uint64_t>(score);
}
std::size_t size_of(std::size_t member, double score) noexcept {
    return 1 + member + (is_short(score) ? sizeof(std::int32_t) : sizeof(double));
}

std::size_t member_size_at(const char* at) noexcept {
    return static_cast<std::uint8_t>(*at) & (short_score - 1U);
}
bool is_short_at(const char* at) noexcept {
    return (static_cast<std::uint8_t>(*at) & short_score) != 0;
}
std::string_view member_at(const char* at) noexcept { return {at + 1, member_size_at(at)}; }
double score_at(const char* at) noexcept {
    const char* const from = at + 1 + member_size_at(at);
    if (is_short_at(at)) {
        std::int32_t whole;
        std::memcpy(&whole, from, sizeof whole);
        return whole;
    }
    double score;
    std::memcpy(&score, from, sizeof score);
    return score;
}
template <class Char>
Char* skip(Char* at) noexcept {
    return at + 1 + member_size_at(at) + (is_short_at(at) ? sizeof(std::int32_t) : sizeof(double));
}
void write(char* to, std::string_view member, double score) noexcept {
    const bool is_whole = is_short(score);
    *to++ = static_cast<char>(member.size() | (is_whole ? short_score : 0U));
    if (!member.empty()) std::memcpy(to, member.data(), member.size());
    to += member.size();
    if (is_whole) {
        const auto whole = static_cast<std::int32_t>(score);
        std::memcpy(to, &whole, sizeof whole);
    } else {
        std::memcpy(to, &score, sizeof score);
    }
}

std::size_t capacity_for(std::size_t used) noexcept {
    std::size_t wanted = std::min(used + used / 8, sorted_set::max_packed_bytes);
    for (const std::size_t small : {sorted_set::second_capacity, sorted_set::first_capacity})
        if (used <= small) wanted = small;
    return slab::capacity(sizeof(packed_block) + wanted) - sizeof(packed_block);
}

packed_block* make_packed(slab& memory, std::size_t used) {
    const std::size_t capacity = capacity_for(used);
    auto* const made = static_cast<packed_block*>(memory.allocate(sizeof(packed_block) + capacity));
    *made = {static_cast<std::uint16_t>(capacity), 0, 0, 0};
    return made;
}

double score_of(const entry& member) noexcept { return std::bit_cast<double>(member.integer()); }
void set_score(entry& member, double score) noexcept {
    member.set_integer(std::bit_cast<std::int64_t>(score));
}

}  // namespace

void sorted_set::make(environment& env, entry& holder) {
    holder.type = value_type::sorted_set;
    holder.held_as = encoding::packed;
    holder.set_pointer(make_packed(env.memory, 0));
}

void sorted_set::copy_to(entry& to) const {
    make(*env_, to);
    sorted_set copy(*env_, to);
    if (!is_packed()) {
        copy.become_table();
        sorted_table& made = copy.table();
        made.listed = table().listed;
        walk members(*this);
        for (element e; members.next(e);) {
            copy.add_to_table(made, e.member, e.score, env_->hash(e.member));
        }
        return;
    }
    const packed_block& from = packed();
    packed_block* const made = make_packed(env_->memory, from.used);
    made->take(from);
    env_->memory.release(&copy.packed(), sizeof(packed_block) + copy.packed().capacity);
    to.set_pointer(made);
}

std::size_t sorted_set::size() const noexcept {
    return is_packed() ? packed().count : table().order.size();
}

sorted_set::place sorted_set::find(std::string_view member) const noexcept {
    if (!is_packed()) {
        const std::uint64_t hash = env_->hash(member);
        dictionary::slot* const slot = table().members.find(member, hash);
        if (slot == nullptr) return {nullptr, 0, hash};
        return {slot, score_of(*dictionary::entry_of(*slot)), hash};
    }
    packed_block& block = packed();
    char* const end = block.data() + block.used;
    for (char* at = block.data(); at < end; at = skip(at)) {
        if (same_bytes(member_at(at), member)) return {at, score_at(at), 0};
    }
    return {};
}

void sorted_set::add(std::string_view member, double score, const place& missing) {
    std::uint64_t hash = missing.hash;
    const bool listed = is_listed_with(member);
    if (is_packed()) {
        if (!listed) packed().flags = packed_block::spread;
        const packed_block& block = packed();
        if (block.count < max_packed_members && member.size() <= max_packed_text &&
            block.used + size_of(member.size(), score) <= max_packed_bytes) {
            return add_packed(member, score, 0);
        }
        become_table();
        hash = env_->hash(member);
    }
    sorted_table& to = table();
    to.listed = listed;
    add_to_table(to, member, score, hash);
}

// The member's position is after the first `before` bytes.
void sorted_set::add_packed(std::string_view member, double score, std::size_t before) {
    packed_block* block = &packed();
    const std::size_t need = size_of(member.size(), score);
    if (block->used + need > block->capacity) {
        packed_block* const wider = make_packed(env_->memory, block->used + need);
        wider->take(*block);
        env_->memory.release(block, sizeof(packed_block) + block->capacity);
        holder_->set_pointer(wider);
        block = wider;
    }
    char* at = block->data() + before;
    char* const end = block->data() + block->used;
    while (at < end) {
        const double other = score_at(at);
        if (other > score || (other == score && member_at(at) > member)) break;
        at = skip(at);
    }
    std::memmove(at + need, at, static_cast<std::size_t>(end - at));
    write(at, member, score);
    block->used = static_cast<std::uint16_t>(block->used + need);
    ++block->count;
}

void sorted_set::add_to_table(sorted_table& to, std::string_view member, double score,
                              std::uint64_t hash) {
    const std::size_t size = entry::size_for(member.size(), sizeof score, false);
    entry* const made = entry::make(env_->memory.allocate(size), member, sizeof score, false);
    set_score(*made, score);
    to.members.insert(made, hash);
    to.order.insert(env_->memory, score, made);
}

void sorted_set::become_table() {
    packed_block& old = packed();
    auto* const made =
        new (env_->memory.allocate(sizeof(sorted_table))) sorted_table(env_->memory, env_->hash);
    walk members(*this);
    for (element e; members.next(e);) {
        add_to_table(*made, e.member, e.score, env_->hash(e.member));
    }
    made->listed = is_listed();
    env_->memory.release(&old, sizeof(packed_block) + old.capacity);
    holder_->held_as = encoding::sorted_table;
    holder_->set_pointer(made);
}

void sorted_set::spread() {
    if (is_packed()) become_table();
    table().listed = false;
}

void sorted_set::change(const place& of, double score) {
    if (!is_packed()) {
        entry* const member = dictionary::entry_of(*static_cast<dictionary::slot*>(of.at));
        table().order.change(env_->memory, of.score, score, member);
        set_score(*member, score);
        return;
    }
    char* const at = static_cast<char*>(of.at);
    char text[max_packed_text];
    const std::string_view member(text, member_size_at(at));
    if (!member.empty()) std::memcpy(text, at + 1, member.size());
    erase_packed(at, skip(at), 1);
    // A longer score may exceed the block's limit.
    if (packed().used + size_of(member.size(), score) <= max_packed_bytes) {
        const bool later = score >= of.score;
        return add_packed(member, score,
                          later ? static_cast<std::size_t>(at - packed().data()) : 0);
    }
    become_table();
    add_to_table(table(), member, score, env_->hash(member));
}

void sorted_set::erase_packed(char* from, char* to, std::size_t members) noexcept {
    packed_block& block = packed();
    std::memmove(from, to, static_cast<std::size_t>(block.data() + block.used - to));
    block.used = static_cast<std::uint16_t>(block.used - (to - from));
    block.count = static_cast<std::uint16_t>(block.count - members);
}

// The smaller block is filled, or halved again, before the next copy.
void sorted_set::shrink_packed() {
    packed_block& block = packed();
    if (block.capacity <= first_capacity) return;
    const bool is_small = block.capacity <= second_capacity;
    if (block.used >= block.capacity / (is_small ? 4 : 2)) return;
    packed_block* const smaller = make_packed(env_->memory, block.used);
    smaller->take(block);
    env_->memory.release(&block, sizeof(packed_block) + block.capacity);
    holder_->set_pointer(smaller);
}

void sorted_set::erase(const place& gone) {
    if (is_packed()) {
        char* const at = static_cast<char*>(gone.at);
        erase_packed(at, skip(at), 1);
        return shrink_packed();
    }
    auto* const slot = static_cast<dictionary::slot*>(gone.at);
    entry* const member = dictionary::entry_of(*slot);
    table().order.erase(env_->memory, gone.score, member);
    table().members.erase(slot, gone.hash);
    env_->memory.release(member, member->size());
}

void sorted_set::erase_range(std::size_t rank, std::size_t count) {
    if (is_packed()) {
        char* from = packed().data();
        for (std::size_t i = 0; i < rank; ++i) from = skip(from);
        char* to = from;
        for (std::size_t i = 0; i < count; ++i) to = skip(to);
        erase_packed(from, to, count);
        return shrink_packed();
    }
    sorted_table& of = table();
    while (count > 0) {
        // The tree removes the items of one leaf at a time, without access to the members.
        score_tree::position at = of.order.at(rank);
        entry* gone[score_tree::leaf_items];
        std::size_t some = 0;
        for (const score_tree::leaf* const leaf = at.block; at.block == leaf && some < count;) {
            gone[some++] = at.member();
            at.forward();
        }
        const std::size_t erased = of.order.erase_at(env_->memory, rank, some);
        EDDY_ASSERT(erased == some);
        for (std::size_t i = 0; i < some; ++i) {
            const std::uint64_t hash = env_->hash(gone[i]->key());
            of.members.erase(of.members.find(gone[i]->key(), hash), hash);
            env_->memory.release(gone[i], gone[i]->size());
        }
        count -= some;
    }
}

std::size_t sorted_set::rank(const place& of) const noexcept {
    if (!is_packed()) {
        return table().order.rank(of.score,
                                  dictionary::entry_of(*static_cast<dictionary::slot*>(of.at)));
    }
    std::size_t before = 0;
    for (const char* at = packed().data(); at != of.at; at = skip(at)) ++before;
    return before;
}

std::size_t sorted_set::count_below(double score, bool and_equal) const noexcept {
    if (!is_packed()) return table().order.count_below(score, and_equal);
    const packed_block& block = packed();
    const char* at = block.data();
    std::size_t below = 0;
    for (; below < block.count; ++below, at = skip(at)) {
        const double other = score_at(at);
        if (and_equal ? other > score : other >= score) break;
    }
    return below;
}

std::size_t sorted_set::count_below(std::string_view text, bool and_equal) const noexcept {
    if (!is_packed()) return table().order.count_below(text, and_equal);
    const packed_block& block = packed();
    const char* at = block.data();
    std::size_t below = 0;
    for (; below < block.count; ++below, at = skip(at)) {
        if (and_equal ? member_at(at) > text : member_at(at) >= text) break;
    }
    return below;
}

sorted_set::element sorted_set::at(std::size_t rank) const {
    if (!is_packed()) {
        const score_tree::position found = table().order.at(rank);
        return {found.member()->key(), found.score()};
    }
    EDDY_ASSERT(rank < packed().count);
    const char* at = packed().data();
    for (; rank > 0; --rank) at = skip(at);
    return {member_at(at), score_at(at)};
}

std::uint64_t sorted_set::scan(std::uint64_t cursor, std::vector<element>& found) const {
    if (is_packed()) {
        walk members(*this);
        for (element e; members.next(e);) found.push_back(e);
        return 0;
    }
    std::vector<dictionary::slot> slots;
    const std::uint64_t next = table().members.scan(cursor, slots);
    for (const dictionary::slot s : slots) {
        const entry& member = *dictionary::entry_of(s);
        found.push_back({member.key(), score_of(member)});
    }
    return next;
}

sorted_set::walk::walk(const sorted_set& over, std::size_t rank, bool backward)
    : backward_(backward) {
    if (rank >= over.size()) return;
    if (!over.is_packed()) {
        tree_ = over.table().order.at(rank);
        tree_.fetch(backward);
        return;
    }
    const packed_block& block = over.packed();
    data_ = at_ = block.data();
    end_ = at_ + block.used;
    if (!backward) {
        for (; rank > 0; --rank) at_ = skip(at_);
        return;
    }
    // Sizes precede the members: the offsets for a backward walk are collected forwards.
    for (; left_ <= rank; at_ = skip(at_)) {
        offsets_[left_++] = static_cast<std::uint16_t>(at_ - data_);
    }
}

bool sorted_set::walk::next(element& to) noexcept {
    if (data_ == nullptr) {
        if (!tree_) return false;
        to = {tree_.member()->key(), tree_.score()};
        backward_ ? tree_.backward() : tree_.forward();
        if (tree_) tree_.fetch_next(backward_);
        return true;
    }
    if (backward_) {
        if (left_ == 0) return false;
        at_ = data_ + offsets_[--left_];
    } else if (at_ == end_) {
        return false;
    }
    to = {member_at(at_), score_at(at_)};
    at_ = skip(at_);
    return true;
}

}  // namespace eddy::cache
