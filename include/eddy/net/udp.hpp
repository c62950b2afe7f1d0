// UDP: a bound message socket.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::udp {

/// The most bytes that one IPv4 datagram carries; a longer one is EMSGSIZE.
inline constexpr std::size_t max_payload = 65507;

/// Binds a socket on the running loop. `address` as for tcp::listen(). Errors: errc::bad_address,
/// bind(2)'s.
result<datagram> bind(std::string_view address, std::uint16_t port,
                      const listen_options& options = {});

}  // namespace eddy::udp
