// The smallest server: what a client sends comes back. docs/tutorial.md builds it step by step.
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/net/tcp.hpp>

#include <cstdio>
#include <utility>

eddy::task<> echo(eddy::stream peer) {
    while (auto received = co_await peer.read()) {
        auto sent = co_await peer.write_all(received->bytes());
        if (!sent) co_return;
    }
}

eddy::task<> serve(eddy::listener listening) {
    co_await eddy::with_scope([&](eddy::scope& clients) -> eddy::task<> {
        while (auto peer = co_await listening.accept()) clients.spawn(echo(std::move(*peer)));
    });
}

eddy::task<int> start() {
    auto listening = eddy::tcp::listen("127.0.0.1", 7000);
    if (!listening) {
        std::fprintf(stderr, "port 7000: %s\n", listening.error().message().c_str());
        co_return 1;
    }
    co_await serve(std::move(*listening));
    co_return 0;
}

int main() {
    auto loop = eddy::loop::create();
    if (!loop) {
        std::fprintf(stderr, "no event loop: %s\n", loop.error().message().c_str());
        return 1;
    }
    return (*loop)->run(start());
}
