// Sums over all clients.
#include "cache/clients/buffer_bytes.hpp"

#include "cache/clients/client_memory.hpp"
#include "cache/clients/closing.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/replication/replication.hpp"

namespace eddy::cache {

buffer_bytes measure_buffers(engine_state& s) {
    buffer_bytes found;
    if (s.replication.replicating != nullptr) {
        const replication& its = *s.replication.replicating;
        found.backlog = its.kept().end() - its.kept().begin();
        for (const replica* const each : its.replicas()) found.replicas += client_bytes(each->who);
    }
    s.clients.sessions.for_each([&found](const client_session& each) {
        if (class_of(each) != client_class::replica) found.normal += client_bytes(each);
    });
    if (s.persistence.appending != nullptr)
        found.append = s.persistence.appending->appended - s.persistence.appending->written;
    return found;
}

}  // namespace eddy::cache
