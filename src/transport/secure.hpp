// TLS handshake of the connecting side over a stream that is connected already, such as one that
// goes through a proxy.
#pragma once

#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/transport/transport.hpp>

namespace eddy::transport {

/// Makes the handshake of the connecting side for a tls address over `below`, for at most
/// `timeout`. Yields a result<stream>; errors are those of tls::connect(), and
/// errc::unusable_certificate, or errc::unsupported for other schemes and in builds without TLS.
/// `below` is closed then.
task<result<stream>> secure(stream below, address where, duration timeout);

}  // namespace eddy::transport
