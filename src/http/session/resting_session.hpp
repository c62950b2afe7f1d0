// Resting sessions: a connection that has been idle for a while costs no session, only its stream.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/http/response.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/lease.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <memory>
#include <utility>

namespace eddy::http {

/// Outcome of a session.
struct succession {
    bool rests = false;                              ///< its connection, until bytes come
    std::unique_ptr<connection_takeover> successor;  ///< null where HTTP stays the protocol
    byte_buffer received;                            ///< for the successor
};

/// As serve_observed(), with two more ends. The connection has been idle for `rest_after`, unless
/// session_limits::idle_time is not longer: no bytes of the peer are held here then, and the next
/// call begins with the bytes that arrive, its `received`, which it returns. Or another protocol
/// begins: the caller runs it as soon as it has freed the task, and notifies the observers itself.
/// All references must outlive the task. Throws std::bad_alloc.
task<succession> serve_until_rest(stream& peer, request_handler& handler,
                                  const session_limits& limits, session_observer& observer,
                                  duration rest_after, lease received);

/// Ends a task's coroutine, and frees its memory.
template <class T>
void free_frame(task<T>& ended) noexcept {
    const task<T> last = std::move(ended);
}

}  // namespace eddy::http
