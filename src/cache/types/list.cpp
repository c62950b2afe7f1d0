// Elements within blocks, blocks within the chain.
#include "cache/types/list.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <cstring>

namespace eddy::cache {
namespace {

// A size below this is one byte; a larger one is this byte followed by four.
constexpr std::uint8_t long_mark = 254;

constexpr std::size_t encoded_size(std::size_t element) noexcept {
    return element + (element < long_mark ? 2 : 10);
}

void write(char* to, std::string_view element) noexcept {
    const std::size_t size = element.size();
    if (size < long_mark) {
        to[0] = static_cast<char>(size);
        if (size > 0) std::memcpy(to + 1, element.data(), size);
        to[1 + size] = static_cast<char>(size);
        return;
    }
    const auto word = static_cast<std::uint32_t>(size);
    to[0] = static_cast<char>(long_mark);
    std::memcpy(to + 1, &word, 4);
    std::memcpy(to + 5, element.data(), size);
    std::memcpy(to + 5 + size, &word, 4);
    to[9 + size] = static_cast<char>(long_mark);
}

// The element that begins at `from`.
std::string_view read(const char* from) noexcept {
    const auto mark = static_cast<std::uint8_t>(*from);
    if (mark < long_mark) return {from + 1, mark};
    std::uint32_t size;
    std::memcpy(&size, from + 1, 4);
    return {from + 5, size};
}

// The encoded size of the element that ends at `end`.
std::uint32_t size_before(const char* end) noexcept {
    const auto mark = static_cast<std::uint8_t>(end[-1]);
    if (mark < long_mark) return mark + 2U;
    std::uint32_t size;
    std::memcpy(&size, end - 5, 4);
    return size + 10;
}

std::uint32_t size_at(const char* from) noexcept {
    return static_cast<std::uint32_t>(encoded_size(read(from).size()));
}

std::uint32_t used(const list_block& b) noexcept { return b.end - b.begin; }

// Twice the block's capacity, or what is needed, but no more than a full block's.
std::size_t grown(const list_block& b, std::size_t needed) noexcept {
    return std::min(std::max<std::size_t>(needed, 2 * std::size_t{b.capacity}),
                    list::full_capacity);
}

// True for an only block of which little is used. The smaller block is filled, or halved again,
// before the next copy.
bool is_wide(const list_block& b) noexcept {
    return b.next == nullptr && b.previous == nullptr && b.capacity > list::first_capacity &&
           used(b) < b.capacity / 4;
}

}  // namespace

list_block* list::add_block(slab& memory, std::size_t capacity, list_block* after) {
    auto* const added = static_cast<list_block*>(memory.allocate(sizeof(list_block) + capacity));
    added->begin = added->end = 0;
    added->capacity = static_cast<std::uint32_t>(capacity);
    added->count = 0;
    added->previous = after;
    added->next = after != nullptr ? after->next : head_;
    (added->previous != nullptr ? added->previous->next : head_) = added;
    (added->next != nullptr ? added->next->previous : tail_) = added;
    return added;
}

void list::remove_block(slab& memory, list_block* gone) noexcept {
    (gone->previous != nullptr ? gone->previous->next : head_) = gone->next;
    (gone->next != nullptr ? gone->next->previous : tail_) = gone->previous;
    memory.release(gone, sizeof(list_block) + gone->capacity);
}

// Moves the block's elements into one of another capacity, with the free bytes on one side.
list_block* list::resize(slab& memory, list_block* old, std::size_t capacity, bool room_in_front) {
    list_block* const made = add_block(memory, capacity, old);
    const std::uint32_t size = used(*old);
    made->begin = room_in_front ? made->capacity - size : 0;
    made->end = made->begin + size;
    made->count = old->count;
    std::memcpy(made->data() + made->begin, old->data() + old->begin, size);
    remove_block(memory, old);
    return made;
}

void list::shrink(slab& memory) noexcept {
    if (head_ == nullptr || !is_wide(*head_)) return;
    resize(memory, head_, std::max<std::size_t>(2 * used(*head_), first_capacity), false);
}

// The capacity of a block that begins with an element of this encoded size.
static std::size_t capacity_for(std::size_t need, bool first) noexcept {
    if (need > list::max_shared_element) return need;
    return first ? std::max(need, list::first_capacity) : list::full_capacity;
}

// A head block with `need` free bytes before its first element.
list_block* list::room_in_front(slab& memory, std::size_t need) {
    list_block* const b = head_;
    if (b != nullptr && need <= max_shared_element) {
        const std::uint32_t size = used(*b);
        // The move costs as much as the half of the block that becomes free.
        if (size <= b->capacity / 2 && need <= b->capacity - size) {
            std::memmove(b->data() + b->capacity - size, b->data() + b->begin, size);
            b->begin = b->capacity - size;
            b->end = b->capacity;
            return b;
        }
        if (b->capacity < full_capacity && size + need <= full_capacity) {
            return resize(memory, b, grown(*b, size + need), true);
        }
    }
    list_block* const added = add_block(memory, capacity_for(need, b == nullptr), nullptr);
    added->begin = added->end = added->capacity;
    return added;
}

list_block* list::room_at_back(slab& memory, std::size_t need) {
    list_block* const b = tail_;
    if (b != nullptr && need <= max_shared_element) {
        const std::uint32_t size = used(*b);
        if (size <= b->capacity / 2 && need <= b->capacity - size) {
            std::memmove(b->data(), b->data() + b->begin, size);
            b->begin = 0;
            b->end = size;
            return b;
        }
        if (b->capacity < full_capacity && size + need <= full_capacity) {
            return resize(memory, b, grown(*b, size + need), false);
        }
    }
    return add_block(memory, capacity_for(need, b == nullptr), b);
}

void list::push_front(slab& memory, std::string_view element) {
    const std::size_t need = encoded_size(element.size());
    list_block* b = head_;
    if (b == nullptr || b->begin < need) b = room_in_front(memory, need);
    b->begin -= static_cast<std::uint32_t>(need);
    write(b->data() + b->begin, element);
    ++b->count;
    ++size_;
}

void list::push_back(slab& memory, std::string_view element) {
    const std::size_t need = encoded_size(element.size());
    list_block* b = tail_;
    if (b == nullptr || b->capacity - b->end < need) b = room_at_back(memory, need);
    write(b->data() + b->end, element);
    b->end += static_cast<std::uint32_t>(need);
    ++b->count;
    ++size_;
}

std::string_view list::front() const noexcept { return read(head_->data() + head_->begin); }

std::string_view list::back() const noexcept { return get(last()); }

void list::pop_front(slab& memory) noexcept {
    list_block* const b = head_;
    b->begin += size_at(b->data() + b->begin);
    --size_;
    if (--b->count == 0) {
        remove_block(memory, b);
    } else if (is_wide(*b)) [[unlikely]] {
        shrink(memory);
    }
}

void list::pop_back(slab& memory) noexcept {
    list_block* const b = tail_;
    b->end -= size_before(b->data() + b->end);
    --size_;
    if (--b->count == 0) {
        remove_block(memory, b);
    } else if (is_wide(*b)) [[unlikely]] {
        shrink(memory);
    }
}

void list::drop_front(slab& memory, std::size_t count) noexcept {
    EDDY_ASSERT(count <= size_);
    while (count > 0 && head_->count <= count) {
        count -= head_->count;
        size_ -= head_->count;
        remove_block(memory, head_);
    }
    for (; count > 0; --count) pop_front(memory);
    shrink(memory);
}

void list::drop_back(slab& memory, std::size_t count) noexcept {
    EDDY_ASSERT(count <= size_);
    while (count > 0 && tail_->count <= count) {
        count -= tail_->count;
        size_ -= tail_->count;
        remove_block(memory, tail_);
    }
    for (; count > 0; --count) pop_back(memory);
    shrink(memory);
}

list::position list::first() const noexcept {
    return head_ == nullptr ? position{} : position{head_, head_->begin};
}

list::position list::last() const noexcept {
    if (tail_ == nullptr) return {};
    return {tail_, tail_->end - size_before(tail_->data() + tail_->end)};
}

list::position list::at(std::size_t index) const noexcept {
    EDDY_ASSERT(index < size_);
    list_block* b = head_;
    if (index < size_ / 2) {
        for (; index >= b->count; b = b->next) index -= b->count;
    } else {
        b = tail_;
        std::size_t from_end = size_ - index;  // 1: the last element
        for (; from_end > b->count; b = b->previous) from_end -= b->count;
        index = b->count - from_end;
    }
    position place{b, b->begin};
    if (index < b->count / 2) {
        for (; index > 0; --index) place.offset += size_at(b->data() + place.offset);
    } else {
        place.offset = b->end;
        for (; index < b->count; ++index) place.offset -= size_before(b->data() + place.offset);
    }
    return place;
}

std::string_view list::get(position of) noexcept { return read(of.block->data() + of.offset); }

list::position list::after(position of) noexcept {
    of.offset += size_at(of.block->data() + of.offset);
    if (of.offset < of.block->end) return of;
    list_block* const next = of.block->next;
    return next == nullptr ? position{} : position{next, next->begin};
}

list::position list::before(position of) noexcept {
    if (of.offset == of.block->begin) {
        list_block* const previous = of.block->previous;
        if (previous == nullptr) return {};
        of = {previous, previous->end};
    }
    of.offset -= size_before(of.block->data() + of.offset);
    return of;
}

// Makes `need` bytes free at the position, moving the elements after it. The position may be a
// block's end; afterwards it may be in another block.
void list::open_gap(slab& memory, position& place, std::size_t need) {
    list_block* b = place.block;
    if (used(*b) + need > b->capacity) {
        const std::uint32_t skipped = place.offset - b->begin;
        if (used(*b) + need <= full_capacity) {
            b = resize(memory, b, grown(*b, used(*b) + need), false);
            place = {b, b->begin + skipped};
        } else {
            // The elements after the position move into a block of their own, and the new element
            // ends the first block or gets its own.
            const std::uint32_t moved = b->end - place.offset;
            if (moved > 0) {
                list_block* const rest =
                    add_block(memory, std::max<std::size_t>(moved, full_capacity), b);
                std::memcpy(rest->data(), b->data() + place.offset, moved);
                rest->end = moved;
                for (std::uint32_t at = 0; at < moved; at += size_at(rest->data() + at))
                    ++rest->count;
                b->end = place.offset;
                b->count -= rest->count;
            }
            if (used(*b) + need > b->capacity) {
                list_block* const own = add_block(memory, capacity_for(need, false), b);
                if (b->count == 0) remove_block(memory, b);
                b = own;
            } else if (b->capacity - b->end < need) {
                std::memmove(b->data(), b->data() + b->begin, used(*b));
                b->end = used(*b);
                b->begin = 0;
            }
            place = {b, b->end};
            b->end += static_cast<std::uint32_t>(need);
            return;
        }
    }
    const auto bytes = static_cast<std::uint32_t>(need);
    if (b->capacity - b->end >= bytes) {
        std::memmove(b->data() + place.offset + bytes, b->data() + place.offset,
                     b->end - place.offset);
        b->end += bytes;
        return;
    }
    // The free bytes are in front, or on both sides: first all elements move to the front.
    const std::uint32_t skipped = place.offset - b->begin;
    const std::uint32_t size = used(*b);
    std::memmove(b->data(), b->data() + b->begin, skipped);
    std::memmove(b->data() + skipped + bytes, b->data() + place.offset, size - skipped);
    b->begin = 0;
    b->end = size + bytes;
    place.offset = skipped;
}

void list::insert_before(slab& memory, position place, std::string_view element) {
    const std::size_t need = encoded_size(element.size());
    open_gap(memory, place, need);
    write(place.block->data() + place.offset, element);
    ++place.block->count;
    ++size_;
}

void list::insert_after(slab& memory, position place, std::string_view element) {
    place.offset += size_at(place.block->data() + place.offset);
    insert_before(memory, place, element);
}

list::position list::erase(slab& memory, position place) noexcept {
    list_block* const b = place.block;
    const std::uint32_t size = size_at(b->data() + place.offset);
    --size_;
    if (--b->count == 0) {
        list_block* const next = b->next;
        remove_block(memory, b);
        return next == nullptr ? position{} : position{next, next->begin};
    }
    if (place.offset == b->begin) {
        b->begin += size;
        return {b, b->begin};
    }
    std::memmove(b->data() + place.offset, b->data() + place.offset + size,
                 b->end - place.offset - size);
    b->end -= size;
    if (place.offset < b->end) return place;
    return b->next == nullptr ? position{} : position{b->next, b->next->begin};
}

void list::replace(slab& memory, position place, std::string_view element) {
    const std::uint32_t old = size_at(place.block->data() + place.offset);
    if (encoded_size(element.size()) == old) {
        write(place.block->data() + place.offset, element);
        return;
    }
    // Inserted first, after the old one, so that no block becomes empty and the position stays
    // known.
    list_block* const b = place.block;
    const std::uint32_t skipped = place.offset - b->begin;
    const bool only = b->count == 1;
    if (only) {
        list_block* const made =
            add_block(memory, capacity_for(encoded_size(element.size()), size_ == 1), b);
        remove_block(memory, b);
        made->end = static_cast<std::uint32_t>(encoded_size(element.size()));
        write(made->data(), element);
        made->count = 1;
        return;
    }
    std::memmove(b->data() + place.offset, b->data() + place.offset + old,
                 b->end - place.offset - old);
    b->end -= old;
    --b->count;
    --size_;
    insert_before(memory, {b, b->begin + skipped}, element);
}

void list::clear(slab& memory) noexcept { static_cast<void>(free_some(memory, SIZE_MAX)); }

bool list::free_some(slab& memory, std::size_t blocks) noexcept {
    for (; head_ != nullptr && blocks > 0; --blocks) {
        size_ -= head_->count;
        remove_block(memory, head_);
    }
    return head_ != nullptr;
}

std::size_t list::used_bytes(std::size_t most) const noexcept {
    std::size_t bytes = 0;
    for (const list_block* b = head_; b != nullptr && bytes <= most; b = b->next) bytes += used(*b);
    return bytes;
}

std::size_t list::memory_bytes() const noexcept {
    std::size_t bytes = 0;
    for (const list_block* b = head_; b != nullptr; b = b->next) {
        bytes += slab::capacity(sizeof(list_block) + b->capacity);
    }
    return bytes;
}

}  // namespace eddy::cache
