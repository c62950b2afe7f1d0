// Parsing and matching the segments of paths.
#include "http/routing/path_pattern.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/wire/http1/target.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace eddy::http {
namespace {

bool is_name(std::string_view text) noexcept {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    });
}

bool is_integer(std::string_view text) noexcept {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

std::optional<pattern_segment> parse_segment(std::string_view text) {
    pattern_segment made;
    const std::size_t open = text.find('{');
    const std::size_t close = text.find('}');
    if (open == std::string_view::npos && close == std::string_view::npos) {
        made.before = text;
        return made;
    }
    if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
        text.find_first_of("{}", open + 1) != close ||
        text.find_first_of("{}", close + 1) != text.npos)
        return std::nullopt;
    made.before = text.substr(0, open);
    made.after = text.substr(close + 1);
    std::string_view name = text.substr(open + 1, close - open - 1);
    made.is = pattern_segment::kind::any;
    if (name.ends_with("...")) {
        made.is = pattern_segment::kind::rest;
        name.remove_suffix(3);
        if (!made.before.empty() || !made.after.empty()) return std::nullopt;
    } else if (const std::size_t colon = name.find(':'); colon != name.npos) {
        if (name.substr(colon) != ":int") return std::nullopt;
        made.is = pattern_segment::kind::integer;
        name = name.substr(0, colon);
    }
    if (!is_name(name)) return std::nullopt;
    made.name = name;
    return made;
}

}  // namespace

std::string_view take_segment(std::string_view& path) noexcept {
    EDDY_ASSERT(path.starts_with('/'));
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    return segment;
}

std::optional<std::string_view> pattern_segment::match(std::string_view segment) const noexcept {
    if (is == kind::text) return segment == before ? std::optional(segment) : std::nullopt;
    if (segment.size() <= before.size() + after.size() || !segment.starts_with(before) ||
        !segment.ends_with(after))
        return std::nullopt;
    const std::string_view value =
        segment.substr(before.size(), segment.size() - before.size() - after.size());
    if (is == kind::integer && !is_integer(value)) return std::nullopt;
    return value;
}

bool pattern_segment::precedes(const pattern_segment& other) const noexcept {
    if (is != other.is) return is < other.is;
    return before.size() + after.size() > other.before.size() + other.after.size();
}

std::optional<std::vector<pattern_segment>> parse_pattern(std::string_view pattern) {
    std::vector<pattern_segment> all;
    if (!pattern.starts_with('/')) return std::nullopt;
    while (!pattern.empty()) {
        auto segment = parse_segment(take_segment(pattern));
        if (!segment) return std::nullopt;
        if (segment->is == pattern_segment::kind::rest && !pattern.empty()) return std::nullopt;
        const bool is_repeated =
            !segment->name.empty() &&
            std::ranges::find(all, segment->name, &pattern_segment::name) != all.end();
        if (is_repeated) return std::nullopt;
        all.push_back(std::move(*segment));
    }
    return all;
}

std::optional<std::string> decode_path(std::string_view path) {
    if (path.empty()) return std::nullopt;
    std::string all;
    all.reserve(path.size());
    while (path.starts_with('/')) {
        const auto decoded = http1::percent_decode(take_segment(path));
        if (!decoded) return std::nullopt;
        const bool is_odd = std::ranges::any_of(*decoded, [](char c) {
            return c == '/' || c == 0x7f || static_cast<unsigned char>(c) < 0x20;
        });
        if (is_odd) return std::nullopt;
        all.append("/").append(*decoded);
    }
    if (!path.empty()) return std::nullopt;
    return all;
}

}  // namespace eddy::http
