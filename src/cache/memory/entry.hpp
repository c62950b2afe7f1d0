// Entry: one key with its value in one block of memory; also one member of a big set, and one field
// with its value in a big hash.
//
//     | header, 8 bytes | expiry, 8 if it has the room | key size, 8 if long | key | value |
//
// The header holds the lengths of key and value and the value's type. A value is the string's own
// bytes, a 64-bit integer, or a pointer to a block of its own. Nothing but the header is aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace eddy::cache {

/// Type of a key's value, as in TYPE.
enum class value_type : std::uint8_t { string, list, set, hash, sorted_set, stream };

/// Representation of a value.
enum class encoding : std::uint8_t {
    bytes,         ///< string: the bytes stand in the entry
    integer,       ///< string: a number, written in decimal when it is read
    external,      ///< string: a pointer to a `text_block`
    list,          ///< a pointer to a `list`
    packed,        ///< set, hash, sorted set: a pointer to a `packed_block`
    indexed,       ///< set, hash: a pointer to an `indexed_block`
    table,         ///< set, hash: a pointer to a `dictionary`
    sorted_table,  ///< sorted set: a pointer to a `sorted_table`
    stream,        ///< a pointer to a `redis_stream`
    timed_table,   ///< hash with expiring fields: a pointer to the `dictionary` in a `timed_table`
};

/// Expiration of a key in milliseconds since 1970; 0: none.
using expiry_time = std::int64_t;
inline constexpr expiry_time no_expiry = 0;

/// The longest string of a key or an element; proto-max-bulk-len may lower it for clients. Existing
/// strings stay readable whatever that parameter is.
inline constexpr std::size_t largest_text = 0x7fff'ffff;

/// A string that is too big for its entry: size, capacity, bytes.
struct text_block {
    std::uint64_t size;
    std::uint64_t capacity;
    char* bytes() noexcept { return reinterpret_cast<char*>(this + 1); }
    const char* bytes() const noexcept { return reinterpret_cast<const char*>(this + 1); }
};

/// The header; the rest follows it in the same block. Entries are made and moved by the keyspace
/// and the collections, never copied as values.
struct entry {
    static constexpr std::uint8_t has_expiry_room = 1;
    static constexpr std::uint8_t long_key = 4;  ///< the key's size does not fit 16 bits
    static constexpr std::uint8_t modified_text =
        8;                                         ///< made by APPEND or SETRANGE: encoding "raw"
    static constexpr std::uint8_t large_list = 8;  ///< the same of a list: encoding "quicklist"
    static constexpr std::uint8_t one_use = 16;    ///< two bits count uses, for eviction
    static constexpr std::uint8_t all_uses = 3 * one_use;
    /// The running snapshot has written it, or it is newer than the snapshot: see rdb/snapshot.hpp.
    static constexpr std::uint8_t in_snapshot = 64;
    static constexpr std::size_t max_short_key = 0xffff;

    std::uint32_t value_size;  ///< bytes of the value within the entry
    std::uint16_t short_key_size;
    value_type type : 4;
    encoding held_as : 4;
    std::uint8_t flags;

    char* after_header() noexcept { return reinterpret_cast<char*>(this + 1); }
    const char* after_header() const noexcept { return reinterpret_cast<const char*>(this + 1); }

    bool has(std::uint8_t flag) const noexcept { return (flags & flag) != 0; }
    std::uint8_t uses() const noexcept { return (flags & all_uses) / one_use; }
    /// Increments the count of uses, up to `most`, which is 3 or less.
    void count_use(std::uint8_t most) noexcept {
        if (uses() < most) flags = static_cast<std::uint8_t>(flags + one_use);
    }
    /// Decrements the count of uses; false when it was 0.
    bool take_use() noexcept {
        if (uses() == 0) return false;
        flags = static_cast<std::uint8_t>(flags - one_use);
        return true;
    }
    /// Sets the count of uses to 0; false when it was.
    bool drop_uses() noexcept {
        if (uses() == 0) return false;
        flags &= static_cast<std::uint8_t>(~all_uses);
        return true;
    }
    std::size_t key_offset() const noexcept {
        return (has(has_expiry_room) ? 8U : 0U) + (has(long_key) ? 8U : 0U);
    }
    std::size_t key_size() const noexcept {
        if (!has(long_key)) return short_key_size;
        std::uint64_t size;
        std::memcpy(&size, after_header() + (has(has_expiry_room) ? 8 : 0), 8);
        return size;
    }
    std::string_view key() const noexcept { return {after_header() + key_offset(), key_size()}; }

