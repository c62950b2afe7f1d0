// Stream daemon: process, metrics port and signals around one stream runtime.
#include "daemon/stream_daemon.hpp"

#include <eddy/http/router.hpp>
#include <eddy/io/scope.hpp>

#include "daemon/control_server.hpp"
#include "daemon/metrics.hpp"
#include "daemon/output_writer.hpp"
#include "daemon/process_setup.hpp"
#include "runtime/instance.hpp"
#include "runtime/type.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <utility>

namespace eddy::daemon {
namespace {

constexpr int exit_fatal = 2;

/// Journal of the runtime: lines on standard error.
class stderr_journal final : public runtime::journal {
public:
    void write(std::string_view line) override { out_.write(fmt::format("{}\n", line)); }
    void complain(std::string_view line) {
        out_.write(fmt::format("eddy stream-daemon: {}\n", line));
    }

private:
    output_writer out_{STDERR_FILENO, "standard error"};
};

/// GET /metrics and /healthz.
class status_pages final : public http::request_handler {
public:
    explicit status_pages(const runtime::instance& of)
        : router_([](const http::request&, int status, std::string_view) {
              return http::text("this port has GET /metrics and /healthz\n", status);
          }) {
        router_.add("GET", "/metrics", [&of](http::request&) { return metrics_of(of); });
        router_.add("GET", "/healthz", [](http::request&) { return healthy(); });
    }
    task<http::response> handle(http::request& request) override {
        return router_.dispatch(request);
    }
    http::response reject(int status, std::string_view what) override {
        return http::text(fmt::format("{}\n", what), status);
    }

private:
    static task<http::response> metrics_of(const runtime::instance& of) {
        http::response page(200, std::string(metrics_content_type),
                            render_stream_metrics(of.count()));
        co_return page;
    }
    static task<http::response> healthy() { co_return http::text("ok\n"); }

    http::router router_;
};

class stream_daemon {
public:
    stream_daemon(const stream_daemon_options& options, signal_set signals)
        : options_(options), signals_(std::move(signals)) {}

    task<int> run() {
        runtime::creation how{"stream", options_.runtime, &journal_};
        const auto instance = runtime::find_type("stream")->make(std::move(how));
        if (auto started = co_await instance->start(); !started) {
            journal_.complain(started.error().message);
            co_return exit_fatal;
        }
        const int status = co_await serve(*instance);
        co_await instance->stop(status == 0 ? options_.drain : duration::zero());
        hurry_.cancel();
        co_await hurry_.join();
        co_return status;
    }

private:
    task<int> serve(runtime::instance& of) {
        status_pages pages(of);
        daemon_counters counted;
        std::optional<control_server> server;
        scope services(co_await current_source());
        if (options_.metrics) {
            auto opened = loop::current().listen(*options_.metrics);
            if (!opened) {
                journal_.complain(fmt::format("cannot listen on {} for metrics: {}",
                                              options_.metrics->to_string(),
                                              opened.error().message()));
                co_return exit_fatal;
            }
            journal_.write(
                fmt::format("metrics on http://{}/metrics", opened->local().to_string()));
            server.emplace(std::move(*opened), pages, counted, server_limits(), false);
            services.spawn(server->run());
        }
        journal_.write(fmt::format("eddy stream-daemon ready: {}, pid {}", of.local().to_string(),
                                   ::getpid()));
        co_await await_end();
        services.cancel();
        co_await services.join();
        hurry_.spawn(end_at_next_signal());
        co_return 0;
    }
    task<void> await_end() {
        for (;;) {
            const auto signal = co_await signals_.next();
            if (!signal || *signal != SIGHUP) co_return;
        }
    }
    task<void> end_at_next_signal() {
        co_await await_end();
        if ((co_await current_source())->requested()) co_return;
        std::_Exit(exit_fatal);
    }

    const stream_daemon_options& options_;
    signal_set signals_;
    stderr_journal journal_;
    scope hurry_;
};

}  // namespace

int run_stream_daemon(const stream_daemon_options& options) {
    auto signals = set_up_process();
    stderr_journal journal;
    if (!signals) {
        journal.complain(fmt::format("cannot receive signals: {}", signals.error().message()));
        return exit_fatal;
    }
    loop_options on_loop;
    on_loop.kind = options.backend;
    on_loop.buffer_count = 16;  // requests for metrics are few and short
    auto made = loop::create(on_loop);
    if (!made) {
        journal.complain(fmt::format("the backend {} cannot be used here: {}",
                                     to_string(options.backend), made.error().message()));
        return exit_fatal;
    }
    return (*made)->run(stream_daemon(options, std::move(*signals)).run());
}

}  // namespace eddy::daemon
