// The end of what DUMP and FUNCTION DUMP give: a version and a checksum.
#pragma once

#include "cache/rdb/crc64.hpp"
#include "cache/rdb/format.hpp"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace eddy::cache::rdb {

/// What stands before a payload's footer, when that is right.
inline std::optional<std::string_view> checked_payload(std::string_view payload) noexcept {
    if (payload.size() < dump_footer_bytes) return std::nullopt;
    const std::size_t summed = payload.size() - checksum_bytes;
    std::uint64_t sum;
    std::memcpy(&sum, payload.data() + summed, sizeof sum);
    std::uint16_t version;
    std::memcpy(&version, payload.data() + summed - sizeof version, sizeof version);
    if (version > max_version || crc64(0, payload.substr(0, summed)) != sum) return std::nullopt;
    return payload.substr(0, summed - sizeof version);
}

}  // namespace eddy::cache::rdb
