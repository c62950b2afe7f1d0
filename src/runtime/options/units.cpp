// Sizes and durations: parser and writer, in integers throughout, so that nothing is rounded.
#include "runtime/options/units.hpp"

#include "base/text/text.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <span>

namespace eddy::runtime {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

struct unit {
    std::string_view name;  // lower case
    std::int64_t factor;
};

constexpr std::array size_units{
    unit{"", 1},
    unit{"b", 1},
    unit{"k", std::int64_t{1} << 10},
    unit{"kb", std::int64_t{1} << 10},
    unit{"kib", std::int64_t{1} << 10},
    unit{"m", std::int64_t{1} << 20},
    unit{"mb", std::int64_t{1} << 20},
    unit{"mib", std::int64_t{1} << 20},
    unit{"g", std::int64_t{1} << 30},
    unit{"gb", std::int64_t{1} << 30},
    unit{"gib", std::int64_t{1} << 30},
    unit{"t", std::int64_t{1} << 40},
    unit{"tb", std::int64_t{1} << 40},
    unit{"tib", std::int64_t{1} << 40},
};

constexpr std::int64_t second = 1'000'000'000;

constexpr std::array duration_units{
    unit{"", second},           unit{"ns", 1},
    unit{"us", 1'000},          unit{"ms", 1'000'000},
    unit{"s", second},          unit{"m", 60 * second},
    unit{"min", 60 * second},   unit{"h", 3'600 * second},
    unit{"d", 86'400 * second},
};

/// A decimal number times its unit. The fraction is kept to nine digits, more than any unit needs
/// to be exact to a nanosecond.
result<std::int64_t> parse_with_unit(std::string_view text, std::span<const unit> units) noexcept {
    __extension__ using wide = unsigned __int128;
    std::size_t at = 0;
    wide whole = 0;
    while (at < text.size() && is_digit(text[at])) {
        whole = whole * 10 + static_cast<unsigned>(text[at] - '0');
        if (whole > static_cast<wide>(largest)) return fail(errc::limit_reached);
        ++at;
    }
    if (at == 0) return fail(errc::malformed);
    wide fraction = 0;
    wide scale = 1;
    if (at < text.size() && text[at] == '.') {
        const std::size_t first = ++at;
        for (; at < text.size() && is_digit(text[at]); ++at) {
            if (scale == 1'000'000'000) continue;
            fraction = fraction * 10 + static_cast<unsigned>(text[at] - '0');
            scale *= 10;
        }
        if (at == first) return fail(errc::malformed);
    }
    std::string_view name = text.substr(at);
    if (name.size() > 1 && name.front() == ' ') name.remove_prefix(1);
    for (const unit& u : units) {
        if (!is_word(name, u.name)) continue;
        const wide factor = static_cast<wide>(u.factor);
        const wide total = whole * factor + fraction * factor / scale;
        if (total > static_cast<wide>(largest)) return fail(errc::limit_reached);
        return static_cast<std::int64_t>(total);
    }
    return fail(errc::malformed);
}

std::string format_with_unit(std::int64_t number, std::span<const unit> from_large_to_small) {
    for (const unit& u : from_large_to_small) {
        if (number != 0 && number % u.factor == 0)
            return std::to_string(number / u.factor) + std::string(u.name);
    }
    return std::to_string(number) + std::string(from_large_to_small.back().name);
}

}  // namespace

result<std::int64_t> parse_size(std::string_view text) noexcept {
    return parse_with_unit(text, size_units);
}

result<std::int64_t> parse_duration(std::string_view text) noexcept {
    return parse_with_unit(text, duration_units);
}

result<std::int64_t> parse_integer(std::string_view text) noexcept {
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc::result_out_of_range) return fail(errc::limit_reached);
    if (error != std::errc{} || stopped != end) return fail(errc::malformed);
    return number;
}

std::string format_size(std::int64_t bytes) {
    static constexpr std::array units{
        unit{"TiB", std::int64_t{1} << 40},
        unit{"GiB", std::int64_t{1} << 30},
        unit{"MiB", std::int64_t{1} << 20},
        unit{"KiB", std::int64_t{1} << 10},
        unit{"B", 1},
    };
    return format_with_unit(bytes, units);
}

std::string format_duration(std::int64_t nanoseconds) {
    static constexpr std::array units{
        unit{"h", 3'600 * second}, unit{"m", 60 * second}, unit{"s", second},
        unit{"ms", 1'000'000},     unit{"us", 1'000},      unit{"ns", 1},
    };
    return nanoseconds == 0 ? "0s" : format_with_unit(nanoseconds, units);
}

}  // namespace eddy::runtime
