// Eviction of clients (maxmemory-clients). A pass over all clients costs some nanoseconds per
// client, and happens only when the limit may be near.
#include "cache/clients/client_memory.hpp"

#include "cache/clients/closing.hpp"
#include "cache/clients/session_extras.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

bool may_be_closed(const client_session& who) noexcept {
    return !who.no_evict && !who.closing &&
           (who.special & (client_session::replica | client_session::master)) == 0;
}

}  // namespace

std::size_t client_bytes(const client_session& who) noexcept {
    const client_session::buffers held = who.held();
    std::size_t all = sizeof who + held.input;
    if (who.introduced) {
        const client_session::introduction& its = *who.introduced;
        all += sizeof its + its.name.size() + its.library_name.size() + its.library_version.size();
    }
    const session_extras* const extras = who.extras.get();
    if (extras == nullptr) return all + held.output;
    all += std::max(held.output, extras->unsent);
    all += sizeof *extras + extras->outbox.size() + extras->queued.bytes() +
           extras->waiting.bytes() + extras->watched.bytes() + extras->channels.bytes() +
           extras->patterns.bytes() + extras->shard_channels.bytes() + extras->keys.bytes() +
           extras->prefixes.bytes();
    return all;
}

void client_memory::look(engine_state& s) {
    grown_ = 0;
    std::size_t all = 0;
    std::vector<std::pair<std::size_t, client_session*>> candidates;
    s.clients.sessions.for_each([&](client_session& each) {
        if (!may_be_closed(each)) return;
        const std::size_t its = client_bytes(each);
        all += its;
        // Eviction of a client without buffers would free nothing.
        if (its > sizeof each + sizeof(session_extras)) candidates.emplace_back(its, &each);
    });
    if (all <= limit_) return;
    std::ranges::sort(candidates, std::ranges::greater{});
    for (const auto& [its, who] : candidates) {
        ++s.data.env.counters.evicted_clients;
        kill(s, *who);
        all -= its;
        if (all <= limit_) return;
    }
}

void configure_client_memory(engine_state& s) {
    const engine_options& o = s.settings.options;
    std::size_t limit = o.clients.max_memory;
    if (o.clients.max_memory_percent != 0)
        limit = o.max_memory / 100 * o.clients.max_memory_percent;
    if (limit == 0) {
        s.clients.memory.reset();
    } else {
        s.clients.memory =
            std::make_unique<client_memory>(std::max(limit, client_memory::least_limit));
        // The usage may be above the new limit already.
        s.clients.memory->grown(s, limit);
    }
}

}  // namespace eddy::cache
