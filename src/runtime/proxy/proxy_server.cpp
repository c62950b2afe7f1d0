// Workers, counts and live changes of a proxy.
#include "runtime/proxy/proxy_server.hpp"

#include <eddy/base/assert.hpp>

#include "base/rollback.hpp"
#include "runtime/proxy/backend_lack.hpp"
#include "runtime/proxy/backend_metrics.hpp"
#include "runtime/scripting/script_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace eddy::runtime::proxy {

using eddy::proxy::backend_counters;
using eddy::proxy::backend_list;
using eddy::proxy::balanced_backend;
using eddy::proxy::balancer;

namespace {

constexpr metric backend_requests_total{.name = "backend_requests_total",
                                        .kind = metric_kind::counter,
                                        .help = "HTTP requests that were sent to the backend.",
                                        .labels = {"backend"}};
constexpr metric backend_retries_total{
    .name = "backend_retries_total",
    .kind = metric_kind::counter,
    .help = "HTTP requests that failed at the backend and were repeated.",
    .labels = {"backend"}};
constexpr metric backend_failed_answers_total{
    .name = "backend_failed_answers_total",
    .kind = metric_kind::counter,
    .help = "HTTP requests to which the backend sent no whole, valid response in time.",
    .labels = {"backend"}};
constexpr metric backend_server_errors_total{.name = "backend_server_errors_total",
                                             .kind = metric_kind::counter,
                                             .help = "Responses 500 to 599 of the backend.",
                                             .labels = {"backend"}};
constexpr metric backend_response_seconds{
    .name = "backend_response_seconds",
    .kind = metric_kind::histogram,
    .help = "Time from a request to the head of the backend's response.",
    .labels = {"backend"}};

constexpr metric buffered_bytes{
    .name = "buffered_bytes",
    .kind = metric_kind::gauge,
    .help = "Content of HTTP requests and responses that waits in buffers."};

/// The worker of the loop that accepts, and those of the threads.
std::size_t worker_count(const config& chosen) noexcept { return chosen.threads + 1; }

const config& own(const serving_config& of) noexcept { return static_cast<const config&>(of); }

const served_requests& requests_of(const serving::loop_worker& of) noexcept {
    return static_cast<const http_proxy_worker&>(of).requests();
}

const script_tallies* script_of(const serving::loop_worker& of) noexcept {
    return static_cast<const http_proxy_worker&>(of).script_counts();
}

}  // namespace

// A client gets a backend after its handshake, so that one without a certificate never reaches it.
proxy_server::proxy_server(creation from)
    : served_runtime({.what = "the proxy", .thread_prefix = "px-", .listens_in_parts = true},
                     std::move(from)),
      log_(events(), counted().dropped) {}

const config& proxy_server::chosen() const noexcept { return own(common()); }

outcome<served_runtime::config_pointer> proxy_server::read(const settings& chosen) const {
    return shared(read_config(chosen));
}

// A client of TCP would take a refusal in words for the backend's.
std::string_view proxy_server::refusal() const {
    return is_http() ? eddy::http::server_worker::refusal : std::string_view();
}

outcome<> proxy_server::prepare() {
    auto pages = load_error_pages(chosen().error_pages);
    if (!pages) return std::unexpected(std::move(pages.error()));
    pages_ = std::move(*pages);
    if (auto opened = log_.open(chosen().access_log, chosen().threads > 1); !opened) return opened;
    written_.emplace(log_.lines(), log_.is_open());
    return {};
}

task<outcome<>> proxy_server::check(config_pointer next, bool /*discards_data*/) {
    const auto pages = load_error_pages(own(*next).error_pages);
    if (!pages) co_return std::unexpected(pages.error());
    if (own(*next).script)
        if (auto good = co_await try_proxy_script_in_slices(own(*next).script); !good)
            co_return good;
    if (own(*next).access_log.empty()) co_return outcome<>();
    co_return line_log::check(own(*next).access_log);
}

