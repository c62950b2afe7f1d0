// Numbers of Lua as integers, as the hardware of x86 converts them: scripts see what it makes of
// numbers that are too large, and of what is no number.
#pragma once

#include <cstdint>
#include <limits>

namespace eddy::lua {

namespace conversions {
inline constexpr double beyond_signed = 9223372036854775808.0;
}

inline std::int64_t to_signed(double value) noexcept {
    if (value >= -conversions::beyond_signed && value < conversions::beyond_signed)
        return static_cast<std::int64_t>(value);
    return std::numeric_limits<std::int64_t>::min();
}

inline std::uint64_t to_unsigned(double value) noexcept {
    if (!(value >= conversions::beyond_signed)) return static_cast<std::uint64_t>(to_signed(value));
    return value < 2 * conversions::beyond_signed ? static_cast<std::uint64_t>(value) : 0;
}

}  // namespace eddy::lua
