// Range requests (RFC 9110, 14): the byte ranges that a request selects, and Content-Range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// At most so many ranges are answered; a request with more gets the whole.
inline constexpr std::size_t range_limit = 16;

/// Bytes that follow each other; at least one.
struct byte_range {
    std::uint64_t first = 0;
    std::uint64_t size = 0;
    bool operator==(const byte_range&) const noexcept = default;
};

/// Selection by a field Range.
struct range_selection {
    enum class kind : std::uint8_t {
        whole,          ///< 200: the field is ignored
        ranges,         ///< 206
        unsatisfiable,  ///< 416
    };
    kind what = kind::whole;
    std::vector<byte_range> ranges;  ///< in the order of the request; at most range_limit
};

/// The selection from `size` bytes. A field that is malformed, of another unit, has more than
/// range_limit ranges, or some that overlap, selects the whole; unsatisfiable ranges beside others
/// are left out. Any thread.
range_selection select_ranges(std::string_view field, std::uint64_t size);

/// "bytes 0-9/100".
std::string content_range(byte_range range, std::uint64_t size);
/// "bytes */100": none could be satisfied.
std::string content_range_of_none(std::uint64_t size);

}  // namespace eddy::http
