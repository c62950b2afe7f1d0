// Doubles and long doubles; the C library fills the gaps of <charconv>.
#include "cache/types/number.hpp"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace eddy::cache {

std::optional<long double> parse_float(std::string_view text) noexcept {
    char copy[max_float_text];
    if (text.empty() || text.size() >= sizeof copy) return std::nullopt;
    std::memcpy(copy, text.data(), text.size());
    copy[text.size()] = '\0';
    if (std::isspace(static_cast<unsigned char>(copy[0])) != 0) return std::nullopt;
    char* end = nullptr;
    errno = 0;
    const long double value = std::strtold(copy, &end);
    if (end != copy + text.size() || std::isnan(value)) return std::nullopt;
    if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
    return value;
}

std::optional<double> parse_double(std::string_view text, double_syntax syntax) noexcept {
    double value = 0;
    const char* const last = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), last, value);
    if (error == std::errc{} && stopped == last) {
        if (std::isnan(value)) return std::nullopt;
        return value;
    }
    // A plus, a hexadecimal number, white space, a number out of range: all rare.
    const std::string copy(text);
    char* end = nullptr;
    errno = 0;
    value = std::strtod(copy.c_str(), &end);
    if (std::isnan(value)) return std::nullopt;
    if (syntax == double_syntax::loose) {
        if (*end != '\0') return std::nullopt;
        return value;
    }
    if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0 ||
        end != copy.c_str() + text.size()) {
        return std::nullopt;
    }
    if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
    return value;
}

char* write_double(char* to, double value) noexcept {
    return std::to_chars(to, to + max_double_text, value, std::chars_format::general, 17).ptr;
}

char* write_float(char* to, long double value) noexcept {
    const int written = std::snprintf(to, max_float_text, "%.17Lf", value);
    char* end = to + written;
    if (std::isfinite(value)) {
        while (end[-1] == '0') --end;
        if (end[-1] == '.') --end;
    }
    if (end - to == 2 && to[0] == '-' && to[1] == '0') {
        to[0] = '0';
        --end;
    }
    return end;
}

}  // namespace eddy::cache
