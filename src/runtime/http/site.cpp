// Start, stop and live changes of a site.
#include "runtime/http/site.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "runtime/serving/listeners.hpp"
#include "runtime/serving/threads.hpp"
#include "runtime/serving/tls_options.hpp"
#include "transport/serving/acceptor.hpp"
#include "transport/serving/loop_pool.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace eddy::runtime::http {
namespace {

using eddy::http::static_files;

constexpr metric requests_total{.name = "requests_total",
                                .kind = metric_kind::counter,
                                .help = "Responses by the class of their status.",
                                .labels = {"code"}};
constexpr metric request_seconds{
    .name = "request_seconds",
    .kind = metric_kind::histogram,
    .help = "Time from the end of a request's head to the end of its response."};

worker& as_worker(serving::loop_worker& of) noexcept { return static_cast<worker&>(of); }

/// Shared, since what makes the workers is copied.
using all_files = std::shared_ptr<std::vector<static_files>>;

outcome<all_files> open_files(const config& chosen, std::size_t count) {
    auto all = std::make_shared<std::vector<static_files>>();
    while (all->size() < count) {
        auto opened = static_files::open(chosen.root, chosen.files);
        if (!opened)
            return refuse(400, fmt::format("--root {} cannot be served: {}", chosen.root,
                                           opened.error().message()));
        all->push_back(std::move(*opened));
    }
    return all;
}

outcome<> check_tls(const config& chosen) {
    if (!chosen.is_tls_by_option) return {};
    return check_tls_readable(chosen.where.tls);
}

}  // namespace

struct site::running {
    running(listeners opened, journal& events, line_log& log, const config& chosen)
        : listening(std::move(opened)),
          context{events, {log, chosen.threads > 1}, log.is_open()},
          pool(events),
          accepting(pool) {}

    listeners listening;
    endpoint address;
    site_context context;
    serving::loop_pool pool;
    serving::acceptor accepting;
    scope collecting;  // for the log
    scope logging;
};

site::site(creation from)
    : name_(std::move(from.name)),
      options_(std::move(from.options)),
      host_(std::move(from.host)),
      events_(*from.events),
      log_(events_, &counted_.dropped) {}

site::~site() = default;

task<outcome<>> site::start() {
    if (running_) co_return refuse(409, name_ + " runs already");
    outcome<config> read = read_config(options_);
    if (!read) co_return std::unexpected(read.error());
    config_ = std::move(*read);
    if (auto good = check_tls(config_); !good) co_return good;
    // One for each worker; that of the loop that accepts may serve nothing.
    auto files = open_files(config_, config_.threads + 1);
    if (!files) co_return std::unexpected(files.error());
    if (!config_.access_log.empty()) {
        if (outcome<> opened = log_.open(config_.access_log); !opened) co_return opened;
    }
    auto opened = open_listeners({config_.where, std::nullopt, config_.shared, config_.rules},
                                 host_.get(), config_.threads);
    if (!opened) {
        log_.close();
        co_return std::unexpected(opened.error());
    }
    running_ = std::make_unique<running>(std::move(*opened), events_, log_, config_);
    running_->address = running_->listening.first.socket.local();
    site_context& context = running_->context;
    serving::loop_pool& pool = running_->pool;
    if (auto started = start_threads(pool, config_.threads, "ht-" + name_, "the site"); !started)
        co_return co_await give_up(std::move(started));
    auto made = co_await make_workers(pool, [&context, chosen = config_, files = std::move(*files)](
                                                const serving::worker_place& place) {
        return std::make_unique<worker>(place, context, chosen, std::move(files->at(place.index)));
    });
    if (!made) co_return co_await give_up(std::move(made));
    if (pool.assigned_workers() > 0)
        events_.write(fmt::format("{} threads serve its clients", pool.assigned_workers()));
    if (log_.is_open()) {
        running_->logging.spawn(log_.run());
        running_->collecting.spawn(context.log.run());
    }
    running_->accepting.open(running_->listening.first, worker::refusal, is_secure(config_.where));
    if (running_->listening.shared) running_->accepting.open(*running_->listening.shared, {}, true);
    co_return outcome<>();
}

