// Numbers as Redis reads and writes them.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache {

/// The bytes that any 64-bit number may take in decimal.
inline constexpr std::size_t max_integer_text = 20;

/// Parses a canonical decimal number: no spaces, no plus, no leading zeros, no minus zero.
inline std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
    if (text.empty() || text.size() > max_integer_text) return std::nullopt;
    const std::size_t first = text[0] == '-' ? 1 : 0;
    if (first == text.size()) return std::nullopt;
    if (text[first] == '0') {
        if (text.size() == 1) return 0;
        return std::nullopt;
    }
    // from_chars accepts nothing else that Redis refuses.
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || at != end) return std::nullopt;
    return value;
}

/// Writes the number; returns the end. `to` has room for max_integer_text bytes.
inline char* write_integer(char* to, std::int64_t value) noexcept {
    return std::to_chars(to, to + max_integer_text, value).ptr;
}

/// A number as an argument.
class decimal {
public:
    explicit decimal(std::int64_t value) noexcept
        : size_(static_cast<std::uint8_t>(write_integer(text_, value) - text_)) {}
    operator std::string_view() const noexcept { return {text_, size_}; }

private:
    char text_[max_integer_text];
    std::uint8_t size_;
};

/// A floating-point number, as strtold reads it, with nothing before or behind it; not NaN.
std::optional<long double> parse_float(std::string_view text) noexcept;

enum class double_syntax : std::uint8_t {
    whole,  ///< nothing before or behind the number, which is in a double's range
    loose,  ///< white space before it, or nothing at all, which is 0; too large is infinite
};

/// A score or coordinate, as strtod reads it; not NaN.
std::optional<double> parse_double(std::string_view text,
                                   double_syntax syntax = double_syntax::whole) noexcept;

/// The bytes that write_double() may take.
inline constexpr std::size_t max_double_text = 32;

/// 17 significant digits at most, as printf's %.17g. `to` has room for max_double_text bytes.
/// Returns the end.
char* write_double(char* to, double value) noexcept;

/// The bytes that write_float() may take.
inline constexpr std::size_t max_float_text = 5 * 1024;

/// Up to 17 digits behind the point, without an exponent and without trailing zeros. `to` has room
/// for max_float_text bytes. Returns the end.
char* write_float(char* to, long double value) noexcept;

}  // namespace eddy::cache
