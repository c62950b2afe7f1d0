// The daemon as a whole: `eddy daemon`.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/timer.hpp>

#include "daemon/cluster/own_member.hpp"
#include "runtime/type.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace eddy::daemon {

struct daemon_options {
    std::string name;    ///< shown by the API and in metrics
    std::string socket;  ///< path of the control socket
    std::string state;   ///< folder of state
    /// Members of this group, by name or number, may use the control socket; empty for none.
    std::string socket_group = {};
    io_backend_kind io_backend = io_backend_kind::automatic;
    std::size_t loops = 0;         ///< loops for runtimes; 0 means one a processor, at most 4
    bool sqpoll = false;           ///< see loop_options::sqpoll; of the runtimes' loops
    std::size_t ring_entries = 0;  ///< of each ring of io_uring; 0: the default
    std::size_t runtimes = 0;      ///< at most; 0: the default
    std::optional<std::uint16_t> metrics_port;  ///< /metrics on 127.0.0.1; 0 lets the kernel choose
    /// Time for connections to finish when the daemon or a runtime stops.
    duration drain = std::chrono::seconds(5);
    /// Membership in a cluster of daemons; none without.
    std::optional<cluster_options> cluster = {};
    std::span<const runtime::type> types;
};

/// Most loops that may be requested.
inline constexpr std::size_t loop_limit = 64;
/// Most runtimes that --max-runtimes may allow.
inline constexpr std::size_t most_runtimes = 1'000'000;
/// Least and most entries of a ring.
inline constexpr std::size_t least_ring_entries = 1024;
inline constexpr std::size_t most_ring_entries = 32768;
/// Most loops that are chosen by default.
inline constexpr std::size_t automatic_loop_limit = 4;

/// The default control socket: for root /run/eddy/eddy.sock; for another user eddy.sock in
/// $XDG_RUNTIME_DIR or /run/user/UID, the first that is a folder of that user alone, else in
/// /tmp/eddy-UID.
std::string default_socket();
/// The default folder of state: for root /var/lib/eddy, for another user $XDG_STATE_HOME/eddy or
/// ~/.local/state/eddy, and without a home /tmp/eddy-UID/state.
std::string default_state();
/// The version of this build, "0.1.0".
std::string version();
/// Optional parts that this build has: "io_uring", "tls", "scripts".
std::vector<std::string> parts();

/// Runs a daemon on this thread until SIGTERM or SIGINT; SIGHUP has it read its state again. The
/// control socket answers while runtimes start; when each has started or failed it prints one line
/// on standard output, "eddy daemon ready: ...". Its log goes to standard error. Returns the
/// process's exit status: 0, or 2 when it could not start. Once a process.
int run_daemon(const daemon_options& options);

}  // namespace eddy::daemon
