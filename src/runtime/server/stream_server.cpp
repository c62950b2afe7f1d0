// Start, stop and live changes of a stream server.
#include "runtime/server/stream_server.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "runtime/clock.hpp"
#include "runtime/serving/listeners.hpp"
#include "runtime/serving/threads.hpp"
#include "runtime/serving/tls_options.hpp"
#include "transport/serving/acceptor.hpp"
#include "transport/serving/loop_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::server {
namespace {

/// How long `eddy send` waits for slow readers under --slow-reader wait.
constexpr duration send_patience = std::chrono::seconds(5);

constexpr std::string_view refusal_line = "error: the server is full; try again later\n";

worker& as_worker(serving::loop_worker& of) noexcept { return static_cast<worker&>(of); }

/// For each worker those of --http; none without. Of several loops each has its own.
using all_files = std::vector<std::optional<eddy::http::static_files>>;

outcome<std::shared_ptr<all_files>> open_files(const config& chosen, std::size_t count) {
    auto made = std::make_shared<all_files>(count);
    if (chosen.http_root.empty()) return made;
    for (auto& each : *made) {
        auto opened = eddy::http::static_files::open(chosen.http_root, {});
        if (!opened)
            return refuse(400, fmt::format("--http {} cannot be served: {}", chosen.http_root,
                                           opened.error().message()));
        each.emplace(std::move(*opened));
    }
    return made;
}

constexpr metric websocket_clients{
    .name = "websocket_clients", .kind = metric_kind::gauge, .help = "WebSocket clients."};
constexpr metric http_requests_total{.name = "http_requests_total",
                                     .kind = metric_kind::counter,
                                     .help = "HTTP requests, including those for a WebSocket."};

/// Awaits a worker's task on its loop.
template <class T>
task<result<T>> on(executor where, task<result<T>> work) {
    if (where.is_current()) co_return co_await std::move(work);
    co_return co_await resume_on(std::move(where), std::move(work));
}

}  // namespace

struct stream_server::running {
    running(listeners opened, journal& events, line_log& log, const config& chosen)
        : listening(std::move(opened)),
          context(events, log, chosen.threads, chosen.max_queue),
          pool(events),
          accepting(pool) {}

    /// Noted as long as it lives, so that stop() can cancel and await it.
    class send_under_way {
    public:
        send_under_way(running& of, cancel_source& its) : of_(of), its_(its) {
            of.sends.push_back(&its);
        }
        ~send_under_way() {
            std::erase(of_.sends, &its_);
            of_.send_ended.set();
        }
        send_under_way(const send_under_way&) = delete;
        send_under_way& operator=(const send_under_way&) = delete;

    private:
        running& of_;
        cancel_source& its_;
    };

    listeners listening;
    endpoint address;
    server_context context;
    serving::loop_pool pool;
    serving::acceptor accepting;
    scope collecting;  // for the log
    scope logging;
    std::vector<cancel_source*> sends;
    event send_ended;
    bool is_stopping = false;
};

stream_server::stream_server(creation from)
    : name_(std::move(from.name)),
      options_(std::move(from.options)),
      host_(std::move(from.host)),
      events_(*from.events),
      log_(events_, &counted_.dropped) {}

stream_server::~stream_server() = default;

worker& stream_server::here() const noexcept { return as_worker(*running_->pool.here()); }

