// Control server: accepts the connections of the control plane and starts a session for each: on
// the Unix socket for users that may control the daemon, and on a TCP port of this machine for
// metrics.
#pragma once

#include <eddy/base/intrusive_list.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include "daemon/control/metrics.hpp"

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <system_error>

namespace eddy::daemon {

struct server_limits {
    /// At the limit a further one replaces an idle one, first the oldest without a whole request:
    /// silent connections keep no client out. Where none is idle it gets 503. Only root's replace
    /// root's.
    std::size_t connections = 128;
    /// Connections of these that are reserved for root, where the daemon is another user's: that
    /// user's programs cannot keep root out.
    std::size_t for_root = 8;
    /// Connections of users that may not control the daemon take no slot of the others. At most so
    /// many are answered (403) at the same time, each within this time; further ones are closed.
    std::size_t unauthorized = 16;
    duration unauthorized_time = std::chrono::seconds(10);
    /// Pause before accepting again when descriptors have run out.
    duration starved_pause = std::chrono::milliseconds(100);
    /// Connections of this process itself are unauthorized, too: scripts of its runtimes have
    /// sockets, and its proxies' clients are others.
    bool refuses_own_process = false;
    /// Connections of other processes are unauthorized, whatever their user: for the socket of
    /// runtimes with --lua-admin; see keyed_handler.
    bool refuses_other_processes = false;
    /// Members of this group may control the daemon, too.
    std::optional<gid_t> group = {};
    http::session_limits session{};
};

/// True when a peer of this user id may control a daemon that runs as `own`: its own user and root.
bool may_control(uid_t peer, uid_t own) noexcept;

/// One accepting socket. Everything given outlives it; control loop.
class control_server {
public:
    /// `ask_who` checks the peer's user id, which only a Unix socket has.
    control_server(listener from, http::request_handler& handler, daemon_counters& counted,
                   server_limits limits, bool ask_who)
        : listener_(std::move(from)),
          handler_(handler),
          counted_(counted),
          limits_(limits),
          ask_who_(ask_who) {}

    /// Accepts until it is cancelled or the listener is closed; then ends the sessions.
    task<void> run();

    /// Accepts no more; sessions continue until run() is cancelled.
    void stop_accepting() noexcept { listener_.close(); }
    /// The same, for a socket that another process has, too: connections that were taken from the
    /// kernel's queue are accepted.
    void end_accepting() noexcept { listener_.driver().pause(); }
    const listener& socket() const noexcept { return listener_; }
    bool is_accepting() const noexcept { return is_accepting_; }
    /// Connections that are served.
    std::size_t sessions() const noexcept { return open_; }

private:
    class session;
    void admit(stream peer, uid_t user, scope& sessions);
    bool replace_idle(bool is_root) noexcept;
    void reject_unauthorized(stream peer, std::string name, scope& sessions);
    bool is_member(const stream& peer) const;
    task<void> serve(stream peer, bool is_root);
    task<void> refuse_unauthorized(stream peer, std::string name);
    task<void> reject(stream peer, std::size_t limit);
    task<result<>> wait_for_descriptors(std::error_code error);
    task<result<>> wait_for_room(const stream& accepted);

    listener listener_;
    http::request_handler& handler_;
    daemon_counters& counted_;
    server_limits limits_;
    bool ask_who_;
    intrusive_list<session> silent_;  // without a whole request so far, the oldest first
    intrusive_list<session> idle_;    // between requests, the one that is longest first
    std::size_t open_ = 0;
    std::size_t replaced_ = 0;  // of these: they are ending
    std::size_t unauthorized_ = 0;
    time_point unauthorized_logged_{};
    bool starved_ = false;
    bool is_accepting_ = true;  // until run() has found the listener closed or paused
};

}  // namespace eddy::daemon
