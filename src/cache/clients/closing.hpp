// Closing of sessions, and what their limits go by.
#pragma once

#include "cache/engine/engine_state.hpp"
#include "cache/engine/options.hpp"

namespace eddy::cache {

client_class class_of(const client_session& who) noexcept;

/// Closes another session, or one's own behind its reply. Another one is in no list from then on,
/// and retire_closed() drops the rest of its state once nothing iterates over it. One whose script
/// is late is closed when that has ended: others must not see it half done. Its output is dropped,
/// unless a wait's reply is in it: the connection sends that if the socket takes it at once.
void kill(engine_state& s, client_session& who);

/// Drops all state by which the session acts on others, or they on it: subscriptions, waits,
/// watches, tracking, a transaction, its part as a replica. Its connection and its output stay. Of
/// one that closes; not while its script is late.
void retire(engine_state& s, client_session& who);

/// Retires the sessions that kill() has closed since the last call. Behind each command, also those
/// of a transaction or a script, so that the next one meets none of them.
void retire_all_closed(engine_state& s);
inline void retire_closed(engine_state& s) {
    if (!s.clients.closed.empty()) [[unlikely]]
        retire_all_closed(s);
}

}  // namespace eddy::cache