task<outcome<>> stream_server::start() {
    if (running_) co_return refuse(409, name_ + " runs already");
    outcome<config> read = read_config(options_);
    if (!read) co_return std::unexpected(read.error());
    config_ = std::move(*read);

    if (config_.is_tls_by_option) {
        if (auto good = check_tls_readable(config_.where.tls); !good) co_return good;
    }
    // One for each worker; that of the loop that accepts may serve nothing.
    auto files = open_files(config_, config_.threads + 1);
    if (!files) co_return std::unexpected(files.error());
    if (!config_.log_file.empty()) {
        if (outcome<> opened = log_.open(config_.log_file); !opened) co_return opened;
    }
    auto opened = open_listeners({config_.where, std::nullopt, config_.shared, config_.rules},
                                 host_.get(), config_.threads);
    if (!opened) {
        log_.close();
        co_return std::unexpected(opened.error());
    }
    running_ = std::make_unique<running>(std::move(*opened), events_, log_, config_);
    running_->address = running_->listening.first.socket.local();
    server_context& context = running_->context;
    context.has_log = log_.is_open();
    context.pace.set(config_.global_rate_limit);
    serving::loop_pool& pool = running_->pool;
    if (auto started = start_threads(pool, config_.threads, "sv-" + name_, "the server"); !started)
        co_return co_await give_up(std::move(started));
    auto made = co_await make_workers(pool, [&context, chosen = config_, files = std::move(*files)](
                                                const serving::worker_place& place) mutable {
        return std::make_unique<worker>(place, context, chosen, std::move(files->at(place.index)));
    });
    if (!made) co_return co_await give_up(std::move(made));
    if (pool.assigned_workers() > 0)
        events_.write(fmt::format("{} threads serve its clients", pool.assigned_workers()));
    if (log_.is_open()) {
        running_->logging.spawn(log_.run());
        running_->collecting.spawn(context.log.run());
    }
    // A line would corrupt what raw clients talk.
    const std::string_view refusal =
        config_.messages == framing::line ? refusal_line : std::string_view();
    running_->accepting.open(running_->listening.first, refusal, is_secure(config_.where));
    if (running_->listening.shared) running_->accepting.open(*running_->listening.shared, {}, true);
    co_return outcome<>();
}

/// Leaves nothing of a start that has failed.
task<outcome<>> stream_server::give_up(outcome<> why) {
    running_->listening.close();
    co_await running_->pool.drain(duration::zero());
    co_await end_workers();
    log_.close();
    running_.reset();
    co_return why;
}

task<void> stream_server::stop(duration drain) {
    if (!running_) co_return;
    const time_point begun = loop::current().now();
    running_->is_stopping = true;
    co_await running_->accepting.close();
    running_->listening.close();
    // First what came before goes out on each loop, since that is for the clients of all.
    for (const auto& each : running_->pool.others())
        static_cast<void>(co_await on(each.where, as_worker(*each.its).flush_now()));
    co_await running_->pool.drain(drain - std::min(drain, loop::current().now() - begun));
    const std::vector<cancel_source*> sends = running_->sends;
    for (cancel_source* const each : sends) each->request();
    while (!running_->sends.empty()) {
        running_->send_ended.reset();
        // Also a stop that is cancelled waits for them.
        if (!co_await running_->send_ended.wait()) co_await loop::current().yield();
    }
    co_await end_workers();
    running_->collecting.cancel();
    co_await running_->collecting.join();
    counted_.dropped += running_->context.log.flush();
    log_.finish();
    co_await running_->logging.join();
    log_.close();
    running_.reset();
}

task<void> stream_server::end_workers() {
    co_await running_->pool.end([this](serving::loop_worker& last) {
        counted_.add(last.counted());
        counted_.connections_now = 0;
        latency_.merge(as_worker(last).latency());
        http_requests_ += as_worker(last).http_requests();
    });
}

metrics stream_server::count() const {
    metrics copy(counted_);
    auto latency = std::make_shared<histogram>(latency_);
    std::uint64_t requests = http_requests_;
    std::uint64_t web_clients = 0;
    if (running_) {
        const auto add = [&](serving::loop_worker& of) {
            copy.add(of.counted());
            latency->merge(as_worker(of).latency());
            requests += as_worker(of).http_requests();
        };
        web_clients = running_->context.web_clients.load(std::memory_order_relaxed);
        if (running_->pool.here() != nullptr) add(*running_->pool.here());
        for (const auto& each : running_->pool.others()) add(*each.its);
    }
    copy.latency = std::move(latency);
    copy.add_sample(websocket_clients, static_cast<double>(web_clients));
    copy.add_sample(http_requests_total, static_cast<double>(requests));
    return copy;
}

endpoint stream_server::local() const { return running_ ? running_->address : endpoint(); }

task<outcome<>> stream_server::check_restart(settings next, bool /*discards_data*/) {
    outcome<config> read = read_config(next);
    if (!read) co_return std::unexpected(read.error());
    if (!read->log_file.empty()) {
        if (outcome<> good = line_log::check(read->log_file); !good) co_return good;
    }
    if (read->is_tls_by_option) {
        if (auto good = check_tls_readable(read->where.tls); !good) co_return good;
    }
    if (auto files = open_files(*read, 1); !files) co_return std::unexpected(files.error());
    const std::vector<endpoint> own =
        running_ ? running_->listening.addresses() : std::vector<endpoint>{local()};
    co_return try_addresses({std::move(read->where), std::nullopt, std::move(read->shared)}, own,
                            host_.get());
}

