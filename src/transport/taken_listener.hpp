// Listeners that pass from one server to the next at the same address.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/transport/transport.hpp>

namespace eddy::transport {

/// As listen_in_parts(), over a listener that is open there already: a listener of tcp, unix or
/// handoff, or the `below` of listener_parts. The handshake is that of `where`, whose files are
/// read. On failure `below` stays the caller's. Errors are those of listen_in_parts(). The loop's
/// thread.
result<listener_parts> take_in_parts(listener& below, const address& where);

/// A listener of a handoff address over a socket that another process has opened there; see
/// handoff::adopt(). errc::unsupported where the scheme is not built in.
result<listener> adopt_handoffs(unique_fd socket, const address& where);

}  // namespace eddy::transport