/// Names that no runtime has: a mistyped one would be silent.
void proxy_server::note_absent(const std::vector<backend_source>& sources) {
    for (const backend_source& each : sources) {
        if (!each.is_runtime()) continue;
        const auto served = daemon()->resolve(each.name);
        if (served && !served->empty())
            absent_.erase(each.name);
        else if (absent_.insert(each.name).second)
            events().write(fmt::format("backend {}: no runtime of that name serves", each.name));
    }
}

/// One for what these sources are now. A backend of several routes is one.
std::shared_ptr<balancer> proxy_server::balance(const std::vector<backend_source>& sources,
                                                std::string flag) {
    note_absent(sources);
    const bool has_tls_routes = !is_http() && !chosen().routes.empty();
    const auto wanted =
        resolve(sources, *daemon(), name(), known(), chosen().drained, chosen().is_local_first,
                has_tls_routes ? transport::scheme::tls : transport::scheme::tcp);
    backend_list present = before_;
    present.insert(present.end(), backends_.begin(), backends_.end());
    backend_list made = update_backends(present, wanted, worker_count(chosen()));
    for (const balanced_backend& each : made) {
        const bool is_new = std::ranges::none_of(
            backends_, [&](const balanced_backend& b) { return b.its == each.its; });
        if (is_new) backends_.push_back(each);
    }
    auto balanced = std::make_shared<balancer>(chosen().balance, std::move(made));
    if (!sources.empty()) balancers_.push_back({std::move(flag), balanced});
    return balanced;
}

/// Before the balancers are made anew.
void proxy_server::forget_backends() {
    before_.insert(before_.end(), backends_.begin(), backends_.end());
    backends_.clear();
    balancers_.clear();
}

/// After that: clients of backends that are wanted no more stay, or are closed.
void proxy_server::forget_former_backends() {
    for (const balanced_backend& each : before_) {
        const bool is_wanted = std::ranges::any_of(
            backends_, [&](const balanced_backend& now) { return now.its == each.its; });
        if (!is_wanted && !each.keeps_clients) each.its->abandon();
    }
    before_.clear();
}

/// True for an address at which this proxy accepts clients.
bool proxy_server::is_own_address(const transport::address& where) const {
    transport::address own = chosen().where;
    own.port = local().port();
    return is_itself(where, own);
}

std::vector<backend_source> proxy_server::all_sources() const {
    std::vector<backend_source> all = chosen().all_backends();
    for (const route_source& each : chosen().routes)
        all.insert(all.end(), each.backends.begin(), each.backends.end());
    return all;
}

http_plan proxy_server::plan() {
    forget_backends();
    std::vector<eddy::proxy::route> routes;
    for (const route_source& each : chosen().routes) {
        routes.push_back(each.by);
        routes.back().to =
            balance(each.backends, fmt::format("--route {}{}", each.by.host, each.by.path));
    }
    for (const route_source& each : chosen().redirects) routes.push_back(each.by);
    if (!chosen().backends.empty()) {
        eddy::proxy::route all;
        all.to = balance(chosen().all_backends(), "--backend");
        routes.push_back(std::move(all));
    }
    http_plan made;
    if (chosen().script) {
        made.named = std::make_shared<const eddy::proxy::named_routes>(name_routes(routes));
        made.identity = {.name = name(), .port = local().port(), .daemon = daemon()};
    }
    forget_former_backends();
    made.rules = std::shared_ptr<const eddy::proxy::forwarding_rules>(
        std::static_pointer_cast<const config>(shared_config()), &chosen().forwarding);
    made.routes = std::make_shared<eddy::proxy::route_table>(std::move(routes));
    made.pages = pages_;
    made.budget = budget_;
    return made;
}

