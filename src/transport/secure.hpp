// TLS over a stream that is connected already: the handshake of the connecting side, such as
// through a proxy, and the verified name of the peer.
#pragma once

#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/transport/transport.hpp>

#include <string>

namespace eddy::transport {

/// Makes the handshake of the connecting side for a tls address over `below`, for at most
/// `timeout`. Yields a result<stream>; errors are those of tls::connect(), and
/// errc::unusable_certificate, or errc::unsupported for other schemes and in builds without TLS.
/// `below` is closed then.
task<result<stream>> secure(stream below, address where, duration timeout);

/// True if the bytes of a stream are encrypted by TLS.
bool is_secure(const stream& of) noexcept;

/// Subject of the certificate that the peer has shown and that was verified (RFC 2253); empty
/// without one, before the handshake, and in builds without TLS.
std::string verified_subject(const stream& of);

}  // namespace eddy::transport
