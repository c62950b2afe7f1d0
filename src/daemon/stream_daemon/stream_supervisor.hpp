// Supervisor of a stream daemon of several processes: they accept from one handoff socket, and one
// that dies is started again. Clients that are open files are limited by each process's table.
#pragma once

#include <eddy/io/signals.hpp>

#include "daemon/stream_daemon/stream_daemon.hpp"

#include <chrono>
#include <cstddef>

namespace eddy::daemon {

/// Pause before a worker that has died starts again; it doubles with each death up to the longest.
/// One that ran for as long as that begins anew.
inline constexpr duration first_restart_pause = std::chrono::milliseconds(100);
inline constexpr duration longest_restart_pause = std::chrono::seconds(10);
/// Time in which a worker responds to a request for its metrics; else its last ones count.
inline constexpr duration page_time = std::chrono::seconds(1);
/// Time beyond the drain's in which workers end; else they are killed.
inline constexpr duration end_grace = std::chrono::seconds(5);

/// Runs `workers` of them (1 to runtime::stream::max_workers) on the running loop until SIGTERM or
/// SIGINT; then they drain, and the peak of all is printed. A second signal ends the process, and
/// with it the workers, at once. Yields the program's exit status. The options outlive it.
task<int> supervise_stream_workers(const stream_daemon_options& options, std::size_t workers,
                                   signal_set signals);

}  // namespace eddy::daemon
