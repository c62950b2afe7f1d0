// Stream daemon: one stream runtime in the foreground, without a control socket or stored state, in
// place of other programs that stream to sockets which are handed over.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/settings.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace eddy::daemon {

struct stream_daemon_options {
    runtime::settings runtime;  ///< of the type "stream"
    /// Numeric address and port of /metrics and /healthz; none without one.
    std::optional<endpoint> metrics;
    duration drain = std::chrono::seconds(10);  ///< for streams that go on at the end
    backend_kind backend = backend_kind::automatic;
};

/// Runs until SIGTERM or SIGINT, which lets streams go on for `drain`, and prints their peak then.
/// A second signal ends it at once. Returns the program's exit status.
int run_stream_daemon(const stream_daemon_options& options);

}  // namespace eddy::daemon
