// A session that is closed takes no more output.
#include "cache/clients/closing.hpp"

#include "cache/clients/session_extras.hpp"

namespace eddy::cache {

client_class class_of(const session& who) noexcept {
    if ((who.special & session::replica) != 0) return client_class::replica;
    return (who.special & session::subscriber) != 0 ? client_class::pubsub : client_class::normal;
}

void kill(client_state& s, session& who) {
    if (who.closing) return;
    who.closing = true;
    if (who.extras) {
        who.extras->outbox = byte_buffer();
        if (&who == s.executing) s.own_pushes = byte_buffer();
    }
    if (&who != s.executing) who.close_now();
}

}  // namespace eddy::cache
