// The smallest server: what a client sends comes back. docs/tutorial.md builds it step by step.
//
//     echo [PORT]
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/net/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

using namespace std::chrono_literals;

eddy::task<> echo(eddy::stream peer) {
    while (auto received = co_await peer.read()) {
        auto sent = co_await peer.write_all(received->bytes());
        if (!sent) co_return;
    }
}

eddy::task<> serve(eddy::listener listening) {
    co_await eddy::with_scope([&](eddy::scope& clients) -> eddy::task<> {
        for (;;) {
            auto peer = co_await listening.accept();
            if (peer)
                clients.spawn(echo(std::move(*peer)));
            else if (!co_await eddy::sleep_for(10ms))
                co_return;
        }
    });
}

eddy::task<int> start(std::uint16_t port) {
    auto listening = eddy::tcp::listen("127.0.0.1", port);
    if (!listening) {
        std::fprintf(stderr, "port %d: %s\n", int{port}, listening.error().message().c_str());
        co_return 1;
    }
    co_await serve(std::move(*listening));
    co_return 0;
}

int main(int argc, char** argv) {
    const auto port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 7000);
    return eddy::run(start(port));
}
