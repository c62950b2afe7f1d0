// Listener of handed-over sockets: each accept yields the socket of a client that another process
// has passed over, as a plain stream.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/stream.hpp>

#include "handoff/receiver.hpp"

#include <cstddef>
#include <functional>
#include <string_view>

namespace eddy::handoff {

/// At most so many handed-over clients wait for accept(). At the limit no further senders are
/// accepted; earlier ones may still send: at most receiver::max_pending clients more.
inline constexpr std::size_t max_ready_clients = 128;

/// Notified of the reason of each handoff that yields no stream: to_string(fault), or a reason of
/// find_fault(). It must not throw.
using failure_observer = std::function<void(std::string_view reason)>;

/// Listens on the running loop for handoffs at `path`; errors are receiver::open()'s. Messages are
/// received up to receiver_options::max_message and dropped: a client whose message is larger is
/// accepted, too. Handoffs are received while the loop runs, from the first accept() on. A failed
/// handoff is closed, and the accept keeps waiting.
///
/// TCP clients get TCP_NODELAY. Closing the listener closes the clients that were not accepted.
/// The loop's thread.
result<listener> listen(std::string_view path, const receiver_options& options);

/// The same with a socket that another process has opened at `path`; it has the socket's file until
/// listener_driver::set_shared(false).
result<listener> adopt(unique_fd socket, std::string_view path, const receiver_options& options);

/// Sets the observer of the failures of a listener of listen(); an empty one ends observation.
/// False for other listeners.
bool observe_failures(listener& of, failure_observer observer);

}  // namespace eddy::handoff
