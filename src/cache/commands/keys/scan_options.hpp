// Arguments shared by SCAN, SSCAN, HSCAN and ZSCAN.
#pragma once

#include "cache/keyspace/dictionary.hpp"
#include "cache/memory/entry.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace eddy::cache {

struct call;

/// The cursor, or none with the error replied.
std::optional<std::uint64_t> parse_cursor(call& c, std::size_t at);

/// Commands with scan_options. SCAN and CLUSTERSCAN alone have TYPE, HSCAN NOVALUES, ZSCAN
/// NOSCORES, CLUSTERSCAN SLOT.
enum class scan_of : std::uint8_t { keys, slots, set, hash, sorted_set };

struct scan_options {
    std::int64_t count = 10;
    bool names_only = false;  ///< NOVALUES, NOSCORES
    std::string_view pattern;
    bool has_pattern = false;
    std::optional<std::string_view> type;
    std::optional<unsigned> slot;  ///< of a cluster

    /// From args[first] on; false with the error replied.
    bool parse(call& c, std::size_t first, scan_of what);
    bool matches(std::string_view text) const noexcept;

private:
    bool parse_slot(call& c, std::size_t at);
};

/// The next page of the database's keys: moves the cursor, and removes expired keys that match.
std::vector<dictionary::slot> scan_keys(call& c, std::uint64_t& cursor,
                                        const scan_options& options);

/// The name that TYPE replies with.
std::string_view type_name(value_type type) noexcept;

}  // namespace eddy::cache
