// Accept loops.
#include "serving/acceptor.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/net/unix.hpp>

#include "net/peer_process.hpp"
#include "transport/failed_handoffs.hpp"

#include <new>
#include <optional>
#include <utility>

namespace eddy::serving {
namespace {

/// While it lives, a worker notes the failed handoffs of a listener.
class failed_handoff_notes {
public:
    failed_handoff_notes(listener& of, loop_worker& to)
        : listener_(of),
          has_handoffs_(transport::observe_failed_handoffs(
              of, [&to](std::string_view reason) { to.note_failed_handoff(reason); })) {}
    ~failed_handoff_notes() {
        static_cast<void>(transport::observe_failed_handoffs(listener_, nullptr));
    }
    failed_handoff_notes(const failed_handoff_notes&) = delete;
    failed_handoff_notes& operator=(const failed_handoff_notes&) = delete;

    /// True if other programs hand over the listener's clients.
    bool has_handoffs() const noexcept { return has_handoffs_; }

private:
    listener& listener_;
    bool has_handoffs_;
};

/// True if the peer's user may connect; otherwise the worker notes the user.
bool is_admitted(const stream& accepted, const accept_rules& rules, loop_worker& notes) {
    if (!rules.users) return true;
    const auto peer = unix_socket::peer_credentials(accepted);
    if (peer && unix_socket::is_allowed(peer->uid, *rules.users)) return true;
    notes.note_rejected_user(peer ? std::optional(peer->uid) : std::nullopt);
    return false;
}

}  // namespace

void set_rules(served_listener& of, accept_rules rules) noexcept {
    of.rules = std::move(rules);
    // Accepted sockets inherit the option. The simulator has no socket, and a Unix socket ignores
    // it.
    if (const int socket = of.socket.native_handle(); socket >= 0)
        static_cast<void>(tcp::apply(socket, tcp::keepalive_after(of.rules.keepalive)));
}

void acceptor::open(served_listener& from, std::string_view refusal, bool is_secure) {
    tasks_.spawn(accept_all(from, is_secure ? std::string_view() : refusal));
}

task<void> acceptor::close() {
    tasks_.cancel();
    rejected_.cancel();
    co_await tasks_.join();
    co_await rejected_.join();
}

task<void> acceptor::accept_all(served_listener& from, std::string_view refusal) {
    loop_worker& here = *pool_.here();
    const failed_handoff_notes notes(from.socket, here);
    if (notes.has_handoffs()) pool_.limits().has_shared_sockets = true;
    for (;;) {
        // Clients that send nothing must not hold all slots.
        bool is_crowded = from.has_handshakes() && pool_.limits().handshakes.is_spent();
        try {
            if (!is_crowded) {
                result<stream> peer =
                    co_await here.clients().accept(from.socket, refusal, rejected_);
                if (!peer) co_return;
                if (!is_admitted(*peer, from.rules, here)) continue;
                // Handed-over sockets have inherited nothing.
                if (notes.has_handoffs() && from.rules.keepalive.count() > 0)
                    static_cast<void>(
                        tcp::apply(*peer, tcp::keepalive_after(from.rules.keepalive)));
                if (admission_ != nullptr)
                    admission_->admit(std::move(*peer), from);
                else
                    pool_.assign(std::move(*peer), from);
            }
        } catch (const std::bad_alloc&) {
            here.note_no_memory();
            is_crowded = true;
        }
        if (is_crowded && !co_await loop::current().sleep_for(crowded_pause)) co_return;
    }
}

}  // namespace eddy::serving
