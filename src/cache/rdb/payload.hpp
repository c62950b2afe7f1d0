// DUMP payload; and its footer, which FUNCTION DUMP's has, too: a version and a checksum.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/rdb/crc64.hpp"
#include "cache/rdb/format.hpp"
#include "cache/rdb/value_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::cache::rdb {

/// The version in a payload's footer, when its checksum is right.
inline std::optional<std::uint16_t> payload_version(std::string_view payload) noexcept {
    if (payload.size() < dump_footer_bytes) return std::nullopt;
    const std::size_t summed = payload.size() - checksum_bytes;
    std::uint64_t sum;
    std::memcpy(&sum, payload.data() + summed, sizeof sum);
    if (crc64(0, payload.substr(0, summed)) != sum) return std::nullopt;
    std::uint16_t version;
    std::memcpy(&version, payload.data() + summed - sizeof version, sizeof version);
    return version;
}

/// A payload without its footer, which names the family of its types.
struct payload_content {
    std::string_view value;
    format_family family = format_family::redis;
};

/// The payload's content, when its footer is valid.
inline std::optional<payload_content> checked_payload(std::string_view payload) noexcept {
    const auto version = payload_version(payload);
    const bool is_valkeys = version == version_of_valkey;
    if (!version || (*version > max_version && !is_valkeys)) return std::nullopt;
    return payload_content{payload.substr(0, payload.size() - dump_footer_bytes),
                           is_valkeys ? format_family::valkey : format_family::redis};
}

/// Why checked_payload() yields nothing: Redis's text, behind which a version that is not read is
/// named where the checksum is right.
inline std::string payload_error(std::string_view payload) {
    std::string text = "ERR DUMP payload version or checksum are wrong";
    if (const auto version = payload_version(payload))
        text += ": it has RDB version " + std::to_string(*version) + ", and versions up to " +
                std::to_string(max_version) + " of Redis and " + std::to_string(version_of_valkey) +
                " of Valkey are read";
    return text;
}

/// Appends the value as in DUMP, or false when it takes more than about `most` bytes: then a part
/// of it is there. Not interruptible; as long as reading the value takes.
inline bool write_payload(environment& env, entry& of, byte_buffer& to, std::size_t most) {
    constexpr std::size_t piece = 64U << 10;
    const std::size_t begin = to.size();
    value_writer writer(env);
    writer.begin_value(of);
    while (!writer.write(to, to.size() + piece)) {
        if (to.size() - begin > most) return false;
    }
    put_little(to, value_writer::version_for(env, of), 2);
    put_little(to, crc64(0, to.text().substr(begin)), checksum_bytes);
    return true;
}

}  // namespace eddy::cache::rdb
