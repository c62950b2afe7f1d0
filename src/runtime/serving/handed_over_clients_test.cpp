// Servers on one loop and several, whose clients are handed over.
#include <eddy/transport/transport.hpp>

#include "handoff/testing.hpp"
#include "serving/acceptor.hpp"
#include "serving/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::serving {
namespace {

using namespace testing;

class handed_over_clients : public handoff::testing::on_kernel_io_backend {};
EDDY_HANDOFFS_ON_KERNEL_BACKENDS(handed_over_clients);

/// Worker that sends its number to each client.
class greeter final : public loop_worker {
public:
    explicit greeter(const worker_place& place) : loop_worker(place), index_(place.index) {}
    void take(stream accepted, connection_slot slot) override {
        tasks_.spawn(greet(std::make_unique<client>(clients_, std::move(accepted), tasks_.source(),
                                                    std::move(slot))));
    }

private:
    class client final : public serving::connection {
    public:
        using connection::connection;
    };
    task<void> greet(std::unique_ptr<client> to) {
        const std::string hello = std::to_string(index_) + "\n";
        if (!co_await to->socket.write_all(hello)) co_return;
        static_cast<void>(co_await to->socket.read());  // until it leaves
    }

    std::size_t index_;
};

TEST_P(handed_over_clients, are_served_on_all_loops_and_failed_handoffs_are_noted) {
    run([&]() -> task<void> {
        for (const std::size_t threads : {1U, 3U}) {
            recorder events;
            loop_pool pool(events);
            acceptor accepting(pool);
            auto parts =
                must(transport::listen_in_parts(must(transport::parse("handoff://" + path()))));
            served_listener listening{std::move(parts.below), std::move(parts.finish),
                                      std::move(parts.renew)};
            must(pool.start_threads(threads, "handoffs"));
            must(co_await pool.make_workers(
                [](const worker_place& place) { return std::make_unique<greeter>(place); }));
            accepting.open(listening, {}, false);

            std::vector<talker> clients;
            std::string loops;
            for (int i = 0; i < 6; ++i) {
                clients.emplace_back(hand_over_client());
                loops += co_await clients.back().line();
            }
            std::sort(loops.begin(), loops.end());
            EXPECT_EQ(loops, threads == 1 ? "000000" : "112233");

            constexpr std::uint64_t failures = 5;
            for (std::uint64_t i = 0; i < failures; ++i) sender().reset();
            co_await testing::until(
                [&] { return pool.here()->counted().errors.value() == failures; });
            clients.clear();
            co_await accepting.close();
            listening.socket.close();
            co_await pool.drain({});
            co_await pool.end([](loop_worker&) {});
            EXPECT_THAT(events.lines,
                        ::testing::Contains("a handoff brought no client: incomplete_message"));
            EXPECT_THAT(
                events.lines,
                ::testing::Contains("4 more handoffs brought no client since the last report"));
        }
    });
}

}  // namespace
}  // namespace eddy::serving
