// Parsers of CONFIG's parameter values.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

// Redis's texts for rejected values.
inline constexpr std::string_view not_bytes = "argument must be a memory value";
inline constexpr std::string_view not_an_integer = "argument couldn't be parsed into an integer";
inline constexpr std::string_view not_a_switch = "argument must be 'yes' or 'no'";

/// Bytes with an optional unit: "100", "1kb" (1024), "1k" (1000), "2GB".
std::optional<std::size_t> parse_bytes(std::string_view text);

/// Words between spaces.
std::vector<std::string_view> split_words(std::string_view text);

/// The numbers of latency-tracking-info-percentiles, separated by single spaces; fails with the
/// reason.
std::expected<std::vector<double>, std::string_view> parse_percentiles(std::string_view text);
/// Such a number in Redis's notation: "99.9".
std::string percentile_text(double percent);

}  // namespace eddy::cache
