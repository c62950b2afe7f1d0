// Serving the clients of one loop, each with a tunnel to a backend.
#include "runtime/proxy/proxy_worker.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/timeout.hpp>

#include "base/files/descriptors.hpp"
#include "net/network.hpp"
#include "proxy/connect.hpp"
#include "serving/connections.hpp"
#include "serving/proxy_header.hpp"
#include "wire/proxy_protocol/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::proxy {

using eddy::proxy::backend_counters;
using eddy::proxy::backend_use;
using eddy::proxy::balancer;

namespace {

/// Time before a client without a master tries the last one again: it may have been restarted.
constexpr duration master_retry_pause = std::chrono::milliseconds(500);

}  // namespace

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
    const eddy::proxy::backend* trying = nullptr;  // while a connection to it is being made

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
    clients_.for_each([](serving::connection& each) {
        auto& its = static_cast<client&>(each);
        if (its.to && its.to->is_abandoned()) its.close();
        if (its.trying != nullptr && its.trying->is_abandoned()) its.interrupt();
    });
    changed_.set();
    changed_.reset();
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

/// Connects the client to the first backend that takes it; to the next master, if that is known in
/// time. False: none did, or the client was closed meanwhile.
task<bool> proxy_worker::open(client& c, std::shared_ptr<balancer> backends) {
    if (!descriptors::has_room(descriptors::use::client)) {
        ++counted_.errors;
        note_failure(unreached_, "a client was closed: ",
                     "no descriptor is free for its backend; raise the limit of open files (ulimit "
                     "-n) or lower --max-connections");
        co_return false;
    }
    const bool is_for_all = backends == routes_.others;
    const time_point end = loop::current().after(config_.connect_timeout);
    for (;;) {
        const bool is_open = co_await try_each(c, backends);
        if (is_open || c.cancel.requested()) co_return is_open;
        if (!is_for_all || !routes_.follows_masters) break;
        const bool is_in_time = co_await next_routes(backends, end);
        if (c.cancel.requested()) co_return false;
        if (!is_in_time) break;
        backends = routes_.others;
    }
    ++counted_.errors;
    std::string_view why = "no backend took a connection";
    if (backends->all().empty())
        why = is_for_all && routes_.follows_masters ? "no master is known"
                                                    : "no route is for its name";
    note_failure(unreached_, "a client was closed: ", why);
    co_return false;
}

/// Awaits other routes than the tried ones, or a pause before these are tried again. False at the
/// end.
task<bool> proxy_worker::next_routes(std::shared_ptr<balancer> tried, time_point end) {
    loop& here = loop::current();
    if (here.now() >= end) co_return false;
    if (routes_.others != tried) co_return true;
    const time_point again = std::min(here.after(master_retry_pause), end);
    const result<> changed = co_await with_deadline(again, changed_.wait());
    co_return changed.has_value() || changed.error() == errc::timed_out;
}

/// Connects the client to one backend after the other. False: none took it.
task<bool> proxy_worker::try_each(client& c, std::shared_ptr<balancer> backends) {
    eddy::proxy::selection_key key;
    if (backends->hashes()) key.hash = eddy::proxy::hash_key(host_text(c.socket.peer()));
    balancer::selection order = backends->select(key);
    loop& here = loop::current();
    for (;;) {
        backend_use next = order.next(here.now());
        if (!next) break;
        backend_counters& counted = next->counted_by(index_);
        c.trying = &*next;
        result<stream> made =
            co_await eddy::proxy::connect(*next, config_.connect_timeout, config_.rules.keepalive);
        c.trying = nullptr;
        const bool is_interrupted = c.take_interruption(tasks_.source());
        // It was the master when this began.
        if (next->is_abandoned() && (made || is_interrupted)) continue;
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
    co_return false;
}

}  // namespace eddy::runtime::proxy
