// Base64 in groups of three bytes.
#include "base/text/base64.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace eddy {

std::string base64(std::string_view bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t here = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t group = 0;
        for (std::size_t j = 0; j < 3; ++j)
            group = group << 8 | (j < here ? static_cast<unsigned char>(bytes[i + j]) : 0U);
        for (std::size_t j = 0; j < 4; ++j)
            text += j <= here ? digits[group >> (18 - 6 * j) & 63] : '=';
    }
    return text;
}

}  // namespace eddy
