// Writing and escaping JSON.
#include <eddy/base/assert.hpp>
#include <eddy/base/utf8.hpp>
#include <eddy/wire/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace eddy {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view hex = "0123456789abcdef";

constexpr bool needs_escape(char c) noexcept {
    return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

void append_escape(std::string& to, char c) {
    to += '\\';
    switch (c) {
        case '"': to += '"'; return;
        case '\\': to += '\\'; return;
        case '\b': to += 'b'; return;
        case '\f': to += 'f'; return;
        case '\n': to += 'n'; return;
        case '\r': to += 'r'; return;
        case '\t': to += 't'; return;
        default: break;
    }
    const auto byte = static_cast<unsigned char>(c);
    to.append("u00").append({hex[byte >> 4], hex[byte & 15]});
}

/// Bytes of a string as it is written: ASCII without escapes.
constexpr std::array<bool, 256> plain_bytes = [] {
    std::array<bool, 256> made{};
    for (unsigned byte = 0; byte < 0x80; ++byte)
        made[byte] = !needs_escape(static_cast<char>(byte));
    return made;
}();

/// Longer texts are worth the vectors of the UTF-8 validator.
constexpr std::size_t short_text = 64;
/// Bytes that an object or array has room for from its beginning.
constexpr std::size_t first_capacity = 64;

bool is_short_and_plain(std::string_view text) noexcept {
    if (text.size() > short_text) return false;
    bool all = true;
    for (const char c : text) all &= plain_bytes[static_cast<unsigned char>(c)];
    return all;
}

/// Appends valid text.
void append_escaped(std::string& to, std::string_view text) {
    std::size_t plain = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (!needs_escape(text[i])) continue;
        to.append(text.substr(plain, i - plain));
        append_escape(to, text[i]);
        plain = i + 1;
    }
    to.append(text.substr(plain));
}

}  // namespace

void json_writer::begin_value() {
    EDDY_ASSERT(!is_complete_ && is_in_object() == has_key_);
    if (needs_comma_ && !has_key_) text_ += ',';
    has_key_ = false;
    needs_comma_ = true;
    is_complete_ = depth_ == 0;
}

json_writer& json_writer::key(std::string_view name) {
    EDDY_ASSERT(is_in_object() && !has_key_);
    if (needs_comma_) text_ += ',';
    append_string(name);
    text_ += ':';
    has_key_ = true;
    return *this;
}

json_writer& json_writer::begin(char bracket) {
    begin_value();
    EDDY_ASSERT(depth_ < depth_limit);
    if (text_.empty()) text_.reserve(first_capacity);
    text_ += bracket;
    const std::uint64_t bit = std::uint64_t{1} << depth_;
    objects_ = bracket == '{' ? objects_ | bit : objects_ & ~bit;
    ++depth_;
    needs_comma_ = false;
    is_complete_ = false;
    return *this;
}

json_writer& json_writer::end(char bracket) {
    EDDY_ASSERT(depth_ > 0 && !has_key_ && is_in_object() == (bracket == '}'));
    text_ += bracket;
    --depth_;
    needs_comma_ = true;
    is_complete_ = depth_ == 0;
    return *this;
}

json_writer& json_writer::plain(std::string_view text) {
    begin_value();
    text_ += text;
    return *this;
}

json_writer& json_writer::value(std::string_view text) {
    begin_value();
    append_string(text);
    return *this;
}

json_writer& json_writer::integer(std::int64_t number) {
    std::array<char, 24> digits;
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return plain({digits.data(), end});
}

json_writer& json_writer::unsigned_integer(std::uint64_t number) {
    std::array<char, 24> digits;
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return plain({digits.data(), end});
}

json_writer& json_writer::value(double number) {
    if (!std::isfinite(number)) return null();
    std::array<char, 32> digits;
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return plain({digits.data(), end});
}

void json_writer::append_string(std::string_view text) {
    if (is_short_and_plain(text)) {
        const std::size_t before = text_.size();
        const std::size_t after = before + text.size() + 2;
        // Some libraries pass the capacity in place of the size.
        text_.resize_and_overwrite(after, [&](char* all, std::size_t /*size*/) {
            all[before] = '"';
            std::ranges::copy(text, all + before + 1);
            all[after - 1] = '"';
            return after;
        });
        return;
    }
    text_ += '"';
    utf8_validator valid;
    while (!text.empty()) {
        const std::size_t good = valid.check(text);
        if (good == text.size() && valid.is_complete()) {
            append_escaped(text_, text);
            break;
        }
        // Back to the beginning of the character that is broken or cut off: one byte of it is
        // replaced, and the rest is looked at anew.
        std::size_t bad = good < text.size() ? good : text.size() - 1;
        while (bad > 0 && !is_utf8(text.substr(0, bad))) --bad;
        append_escaped(text_, text.substr(0, bad));
        text_ += replacement;
        text.remove_prefix(bad + 1);
        valid.reset();
    }
    text_ += '"';
}

std::string json_writer::take() {
    EDDY_ASSERT(is_complete_);
    std::string made = std::move(text_);
    *this = json_writer();
    return made;
}

}  // namespace eddy
