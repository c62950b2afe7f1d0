// Resting sessions: a connection that has been idle for a while costs no session, only its stream.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/io/lease.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

namespace eddy::http {

/// As serve_observed(), but ends, too, once the connection has been idle for `rest_after`, unless
/// session_limits::idle_time is not longer. Yields true then: nothing of the peer's is held here,
/// and the next call goes on with what arrives, which is its `received` and is given back. Yields
/// false at the end of the connection. All references must outlive the task. Throws std::bad_alloc.
task<bool> serve_until_rest(stream& peer, request_handler& handler, const session_limits& limits,
                            session_observer& observer, duration rest_after, lease& received);

}  // namespace eddy::http
