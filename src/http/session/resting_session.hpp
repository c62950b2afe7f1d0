// Resting sessions: a connection that has been idle for a while costs no session, only its stream.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/http/response.hpp>
#include <eddy/http/session.hpp>
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

/// Observer of a session whose connection may leave for another server.
class resting_observer : public session_observer {
public:
    /// True: the session yields, as one that rests, as soon as it is idle.
    virtual bool is_leaving() const { return false; }
    /// True if its wait was interrupted, for is_leaving().
    virtual bool is_interrupted() const { return false; }
    /// Ends an interruption: the connection's source is a fresh one. True if the connection goes
    /// on. While nothing waits under the source before.
    virtual bool end_interruption() { return false; }
    /// The session has sent its last response, and drops bytes of the peer until that closes.
    virtual void note_lingering() {}

protected:
    ~resting_observer() = default;
};

/// As serve_observed(), with two more ends. The connection has been idle for `rest_after`, unless
/// session_limits::idle_time is not longer, or is to leave: no bytes of the peer are held here
/// then, and the next call begins with the bytes that arrive, its `received`. Or another protocol
/// begins: the caller runs it as soon as it has freed the task, and notifies the observers itself.
/// All references must outlive the task. Throws std::bad_alloc.
task<succession> serve_until_rest(stream& peer, request_handler& handler,
                                  const session_limits& limits, resting_observer& observer,
                                  duration rest_after, byte_buffer received);

/// Ends a task's coroutine, and frees its memory.
template <class T>
void free_frame(task<T>& ended) noexcept {
    const task<T> last = std::move(ended);
}

}  // namespace eddy::http
