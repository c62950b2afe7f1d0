// One message to and fro: a client of an echo server, written with the library. Prints one JSON
// object.
//
//     ping_eddy --port N [--backend auto|uring|epoll] [--spin-us N] [--milliseconds 3000]
//               [--server-pid PID]
#include <eddy/base/histogram.hpp>
#include <eddy/net/tcp.hpp>

#include "eddy_program.hpp"
#include "window.hpp"

#include <array>
#include <string>

namespace {

using namespace eddy;

task<int> ping(std::uint16_t port, window measured) {
    auto peer = co_await tcp::connect("127.0.0.1", port);
    if (!peer) {
        std::fprintf(stderr, "ping_eddy: %s\n", peer.error().message().c_str());
        co_return 1;
    }
    std::array<std::byte, 64> message{};
    std::array<std::byte, 64> reply{};
    histogram latency;
    std::uint64_t wrong = 0;
    std::uint64_t number = 0;
    for (auto sent = now_ns(); measured.goes_on(sent);) {
        std::memcpy(message.data(), &++number, sizeof number);
        auto back = co_await peer->write_all(message);
        if (back) back = co_await peer->read_exactly(reply);
        if (!back) {
            std::fprintf(stderr, "ping_eddy: %s\n", back.error().message().c_str());
            co_return 1;
        }
        const std::uint64_t now = now_ns();
        if (measured.is_open()) latency.record(now - sent);
        if (reply != message) ++wrong;
        sent = now;
    }
    co_return measured.report("\"test\": \"ping\"", latency, latency.count(), wrong, wrong);
}

}  // namespace

int main(int argc, char** argv) {
    const auto loop = make_loop(argc, argv);
    window measured(argc, argv);
    return loop->run(ping(static_cast<std::uint16_t>(port_option(argc, argv)), measured));
}
