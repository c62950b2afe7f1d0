// Bytes of a connection: what was received and sent since they were last reported.
#pragma once

#include <cstdint>

namespace eddy::http {

struct traffic {
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    std::uint64_t content_out = 0;  ///< of `out`: content of messages
};

}  // namespace eddy::http
