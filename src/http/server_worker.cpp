// Serving the HTTP connections of one loop.
#include "http/server_worker.hpp"

#include <eddy/base/assert.hpp>

#include "http/resting_session.hpp"

#include <new>
#include <utility>

namespace eddy::http {

using serving::activity;
using serving::connection;
using serving::connections;

/// A connection; it lives in the coroutine that serves it.
class server_worker::client final : public connection, public session_observer {
public:
    client(server_worker& of, stream accepted, serving::connection_slot slot)
        : connection(of.clients_, std::move(accepted), of.tasks_.source(), std::move(slot)),
          worker_(of) {}

    void enter(session_state now) noexcept override {
        touch();
        switch (now) {
            case session_state::idle: return connection::enter(activity::resting);
            // Its protocol has limits of its own.
            case session_state::taken_over: return connection::enter(activity::listening);
            // The time for a request is the session's to limit.
            case session_state::receiving:
            case session_state::working: return connection::enter(activity::working);
        }
    }
    void note(const exchange_record& what) override { worker_.note(socket, what); }
    bool is_ending() const noexcept override { return all_.draining(); }

private:
    server_worker& worker_;
};

server_worker::server_worker(const serving::worker_place& place, request_handler* handler,
                             const session_limits& limits, std::uint64_t max_connections)
    : loop_worker(place), handler_(handler), limits_(limits) {
    set_max_connections(max_connections);
}

void server_worker::set_max_connections(std::uint64_t most) noexcept {
    connections::limits chosen;
    chosen.most = most;
    chosen.idle = limits_.idle_time == duration::max() ? duration::zero() : limits_.idle_time;
    clients_.set_limits(chosen);
}

void server_worker::take(stream accepted, serving::connection_slot slot) {
    EDDY_ASSERT(handler_ != nullptr);
    auto c = std::make_unique<client>(*this, std::move(accepted), std::move(slot));
    cancel_source& cancel = c->cancel;
    tasks_.spawn(serve(std::move(c)).under(cancel));
}

task<void> server_worker::serve(std::unique_ptr<client> c) {
    try {
        // This frame is what a resting connection costs, beside its stream: it is kept small.
        lease received;
        while (co_await serve_until_rest(c->socket, *handler_, limits_, *c, rest_after, received)) {
            // Its idle time is up to connections::limits.
            if (!take(co_await c->socket.read(), received)) co_return;
        }
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

bool server_worker::take(result<lease> from, lease& into) noexcept {
    if (from) into = std::move(*from);
    return from.has_value();
}

void server_worker::note(const stream& /*client*/, const exchange_record& what) {
    ++counted_.messages_in;
    ++counted_.messages_out;
    counted_.bytes_in += what.bytes_in;
    counted_.bytes_out += what.bytes_out;
    if (!what.is_whole) ++counted_.errors;
}

}  // namespace eddy::http
