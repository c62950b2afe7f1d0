// Metrics of backends.
#include "runtime/proxy/backend_metrics.hpp"

namespace eddy::runtime::proxy {

using eddy::proxy::backend;
using eddy::proxy::backend_counters;
using eddy::proxy::balanced_backend;

namespace {

static_assert(eddy::proxy::max_backends <= max_label_sets);

constexpr metric backend_connections{
    .name = "backend_connections",
    .kind = metric_kind::gauge,
    .help = "Connections to the backend, including those being opened; of HTTP requests under way.",
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
constexpr metric backend_up{
    .name = "backend_up",
    .kind = metric_kind::gauge,
    .help = "1 while the backend takes clients, 0 while it is down, ejected or drained.",
    .labels = {"backend"}};
constexpr metric backend_drained{.name = "backend_drained",
                                 .kind = metric_kind::gauge,
                                 .help = "1 while the backend is drained on request.",
                                 .labels = {"backend"}};
constexpr metric backend_ejections_total{
    .name = "backend_ejections_total",
    .kind = metric_kind::counter,
    .help = "Times that the backend got no clients for a while, as those before had failed.",
    .labels = {"backend"}};
}  // namespace

void add_backend_metrics(metrics& to, const eddy::proxy::backend_list& of) {
    const auto add = [&](const metric& what, auto value_of) {
        labelled<serving::tally> values(what);
        for (const balanced_backend& each : of) values.at({each.its->name()}) = value_of(*each.its);
        to.add_samples(values);
    };
    // Beyond max_label_sets all further backends are one.
    const auto add_sum = [&](const metric& what, serving::tally backend_counters::* which) {
        labelled<serving::tally> values(what);
        for (const balanced_backend& each : of)
            values.at({each.its->name()}) += each.its->sum(which);
        to.add_samples(values);
    };
    add(backend_up, [](const backend& each) {
        return std::uint64_t{each.state() == eddy::proxy::backend_state::up};
    });
    add(backend_drained, [](const backend& each) { return std::uint64_t{each.is_drained()}; });
    add(backend_connections, [](const backend& each) { return each.open(); });
    add_sum(backend_connections_total, &backend_counters::connections);
    add_sum(backend_failures_total, &backend_counters::failures);
    add(backend_ejections_total, [](const backend& each) { return each.ejections(); });
    add_sum(backend_bytes_sent_total, &backend_counters::bytes_sent);
    add_sum(backend_bytes_received_total, &backend_counters::bytes_received);
}

}  // namespace eddy::runtime::proxy
