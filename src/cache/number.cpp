// Long doubles; the C library does both directions.
#include "cache/number.hpp"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
