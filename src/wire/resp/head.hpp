// Fast decoding of the head of a string or an array, "$16\r\n", for parser and counter.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace eddy::resp::detail {

/// The shortest string, "$0\r\n\r\n".
inline constexpr std::size_t shortest_string = 6;
/// read_head() takes no more digits than these.
inline constexpr std::ptrdiff_t head_digits = 9;

constexpr std::uint32_t head_word(char a, char b, char c, char d) noexcept {
    return std::bit_cast<std::uint32_t>(std::array{a, b, c, d});
}

/// Over 9 when `c` is no digit.
inline unsigned digit(char c) noexcept {
    return static_cast<unsigned>(static_cast<unsigned char>(c)) - unsigned{'0'};
}

/// read_head() for three digits and more, of which the first two are in `value`. Not inline, so
/// that the loops that read heads keep their registers.
[[gnu::noinline]] inline const char* read_long_head(const char* at, const char* end,
                                                    std::size_t& value) noexcept {
    end = std::min(end, at + 1 + head_digits + 2);
    for (at += 3; at < end; ++at) {
        if (const unsigned next = digit(*at); next <= 9) {
            value = value * 10 + next;
        } else {
            return *at == '\r' && end - at > 1 && at[1] == '\n' ? at + 2 : nullptr;
        }
    }
    return nullptr;
}

/// Reads a head at `at` and returns where it ends; null when it is anything but `type`, a number
/// without sign or leading zeros, and CR LF. At least five bytes must be readable. One and two
/// digits, which is nearly all, cost one load and two or three compares.
template <char type>
inline const char* read_head(const char* at, const char* end, std::size_t& value) noexcept {
    constexpr char any = 0;
    constexpr char all = '\xff';
    std::uint32_t word;
    std::memcpy(&word, at, sizeof word);
    const unsigned first = digit(at[1]);
    if ((word & head_word(all, any, all, all)) == head_word(type, any, '\r', '\n') && first <= 9) {
        value = first;
        return at + 4;
    }
    const unsigned second = digit(at[2]);
    if (*at != type || first - 1 > 8 || second > 9) return nullptr;
    value = first * 10 + second;
    if (at[3] == '\r' && at[4] == '\n') return at + 5;
    std::size_t longer = value;
    at = read_long_head(at, end, longer);
    value = longer;
    return at;
}

}  // namespace eddy::resp::detail
