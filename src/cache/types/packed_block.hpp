// Blocks of a small set's members, or a small hash's fields and values, in order.
//
// A packed block is searched from its start. A block of more fields has an index: a byte of each
// field's hash, 16 of which are compared at once, and the position of every eighth field. That is
// 1.5 bytes a field.
#pragma once

#include <eddy/base/assert.hpp>

#include "cache/memory/slab.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace eddy::cache {

/// Consecutive fields (in a hash, fields and values alternate), each preceded by its size in a
/// byte.
struct packed_block {
    /// Flag of a set: all members are integers, sorted by value.
    static constexpr std::uint16_t integers = 1;
    /// Flag of a sorted set: Redis would use a skiplist.
    static constexpr std::uint16_t spread = 2;

    std::uint16_t capacity;
    std::uint16_t used;
    std::uint16_t count;  // of fields
    std::uint16_t flags;

    char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
    const char* data() const noexcept { return reinterpret_cast<const char*>(this + 1); }
    /// Copies `from` into this block, which must have room.
    void take(const packed_block& from) noexcept {
        EDDY_ASSERT(from.used <= capacity);
        std::memcpy(data(), from.data(), from.used);
        used = from.used;
        count = from.count;
        flags = from.flags;
    }
};
static_assert(sizeof(packed_block) == 8);

/// Texts in a block.
namespace packed_text {

inline constexpr std::size_t longest = 255;

inline std::string_view read(const char* at) noexcept {
    return {at + 1, static_cast<std::uint8_t>(*at)};
}
inline const char* skip(const char* at) noexcept { return at + 1 + static_cast<std::uint8_t>(*at); }
inline char* skip(char* at) noexcept { return at + 1 + static_cast<std::uint8_t>(*at); }
/// The next field, after this one and its value.
template <class Char>
Char* skip_field(Char* at, bool has_value) noexcept {
    at = skip(at);
    return has_value ? skip(at) : at;
}
inline char* write(char* to, std::string_view text) noexcept {
    *to++ = static_cast<char>(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    return to + text.size();
}

/// True if one integer is less than the other; both are texts that parse_integer() accepts.
bool is_less(std::string_view one, std::string_view other) noexcept;

}  // namespace packed_text

/// The same with an index before the fields. Its functions do not allocate; `pairs`: fields have
/// values.
struct indexed_block {
    /// Fields between two positions in the index.
    static constexpr std::size_t group = 8;
    /// Increment of the index, in fields.
    static constexpr std::size_t room_step = 64;
    static constexpr std::size_t max_fields = 1024;
    static constexpr std::size_t max_bytes = 128U << 10;

    std::uint32_t capacity;
    std::uint32_t used;
    std::uint16_t count;
    std::uint16_t room;  // fields that the index has room for
    std::uint16_t flags;
    std::uint16_t unused;

    /// A field's number and begin; null when it is missing.
    struct place {
        std::size_t index = 0;
        char* at = nullptr;
        explicit operator bool() const noexcept { return at != nullptr; }
    };

    /// An empty block with room for so many bytes and fields, and a reserve.
    static indexed_block* make(slab& memory, std::size_t bytes, std::size_t fields);
    /// Such a block with the content of `from`, which is released.
    static indexed_block* widen(slab& memory, indexed_block* from, std::size_t bytes,
                                std::size_t fields);
    /// Copies `from` into this block, which must have room.
    void take(indexed_block& from) noexcept;
    void release(slab& memory) noexcept { memory.release(this, bytes()); }

    std::size_t bytes() const noexcept { return sizeof *this + index_bytes(room) + capacity; }
    char* data() noexcept { return reinterpret_cast<char*>(this + 1) + index_bytes(room); }
    const char* data() const noexcept {
        return reinterpret_cast<const char*>(this + 1) + index_bytes(room);
    }

    /// The field with this number, less than `count`.
    place at(std::size_t index, bool pairs) noexcept;
    place find(std::string_view field, std::uint8_t tag, bool pairs) noexcept;
    /// In a set of integers, the first one that is not less than this; otherwise the end.
    place find_integer(std::string_view least) noexcept;
    place end() noexcept { return {count, data() + used}; }

    /// Inserts before a position, or at the end. There must be room.
    void insert(place before, std::string_view field, std::string_view value, std::uint8_t tag,
                bool pairs) noexcept;
    /// There must be room.
    void replace_value(place of, std::string_view value) noexcept;
    void erase(place gone, bool pairs) noexcept;

private:
    static std::size_t index_bytes(std::size_t room) noexcept {
        return room + room / group * sizeof(std::uint32_t);
    }
    std::uint32_t* offsets() noexcept { return reinterpret_cast<std::uint32_t*>(this + 1); }
    std::uint8_t* tags() noexcept {
        return reinterpret_cast<std::uint8_t*>(offsets() + room / group);
    }
};
static_assert(sizeof(indexed_block) == 16);

}  // namespace eddy::cache
