// Stream daemon: one stream runtime in the foreground, without a control socket or stored state, in
// place of other programs that stream to sockets which are handed over.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/options/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eddy::daemon {

struct stream_daemon_options {
    runtime::settings runtime;  ///< of the type "stream"
    /// Numeric address and port of /metrics and /healthz; none without one.
    std::optional<endpoint> metrics;
    duration drain = std::chrono::seconds(10);  ///< for streams that are under way at the end
    io_backend_kind io_backend = io_backend_kind::automatic;
    /// Processes that stream, at most runtime::stream::max_workers; 0: one where clients are no
    /// open files (io_uring), else as many as the limits of streams and of open files require.
    std::size_t workers = 0;
    /// Words behind this program's name that give a worker the same options.
    std::vector<std::string> worker_arguments = {};
};

/// Exit status of a process that could not do its work.
inline constexpr int exit_fatal = 2;

/// Runs until SIGTERM or SIGINT, after which streams have `drain` to finish, and prints their peak
/// then. A second signal ends it at once. With several workers it is their supervisor; a process
/// that a supervisor has started is a worker instead. Returns the program's exit status.
int run_stream_daemon(const stream_daemon_options& options);

}  // namespace eddy::daemon
