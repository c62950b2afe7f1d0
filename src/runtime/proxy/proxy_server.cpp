// Workers, counts and live changes of a proxy.
#include "runtime/proxy/proxy_server.hpp"

#include "runtime/proxy/proxy_worker.hpp"

#include <cstddef>
#include <utility>

namespace eddy::runtime::proxy {
namespace {

constexpr metric backend_connections{
    .name = "backend_connections",
    .kind = metric_kind::gauge,
    .help = "Connections to the backend, including those being opened.",
    .labels = {"backend"}};
constexpr metric backend_connections_total{.name = "backend_connections_total",
                                           .kind = metric_kind::counter,
                                           .help = "Connections that the backend accepted.",
                                           .labels = {"backend"}};
constexpr metric backend_failures_total{.name = "backend_failures_total",
                                        .kind = metric_kind::counter,
                                        .help = "Connections that the backend did not accept.",
                                        .labels = {"backend"}};
constexpr metric backend_bytes_sent_total{.name = "backend_bytes_sent_total",
                                          .kind = metric_kind::counter,
                                          .help = "Bytes sent to the backend.",
                                          .labels = {"backend"}};
constexpr metric backend_bytes_received_total{.name = "backend_bytes_received_total",
                                              .kind = metric_kind::counter,
                                              .help = "Bytes received from the backend.",
                                              .labels = {"backend"}};

/// The worker of the loop that accepts, and those of the threads.
std::size_t worker_count(const config& chosen) noexcept { return chosen.threads + 1; }

}  // namespace

// A client gets a backend after its handshake, so that one without a certificate never reaches it.
// A refusal in words would be taken for the backend's.
proxy_server::proxy_server(creation from)
    : served_runtime({.what = "the proxy", .thread_prefix = "px-", .listens_in_parts = true},
                     std::move(from)) {}

const config& proxy_server::chosen() const noexcept { return static_cast<const config&>(common()); }

outcome<served_runtime::config_pointer> proxy_server::read(const settings& chosen) const {
    return shared(read_config(chosen));
}

/// One for the backends that the options name now.
std::shared_ptr<balancer> proxy_server::balance() {
    backends_ = update_backends(backends_, chosen().backends, worker_count(chosen()));
    return std::make_shared<balancer>(chosen().balance, backends_);
}

serving::loop_pool::factory proxy_server::worker_factory() {
    return [by = shared_config(), backends = balance()](const serving::worker_place& place) {
        return std::make_unique<proxy_worker>(place, static_cast<const config&>(*by), backends);
    };
}

void proxy_server::apply_live() {
    pool().post_to_all([by = shared_config(), backends = balance()](serving::loop_worker& of) {
        static_cast<proxy_worker&>(of).apply(static_cast<const config&>(*by), backends);
    });
}

void proxy_server::add_counts(metrics& to) const {
    const auto add = [&](const metric& of, auto value_of) {
        labelled<serving::tally> values(of);
        for (const auto& each : backends_) values.at({each->name()}) = value_of(*each);
        to.add_samples(values);
    };
    const auto add_sum = [&](const metric& of, serving::tally backend_counters::* which) {
        add(of, [which](const backend& each) { return each.sum(which); });
    };
    add(backend_connections, [](const backend& each) { return each.open(); });
    add_sum(backend_connections_total, &backend_counters::connections);
    add_sum(backend_failures_total, &backend_counters::failures);
    add_sum(backend_bytes_sent_total, &backend_counters::bytes_sent);
    add_sum(backend_bytes_received_total, &backend_counters::bytes_received);
}

}  // namespace eddy::runtime::proxy
