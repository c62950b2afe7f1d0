// Character classes of HTTP and the small steps of reading its fields.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace eddy::http1 {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

constexpr bool is_alpha(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr char to_lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

/// The value of a hexadecimal digit, or -1.
constexpr int hex_value(char c) noexcept {
    if (is_digit(c)) return c - '0';
    const char lower = to_lower(c);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// A set of bytes, made when compiling: letters and digits, and those in `others`.
struct byte_set {
    std::array<bool, 256> member{};

    constexpr explicit byte_set(std::string_view others) noexcept {
        for (std::size_t i = 0; i < member.size(); ++i) {
            const char c = static_cast<char>(i);
            member[i] = is_alpha(c) || is_digit(c) || others.find(c) != std::string_view::npos;
        }
    }
    constexpr bool has(char c) const noexcept { return member[static_cast<unsigned char>(c)]; }
    constexpr bool has_all(std::string_view text) const noexcept {
        for (const char c : text) {
            if (!has(c)) return false;
        }
        return true;
    }
};

/// Without the spaces and tabs at both ends.
constexpr std::string_view trim(std::string_view text) noexcept {
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

/// Takes the next item off a comma-separated list, trimmed; it may be empty. False at the end.
constexpr bool next_item(std::string_view& list, std::string_view& item) noexcept {
    if (list.data() == nullptr) return false;
    const std::size_t comma = list.find(',');
    item = trim(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    return true;
}

/// Whether the text has only bytes that a host with its port may have; it may be empty.
bool is_host(std::string_view text) noexcept;

}  // namespace eddy::http1
