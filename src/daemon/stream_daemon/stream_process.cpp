// Loop, journal and status pages of a stream daemon.
#include "daemon/stream_daemon/stream_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace eddy::daemon {

stderr_journal::stderr_journal(std::string prefix)
    : prefix_(std::move(prefix)), out_(STDERR_FILENO, "standard error") {}

void stderr_journal::write(std::string_view line) {
    out_.write(fmt::format("{}{}\n", prefix_, line));
}

void stderr_journal::complain(std::string_view line) {
    out_.write(fmt::format("eddy stream-daemon: {}{}\n", prefix_, line));
}

std::unique_ptr<loop> make_stream_loop(io_backend_kind kind, stderr_journal& journal) {
    loop_options on_loop;
    on_loop.kind = kind;
    on_loop.buffer_count = 16;  // requests for metrics are few and short
    auto made = loop::create(on_loop);
    if (made) return std::move(*made);
    journal.complain(fmt::format("the io-backend {} cannot be used here: {}", to_string(kind),
                                 made.error().message()));
    return nullptr;
}

status_pages::status_pages(status_source& of)
    : router_([](const http::request&, int status, std::string_view) {
          return http::text("this port has GET /metrics and /healthz\n", status);
      }) {
    router_.add("GET", "/metrics", [&of](http::request&) { return metrics_of(of); });
    router_.add("GET", "/healthz", [&of](http::request&) { return health_of(of); });
}

task<http::response> status_pages::handle(http::request& request) {
    return router_.dispatch(request);
}

http::response status_pages::reject(int status, std::string_view what) {
    return http::text(fmt::format("{}\n", what), status);
}

task<http::response> status_pages::metrics_of(status_source& of) {
    std::string text = co_await of.metrics_text();
    http::response page(200, std::string(metrics_content_type), std::move(text));
    co_return page;
}

task<http::response> status_pages::health_of(status_source& of) {
    const std::string_view fault = of.fault();
    if (!fault.empty()) co_return http::text(fmt::format("{}\n", fault), 503);
    co_return http::text("ok\n");
}

bool status_server::open(const std::optional<endpoint>& where, stderr_journal& journal,
                         scope& services) {
    if (!where) return true;
    auto opened = loop::current().listen(*where);
    if (!opened) {
        journal.complain(fmt::format("cannot listen on {} for metrics: {}", where->to_string(),
                                     opened.error().message()));
        return false;
    }
    journal.write(fmt::format("metrics on http://{}/metrics", opened->local().to_string()));
    server_.emplace(std::move(*opened), pages_, counted_, server_limits(), false);
    services.spawn(server_->run());
    return true;
}

}  // namespace eddy::daemon
