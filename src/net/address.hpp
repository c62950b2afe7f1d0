// Listening address given as text, for tcp and udp.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>

#include <cstdint>
#include <string_view>

namespace eddy {

/// A numeric address, "localhost", or "" or "*" for every address. Other names would need the
/// resolver, and which of a name's addresses to bind would be arbitrary.
inline result<endpoint> address_to_bind(std::string_view address, std::uint16_t port) {
    return endpoint::ip(address == "localhost" ? "127.0.0.1" : address, port);
}

}  // namespace eddy
