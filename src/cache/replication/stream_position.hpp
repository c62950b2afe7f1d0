// Replication position of data, as stored in a dump file.
#pragma once

#include <cstdint>
#include <string>

namespace eddy::cache {

/// Position of data that is the effect of exactly the stream's first `offset` bytes.
struct stream_position {
    std::string id;  ///< the stream's replication ID
    std::uint64_t offset = 0;
    std::uint8_t database = 0;  ///< database selected at that offset
};

}  // namespace eddy::cache
