// Body of a response with several ranges: multipart/byteranges (RFC 9110, 14.6).
#pragma once

#include "http/fields/byte_ranges.hpp"
#include "http/files/file_body.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// The parts of a body that has `ranges` of a file of `size` bytes, each of this Content-Type.
std::vector<body_part> multipart_ranges(std::span<const byte_range> ranges, std::uint64_t size,
                                        std::string_view content_type, std::string_view boundary);

}  // namespace eddy::http
