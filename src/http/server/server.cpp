// Start, stop and run of servers.
#include <eddy/http/server.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/signals.hpp>
#include <eddy/transport/transport.hpp>

#include "http/alpn.hpp"
#include "http/server/server_worker.hpp"
#include "serving/acceptor.hpp"
#include "serving/loop_pool.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

namespace eddy::http {
namespace {

/// The journal of a library's server is the log.
class log_journal final : public serving::journal {
public:
    void write(std::string_view line) override { log_warn("http", line); }
};

struct open_listener {
    serving::served_listener its;
    transport::address where;
};

/// Listens there. With several threads handshakes are made on the loops that connections are
/// assigned to.
result<open_listener> open(const std::string& uri, std::size_t threads) {
    auto where = transport::parse(uri);
    if (!where) return fail(where.error());
    accept_by_alpn(*where);
    if (threads < 2 && where->kind != transport::scheme::tls) {
        auto opened = transport::listen(*where);
        if (!opened) return fail(opened.error());
        return open_listener{{.socket = std::move(*opened)}, *where};
    }
    auto opened = transport::listen_in_parts(*where);
    if (!opened) return fail(opened.error());
    return open_listener{{.socket = std::move(opened->below),
                          .finish = std::move(opened->finish),
                          .renew = std::move(opened->renew)},
                         *where};
}

/// A handler that dies behind its worker, which may use it until then.
struct handler_owner {
    std::shared_ptr<request_handler> handler;
};

class owning_worker final : private handler_owner, public server_worker {
public:
    owning_worker(const serving::worker_place& place, std::shared_ptr<request_handler> of,
                  const server_options& options)
        : handler_owner{std::move(of)},
          server_worker(place, handler.get(), options.limits, options.max_connections) {}
};

/// The index of the loop that a worker serves on; none for the one that only accepts.
std::optional<std::size_t> loop_of(const serving::worker_place& place) noexcept {
    if (place.count == 1) return 0;
    if (place.index == 0) return std::nullopt;
    return place.index - 1;
}

task<int> run_until_signal(server site, duration stop_time, signal_set signals) {
    const auto started = co_await site.start();
    if (!started) co_return 1;
    for (const endpoint& each : site.addresses()) log_info("http", "serves on " + each.to_string());
    auto signal = co_await signals.next();
    for (; signal && *signal == SIGHUP; signal = co_await signals.next())
        if (site.renew_certificates()) log_info("http", "serves its certificates as they are now");
    co_await site.stop(stop_time);
    co_return signal ? 0 : 1;
}

}  // namespace

struct server::running {
    log_journal events;
    std::vector<open_listener> listening;
    std::vector<endpoint> addresses;
    serving::loop_pool pool{events};
    serving::acceptor accepting{pool};
    /// Shared with the coroutines that wait for it.
    std::shared_ptr<event> stopped = std::make_shared<event>();
    bool is_stopping = false;
};

server::server(request_handler& handler, server_options options)
    : make_([of = &handler](std::size_t) {
          return std::shared_ptr<request_handler>(std::shared_ptr<void>(), of);
      }),
      options_(std::move(options)) {}

server::server(handler_factory make, server_options options)
    : make_(std::move(make)), options_(std::move(options)) {}

server::server(server&& other) noexcept = default;
server& server::operator=(server&& other) noexcept = default;
server::~server() {
    EDDY_PRECONDITION(!running_, "a server was destroyed while it runs: co_await its stop() first");
}

task<result<>> server::start() {
    EDDY_PRECONDITION(!running_, "a second start() of a server that runs");
    EDDY_PRECONDITION(options_.threads >= 1 && options_.threads <= serving::max_threads,
                      "server_options::threads is out of its range");
    auto made = std::make_unique<running>();
    for (const std::string& uri : options_.listen) {
        auto opened = open(uri, options_.threads);
        if (!opened) {
            log_error("http", transport::explain(uri, opened.error()));
            co_return fail(opened.error());
        }
        made->addresses.push_back(opened->its.socket.local());
        made->listening.push_back(std::move(*opened));
    }
    const auto threads = made->pool.start_threads(options_.threads, "http");
    if (!threads) {
        log_error("http", "no threads for the server: " + threads.error().message());
        co_return threads;
    }
    running_ = std::move(made);
    result<> ready;
    std::exception_ptr failure;
    try {
        ready = co_await make_workers();
        if (ready) open_to_clients();
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure || !ready) co_await stop(duration::zero());
    if (failure) std::rethrow_exception(failure);
    co_return ready;
}

task<result<>> server::make_workers() {
    return running_->pool.make_workers([this](const serving::worker_place& place) {
        const auto loop = loop_of(place);
        return std::make_unique<owning_worker>(place, loop ? make_(*loop) : nullptr, options_);
    });
}

void server::open_to_clients() {
    for (open_listener& each : running_->listening) {
        serving::set_rules(each.its, {.keepalive = options_.keepalive});
        running_->accepting.open(each.its, server_worker::refusal,
                                 each.where.kind == transport::scheme::tls);
    }
}

std::span<const endpoint> server::addresses() const noexcept {
    return running_ ? std::span<const endpoint>(running_->addresses) : std::span<const endpoint>();
}

std::uint64_t server::connections() const noexcept {
    if (!running_ || running_->pool.here() == nullptr) return 0;
    std::uint64_t all = running_->pool.here()->counted().connections_now;
    for (const auto& each : running_->pool.others()) all += each.its->counted().connections_now;
    return all;
}

task<void> server::stop(duration limit) {
    if (!running_) co_return;
    cancel_source own;
    co_await stop_uncancelled(limit).under(own);
}

task<void> server::stop_uncancelled(duration limit) {
    const std::shared_ptr<event> stopped = running_->stopped;
    if (std::exchange(running_->is_stopping, true)) {
        static_cast<void>(co_await stopped->wait());
        co_return;
    }
    co_await running_->accepting.close();
    for (open_listener& each : running_->listening) each.its.socket.close();
    co_await running_->pool.drain(limit);
    co_await running_->pool.end([](serving::loop_worker&) {});
    running_.reset();
    stopped->set();
}

task<result<>> server::run() {
    const auto started = co_await start();
    if (!started) co_return started;
    const std::shared_ptr<event> stopped = running_->stopped;
    static_cast<void>(co_await stopped->wait());
    co_await stop(options_.stop_time);
    co_return started;
}

result<> server::renew_certificates() {
    result<> all;
    if (!running_) return all;
    for (open_listener& each : running_->listening) {
        if (each.where.kind != transport::scheme::tls) continue;
        const auto renewed = each.its.renew ? each.its.renew(each.where)
                                            : transport::renew(each.its.socket, each.where);
        if (renewed) continue;
        log_error("http", transport::explain(each.where.to_string(), renewed.error()));
        all = renewed;
    }
    return all;
}

namespace {

bool has_certificates(const server_options& options) {
    return std::ranges::any_of(options.listen, [](const std::string& uri) {
        const auto where = transport::parse(uri);
        return where && where->kind == transport::scheme::tls;
    });
}

int run_in_a_loop(server site, duration stop_time, bool renews) {
    // Without certificates a SIGHUP of the terminal ends the program, as usual.
    auto signals =
        renews ? signal_set::take({SIGINT, SIGTERM, SIGHUP}) : signal_set::take({SIGINT, SIGTERM});
    if (!signals) {
        log_error("http", "no signals can be had: " + signals.error().message());
        return 1;
    }
    auto here = loop::create();
    if (!here) {
        log_error("http", "no event loop can be had: " + here.error().message());
        return 1;
    }
    return (*here)->run(run_until_signal(std::move(site), stop_time, std::move(*signals)));
}

}  // namespace

int run(request_handler& handler, server_options options) {
    const duration stop_time = options.stop_time;
    const bool renews = has_certificates(options);
    return run_in_a_loop(server(handler, std::move(options)), stop_time, renews);
}

int run(server::handler_factory make, server_options options) {
    const duration stop_time = options.stop_time;
    const bool renews = has_certificates(options);
    return run_in_a_loop(server(std::move(make), std::move(options)), stop_time, renews);
}

}  // namespace eddy::http
