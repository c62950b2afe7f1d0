// Serving the clients of one loop, each with a tunnel to a backend.
#include "runtime/proxy/proxy_worker.hpp"

#include <eddy/base/assert.hpp>

#include "base/files/descriptors.hpp"
#include "net/network.hpp"
#include "proxy/connect.hpp"
#include "serving/connections.hpp"
#include "serving/proxy_header.hpp"
#include "wire/proxy_protocol/writer.hpp"

#include <fmt/format.h>

#include <new>
#include <string>
#include <utility>

namespace eddy::runtime::proxy {

using eddy::proxy::backend_counters;
using eddy::proxy::backend_use;
using eddy::proxy::balancer;

/// A client and its connection to a backend; it lives in the coroutine that serves it.
class proxy_worker::client final : public serving::connection, public eddy::proxy::tunnel_owner {
public:
    client(proxy_worker& of, stream accepted, serving::connection_slot slot)
        : connection(of.clients_, std::move(accepted), of.tasks_.source(), std::move(slot)),
          of_(of) {}
    ~client() {
        // Without a tunnel it has got no answer.
        if (!to) socket.abort();
    }

    time_point touch() noexcept override {
        connection::touch();
        return touched_at();
    }
    bool may_linger() noexcept override {
        enter(serving::activity::resting);
        return !draining();
    }
    void note_no_memory() noexcept override { of_.note_no_memory(); }

    backend_use to;
    stream back;

private:
    proxy_worker& of_;
};

proxy_worker::proxy_worker(const serving::worker_place& place, const config& chosen,
                           tunnel_routes routes)
    : loop_worker(place),
      events_(place.events),
      index_(place.index),
      config_(chosen),
      routes_(std::move(routes)) {
    clients_.set_limits(limits());
}

proxy_worker::~proxy_worker() = default;

serving::connections::limits proxy_worker::limits() const noexcept {
    serving::connections::limits chosen;
    chosen.most = config_.max_connections;
    chosen.idle = config_.idle_timeout;
    return chosen;
}

void proxy_worker::apply(const config& chosen, tunnel_routes routes) {
    copy_live(option_rows(), chosen, config_);
    routes_ = std::move(routes);
    clients_.set_limits(limits());
}

void proxy_worker::take(stream accepted, serving::connection_slot slot) {
    auto c = std::make_unique<client>(*this, std::move(accepted), std::move(slot));
    cancel_source& cancel = c->cancel;
    tasks_.spawn(serve(std::move(c)).under(cancel));
}

task<void> proxy_worker::drain(duration limit) {
    co_await loop_worker::drain(limit);
    report_rest(unreached_);
    report_rest(failed_backends_);
}

/// A client's life. While bytes may flow it is never at rest: a stop waits for its end, since the
/// meaning of its silence depends on the protocol.
task<void> proxy_worker::serve(std::unique_ptr<client> c) {
    try {
        std::shared_ptr<balancer> to = routes_.others;
        byte_buffer received;
        if (routes_.by_name) to = co_await choose_by_name(*c, received);
        if (!to) co_return;
        c->enter(serving::activity::working);
        const bool is_open = co_await open(*c, std::move(to));
        if (!is_open) co_return;
        c->touch();
        c->enter(serving::activity::reading);
        backend_counters& counted = c->to->counted_by(index_);
        eddy::proxy::tunnel through(
            c->socket, c->back, *c, buffers_,
            {counted_.bytes_in, counted.bytes_sent, counted.bytes_received, counted_.bytes_out});
        byte_buffer begun = announcement(*c);
        begun.append(received.bytes());
        received = {};
        co_await through.run(c->cancel, std::move(begun));
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

/// Why a backend took no connection. A runtime has a name beside its URI.
std::string proxy_worker::explained(const eddy::proxy::backend& of, std::error_code error) {
    const std::string uri = of.where().to_string();
    const std::string why = transport::explain(uri, error);
    return of.name() == uri ? why : of.name() + ": " + why;
}

/// The backends of a TLS client; null for one whose first message failed, which is counted. What
/// was received of it stays in `received`, to be passed on.
task<std::shared_ptr<balancer>> proxy_worker::choose_by_name(client& c, byte_buffer& received) {
    // They may change meanwhile.
    const tunnel_routes routes = routes_;
    EDDY_ASSERT(routes.by_name && routes.others);
    c.enter(serving::activity::working);
    const auto hello = co_await eddy::proxy::read_hello(c.socket, received);
    c.touch();
    counted_.bytes_in += received.size();
    if (hello) {
        const eddy::proxy::tls_route* const to = routes.by_name->find(*hello);
        co_return to != nullptr ? to->to : routes.others;
    }
    // One that has said nothing is a health check.
    const bool is_silent = received.empty() && hello.error() == errc::end_of_stream;
    if (is_silent || c.cancel.requested()) co_return nullptr;
    ++counted_.errors;
    note_failure(unreached_, "a client was closed: ",
                 "its TLS ClientHello was not read: " + hello.error().message());
    co_return nullptr;
}

/// PROXY header of the client for its backend; empty: none is sent.
byte_buffer proxy_worker::announcement(const client& c) const {
    byte_buffer made;
    if (config_.announces)
        proxy_protocol::write_header(made, *config_.announces,
                                     serving::addresses_between(c.socket.peer(), c.socket.local()));
    return made;
}

/// Connects the client to the first backend that takes it. False: none did, or the client was
/// closed meanwhile.
task<bool> proxy_worker::open(client& c, std::shared_ptr<balancer> backends) {
    if (!descriptors::has_room(descriptors::use::client)) {
        ++counted_.errors;
        note_failure(unreached_, "a client was closed: ",
                     "no descriptor is free for its backend; raise the limit of open files (ulimit "
                     "-n) or lower --max-connections");
        co_return false;
    }
    eddy::proxy::selection_key key;
    if (backends->hashes()) key.hash = eddy::proxy::hash_key(host_text(c.socket.peer()));
    balancer::selection order = backends->select(key);
    loop& here = loop::current();
    for (;;) {
        backend_use next = order.next(here.now());
        if (!next) break;
        backend_counters& counted = next->counted_by(index_);
        result<stream> made =
            co_await eddy::proxy::connect(*next, config_.connect_timeout, config_.rules.keepalive);
        if (made) {
            ++counted.connections;
            if (backends->note_success(*next, here.now()))
                events_.write(fmt::format("backend {} is up again", next->name()));
            c.to = std::move(next);
            c.back = std::move(*made);
            co_return true;
        }
        if (c.cancel.requested()) co_return false;
        ++counted.failures;
        if (backends->note_failure(*next, here.now()))
            events_.write(fmt::format("backend {} is down: it took no connections", next->name()));
        note_failure(failed_backends_, "a backend failed: ", explained(*next, made.error()));
    }
    ++counted_.errors;
    note_failure(
        unreached_, "a client was closed: ",
        backends->all().empty() ? "no route is for its name" : "no backend took a connection");
    co_return false;
}

}  // namespace eddy::runtime::proxy