    char* value() noexcept { return after_header() + key_offset() + key_size(); }
    const char* value() const noexcept { return after_header() + key_offset() + key_size(); }
    std::string_view value_bytes() const noexcept { return {value(), value_size}; }

    std::int64_t integer() const noexcept { return load<std::int64_t>(); }
    void set_integer(std::int64_t number) noexcept { store(number); }
    template <class T>
    T* pointer() const noexcept {
        return reinterpret_cast<T*>(load<std::uintptr_t>());
    }
    template <class T>
    void set_pointer(T* to) noexcept {
        store(reinterpret_cast<std::uintptr_t>(to));
    }

    expiry_time expiry() const noexcept {
        if (!has(has_expiry_room)) return no_expiry;
        expiry_time at;
        std::memcpy(&at, after_header(), 8);
        return at;
    }
    /// The entry must have the room.
    void set_expiry(expiry_time at) noexcept { std::memcpy(after_header(), &at, 8); }

    /// Bytes of the whole block.
    std::size_t size() const noexcept {
        return sizeof(entry) + key_offset() + key_size() + value_size;
    }
    static std::size_t size_for(std::size_t key_size, std::size_t value_size,
                                bool with_expiry) noexcept {
        return sizeof(entry) + (with_expiry ? 8U : 0U) + (key_size > max_short_key ? 8U : 0U) +
               key_size + value_size;
    }

    /// Writes header and key into a block of size_for(...) bytes; the value is the caller's part.
    static entry* make(void* block, std::string_view key, std::size_t value_size,
                       bool with_expiry) noexcept {
        auto* const made = static_cast<entry*>(block);
        const bool is_long = key.size() > max_short_key;
        made->value_size = static_cast<std::uint32_t>(value_size);
        made->short_key_size = is_long ? std::uint16_t{0} : static_cast<std::uint16_t>(key.size());
        made->type = value_type::string;
        made->held_as = encoding::bytes;
        made->flags = static_cast<std::uint8_t>((with_expiry ? has_expiry_room : 0) |
                                                (is_long ? long_key : 0));
        char* to = made->after_header();
        if (with_expiry) {
            std::memset(to, 0, 8);
            to += 8;
        }
        if (is_long) {
            const std::uint64_t size = key.size();
            std::memcpy(to, &size, 8);
            to += 8;
        }
        if (!key.empty()) std::memcpy(to, key.data(), key.size());
        return made;
    }

private:
    template <class T>
    T load() const noexcept {
        T word;
        std::memcpy(&word, value(), sizeof word);
        return word;
    }
    template <class T>
    void store(T word) noexcept {
        std::memcpy(value(), &word, sizeof word);
    }
};
static_assert(sizeof(entry) == 8);

/// True if two runs of at most max_short_bytes are equal. Most keys are so short that a call of
/// memcmp would cost more than the comparison.
inline constexpr std::size_t max_short_bytes = 32;
inline bool same_short_bytes(const char* a, const char* b, std::size_t size) noexcept {
    const auto differ8 = [](const char* x, const char* y) {
        std::uint64_t p, q;
        std::memcpy(&p, x, 8);
        std::memcpy(&q, y, 8);
        return p ^ q;
    };
    if (size > 16) {
        return (differ8(a, b) | differ8(a + 8, b + 8) | differ8(a + size - 16, b + size - 16) |
                differ8(a + size - 8, b + size - 8)) == 0;
    }
    if (size >= 8) return (differ8(a, b) | differ8(a + size - 8, b + size - 8)) == 0;
    if (size >= 4) {
        std::uint32_t p, q, r, s;
        std::memcpy(&p, a, 4);
        std::memcpy(&q, b, 4);
        std::memcpy(&r, a + size - 4, 4);
        std::memcpy(&s, b + size - 4, 4);
        return ((p ^ q) | (r ^ s)) == 0;
    }
    return size == 0 || (a[0] == b[0] && a[size / 2] == b[size / 2] && a[size - 1] == b[size - 1]);
}
inline bool same_bytes(const char* a, const char* b, std::size_t size) noexcept {
    return size <= max_short_bytes ? same_short_bytes(a, b, size) : std::memcmp(a, b, size) == 0;
}
inline bool same_bytes(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && same_bytes(a.data(), b.data(), a.size());
}

}  // namespace eddy::cache