/// Routes by host and path, and backends by their names and by the names in the options.
eddy::proxy::named_routes proxy_server::name_routes(
    const std::vector<eddy::proxy::route>& routes) const {
    eddy::proxy::named_routes made;
    for (const eddy::proxy::route& each : routes) made.try_emplace(each.host + each.path, each);
    const auto add = [&](const std::string& by, backend_list its) {
        eddy::proxy::route to;
        to.to = std::make_shared<balancer>(chosen().balance, std::move(its));
        made.try_emplace(by, std::move(to));
    };
    for (const balanced_backend& each : backends_) add(each.its->name(), {each});
    for (const backend_source& each : all_sources()) {
        if (made.contains(each.name)) continue;
        const auto wanted =
            resolve({each}, *daemon(), name(), known(), chosen().drained, chosen().is_local_first);
        add(each.name, update_backends(backends_, wanted, worker_count(chosen())));
    }
    return made;
}

tunnel_routes proxy_server::tunnel_plan() {
    forget_backends();
    std::vector<eddy::proxy::tls_route> routes;
    for (const route_source& each : chosen().routes)
        routes.push_back(
            {each.by.host, each.alpn,
             balance(each.backends, fmt::format("--route {}{}{}", each.by.host,
                                                each.alpn.empty() ? "" : "/", each.alpn))});
    tunnel_routes made;
    if (!routes.empty())
        made.by_name = std::make_shared<eddy::proxy::tls_route_table>(std::move(routes));
    made.others = balance(chosen().all_backends(), "--backend");
    made.follows_masters = !chosen().sentinels.all.empty();
    forget_former_backends();
    EDDY_ASSERT(made.others->all().size() <= backends_.size());
    return made;
}

serving::loop_pool::factory proxy_server::worker_factory() {
    if (is_http())
        return [&log = *written_, by = shared_config(),
                p = plan()](const serving::worker_place& place) {
            return std::make_unique<http_proxy_worker>(place, log, own(*by), p);
        };
    return [by = shared_config(), routes = tunnel_plan()](const serving::worker_place& place) {
        return std::make_unique<proxy_worker>(place, own(*by), routes);
    };
}

task<outcome<>> proxy_server::begin() {
    log_.begin();
    is_stopping_ = false;
    checks_.emplace(static_cast<eddy::proxy::health_observer&>(*this));
    checks_->set(chosen().health, backends_);
    watches_.emplace(
        *daemon(), events(), [this] { update_workers(); },
        [this](const transport::address& where) { return is_own_address(where); });
    // The first changes come at once.
    watches_->follow(all_sources(), chosen().name_servers, chosen().sentinels);
    // Before the first client, for a short time.
    co_await watches_->wait();
    if (!is_http() || !chosen().script) co_return outcome<>();
    co_return co_await on_each_worker([](serving::loop_worker& of) {
        return static_cast<http_proxy_worker&>(of).start_script();
    });
}

task<outcome<>> proxy_server::reload_script() {
    if (!is_running()) co_return refuse(409, fmt::format("{} is not running", name()));
    if (!chosen().script) co_return has_no_script(name());
    auto read = co_await read_script_in_background("--lua", chosen().script.path, max_script_file);
    if (!read) co_return std::unexpected(read.error());
    if (!is_running() || is_stopping_) co_return refuse(409, fmt::format("{} was stopped", name()));
    const auto its = [](serving::loop_worker& of) -> http_proxy_worker& {
        return static_cast<http_proxy_worker&>(of);
    };
    co_return co_await on_each_worker_together(
        [&](serving::loop_worker& of) { return its(of).prepare_script(*read); },
        [its](serving::loop_worker& of) { its(of).adopt_script(); },
        [its](serving::loop_worker& of) { its(of).discard_script(); });
}

task<void> proxy_server::begin_stop() {
    is_stopping_ = true;
    co_return;
}

