// Start, stop and live changes of a proxy.
#include "runtime/proxy/proxy_server.hpp"

#include "runtime/proxy/worker.hpp"
#include "runtime/serving/listeners.hpp"
#include "runtime/serving/threads.hpp"
#include "runtime/serving/tls_options.hpp"
#include "transport/serving/acceptor.hpp"
#include "transport/serving/loop_pool.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

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

outcome<> check_tls(const config& chosen) {
    if (!chosen.is_tls_by_option) return {};
    return check_tls_readable(chosen.where.tls);
}

/// Listeners in parts, as for several threads: handshakes of TLS and shared memory end before a
/// client gets a backend, so that one without a certificate never reaches it.
outcome<listeners> open_in_parts(const config& chosen, host* of) {
    constexpr std::size_t in_parts = 2;
    return open_listeners({chosen.where, std::nullopt, chosen.shared, chosen.rules}, of, in_parts);
}

/// The worker of the loop that accepts, and those of the threads.
std::size_t worker_count(const config& chosen) noexcept { return chosen.threads + 1; }

}  // namespace

struct proxy_server::running {
    running(listeners opened, journal& events)
        : listening(std::move(opened)), pool(events), accepting(pool) {}

    listeners listening;
    endpoint address;
    serving::loop_pool pool;
    serving::acceptor accepting;
};

proxy_server::proxy_server(creation from)
    : name_(std::move(from.name)),
      options_(std::move(from.options)),
      host_(std::move(from.host)),
      events_(*from.events) {}

proxy_server::~proxy_server() = default;

/// One for the backends that the options name now.
std::shared_ptr<balancer> proxy_server::balance() {
    backends_ = update_backends(backends_, config_.backends, worker_count(config_));
    return std::make_shared<balancer>(config_.balance, backends_);
}

task<outcome<>> proxy_server::start() {
    if (running_) co_return refuse(409, name_ + " runs already");
    outcome<config> read = read_config(options_);
    if (!read) co_return std::unexpected(read.error());
    config_ = std::move(*read);
    if (auto good = check_tls(config_); !good) co_return good;
    auto opened = open_in_parts(config_, host_.get());
    if (!opened) co_return std::unexpected(opened.error());
    running_ = std::make_unique<running>(std::move(*opened), events_);
    running_->address = running_->listening.first.socket.local();
    serving::loop_pool& pool = running_->pool;
    if (auto started = start_threads(pool, config_.threads, "px-" + name_, "the proxy"); !started)
        co_return co_await give_up(std::move(started));
    auto made = co_await make_workers(
        pool, [chosen = config_, backends = balance()](const serving::worker_place& place) {
            return std::make_unique<worker>(place, chosen, backends);
        });
    if (!made) co_return co_await give_up(std::move(made));
    if (pool.assigned_workers() > 0)
        events_.write(fmt::format("{} threads serve its clients", pool.assigned_workers()));
    // A refusal in words would be taken for the backend's.
    running_->accepting.open(running_->listening.first, {}, is_secure(config_.where));
    if (running_->listening.shared) running_->accepting.open(*running_->listening.shared, {}, true);
    co_return outcome<>();
}

/// Leaves nothing of a start that has failed.
task<outcome<>> proxy_server::give_up(outcome<> why) {
    running_->listening.close();
    co_await running_->pool.drain(duration::zero());
    co_await end_workers();
    running_.reset();
    co_return why;
}

task<void> proxy_server::stop(duration drain) {
    if (!running_) co_return;
    co_await running_->accepting.close();
    running_->listening.close();
    co_await running_->pool.drain(drain);
    co_await end_workers();
    running_.reset();
}

task<void> proxy_server::end_workers() {
    co_await running_->pool.end([this](serving::loop_worker& last) {
        counted_.add(last.counted());
        counted_.connections_now = 0;
    });
}

metrics proxy_server::count() const {
    metrics copy(counted_);
    if (running_) {
        if (running_->pool.here() != nullptr) copy.add(running_->pool.here()->counted());
        for (const auto& each : running_->pool.others()) copy.add(each.its->counted());
    }
    const auto add = [&](const metric& of, auto value_of) {
        labelled<tally> values(of);
        for (const auto& each : backends_) values.at({each->name()}) = value_of(*each);
        copy.add_samples(values);
    };
    const auto add_sum = [&](const metric& of, tally backend_counters::* which) {
        add(of, [which](const backend& each) { return each.sum(which); });
    };
    add(backend_connections, [](const backend& each) { return each.open(); });
    add_sum(backend_connections_total, &backend_counters::connections);
    add_sum(backend_failures_total, &backend_counters::failures);
    add_sum(backend_bytes_sent_total, &backend_counters::bytes_sent);
    add_sum(backend_bytes_received_total, &backend_counters::bytes_received);
    return copy;
}

endpoint proxy_server::local() const { return running_ ? running_->address : endpoint(); }

task<outcome<>> proxy_server::check_restart(settings next, bool /*discards_data*/) {
    outcome<config> read = read_config(next);
    if (!read) co_return std::unexpected(read.error());
    if (auto good = check_tls(*read); !good) co_return good;
    const std::vector<endpoint> own =
        running_ ? running_->listening.addresses() : std::vector<endpoint>{local()};
    co_return try_addresses({std::move(read->where), std::nullopt, std::move(read->shared)}, own,
                            host_.get());
}

task<outcome<bool>> proxy_server::reread() {
    if (!running_) co_return false;
    if (auto good = check_tls(config_); !good) co_return std::unexpected(good.error());
    auto renewed = renew_certificates(running_->listening, {config_.where, std::nullopt});
    if (!renewed) co_return std::unexpected(renewed.error());
    co_return true;
}

outcome<> proxy_server::apply(const settings& changed) {
    outcome<config> read = read_config(changed);
    if (!read) return std::unexpected(read.error());
    config_.backends = std::move(read->backends);
    config_.balance = read->balance;
    config_.connect_timeout = read->connect_timeout;
    config_.idle_timeout = read->idle_timeout;
    config_.max_connections = read->max_connections;
    config_.rules = std::move(read->rules);
    options_ = changed;
    if (!running_) return {};
    running_->listening.set_rules(config_.rules);
    running_->pool.post_to_all([chosen = config_, backends = balance()](serving::loop_worker& of) {
        static_cast<worker&>(of).apply(chosen, backends);
    });
    return {};
}

}  // namespace eddy::runtime::proxy
