// Connecting to a backend.
#pragma once

#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "proxy/backend.hpp"

#include <chrono>
#include <string>

namespace eddy::proxy {

/// Opens a connection within `timeout`; for TCP the kernel probes it after `keepalive` of silence
/// (0: never). Yields a result<stream>: errc::timed_out, or an error of transport::connect().
/// `to` must live until then. A loop's thread.
task<result<stream>> connect(const backend& to, duration timeout, std::chrono::seconds keepalive);

/// Host and port of a backend for the field Host, the host being its name for TLS if it has one;
/// "localhost" for one that has no host.
std::string authority_of(const backend& of);

}  // namespace eddy::proxy
