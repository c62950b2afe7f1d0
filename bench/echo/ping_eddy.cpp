// One message to and fro: a client of an echo server, written with the library. Prints one JSON
// object.
//
//     ping_eddy --port N [--backend auto|uring|epoll] [--spin-us N] [--milliseconds 2000]
#include <eddy/base/histogram.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/net/tcp.hpp>

#include "socket.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>

namespace {

using namespace eddy;
using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds warm_up(300);

task<int> ping(std::uint16_t port, std::chrono::milliseconds length) {
    auto peer = co_await tcp::connect("127.0.0.1", port);
    if (!peer) {
        std::fprintf(stderr, "ping_eddy: %s\n", peer.error().message().c_str());
        co_return 1;
    }
    std::array<std::byte, 64> message{};
    std::array<std::byte, 64> reply{};
    histogram latency;
    std::uint64_t wrong = 0;
    const auto begin = clock::now() + warm_up;
    const auto end = begin + length;
    std::uint64_t number = 0;
    for (auto sent = clock::now(); sent < end;) {
        std::memcpy(message.data(), &++number, sizeof number);
        auto wrote = co_await peer->write_all(message);
        std::size_t received = 0;
        while (wrote && received < reply.size()) {
            auto size = co_await peer->read_some(mutable_bytes(reply).subspan(received));
            if (!size) wrote = fail(size.error());
            received += size.value_or(0);
        }
        if (!wrote) {
            std::fprintf(stderr, "ping_eddy: %s\n", wrote.error().message().c_str());
            co_return 1;
        }
        const auto now = clock::now();
        if (sent >= begin)
            latency.record(static_cast<std::uint64_t>(
                std::chrono::duration_cast<std::chrono::nanoseconds>(now - sent).count()));
        if (reply != message) ++wrong;
        sent = now;
    }
    const double seconds = std::chrono::duration<double>(length).count();
    std::printf(
        "{\"test\": \"ping\", \"messages\": %llu, \"ops_per_second\": %.1f, \"p50_us\": %.2f, "
        "\"p99_us\": %.2f, \"verified\": %s, \"errors\": %llu, \"void\": false}\n",
        static_cast<unsigned long long>(latency.count()),
        static_cast<double>(latency.count()) / seconds,
        static_cast<double>(latency.percentile(50)) / 1e3,
        static_cast<double>(latency.percentile(99)) / 1e3, wrong == 0 ? "true" : "false",
        static_cast<unsigned long long>(wrong));
    co_return wrong == 0 ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
    loop_options options;
    for (int i = 1; i + 1 < argc; ++i)
        if (std::string_view(argv[i]) == "--backend")
            options.kind = parse_backend_kind(argv[i + 1]).value_or(backend_kind::automatic);
    options.spin = std::chrono::microseconds(number_option(argc, argv, "--spin-us", 0));
    auto made = loop::create(options);
    if (!made) {
        std::fprintf(stderr, "ping_eddy: no event loop: %s\n", made.error().message().c_str());
        return 1;
    }
    return (*made)->run(
        ping(static_cast<std::uint16_t>(number_option(argc, argv, "--port", 7000)),
             std::chrono::milliseconds(number_option(argc, argv, "--milliseconds", 2000))));
}