task<outcome<bool>> stream_server::reread() {
    // A log file that was moved away is opened anew by a restart alone.
    if (!running_ || !config_.log_file.empty()) co_return false;
    if (config_.is_tls_by_option) {
        if (auto good = check_tls_readable(config_.where.tls); !good)
            co_return std::unexpected(good.error());
    }
    co_return renew_certificates(running_->listening, {config_.where, std::nullopt});
}

outcome<> stream_server::apply(const settings& changed) {
    outcome<config> read = read_config(changed);
    if (!read) return std::unexpected(read.error());
    const bool has_new_pace = read->rate_limit != config_.rate_limit ||
                              read->global_rate_limit != config_.global_rate_limit;
    config_.max_connections = read->max_connections;
    config_.rate_limit = read->rate_limit;
    config_.global_rate_limit = read->global_rate_limit;
    config_.idle_timeout = read->idle_timeout;
    config_.origins = std::move(read->origins);
    config_.rules = std::move(read->rules);
    options_ = changed;
    if (!running_) return {};
    running_->listening.set_rules(config_.rules);
    if (has_new_pace) running_->context.pace.set(config_.global_rate_limit);
    running_->pool.post_to_all(
        [chosen = config_](serving::loop_worker& of) { as_worker(of).apply(chosen); });
    return {};
}

task<outcome<std::uint64_t>> stream_server::send(std::string message) {
    if (auto ok = may_send(config_, name_, running_ != nullptr); !ok)
        co_return std::unexpected(ok.error());
    if (running_->is_stopping) co_return refuse(409, fmt::format("{} was stopped", name_));
    if (config_.messages == framing::line && !message.ends_with('\n')) message += '\n';
    if (message.size() > config_.max_queue / 2) {
        co_return refuse(400, fmt::format("the message has {} bytes; {} takes at most {}, half of "
                                          "--max-queue",
                                          message.size(), name_, config_.max_queue / 2));
    }
    running& its = *running_;
    cancel_source until_stop(co_await current_source());
    const running::send_under_way noted(its, until_stop);
    const auto count = static_cast<std::uint64_t>(std::count(message.begin(), message.end(), '\n'));
    byte_buffer bytes;
    bytes.append(message);
    shared_messages what{std::make_shared<const byte_buffer>(std::move(bytes)),
                         std::max<std::uint64_t>(count, 1)};
    co_return co_await send_to_all(std::move(what)).under(until_stop);
}

/// On the loop of each worker that has clients. stop() awaits the end.
task<outcome<std::uint64_t>> stream_server::send_to_all(shared_messages what) {
    struct destination {
        executor where;
        worker* its;
    };
    std::vector<destination> all;
    for (const auto& each : running_->pool.others())
        all.push_back({each.where, &as_worker(*each.its)});
    if (all.empty()) all.push_back({executor::current(), &here()});
    const time_point arrived = precise_now();
    const time_point until = loop::current().now() + send_patience;
    const bool waits = config_.slow_reader == slow_reader_policy::wait;
    // While a reader is slow no client gets it.
    for (const destination& each : all) {
        if (!waits) break;
        const result<> ready = co_await on(each.where, each.its->wait_for_readers(until));
        if (running_->is_stopping) co_return refuse(409, fmt::format("{} was stopped", name_));
        if (!ready) co_return too_slow(0);
    }
    std::uint64_t reached = 0;
    bool is_whole = true;
    for (const destination& each : all) {
        // Counted once.
        const std::optional<time_point> first =
            &each == all.data() ? std::optional(arrived) : std::nullopt;
        const auto took = co_await on(each.where, each.its->send_here(what, first, until));
        if (took)
            reached += *took;
        else
            is_whole = false;
    }
    if (!is_whole) {
        if (running_->is_stopping) co_return refuse(409, fmt::format("{} was stopped", name_));
        co_return too_slow(reached);
    }
    co_return reached;
}

std::unexpected<problem> stream_server::too_slow(std::uint64_t reached) const {
    const std::string some = reached == 0 ? "" : fmt::format("; {} clients have got it", reached);
    return refuse(503, fmt::format("a client of {} reads too slowly and the others wait for it "
                                   "(--slow-reader wait); try again later{}",
                                   name_, some));
}

}  // namespace eddy::runtime::server
