// Writer of PROXY protocol headers.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "wire/proxy_protocol/header.hpp"

#include <cstdint>
#include <optional>

namespace eddy::proxy_protocol {

enum class version : std::uint8_t {
    text = 1,    ///< version 1, a line
    binary = 2,  ///< version 2
};

/// Appends a header of these addresses, both of one family. None: one that keeps the connection's
/// own addresses, UNKNOWN in version 1 and LOCAL in version 2.
void write_header(byte_buffer& out, version as, const std::optional<addresses>& of);

}  // namespace eddy::proxy_protocol
