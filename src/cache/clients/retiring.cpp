// Retirement of closed sessions: no command that comes later finds them among subscribers, waiting
// clients, watchers, replicas or readers of keys.
#include "cache/clients/closing.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/execution.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/replication.hpp"

namespace eddy::cache {

void retire(engine_state& s, client_session& who) {
    if (s.hooked != nullptr) s.hooked->forget(who);
    stop_monitoring(s.clients, who);
    forget_tracked(s, who);
    if (who.extras == nullptr) return;
    forget_wait(s, who);
    if (s.replication.replicating != nullptr) s.replication.replicating->forget(who);
    unsubscribe_all(s.clients, who);
    drop_transaction(s, who);
}

void retire_all_closed(engine_state& s) {
    while (!s.clients.closed.empty()) retire(s, s.clients.closed.pop_front());
}

}  // namespace eddy::cache
