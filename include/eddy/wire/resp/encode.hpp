// Encoding of RESP heads: counts, decimal numbers, line ends. Private to the writers; inline
// because a whole reply costs a few nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

/// Shared by the writers. No state: any thread, each on memory of its own.
namespace eddy::resp::detail {

/// Bytes that one head may write: a type, a sign, 20 digits, CR LF, rounded up. put_decimal() fits
/// too.
inline constexpr std::size_t header_room = 32;

/// "00" to "99", so that a number is written two digits at a time.
inline constexpr auto digit_pairs = [] {
    std::array<char, 200> pairs{};
    for (std::size_t i = 0; i < 100; ++i) {
        pairs[2 * i] = static_cast<char>('0' + i / 10);
        pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
    return pairs;
}();

/// Writes the end of a line; returns the end.
inline char* put_crlf(char* to) noexcept {
    std::memcpy(to, "\r\n", 2);
    return to + 2;
}

/// Copies `text`; the regions do not overlap. Small sizes are moved in one or two registers: a call
/// of memcpy would cost more than the copy.
inline void copy(char* to, std::string_view text) noexcept {
    const char* from = text.data();
    const std::size_t size = text.size();
    if (__builtin_constant_p(size) || size > 32) {
        if (size > 0) std::memcpy(to, from, size);
    } else if (size >= 16) {
        std::memcpy(to, from, 16);
        std::memcpy(to + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
        std::memcpy(to, from, 8);
        std::memcpy(to + size - 8, from + size - 8, 8);
    } else if (size >= 4) {
        std::memcpy(to, from, 4);
        std::memcpy(to + size - 4, from + size - 4, 4);
    } else if (size > 0) {
        to[0] = from[0];
        to[size / 2] = from[size / 2];
        to[size - 1] = from[size - 1];
    }
}

/// Copies `text` with every CR and LF replaced by a space.
inline void copy_without_newlines(char* to, std::string_view text) noexcept {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        to[i] = c == '\r' || c == '\n' ? ' ' : c;
    }
}

/// Writes `value` in decimal, at most 20 digits; returns the end.
inline char* put_decimal(char* to, std::uint64_t value) noexcept {
    if (value < 10) {
        *to = static_cast<char>('0' + value);
        return to + 1;
    }
    char digits[20];
    char* at = digits + sizeof digits;
    while (value >= 100) {
        at -= 2;
        std::memcpy(at, &digit_pairs[2 * (value % 100)], 2);
        value /= 100;
    }
    if (value >= 10) {
        at -= 2;
        std::memcpy(at, &digit_pairs[2 * value], 2);
    } else {
        *--at = static_cast<char>('0' + value);
    }
    const auto size = static_cast<std::size_t>(digits + sizeof digits - at);
    copy(to, {at, size});
    return to + size;
}

/// The same, with a sign where it is negative.
inline char* put_decimal(char* to, std::int64_t value) noexcept {
    auto magnitude = static_cast<std::uint64_t>(value);
    if (value < 0) {
        *to++ = '-';
        magnitude = 0 - magnitude;
    }
    return put_decimal(to, magnitude);
}

/// A head with a count: "*3", "$16".
inline char* put_count(char* to, char type, std::size_t count) noexcept {
    if (count < 10) {
        const char head[4] = {type, static_cast<char>('0' + count), '\r', '\n'};
        std::memcpy(to, head, 4);
        return to + 4;
    }
    *to = type;
    if (count < 100) {
        std::memcpy(to + 1, &digit_pairs[2 * count], 2);
        return put_crlf(to + 3);
    }
    return put_crlf(put_decimal(to + 1, static_cast<std::uint64_t>(count)));
}

/// A head with a signed number: ":-7".
inline char* put_number(char* to, char type, std::int64_t value) noexcept {
    if (value >= 0) return put_count(to, type, static_cast<std::size_t>(value));
    *to = type;
    return put_crlf(put_decimal(to + 1, value));
}

}  // namespace eddy::resp::detail
