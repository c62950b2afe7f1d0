// Small operations on text that protocols and command lines share: letters regardless of case,
// names of options, lookup by view. ASCII only; bytes above 127 stay as they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace eddy {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

constexpr bool is_letter(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr char to_lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

inline std::string lower(std::string_view text) {
    std::string made(text);
    for (char& c : made) c = to_lower(c);
    return made;
}

/// True if `text` is `word`, which is given in lower case, in any case.
constexpr bool is_word(std::string_view text, std::string_view word) noexcept {
    if (text.size() != word.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (to_lower(text[i]) != word[i]) return false;
    }
    return true;
}

constexpr bool equal_in_any_case(std::string_view a, std::string_view b) noexcept {
    return std::ranges::equal(a, b, {}, to_lower, to_lower);
}

/// The text up to its first NUL, at most `limit` bytes of it: what printf("%.*s") prints.
constexpr std::string_view until_nul(std::string_view text,
                                     std::size_t limit = std::string_view::npos) noexcept {
    text = text.substr(0, limit);
    return text.substr(0, text.find('\0'));
}

/// "max_connections", as JSON names an option, for "max-connections".
inline std::string option_key(std::string_view flag) {
    std::string made(flag);
    std::ranges::replace(made, '-', '_');
    return made;
}

/// "max-connections", as command lines name an option, for "max_connections".
inline std::string option_flag(std::string_view key) {
    std::string made(key);
    std::ranges::replace(made, '_', '-');
    return made;
}

/// Hash of std::string keys for lookup by view: std::unordered_map<std::string, T, string_hash,
/// std::equal_to<>>.
struct string_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
        return std::hash<std::string_view>()(text);
    }
};

}  // namespace eddy
