// The smallest HTTP server: GET /hello/NAME greets. docs/http.md begins with it.
//
//     hello_http [PORT]
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/signals.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/tcp.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

using namespace std::chrono_literals;
namespace http = eddy::http;

eddy::task<http::response> hello(http::request& request) {
    co_return http::text("Hello, " + std::string(request.path_parameter("name")) + "!\n");
}

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

eddy::task<int> start(std::uint16_t port) {
    auto signals = eddy::signal_set::take({SIGINT, SIGTERM});
    auto listening = eddy::tcp::listen("127.0.0.1", port);
    if (!signals || !listening) {
        const auto error = signals ? listening.error() : signals.error();
        std::fprintf(stderr, "port %d: %s\n", int{port}, error.message().c_str());
        co_return 1;
    }
    http::router routes;
    routes.get("/hello/{name}", hello);
    co_await eddy::when_any(serve(std::move(*listening), routes), signals->next());
    co_return 0;
}

int main(int argc, char** argv) {
    const auto port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080);
    auto loop = eddy::loop::create();
    if (!loop) {
        std::fprintf(stderr, "no event loop: %s\n", loop.error().message().c_str());
        return 1;
    }
    return (*loop)->run(start(port));
}
