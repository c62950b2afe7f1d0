// Position of data in a stream of replication, as a dump file has it.
#pragma once

#include <cstdint>
#include <string>

namespace eddy::cache {

/// Data with the effect of the stream's first `offset` bytes, and of nothing else.
struct stream_position {
    std::string id;  ///< the stream's replication ID
    std::uint64_t offset = 0;
    std::uint8_t database = 0;  ///< for which the stream goes on
};

}  // namespace eddy::cache
