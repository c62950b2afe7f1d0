// One connection that floods a loop must not keep the turn from the others. Turns are counted, not
// time.
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_BACKEND(fairness_io);

constexpr std::size_t quiet_connections = 499;
constexpr int rounds = 20;

/// How often each connection has been served.
struct turns {
    std::uint64_t flood = 0;
    std::uint64_t quiet = 0;
};

task<void> serve(stream peer, std::uint64_t& served) {
    for (;;) {
        const result<lease> received = co_await peer.read();
        if (!received) co_return;
        ++served;
        if (!co_await peer.write_all(received->bytes())) co_return;
    }
}

/// Sends without end, and drops what comes back.
task<void> flood(stream& server) {
    const std::string much(256 * 1024, 'x');
    for (;;)
        if (!co_await server.write_all(much)) co_return;
}
task<void> drop(stream& server) {
    while (co_await server.read()) {
    }
}

/// Asks and waits for the answer, again and again. `most`: how often the flood was served
/// meanwhile.
task<void> ask(stream& server, const std::uint64_t& floods, std::uint64_t& most) {
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t before = floods;
        must(co_await server.write_all("ask"));
        {
            const lease answer = must(co_await server.read());
            EXPECT_EQ(answer.text(), "ask");
        }
        most = std::max(most, floods - before);
    }
}

TEST_P(fairness_io, five_hundred_connections_have_their_turn_while_one_floods) {
    run_with_threads([this]() -> task<> {
        co_await with_scope([this](scope& children) -> task<> {
            turns served;
            listener accepting = must(here().listen(loopback()));
            const auto join = [&](std::uint64_t& count) -> task<stream> {
                stream client = must(co_await here().connect(accepting.local()));
                children.spawn(serve(must(co_await accepting.accept()), count));
                co_return client;
            };
            stream loud = co_await join(served.flood);
            std::vector<stream> quiet;
            for (std::size_t i = 0; i < quiet_connections; ++i)
                quiet.push_back(co_await join(served.quiet));
            children.spawn(flood(loud));
            children.spawn(drop(loud));
            while (served.flood < 100) co_await here().yield();

            std::uint64_t most = 0;
            co_await join_scope([&](scope& asking) -> task<> {
                for (stream& each : quiet) asking.spawn(ask(each, served.flood, most));
                co_return;
            });
            EXPECT_EQ(served.quiet, rounds * quiet_connections);
            std::printf("between a question and its answer the flood was served %llu times\n",
                        static_cast<unsigned long long>(most));
            EXPECT_LE(most, 8 * loop::inline_budget);
            children.cancel();
            co_await children.join();
        });
    });
}

}  // namespace
}  // namespace eddy::testing