/// Leaves nothing of a start that has failed.
task<outcome<>> site::give_up(outcome<> why) {
    running_->listening.close();
    co_await running_->pool.drain(duration::zero());
    co_await end_workers();
    log_.close();
    running_.reset();
    co_return why;
}

task<void> site::stop(duration drain) {
    if (!running_) co_return;
    co_await running_->accepting.close();
    running_->listening.close();
    co_await running_->pool.drain(drain);
    co_await end_workers();
    running_->collecting.cancel();
    co_await running_->collecting.join();
    counted_.dropped += running_->context.log.flush();
    log_.finish();
    co_await running_->logging.join();
    log_.close();
    running_.reset();
}

task<void> site::end_workers() {
    co_await running_->pool.end([this](serving::loop_worker& last) {
        counted_.add(last.counted());
        counted_.connections_now = 0;
        const status_classes& classes = as_worker(last).by_status();
        for (std::size_t i = 0; i < classes.size(); ++i) by_status_[i] += classes[i];
        latency_.merge(as_worker(last).latency());
    });
}

metrics site::count() const {
    metrics copy(counted_);
    status_classes by_status = by_status_;
    auto latency = std::make_shared<histogram>(latency_);
    if (running_) {
        const auto add = [&](serving::loop_worker& of) {
            copy.add(of.counted());
            const status_classes& classes = as_worker(of).by_status();
            for (std::size_t i = 0; i < classes.size(); ++i) by_status[i] += classes[i];
            latency->merge(as_worker(of).latency());
        };
        if (running_->pool.here() != nullptr) add(*running_->pool.here());
        for (const auto& each : running_->pool.others()) add(*each.its);
    }
    labelled<tally> requests(requests_total);
    for (std::size_t i = 0; i < by_status.size(); ++i)
        requests.at({fmt::format("{}xx", i + 1)}) = by_status[i];
    copy.add_samples(requests);
    copy.add_sample(request_seconds, latency);
    copy.latency = std::move(latency);
    return copy;
}

endpoint site::local() const { return running_ ? running_->address : endpoint(); }

task<outcome<>> site::check_restart(settings next, bool /*discards_data*/) {
    outcome<config> read = read_config(next);
    if (!read) co_return std::unexpected(read.error());
    if (auto good = check_tls(*read); !good) co_return good;
    if (auto files = open_files(*read, 1); !files) co_return std::unexpected(files.error());
    if (!read->access_log.empty()) {
        if (outcome<> good = line_log::check(read->access_log); !good) co_return good;
    }
    const std::vector<endpoint> own =
        running_ ? running_->listening.addresses() : std::vector<endpoint>{local()};
    co_return try_addresses({std::move(read->where), std::nullopt, std::move(read->shared)}, own,
                            host_.get());
}

task<outcome<bool>> site::reread() {
    if (!running_) co_return false;
    // All that may fail comes before what has an effect.
    auto files = open_files(config_, config_.threads + 1);
    if (!files) co_return std::unexpected(files.error());
    if (auto good = check_tls(config_); !good) co_return std::unexpected(good.error());
    if (log_.is_open()) {
        if (auto opened = log_.reopen(); !opened) co_return std::unexpected(opened.error());
    }
    auto renewed = renew_certificates(running_->listening, {config_.where, std::nullopt});
    if (!renewed) co_return std::unexpected(renewed.error());
    running_->pool.post_to_all([files = std::move(*files)](serving::loop_worker& of) {
        auto& its = as_worker(of);
        its.replace_files(std::move(files->at(its.index())));
    });
    co_return true;
}

outcome<> site::apply(const settings& changed) {
    outcome<config> read = read_config(changed);
    if (!read) return std::unexpected(read.error());
    config_.max_connections = read->max_connections;
    config_.compress = read->compress;
    config_.rules = std::move(read->rules);
    options_ = changed;
    if (!running_) return {};
    running_->listening.set_rules(config_.rules);
    running_->pool.post_to_all(
        [chosen = config_](serving::loop_worker& of) { as_worker(of).apply(chosen); });
    return {};
}

}  // namespace eddy::runtime::http
