// The checksum of RDB files and DUMP payloads: CRC-64 with the Jones polynomial.
#pragma once

#include <cstdint>
#include <string_view>

namespace eddy::cache::rdb {

/// The sum of what `sum` stands for (0: nothing) followed by `bytes`. Some 1.5 GB/s.
std::uint64_t crc64(std::uint64_t sum, std::string_view bytes) noexcept;

}  // namespace eddy::cache::rdb
