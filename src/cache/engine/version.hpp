// Versions of Redis that the cache names.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache {

/// Version by which clients choose features, unless --redis-version names another: see ADR 0043.
inline constexpr std::string_view compatible_version = "8.4.0";
/// Version whose format the files have.
inline constexpr std::string_view file_version = "7.2.4";

/// "7.2.4" is 0x00070204; none for anything but three numbers up to 255.
inline std::optional<std::uint32_t> version_number(std::string_view version) noexcept {
    std::uint32_t number = 0;
    const char* at = version.data();
    const char* const end = at + version.size();
    for (int i = 0; i < 3; ++i) {
        if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
        std::uint8_t part = 0;
        const auto [next, error] = std::from_chars(at, end, part);
        if (error != std::errc{}) return std::nullopt;
        number = number << 8 | part;
        at = next;
    }
    return at == end ? std::optional(number) : std::nullopt;
}

}  // namespace eddy::cache
