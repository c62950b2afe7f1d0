// Admission of a cache's clients: TCP keepalive, and protected mode's rejections.
#include <eddy/base/assert.hpp>
#include <eddy/net/tcp.hpp>

#include "runtime/cache/cache_server.hpp"
#include "runtime/cache/config/protection.hpp"

#include <chrono>
#include <memory>
#include <new>
#include <utility>

namespace eddy::runtime::cache {

/// TCP keepalive for silent peers, as in Redis. A peer that is gone already is found when it is
/// read from.
void cache_server::watch_peer(const stream& accepted) const noexcept {
    const std::chrono::seconds idle = run_->context.settings.tcp_keepalive;
    if (idle.count() == 0) return;
    static_cast<void>(tcp::apply(accepted, tcp::keepalive_after(idle)));
}

/// Serves a client, or rejects it. The address of one that a proxy announces is known later: see
/// cache_worker::take().
void cache_server::admit(stream accepted, serving::served_listener& from) {
    EDDY_ASSERT(run_ != nullptr);
    watch_peer(accepted);
    const bool is_announced = from.preamble_of(accepted) == serving::preamble::proxy_header;
    if (!is_announced && is_rejected(run_->engine, run_->context.settings, accepted.peer())) {
        ++counted().connections_refused;
        if (from.finish != nullptr)
            reject_after_handshake(std::move(accepted), from);
        else
            reject(std::move(accepted));
    } else {
        pool().assign(std::move(accepted), from);
    }
}

/// Rejects a client by protected mode, with the reason.
void cache_server::reject(stream accepted) {
    serving::loop_worker& here = *pool().here();
    auto rejected = std::make_unique<rejected_client>(here.clients(), std::move(accepted),
                                                      here.tasks().source());
    cancel_source& cancel = rejected->cancel;
    here.tasks().spawn(runtime::cache::reject(std::move(rejected)).under(cancel));
}

/// The same with TLS. Rejected clients must not use up the budget of handshakes.
void cache_server::reject_after_handshake(stream accepted, serving::served_listener& from) {
    serving::handshake_budget& budget = pool().limits().handshakes;
    if (!budget.may_reject()) return;
    acceptor().tasks().spawn(reject_later(std::move(accepted), from, budget.begin()));
}

/// The same after the handshake, which has little time.
task<void> cache_server::reject_later(stream accepted, serving::served_listener& from,
                                      serving::handshake under_way) {
    try {
        result<stream> peer =
            co_await from.finish(std::move(accepted), serving::handshake_budget::pressed_timeout);
        under_way.reset();
        if (peer) reject(std::move(*peer));
    } catch (const std::bad_alloc&) {
        pool().here()->note_no_memory();
    }
}

}  // namespace eddy::runtime::cache
