// SHA-256 (FIPS 180-4), for passwords: the cache keeps no password itself. Written here because the
// engine has no need of OpenSSL, which a build may leave out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::cache {

using sha256_digest = std::array<std::uint8_t, 32>;

/// O(bytes of the text).
sha256_digest sha256(std::string_view text) noexcept;

/// Comparison in constant time, which reveals nothing about where they differ.
bool same_digest(const sha256_digest& a, const sha256_digest& b) noexcept;

/// 64 lower-case hexadecimal digits.
std::string to_hex(const sha256_digest& digest);
/// None for what is not that.
std::optional<sha256_digest> digest_from_hex(std::string_view text) noexcept;

}  // namespace eddy::cache
