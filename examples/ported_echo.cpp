// The echo server that docs/from-asio.md ports from Asio, step by step.
//
//     ported_echo [PORT]
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/signals.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/tcp.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

using namespace std::chrono_literals;

namespace {

constexpr auto idle_time = 30s;

eddy::task<> echo(eddy::stream peer) {
    std::array<std::byte, 16 * 1024> bytes;
    for (;;) {
        const auto size = co_await eddy::with_timeout(idle_time, peer.read_some(bytes));
        if (!size) co_return;
        const auto sent = co_await peer.write_all(eddy::const_bytes(bytes).first(*size));
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
    auto signals = eddy::signal_set::take({SIGINT, SIGTERM});
    auto listening = eddy::tcp::listen("127.0.0.1", port);  // this machine's clients alone
    if (!signals || !listening) {
        const auto why = signals ? listening.error() : signals.error();
        std::fprintf(stderr, "port %d: %s\n", int{port}, why.message().c_str());
        co_return 1;
    }
    co_await eddy::when_any(serve(std::move(*listening)), signals->next());
    co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const auto port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 7000);
    return eddy::run(start(port));
}
