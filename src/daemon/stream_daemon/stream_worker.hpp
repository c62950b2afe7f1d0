// Worker of a stream daemon: one of several processes that accept from its handoff socket.
#pragma once

#include "daemon/stream_daemon/stream_daemon.hpp"
#include "daemon/stream_daemon/worker_channel.hpp"

#include <optional>

namespace eddy::daemon {

/// Identity of this process as a worker; none for another process. It is taken out of the
/// environment: programs that this one starts are no workers. Before the first thread.
std::optional<worker_identity> take_worker_identity();

/// Streams until SIGTERM, as `self`, and dies with its supervisor. Its descriptor 0 is the channel
/// to that. Returns the program's exit status.
int run_stream_worker(const stream_daemon_options& options, worker_identity self);

}  // namespace eddy::daemon
