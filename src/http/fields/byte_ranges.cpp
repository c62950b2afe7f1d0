// Reading of Range.
#include "http/fields/byte_ranges.hpp"

#include "base/text/text.hpp"
#include "wire/http1/text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace eddy::http {
namespace {

constexpr std::string_view unit = "bytes";

/// A number of digits alone; one that is too large is the largest.
std::optional<std::uint64_t> parse_position(std::string_view text) noexcept {
    if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() ? value : std::numeric_limits<std::uint64_t>::max();
}

/// A range of `size` bytes; of no bytes when it cannot be satisfied, none when it is malformed.
std::optional<byte_range> parse_range(std::string_view text, std::uint64_t size) noexcept {
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const std::string_view end = text.substr(dash + 1);
    if (dash == 0) {
        const auto suffix = parse_position(end);
        if (!suffix) return std::nullopt;
        const std::uint64_t taken = std::min(*suffix, size);
        return byte_range{size - taken, taken};
    }
    const auto first = parse_position(text.substr(0, dash));
    const auto last = end.empty() ? std::numeric_limits<std::uint64_t>::max() : parse_position(end);
    if (!first || !last || *last < *first) return std::nullopt;
    if (*first >= size) return byte_range{};
    return byte_range{*first, std::min(*last, size - 1) - *first + 1};
}

bool overlap(std::vector<byte_range> ranges) {
    std::ranges::sort(ranges, {}, &byte_range::first);
    for (std::size_t i = 1; i < ranges.size(); ++i)
        if (ranges[i].first < ranges[i - 1].first + ranges[i - 1].size) return true;
    return false;
}

}  // namespace

range_selection select_ranges(std::string_view field, std::uint64_t size) {
    using kind = range_selection::kind;
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos || !is_word(field.substr(0, equals), unit)) return {};
    std::string_view rest = field.substr(equals + 1);
    std::string_view item;
    range_selection made;
    std::size_t count = 0;
    while (http1::next_item(rest, item)) {
        if (item.empty()) continue;
        const auto range = parse_range(item, size);
        if (!range || ++count > range_limit) return {};
        // In an empty representation the last bytes are the whole, which has no Content-Range.
        if (size == 0 && item.front() == '-' && parse_position(item.substr(1)) > 0) return {};
        if (range->size > 0) made.ranges.push_back(*range);
    }
    if (count == 0 || overlap(made.ranges)) return {};
    made.what = made.ranges.empty() ? kind::unsatisfiable : kind::ranges;
    return made;
}

std::string content_range(byte_range range, std::uint64_t size) {
    return "bytes " + std::to_string(range.first) + "-" +
           std::to_string(range.first + range.size - 1) + "/" + std::to_string(size);
}

std::string content_range_of_none(std::uint64_t size) { return "bytes */" + std::to_string(size); }

}  // namespace eddy::http
