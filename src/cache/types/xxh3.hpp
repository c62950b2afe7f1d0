// XXH3 of 64 bits without a seed: the digest of a string that DIGEST and IFDEQ compare.
//
// Written by the algorithm's published specification. About 8 bytes a nanosecond.
#pragma once

#include <cstdint>
#include <string_view>

namespace eddy::cache {

std::uint64_t xxh3(std::string_view text) noexcept;

}  // namespace eddy::cache
