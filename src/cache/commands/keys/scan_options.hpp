// Arguments shared by SCAN, SSCAN, HSCAN and ZSCAN.
#pragma once

#include "cache/memory/entry.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache {

struct call;

/// The cursor, or none with the error replied.
std::optional<std::uint64_t> parse_cursor(call& c, std::size_t at);

/// Commands with scan_options. SCAN alone has TYPE, HSCAN NOVALUES, ZSCAN NOSCORES.
enum class scan_of : std::uint8_t { keys, set, hash, sorted_set };

struct scan_options {
    std::int64_t count = 10;
    bool names_only = false;  ///< NOVALUES, NOSCORES
    std::string_view pattern;
    bool has_pattern = false;
    std::optional<std::string_view> type;  ///< SCAN alone

    /// From args[first] on; false with the error replied.
    bool parse(call& c, std::size_t first, scan_of what);
    bool matches(std::string_view text) const noexcept;
};

/// The name that TYPE replies with.
std::string_view type_name(value_type type) noexcept;

}  // namespace eddy::cache
