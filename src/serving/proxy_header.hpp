// PROXY protocol on connections: the header that a trusted proxy sends first, and the one for a
// backend.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "wire/proxy_protocol/client_values.hpp"
#include "wire/proxy_protocol/header.hpp"

#include <memory>
#include <optional>

namespace eddy::serving {

/// A connection behind its header.
struct announced_connection {
    stream its;
    /// Values of the header besides addresses; null where it has none.
    std::unique_ptr<const proxy_protocol::client_values> values;
};

/// Reads the header with which `accepted` begins, within `timeout`, and nothing behind it. Yields
/// the connection, whose peer() and local() are the addresses of the header where it has some;
/// operations go to the stream below, at no cost. A result<announced_connection>; on failure the
/// connection is closed: errc::malformed, errc::limit_reached, errc::timed_out, errc::truncated,
/// errc::end_of_stream where it ended before the first byte, or the socket's error. A loop's
/// thread.
task<result<announced_connection>> take_proxy_header(stream accepted, duration timeout);

/// Addresses for a header, both IPv4 or both IPv6; none where one of them is of another family. Any
/// thread.
std::optional<proxy_protocol::addresses> addresses_between(const endpoint& source,
                                                           const endpoint& destination) noexcept;

}  // namespace eddy::serving
