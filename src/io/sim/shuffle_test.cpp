// Seeded scheduling: one order of the ready coroutines for each seed, repeatable.
#include <eddy/io/channel.hpp>
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

namespace eddy::testing {
namespace {

constexpr std::string_view in_order = "abcdefgh";

std::unique_ptr<loop> make_loop(std::uint64_t seed, bool shuffle) {
    loop_options options;
    options.kind = io_backend_kind::sim;
    options.sim.seed = seed;
    options.sim.shuffle = shuffle;
    options.sim.max_delay = 1ms;
    return must(loop::create(options));
}

task<> speak(std::string& to, char name) {
    for (int i = 0; i < 3; ++i) {
        co_await loop::current().yield();
        to += name;
    }
}

/// Order of the coroutines over three rounds.
std::string speeches(std::uint64_t seed, bool shuffle) {
    std::string said;
    make_loop(seed, shuffle)->run([](std::string& to) -> task<> {
        co_await join_scope([&](scope& children) -> task<> {
            for (const char name : in_order) children.spawn(speak(to, name));
            co_return;
        });
    }(said));
    return said;
}

TEST(sim_shuffle, is_off_at_first) {
    const std::string thrice =
        std::string(in_order) + std::string(in_order) + std::string(in_order);
    EXPECT_FALSE(sim_options().shuffle);
    for (std::uint64_t seed = 1; seed < 5; ++seed) EXPECT_EQ(speeches(seed, false), thrice);
}

TEST(sim_shuffle, a_seed_has_its_order_and_repeats_it) {
    std::set<std::string> orders;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const std::string said = speeches(seed, true);
        EXPECT_EQ(speeches(seed, true), said) << "seed " << seed;
        orders.insert(said);
        // Each coroutine runs once before any runs again.
        for (std::size_t round = 0; round < 3; ++round) {
            std::string turn = said.substr(round * in_order.size(), in_order.size());
            std::sort(turn.begin(), turn.end());
            EXPECT_EQ(turn, in_order);
        }
    }
    EXPECT_GT(orders.size(), 15u) << "of 20 seeds";
}

/// Delivery times on the network, which seed and options determine.
task<> time_deliveries(std::string& times) {
    listener accepting = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 80))));
    stream client = must(co_await loop::current().connect(accepting.local()));
    stream server = must(co_await accepting.accept());
    for (int i = 0; i < 20; ++i) {
        must(co_await client.write_all("x"));
        static_cast<void>(must(co_await server.read()));
        times += std::to_string(loop::current().now().time_since_epoch().count()) + " ";
    }
}

TEST(sim_shuffle, leaves_the_other_draws_of_a_seed_as_they_are) {
    std::string times[2];
    for (const bool shuffle : {false, true})
        make_loop(7, shuffle)->run(time_deliveries(times[shuffle ? 1 : 0]));
    EXPECT_EQ(times[0], times[1]);
}

task<> put(channel<int>& to, int value) { must(co_await to.send(value)); }

/// Waits in a queue of their own are served in order all the same.
TEST(sim_shuffle, does_not_overtake_in_a_channel) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
        make_loop(seed, true)->run([]() -> task<> {
            channel<int> numbers(1);
            co_await join_scope([&](scope& children) -> task<> {
                for (int i = 0; i < 10; ++i) children.spawn(put(numbers, i));
                for (int i = 0; i < 10; ++i) EXPECT_EQ(must(co_await numbers.receive()), i);
            });
        }());
}

}  // namespace
}  // namespace eddy::testing
