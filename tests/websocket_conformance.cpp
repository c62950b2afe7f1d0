// Peer of the conformance suite of WebSocket (tests/autobahn.py): an echo server, or the client
// that asks the suite's server for the cases.
//
//     websocket_conformance server PORT
//     websocket_conformance client PORT
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/http/websocket.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/net/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

using namespace std::chrono_literals;
namespace http = eddy::http;

namespace {

constexpr std::size_t largest_message = 20U * 1024 * 1024;

http::websocket_options chosen_options() {
    http::websocket_options made;
    made.max_message = largest_message;
    made.queue.max_queued_bytes = 2 * largest_message;
    made.deflate = eddy::websocket::deflate_policy{};
    made.compressed_from = 0;
    return made;
}

eddy::task<> echo(http::websocket peer) {
    while (auto message = co_await peer.receive()) {
        auto sent = co_await peer.send(*message);
        if (!sent) co_return;
    }
}

eddy::task<http::response> enter(http::request& incoming) {
    static const auto options = std::make_shared<const http::websocket_options>(chosen_options());
    co_return http::upgrade(incoming, options, echo);
}

eddy::task<int> serve(std::uint16_t port) {
    auto listening = eddy::tcp::listen("127.0.0.1", port);
    if (!listening) co_return 1;
    http::router routes;
    routes.get("/{path...}", enter).get("/", enter);
    co_await eddy::with_scope([&](eddy::scope& clients) -> eddy::task<> {
        for (;;) {
            auto peer = co_await listening->accept();
            if (!peer) co_return;
            clients.spawn(http::serve(std::move(*peer), routes, {}));
        }
    });
    co_return 0;
}

eddy::task<eddy::result<http::websocket>> connect(std::uint16_t port, std::string target) {
    http::websocket_client_options options;
    options.session = chosen_options();
    co_return co_await http::connect_websocket(
        "ws://127.0.0.1:" + std::to_string(port) + target + "agent=eddy", std::move(options));
}

eddy::task<int> ask(std::uint16_t port) {
    auto counting = co_await connect(port, "/getCaseCount?");
    if (!counting) co_return 1;
    auto answer = co_await counting->receive();
    if (!answer) co_return 1;
    const int cases = std::atoi(std::string(answer->data).c_str());
    static_cast<void>(co_await counting->close());
    for (int i = 1; i <= cases; ++i) {
        auto opened = co_await connect(port, "/runCase?case=" + std::to_string(i) + "&");
        if (!opened) {
            std::fprintf(stderr, "case %d: %s\n", i, opened.error().message().c_str());
            continue;
        }
        co_await echo(std::move(*opened));
    }
    auto reporting = co_await connect(port, "/updateReports?");
    if (!reporting) co_return 1;
    static_cast<void>(co_await reporting->close());
    std::printf("%d cases\n", cases);
    co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const auto port = static_cast<std::uint16_t>(std::atoi(argv[2]));
    auto loop = eddy::loop::create();
    if (!loop) return 1;
    const bool is_server = std::string_view(argv[1]) == "server";
    return (*loop)->run(is_server ? serve(port) : ask(port));
}
