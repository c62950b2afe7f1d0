// Joining of characters across pieces.
#include "runtime/stream/sources/piece_joiner.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/utf8.hpp>

#include "base/text/terminal_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

namespace eddy::runtime::stream {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
/// The first two bytes of each mark in UTF-8.
constexpr std::string_view mark_begin = "\xF4\x8F";
constexpr std::size_t mark_size = 4;
constexpr char32_t first_mark = 0x10F000;
/// The marks of the bytes 0x00 to 0xff, and of the surrogates U+D800 to U+DFFF.
constexpr char32_t byte_marks = 0x10F700;
constexpr char32_t surrogate_marks = 0x10F800;
constexpr char32_t first_high = 0xD800;
constexpr char32_t first_low = 0xDC00;
constexpr char32_t last_low = 0xDFFF;

void append_code(std::string& to, char32_t code) {
    const auto put = [&](char32_t byte) { to += static_cast<char>(byte); };
    if (code < 0x10000) {
        EDDY_ASSERT(code >= 0x800);
        put(0xE0 | code >> 12);
    } else {
        put(0xF0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
}

bool is_high(char32_t code) noexcept { return code >= first_high && code < first_low; }
bool is_low(char32_t code) noexcept { return code >= first_low && code <= last_low; }

char32_t whole_of(char32_t high, char32_t low) noexcept {
    return 0x10000 + ((high - first_high) << 10) + (low - first_low);
}

/// The code unit of an escape \uXXXX at the beginning of `text`.
std::optional<char32_t> escape_of(std::string_view text) noexcept {
    constexpr std::size_t size = 6;
    if (text.size() < size || !text.starts_with("\\u")) return std::nullopt;
    std::uint32_t unit = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + size, unit, 16);
    if (error != std::errc{} || end != text.data() + size) return std::nullopt;
    return unit;
}

bool is_invalid(const text_unit& unit, char first) noexcept {
    return unit.size == 1 && static_cast<unsigned char>(first) >= 0x80;
}

/// Writer of a text in which halves are marked.
class marker {
public:
    explicit marker(bool marks) : marks_(marks) {}

    /// False where the text has characters of the marks, and halves are to be marked.
    bool mark(std::string_view json) {
        while (!json.empty()) {
            const std::size_t used = json.front() == '\\' ? escape(json) : character(json);
            if (used == 0) return false;
            json.remove_prefix(used);
        }
        return true;
    }
    std::string made;

private:
    void half(char32_t mark) {
        if (marks_)
            append_code(made, mark);
        else
            made += replacement;
    }
    std::size_t escape(std::string_view json) {
        const auto unit = escape_of(json);
        const std::size_t size = unit ? 6 : std::min<std::size_t>(2, json.size());
        if (!unit || (!is_high(*unit) && !is_low(*unit))) return keep(json, size);
        const auto next = is_high(*unit) ? escape_of(json.substr(size)) : std::nullopt;
        if (!next || !is_low(*next)) {
            half(surrogate_marks + (*unit - first_high));
            return size;
        }
        if (marks_ && whole_of(*unit, *next) >= first_mark) return 0;
        return keep(json, 2 * size);
    }
    std::size_t character(std::string_view json) {
        const text_unit unit = first_unit(json);
        if (!is_invalid(unit, json.front())) {
            if (marks_ && json.starts_with(mark_begin)) return 0;
            return keep(json, unit.size);
        }
        half(byte_marks + static_cast<unsigned char>(json.front()));
        return 1;
    }
    std::size_t keep(std::string_view json, std::size_t size) {
        made += json.substr(0, size);
        return size;
    }

    bool marks_;
};

/// True when the text has an escape of a surrogate, of a pair or a lone one.
bool has_surrogate_escape(std::string_view json) noexcept {
    for (std::size_t at = json.find("\\u"); at != std::string_view::npos;
         at = json.find("\\u", at + 2)) {
        const auto unit = escape_of(json.substr(at));
        if (unit && (is_high(*unit) || is_low(*unit))) return true;
    }
    return false;
}

/// Reader of a piece with marks, which writes what they stand for.
class half_reader {
public:
    explicit half_reader(std::string_view piece) : rest_(piece) {}

    void read() {
        while (!rest_.empty()) {
            const std::size_t plain = std::min(rest_.find(mark_begin), rest_.size());
            text += rest_.substr(0, plain);
            rest_.remove_prefix(plain);
            if (rest_.empty()) return;
            if (mark() >= surrogate_marks)
                read_surrogate();
            else
                read_bytes();
        }
    }

    std::string text;
    std::string half;  ///< the marks that the piece ends with, of a character's beginning

private:
    bool at_mark() const noexcept { return rest_.starts_with(mark_begin); }
    char32_t mark() const noexcept { return first_unit(rest_).code; }

    void read_surrogate() {
        const char32_t unit = mark() - surrogate_marks + first_high;
        const std::string_view own = rest_.substr(0, mark_size);
        rest_.remove_prefix(mark_size);
        if (!is_high(unit)) {
            text += replacement;
            return;
        }
        if (rest_.empty()) {
            half = own;
            return;
        }
        const char32_t next = at_mark() ? mark() - surrogate_marks + first_high : 0;
        if (!is_low(next)) {
            text += replacement;
            return;
        }
        append_code(text, whole_of(unit, next));
        rest_.remove_prefix(mark_size);
    }

    /// A run of bytes that were no UTF-8 within their own pieces.
    void read_bytes() {
        const std::string_view marks = rest_;
        std::string bytes;
        while (at_mark() && mark() < surrogate_marks) {
            bytes += static_cast<char>(mark() - byte_marks);
            rest_.remove_prefix(mark_size);
        }
        for (std::size_t at = 0; at < bytes.size();) {
            const std::string_view left = std::string_view(bytes).substr(at);
            const text_unit unit = first_unit(left);
            if (!is_invalid(unit, left.front())) {
                text += left.substr(0, unit.size);
                at += unit.size;
                continue;
            }
            utf8_validator begun;
            if (rest_.empty() && begun.check(left) == left.size()) {
                half = marks.substr(at * mark_size, left.size() * mark_size);
                return;
            }
            text += replacement;
            ++at;
        }
    }

    std::string_view rest_;
};

}  // namespace

marked_text mark_halves(std::string_view json) {
    if (is_utf8(json) && !has_surrogate_escape(json)) return {};
    marker marking(true);
    if (marking.mark(json)) return {std::move(marking.made), true};
    marker replacing(false);
    const bool is_done = replacing.mark(json);
    EDDY_ASSERT(is_done);
    return {std::move(replacing.made), false};
}

std::string valid_utf8(std::string_view text) {
    if (is_utf8(text)) return std::string(text);
    std::string made;
    while (!text.empty()) {
        const text_unit unit = first_unit(text);
        made += is_invalid(unit, text.front()) ? replacement : text.substr(0, unit.size);
        text.remove_prefix(unit.size);
    }
    return made;
}

std::string without_marks(std::string_view piece) {
    half_reader reader(piece);
    reader.read();
    if (!reader.half.empty()) reader.text += replacement;
    return std::move(reader.text);
}

std::string piece_joiner::join(std::string_view name, std::string_view piece, bool has_marks) {
    EDDY_ASSERT(halves_.size() <= max_halves);
    std::string before = take(name);
    if (!has_marks) {
        // An empty piece ends nothing.
        if (before.empty()) return std::string(piece);
        if (!piece.empty()) return std::string(replacement).append(piece);
    }
    half_reader reader(before += piece);
    reader.read();
    if (reader.half.empty()) return std::move(reader.text);
    if (halves_.size() < max_halves && name.size() <= max_name)
        halves_.emplace_back(name, std::move(reader.half));
    else
        reader.text += replacement;
    return std::move(reader.text);
}

std::string piece_joiner::take(std::string_view name) {
    const auto found =
        std::ranges::find(halves_, name, &std::pair<std::string, std::string>::first);
    if (found == halves_.end()) return {};
    std::string half = std::move(found->second);
    halves_.erase(found);
    return half;
}

}  // namespace eddy::runtime::stream