void proxy_server::update_workers() {
    EDDY_ASSERT(is_running() && checks_);
    const rollback check_new_ones([this] { checks_->set(chosen().health, backends_); });
    if (is_http()) {
        pool().post_to_all([by = shared_config(), p = plan()](serving::loop_worker& of) {
            static_cast<http_proxy_worker&>(of).apply(own(*by), p);
        });
        return;
    }
    pool().post_to_all([by = shared_config(), routes = tunnel_plan()](serving::loop_worker& of) {
        static_cast<proxy_worker&>(of).apply(own(*by), routes);
    });
}

void proxy_server::apply_live() {
    watches_->follow(all_sources(), chosen().name_servers, chosen().sentinels);
    if (!watches_->is_waiting()) update_workers();
}

void proxy_server::retire(const serving::loop_worker& last) {
    if (!is_http()) return;
    requests_.add(requests_of(last));
    if (const script_tallies* const its = script_of(last)) {
        script_counts_.add(*its);
        script_counts_.forget_gauges();
    }
}

task<void> proxy_server::clients_ended(bool /*has_started*/) {
    if (watches_) co_await watches_->end();
    watches_.reset();
    if (checks_) co_await checks_->end();
    checks_.reset();
}

task<void> proxy_server::end() {
    co_await log_.close();
    written_.reset();
}

void proxy_server::note_down(const eddy::proxy::backend& which, std::string_view why) noexcept try {
    events().write(fmt::format("backend {} is down: {}", which.name(), why));
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): its state shows it
}

void proxy_server::note_up(const eddy::proxy::backend& which) noexcept try {
    events().write(fmt::format("backend {} is up again", which.name()));
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): its state shows it
}

task<outcome<bool>> proxy_server::reread_files() {
    auto pages = load_error_pages(chosen().error_pages);
    if (!pages) co_return std::unexpected(pages.error());
    if (chosen().script)
        if (auto loaded = co_await reload_script(); !loaded)
            co_return std::unexpected(loaded.error());
    if (auto opened = log_.reopen(); !opened) co_return std::unexpected(opened.error());
    pages_ = std::move(*pages);
    if (is_http()) update_workers();
    co_return true;
}

std::string proxy_server::lack() const {
    for (const route_balancer& each : balancers_) {
        const std::string why = lack_of(each.its->all(), each.its->rules().ejection);
        if (!why.empty()) return fmt::format("no backend of {} serves: {}", each.flag, why);
    }
    return is_http() ? script_counts().fault(name()) : std::string();
}

std::string proxy_server::detail() const {
    return watches_ ? watches_->masters_of(chosen().all_backends()) : std::string();
}

void proxy_server::add_counts(metrics& to) const {
    add_backend_metrics(to, backends_);
    if (!is_running() || !is_http()) return;
    const auto add_sum = [&](const metric& of, serving::tally backend_counters::* which) {
        labelled<serving::tally> values(of);
        for (const balanced_backend& each : backends_)
            values.at({each.its->name()}) = each.its->sum(which);
        to.add_samples(values);
    };
    add_sum(backend_requests_total, &backend_counters::requests);
    add_sum(backend_retries_total, &backend_counters::retries);
    add_sum(backend_failed_answers_total, &backend_counters::failed_answers);
    add_sum(backend_server_errors_total, &backend_counters::server_errors);
    labelled<histogram> latencies(backend_response_seconds);
    for (const balanced_backend& each : backends_)
        latencies.at({each.its->name()}) = each.its->latency();
    to.add_samples(latencies);
    to.add_sample(buffered_bytes, static_cast<double>(budget_->taken()));
    request_totals all = requests_;
    for_each_worker([&](const serving::loop_worker& of) { all.add(requests_of(of)); });
    all.add_to(to);
    if (chosen().script) script_counts().add_samples_to(to);
}

/// Sum of all threads, and of starts before this one.
script_tallies proxy_server::script_counts() const {
    script_tallies all = script_counts_;
    for_each_worker([&](const serving::loop_worker& of) {
        if (const script_tallies* const its = script_of(of)) all.add(*its);
    });
    return all;
}

}  // namespace eddy::runtime::proxy
