// Comparison of secrets.
#pragma once

#include <cstddef>
#include <string_view>

namespace eddy {

/// True if `given` is `secret`, which is not empty. Constant time: it depends on the size of
/// `given` alone, not on how much of it is right. Any thread.
inline bool is_same_secret(std::string_view given, std::string_view secret) noexcept {
    if (secret.empty()) return false;
    // Volatile: no early end by the compiler.
    volatile unsigned char differs = given.size() == secret.size() ? 0 : 1;
    std::size_t at = 0;
    for (const char each : given) {
        differs =
            static_cast<unsigned char>(differs | static_cast<unsigned char>(each ^ secret[at]));
        at = at + 1 == secret.size() ? 0 : at + 1;
    }
    return differs == 0;
}

}  // namespace eddy
