// A list value: a chain of blocks that hold elements back to back.
//
// Each element stands between two copies of its size, so a block can be walked from either end.
// Blocks are about 4 KiB; a small list is one small block, which shrinks with it; an element above
// `max_shared_element` has a block of its own. Elements are pushed into the free bytes at a block's
// front or back.
//
//   push, pop, front, back   O(1), a few nanoseconds
//   at(index)                O(blocks up to it, from the nearer end, + elements in one block)
//   insert, erase, replace   O(one block)
#pragma once

#include "cache/memory/slab.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache {

/// A run of elements; the bytes follow it.
struct list_block {
    list_block* previous;
    list_block* next;
    std::uint32_t begin;  // the elements are data()[begin .. end)
    std::uint32_t end;
    std::uint32_t capacity;
    std::uint32_t count;

    char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
    const char* data() const noexcept { return reinterpret_cast<const char*>(this + 1); }
};

/// Keeps no reference to the slab: the owner of the list passes the same slab to each call that
/// allocates or frees. Views and positions are valid until the next change of the list.
class list {
public:
    static constexpr std::size_t block_bytes = 4096;
    static constexpr std::size_t full_capacity = block_bytes - sizeof(list_block);
    static constexpr std::size_t first_capacity = 64 - sizeof(list_block);
    static constexpr std::size_t max_shared_element = 1024;

    /// Position of an element; `block` is null after the last one and before the first.
    struct position {
        list_block* block = nullptr;
        std::uint32_t offset = 0;
        explicit operator bool() const noexcept { return block != nullptr; }
    };

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

    void push_front(slab& memory, std::string_view element);
    void push_back(slab& memory, std::string_view element);

    /// The list must not be empty.
    std::string_view front() const noexcept;
    std::string_view back() const noexcept;
    void pop_front(slab& memory) noexcept;
    void pop_back(slab& memory) noexcept;

    /// Drops `count` elements, at most size(), from one end. O(blocks + elements of one block).
    void drop_front(slab& memory, std::size_t count) noexcept;
    void drop_back(slab& memory, std::size_t count) noexcept;

    position first() const noexcept;
    position last() const noexcept;
    /// `index` must be less than size().
    position at(std::size_t index) const noexcept;
    static std::string_view get(position of) noexcept;
    static position after(position of) noexcept;
    static position before(position of) noexcept;

    void insert_before(slab& memory, position place, std::string_view element);
    void insert_after(slab& memory, position place, std::string_view element);
    /// Returns the position of the next element.
    position erase(slab& memory, position place) noexcept;
    void replace(slab& memory, position place, std::string_view element);

    /// Replaces a hardly used single block by a smaller one. pop and drop do this themselves;
    /// erase() keeps positions valid.
    void shrink(slab& memory) noexcept;
    void clear(slab& memory) noexcept;
    /// Frees up to `blocks` blocks with their elements; true while any remain.
    bool free_some(slab& memory, std::size_t blocks) noexcept;
    /// True if all elements are in one block, or there are none.
    bool is_one_block() const noexcept { return head_ == tail_; }
    /// Bytes of elements and of their sizes; the count stops above `most`.
    std::size_t used_bytes(std::size_t most) const noexcept;
    /// Bytes in blocks, without the list itself. O(blocks).
    std::size_t memory_bytes() const noexcept;

private:
    list_block* add_block(slab& memory, std::size_t capacity, list_block* after);
    void remove_block(slab& memory, list_block* gone) noexcept;
    list_block* resize(slab& memory, list_block* old, std::size_t capacity, bool room_in_front);
    list_block* room_in_front(slab& memory, std::size_t need);
    list_block* room_at_back(slab& memory, std::size_t need);
    void open_gap(slab& memory, position& place, std::size_t need);

    list_block* head_ = nullptr;
    list_block* tail_ = nullptr;
    std::uint64_t size_ = 0;
};

}  // namespace eddy::cache
