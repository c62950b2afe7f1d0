// The server of run_http.py on Eddy: one loop. It echoes a query as JSON, serves files, and echoes
// WebSocket messages.
//
//     http_eddy --port N [--root DIR] [--cert FILE --key FILE] [--backend auto|uring|epoll]
//               [--cache BYTES] [--sendfile yes|no]
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/http/static_files.hpp>
#if __has_include(<eddy/http/websocket.hpp>)
#include <eddy/http/websocket.hpp>
#define EDDY_BENCH_WEBSOCKET
#endif
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/json.hpp>

#include "../echo/eddy_program.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace std::chrono_literals;
namespace http = eddy::http;

eddy::task<http::response> echo(http::request& request) {
    eddy::json_writer out;
    out.begin_object();
    for (const auto& each : request.query()) out.member(each.name, each.value);
    out.end_object();
    co_return http::json(out.take());
}

#ifdef EDDY_BENCH_WEBSOCKET
eddy::task<> echo_messages(http::websocket peer) {
    while (auto message = co_await peer.receive()) {
        auto sent = co_await peer.send(std::move(*message));
        if (!sent) co_return;
    }
}

eddy::task<http::response> open_websocket(http::request& request) {
    static const auto options = std::make_shared<const http::websocket_options>();
    co_return http::upgrade(request, options, echo_messages);
}
#endif

eddy::task<> serve(eddy::listener listening, http::router& routes) {
    co_await eddy::with_scope([&](eddy::scope& clients) -> eddy::task<> {
        for (;;) {
            auto peer = co_await listening.accept();
            if (peer)
                clients.spawn(http::serve(std::move(*peer), routes, {}));
            else if (!co_await eddy::loop::current().sleep_for(10ms))
                co_return;
        }
    });
}

eddy::task<> start(int argc, char** argv) {
    const std::string root = text_option(argc, argv, "--root", "");
    const std::string cert = text_option(argc, argv, "--cert", "");
    const auto port = static_cast<std::uint16_t>(port_option(argc, argv));
    std::string uri =
        (cert.empty() ? "tcp" : "tls") + std::string("://127.0.0.1:") + std::to_string(port);
    if (!cert.empty())
        uri += "?cert=" + cert + "&key=" + std::string(text_option(argc, argv, "--key", ""));

    std::optional<http::static_files> files;
    http::router routes;
    routes.get("/echo", echo);
#ifdef EDDY_BENCH_WEBSOCKET
    routes.get("/ws", open_websocket);
#endif
    if (!root.empty()) {
        http::static_options options;
        options.cache_bytes =
            static_cast<std::size_t>(number_option(argc, argv, "--cache", 8L << 20));
        options.sendfile = text_option(argc, argv, "--sendfile", "no") == std::string_view("yes");
        files = must(http::static_files::open(root, std::move(options)), "--root");
        routes.get("/{path...}",
                   [&](http::request& request) { return files->serve(request, request.path()); });
    }
    auto listening = must(eddy::transport::listen(uri), "listen");
    say_ready(port);
    co_await serve(std::move(listening), routes);
}

}  // namespace

int main(int argc, char** argv) {
    const auto loop = make_loop(argc, argv);
    loop->run(start(argc, argv));
}
