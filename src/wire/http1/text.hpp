// Character classes of HTTP and the small steps of reading its fields.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace eddy::http1 {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

constexpr bool is_alpha(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr char to_lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

/// True if `lower` is the text in lower case.
constexpr bool is_lower_case_of(std::string_view text, std::string_view lower) noexcept {
    if (text.size() != lower.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (to_lower(text[i]) != lower[i]) return false;
    }
    return true;
}

/// Eight, four or two bytes as a number.
template <class Word>
Word load_word(const char* from) noexcept {
    Word word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

/// As is_lower_case_of(), for a token of the literal's size, 4 bytes or more, made of letters and
/// '-'. Of the bytes of tokens, only the two cases of a letter differ in the bit of the case alone.
inline bool is_token_in_lower_case(std::string_view token, std::string_view lower) noexcept {
    const auto same = [&]<class Word>(Word case_bits, std::size_t at) {
        return (load_word<Word>(token.data() + at) | case_bits) ==
               load_word<Word>(lower.data() + at);
    };
    constexpr std::uint64_t bits = 0x2020202020202020;
    const std::size_t size = lower.size();
    if (size < 8) {
        constexpr auto half = static_cast<std::uint32_t>(bits);
        return same(half, 0) && same(half, size - 4);
    }
    for (std::size_t at = 0; at + 8 < size; at += 8) {
        if (!same(bits, at)) return false;
    }
    return same(bits, size - 8);
}

/// memcpy() of a text that is mostly short.
inline void copy_short(char* to, const char* from, std::size_t size) noexcept {
    const auto copy_ends = [&]<class Word>(Word first) {
        first = load_word<Word>(from);
        const Word last = load_word<Word>(from + size - sizeof last);
        std::memcpy(to, &first, sizeof first);
        std::memcpy(to + size - sizeof last, &last, sizeof last);
    };
    if (size > 16) {
        std::memcpy(to, from, size);
    } else if (size >= 8) {
        copy_ends(std::uint64_t{});
    } else if (size >= 4) {
        copy_ends(std::uint32_t{});
    } else if (size > 0) {
        to[0] = from[0];
        to[size / 2] = from[size / 2];
        to[size - 1] = from[size - 1];
    }
}

/// True if none of eight bytes is a control byte: below 0x20 or 0x7f.
inline bool is_free_of_controls(std::uint64_t word) noexcept {
    constexpr std::uint64_t ones = 0x0101010101010101;
    const std::uint64_t del = word ^ (ones * 0x7f);
    const std::uint64_t found = ((word - ones * 0x20) & ~word) | ((del - ones) & ~del);
    return (found & ones * 0x80) == 0;
}

/// The value of a hexadecimal digit, or -1.
constexpr int hex_value(char c) noexcept {
    if (is_digit(c)) return c - '0';
    const char lower = to_lower(c);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// A set of bytes, made when compiling: letters, digits and the bytes of `others`.
struct byte_set {
    std::array<bool, 256> member{};

    constexpr explicit byte_set(std::string_view others) noexcept {
        for (std::size_t i = 0; i < member.size(); ++i) {
            const char c = static_cast<char>(i);
            member[i] = is_alpha(c) || is_digit(c) || others.find(c) != std::string_view::npos;
        }
    }
    constexpr bool has(char c) const noexcept { return member[static_cast<unsigned char>(c)]; }
    // Without an early exit: most texts are short and right.
    constexpr bool has_all(std::string_view text) const noexcept {
        bool all = true;
        for (const char c : text) all &= has(c);
        return all;
    }
};

/// Bytes of tokens (RFC 9110, 5.6.2).
inline constexpr byte_set token_bytes("!#$%&'*+-.^_`|~");

/// The text without the spaces and tabs at both ends.
constexpr std::string_view trim(std::string_view text) noexcept {
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

/// Takes the spaces and tabs off the beginning.
constexpr void skip_blanks(std::string_view& text) noexcept {
    const std::size_t blanks = text.find_first_not_of(" \t");
    text.remove_prefix(blanks == std::string_view::npos ? text.size() : blanks);
}

/// Takes the next item off a comma-separated list, trimmed; it may be empty. False at the end.
constexpr bool next_item(std::string_view& list, std::string_view& item) noexcept {
    if (list.data() == nullptr) return false;
    const std::size_t comma = list.find(',');
    item = trim(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    return true;
}

}  // namespace eddy::http1
