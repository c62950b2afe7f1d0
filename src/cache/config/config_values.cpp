// Parsers of values with Redis's units: units that end with b are powers of two, the others powers
// of ten.
#include "cache/config/config_values.hpp"

#include "cache/engine/call.hpp"
#include "cache/engine/engine.hpp"
#include "cache/types/number.hpp"

#include <algorithm>
#include <cstdio>

namespace eddy::cache {

std::optional<std::size_t> parse_bytes(std::string_view text) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = parse_integer(text.substr(0, digits));
    if (!number) return std::nullopt;
    const std::string_view unit = text.substr(digits);
    std::size_t factor = 0;
    if (unit.empty() || is_word(unit, "b")) factor = 1;
    if (is_word(unit, "k")) factor = 1000;
    if (is_word(unit, "kb")) factor = 1024;
    if (is_word(unit, "m")) factor = 1000 * 1000;
    if (is_word(unit, "mb")) factor = 1024 * 1024;
    if (is_word(unit, "g")) factor = 1000 * 1000 * 1000;
    if (is_word(unit, "gb")) factor = 1024 * 1024 * 1024;
    std::size_t bytes;
    if (factor == 0 || __builtin_mul_overflow(static_cast<std::size_t>(*number), factor, &bytes)) {
        return std::nullopt;
    }
    return bytes;
}

std::vector<std::string_view> split_words(std::string_view text) {
    std::vector<std::string_view> words;
    for (;;) {
        const std::size_t begin = text.find_first_not_of(' ');
        if (begin == std::string_view::npos) return words;
        text.remove_prefix(begin);
        const std::size_t size = std::min(text.find(' '), text.size());
        words.push_back(text.substr(0, size));
        text.remove_prefix(size);
    }
}

std::expected<std::vector<double>, std::string_view> parse_percentiles(std::string_view text) {
    std::vector<double> read;
    for (bool more = !text.empty(); more;) {
        const std::size_t size = std::min(text.find(' '), text.size());
        const auto percent = parse_double(text.substr(0, size));
        if (!percent)
            return std::unexpected("Invalid latency-tracking-info-percentiles parameters");
        if (*percent < 0 || *percent > 100) {
            return std::unexpected(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
        }
        if (read.size() == latency_options::max_percentiles)
            return std::unexpected("latency-tracking-info-percentiles takes 128 at most");
        read.push_back(*percent);
        more = size < text.size();
        text.remove_prefix(more ? size + 1 : size);
    }
    return read;
}

std::string percentile_text(double percent) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%f", percent);
    std::string text(digits);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
    return text;
}

}  // namespace eddy::cache
