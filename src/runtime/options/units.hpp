// Sizes and durations as people write them: "64k", "1GiB", "30", "1.5s", "100ms".
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/timer.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::runtime {

/// Bytes: digits, perhaps with a fraction, and a unit: B, K, M, G or T in any case, with B or iB
/// behind it if one likes. Every unit is a power of 1024; no unit means bytes. Part of a byte is
/// dropped. errc::malformed, or errc::limit_reached above 2^63-1.
result<std::int64_t> parse_size(std::string_view text) noexcept;

/// The longest duration that an option takes, 100 years in nanoseconds: added to any time of a
/// clock it is still one.
inline constexpr std::int64_t largest_duration = std::int64_t{36'525} * 86'400 * 1'000'000'000;

/// Nanoseconds: digits, perhaps with a fraction, and a unit: ns, us, ms, s, m (or min), h or d; no
/// unit means seconds. Errors as parse_size().
result<std::int64_t> parse_duration(std::string_view text) noexcept;

/// An integer in decimal digits, perhaps with a sign; nothing else. Errors as parse_size().
result<std::int64_t> parse_integer(std::string_view text) noexcept;

/// The largest unit in which the number is whole: 65536 gives "64KiB", 1000 "1000B".
std::string format_size(std::int64_t bytes);

/// The largest unit up to hours in which the number is whole: "90s", "2m", "1500ms", "0s".
std::string format_duration(std::int64_t nanoseconds);

}  // namespace eddy::runtime
