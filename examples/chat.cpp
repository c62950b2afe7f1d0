// A chat: what one client sends, all others get. Clients that do not read are disconnected, silent
// ones after five minutes, and Ctrl-C ends it in order. docs/tutorial.md builds it step by step.
//
//     chat [PORT]
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/signals.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/queued_writer.hpp>
#include <eddy/net/tcp.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

using namespace std::chrono_literals;

using room = std::set<eddy::queued_writer*>;

eddy::task<> talk(eddy::stream peer, room& everybody) {
    co_await eddy::with_scope([&](eddy::scope& tasks) -> eddy::task<> {
        eddy::queued_writer_options limits;
        limits.policy = eddy::slow_reader_policy::disconnect;
        eddy::queued_writer own(peer, tasks, limits);
        everybody.insert(&own);
        while (auto received = co_await eddy::with_timeout(5min, peer.read()))
            for (eddy::queued_writer* other : everybody)
                if (other != &own) static_cast<void>(other->enqueue(received->bytes()));
        everybody.erase(&own);
    });
}

eddy::task<> serve(eddy::listener listening) {
    room everybody;
    co_await eddy::with_scope([&](eddy::scope& clients) -> eddy::task<> {
        for (;;) {
            auto peer = co_await listening.accept();
            if (peer)
                clients.spawn(talk(std::move(*peer), everybody));
            else if (!co_await eddy::loop::current().sleep_for(10ms))
                co_return;
        }
    });
}

eddy::task<int> start(std::uint16_t port) {
    auto signals = eddy::signal_set::take({SIGINT, SIGTERM});
    auto listening = eddy::tcp::listen("*", port);
    if (!signals || !listening) {
        const auto error = signals ? listening.error() : signals.error();
        std::fprintf(stderr, "chat: %s\n", error.message().c_str());
        co_return 1;
    }
    co_await eddy::when_any(serve(std::move(*listening)), signals->next());
    std::puts("Good-bye.");
    co_return 0;
}

int main(int argc, char** argv) {
    const auto port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 7000);
    auto loop = eddy::loop::create();
    if (!loop) {
        std::fprintf(stderr, "no event loop: %s\n", loop.error().message().c_str());
        return 1;
    }
    return (*loop)->run(start(port));
}
