// Fairness among connections: one that floods a loop must not starve the others. Turns are counted,
// not time.
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(fairness_io);

constexpr std::size_t quiet_connections = 499;
constexpr int rounds = 20;

/// Number of times that connections were served.
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

/// Takes whatever comes and answers nothing, so it never has to wait for its peer.
task<void> swallow(stream peer, std::uint64_t& served) {
    while (co_await peer.read()) ++served;
}

/// Sends without end. On the simulator, where a thread would mean nothing.
task<void> flood(stream& server) {
    const std::string much(256 * 1024, 'x');
    for (;;)
        if (!co_await server.write_all(much)) co_return;
}

/// The same from a thread, which fills the socket while the loop empties it.
class flooding_thread {
public:
    explicit flooding_thread(int socket) : thread_([this, socket] { run(socket); }) {}
    ~flooding_thread() {
        stop_ = true;
        thread_.join();
    }

private:
    void run(int socket) {
        const std::string much(256 * 1024, 'x');
        while (!stop_)
            static_cast<void>(
                ::send(socket, much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    }

    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

/// Sends requests and awaits their answers. `most`: largest number of times that the flood was
/// served meanwhile.
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
            const auto connected = [&]() -> task<connection> {
                connection made;
                made.client = must(co_await here().connect(accepting.local()));
                made.server = must(co_await accepting.accept());
                co_return made;
            };
            connection loud = co_await connected();
            children.spawn(swallow(std::move(loud.server), served.flood));
            std::vector<stream> quiet;
            for (std::size_t i = 0; i < quiet_connections; ++i) {
                connection made = co_await connected();
                quiet.push_back(std::move(made.client));
                children.spawn(serve(std::move(made.server), served.quiet));
            }
            std::optional<flooding_thread> thread;
            if (simulated())
                children.spawn(flood(loud.client));
            else
                thread.emplace(loud.client.native_handle());
            while (served.flood < 100) co_await here().yield();

            std::uint64_t most = 0;
            co_await join_scope([&](scope& asking) -> task<> {
                for (stream& each : quiet) asking.spawn(ask(each, served.flood, most));
                co_return;
            });
            EXPECT_EQ(served.quiet, rounds * quiet_connections);
            std::printf("between a question and its answer the flood was served %llu times\n",
                        static_cast<unsigned long long>(most));
            EXPECT_LE(most, 12 * loop::inline_budget);
            children.cancel();
            co_await children.join();
        });
    });
}

}  // namespace
}  // namespace eddy::testing
