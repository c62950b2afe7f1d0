// A session that is closed takes no more output.
#include "cache/clients/closing.hpp"

#include "cache/clients/session_extras.hpp"

namespace eddy::cache {
namespace {

bool runs_late_script(const client_session& who) noexcept {
    return who.blocked && who.extras->waits_for == wait_kind::script;
}

}  // namespace

client_class class_of(const client_session& who) noexcept {
    if ((who.special & client_session::replica) != 0) return client_class::replica;
    return (who.special & client_session::subscriber) != 0 ? client_class::pubsub
                                                           : client_class::normal;
}

void kill(engine_state& s, client_session& who) {
    if (who.killed) return;
    who.closing = true;
    const bool is_executing = &who == s.clients.executing;
    if (who.extras) {
        if (!who.extras->has_served) who.extras->outbox = byte_buffer();
        if (is_executing) s.clients.own_pushes = byte_buffer();
    }
    if (is_executing || runs_late_script(who)) return;
    who.killed = true;
    // The engine's own are in no list.
    if (who.linked()) {
        who.unlink();
        --s.data.env.counters.sessions;
        s.clients.closed.push_back(who);
        s.clients.has_effects = true;
    }
    who.close_now();
}

}  // namespace eddy::cache
