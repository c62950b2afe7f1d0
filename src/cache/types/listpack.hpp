// Redis's listpack: consecutive elements in one block, each followed by its own size, so that it
// can be walked in either direction.
//
//     | bytes, 4 | elements, 2 | element ... | 255 |
//
// A text that is a canonical decimal number is stored as a number. Blocks here are trusted;
// packed.hpp walks untrusted ones.
#pragma once

#include "cache/types/number.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace eddy::cache::listpack {

inline constexpr std::size_t header_bytes = 6;
inline constexpr char end_mark = '\xff';
/// Element count of a list whose count does not fit 16 bits.
inline constexpr unsigned unknown_count = 0xffff;
/// At most so many bytes of overhead per text; a number takes at most as much in total.
inline constexpr std::size_t max_overhead = 10;

/// Bytes of the list, or a number in their place.
struct element {
    std::string_view bytes;
    std::int64_t number = 0;
    bool is_number = false;

    std::string_view text(char (&digits)[24]) const noexcept {
        if (!is_number) return bytes;
        return {digits, static_cast<std::size_t>(write_integer(digits, number) - digits)};
    }
    bool is(std::string_view other) const noexcept {
        if (!is_number) return bytes == other;
        const auto parsed = parse_integer(other);
        return parsed && *parsed == number;
    }
};

template <class T>
T load(const char* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// Number of bytes of an element's trailing size.
inline std::size_t back_bytes(std::size_t size) noexcept {
    return size <= 127 ? 1 : size < 16'383 ? 2 : size < 2'097'151 ? 3 : size < 268'435'455 ? 4 : 5;
}

/// Writes an element's trailing size; returns the end.
inline char* put_back_size(char* to, std::size_t size) noexcept {
    const std::size_t bytes = back_bytes(size);
    for (std::size_t i = bytes; i-- > 0; size >>= 7) {
        to[i] = static_cast<char>((size & 127) | (i > 0 ? 128 : 0));
    }
    return to + bytes;
}

/// Writes an element; returns the end. There must be room for max_overhead bytes and the text.
inline char* put_integer(char* to, std::int64_t value) noexcept {
    if (value >= 0 && value <= 127) [[likely]] {
        to[0] = static_cast<char>(value);
        to[1] = 1;
        return to + 2;
    }
    if (value >= -4096 && value <= 4095) {
        const auto bits = static_cast<unsigned>(value) & 0x1fff;
        to[0] = static_cast<char>(0xc0 | bits >> 8);
        to[1] = static_cast<char>(bits);
        to[2] = 2;
        return to + 3;
    }
    std::size_t width = 8;
    unsigned mark = 0xf4;
    if (value >= INT16_MIN && value <= INT16_MAX) {
        width = 2;
        mark = 0xf1;
    } else if (value >= -(1 << 23) && value < 1 << 23) {
        width = 3;
        mark = 0xf2;
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        width = 4;
        mark = 0xf3;
    }
    to[0] = static_cast<char>(mark);
    std::memcpy(to + 1, &value, width);
    to[1 + width] = static_cast<char>(1 + width);
    return to + width + 2;
}

inline char* put_text(char* to, std::string_view text) noexcept {
    if (!text.empty() && text.size() <= max_integer_text && text[0] <= '9' &&
        (text[0] >= '0' || text[0] == '-')) {
        if (const auto number = parse_integer(text)) return put_integer(to, *number);
    }
    std::size_t head = 1;
    if (text.size() < 64) {
        to[0] = static_cast<char>(0x80 | text.size());
    } else if (text.size() < 4096) {
        head = 2;
        to[0] = static_cast<char>(0xe0 | text.size() >> 8);
        to[1] = static_cast<char>(text.size());
    } else {
        head = 5;
        const auto size = static_cast<std::uint32_t>(text.size());
        to[0] = '\xf0';
        std::memcpy(to + 1, &size, 4);
    }
    if (!text.empty()) std::memcpy(to + head, text.data(), text.size());
    return put_back_size(to + head + text.size(), head + text.size());
}

/// Reads the element at `at`; returns the begin of the next one.
inline const char* read(const char* at, element& to) noexcept {
    const auto mark = static_cast<std::uint8_t>(*at);
    to.is_number = true;
    if (mark < 0x80) {
        to.number = mark;
        return at + 2;
    }
    if (mark < 0xc0) {
        to.is_number = false;
        to.bytes = {at + 1, mark & 0x3fU};
        return at + 2 + to.bytes.size();
    }
    const auto second = static_cast<std::uint8_t>(at[1]);
    if (mark < 0xe0) {
        const unsigned bits = (mark & 0x1fU) << 8 | second;
        to.number = static_cast<std::int64_t>(bits) - ((bits & 0x1000) != 0 ? 0x2000 : 0);
        return at + 3;
    }
    if (mark <= 0xf0) {
        const std::size_t head = mark == 0xf0 ? 5 : 2;
        const std::size_t size =
            mark == 0xf0 ? load<std::uint32_t>(at + 1) : (mark & 0xfU) << 8 | second;
        to.is_number = false;
        to.bytes = {at + head, size};
        return at + head + size + back_bytes(head + size);
    }
    switch (mark) {
        case 0xf1: to.number = load<std::int16_t>(at + 1); return at + 4;
        case 0xf2: {
            std::int32_t wide = 0;
            std::memcpy(reinterpret_cast<char*>(&wide) + 1, at + 1, 3);
            to.number = wide >> 8;
            return at + 5;
        }
        case 0xf3: to.number = load<std::int32_t>(at + 1); return at + 6;
        default: to.number = load<std::int64_t>(at + 1); return at + 10;
    }
}

/// Reads the number at `at` and advances.
inline std::int64_t take_integer(const char*& at) noexcept {
    element one;
    at = read(at, one);
    return one.number;
}

inline const char* skip(const char* at) noexcept {
    element one;
    return read(at, one);
}

/// Begin of the element that ends at `at`.
inline const char* before(const char* at) noexcept {
    std::size_t size = 0;
    unsigned shift = 0;
    do {
        --at;
        size |= static_cast<std::size_t>(*at & 127) << shift;
        shift += 7;
    } while ((*at & 128) != 0);
    return at - size;
}

}  // namespace eddy::cache::listpack
