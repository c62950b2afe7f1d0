// Strict decoding of UTF-8, and escaping.
#include "base/text/terminal_text.hpp"

#include <algorithm>

namespace eddy {
namespace {

struct lead {
    std::size_t size;  // of the whole character; 0 for a byte that begins none
    char32_t bits;
    char32_t least;  // below it the encoding would be an overlong one
};

lead lead_of(unsigned char byte) noexcept {
    if (byte < 0x80) return {1, byte, 0};
    if (byte >= 0xc2 && byte < 0xe0) return {2, byte & 0x1fU, 0x80};
    if (byte >= 0xe0 && byte < 0xf0) return {3, byte & 0x0fU, 0x800};
    if (byte >= 0xf0 && byte < 0xf5) return {4, byte & 0x07U, 0x10000};
    return {0, 0, 0};
}

bool is_continuation(char c) noexcept { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80; }

bool is_printable(char32_t code) noexcept {
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
    // The controls of Unicode's bidirectional algorithm: marks, embeddings, overrides, isolates.
    if (code == 0x61c || code == 0x200e || code == 0x200f) return false;
    if (code >= 0x2028 && code <= 0x202e) return false;  // with both separators
    return code < 0x2066 || code > 0x2069;
}

/// Bytes at the end of `text` that begin an incomplete character.
std::size_t incomplete_tail(std::string_view text) noexcept {
    for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
        const char c = text[text.size() - back];
        if (is_continuation(c)) continue;
        return lead_of(static_cast<unsigned char>(c)).size > back ? back : 0;
    }
    return 0;
}

}  // namespace

text_unit first_unit(std::string_view text) noexcept {
    const lead first = lead_of(static_cast<unsigned char>(text.front()));
    if (first.size == 0 || first.size > text.size()) return {1, 0, false};
    char32_t code = first.bits;
    for (std::size_t i = 1; i < first.size; ++i) {
        if (!is_continuation(text[i])) return {1, 0, false};
        code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fU);
    }
    const bool is_surrogate = code >= 0xd800 && code < 0xe000;
    if (code < first.least || code > 0x10ffff || is_surrogate) return {1, 0, false};
    return {first.size, code, is_printable(code)};
}

void append_hex_escaped(std::string& to, std::string_view unit) {
    constexpr char hex[] = "0123456789abcdef";
    for (const char c : unit) {
        const auto byte = static_cast<unsigned char>(c);
        to += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
    }
}

std::string printable(std::string_view text, std::size_t limit) {
    std::string shown;
    for (std::size_t at = 0; at < std::min(text.size(), limit);) {
        const text_unit unit = first_unit(text.substr(at));
        shown += unit.is_printable ? text.substr(at, unit.size) : "?";
        at += unit.size;
    }
    return shown;
}

std::string in_quotes(std::string_view text, std::size_t limit) {
    return '"' + printable(text, limit) + (text.size() > limit ? "...\"" : "\"");
}

std::string escaped_for_terminal(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        const text_unit unit = first_unit(text);
        const std::string_view bytes = text.substr(0, unit.size);
        if (unit.is_printable || bytes == "\n" || bytes == "\t")
            shown += bytes;
        else
            append_hex_escaped(shown, bytes);
        text.remove_prefix(unit.size);
    }
    return shown;
}

std::string terminal_escaper::next(std::string_view piece) {
    waiting_ += piece;
    const std::size_t whole = waiting_.size() - incomplete_tail(waiting_);
    std::string shown = escaped_for_terminal(std::string_view(waiting_).substr(0, whole));
    waiting_.erase(0, whole);
    return shown;
}

}  // namespace eddy
