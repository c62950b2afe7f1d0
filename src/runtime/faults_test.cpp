// Tests of the runtimes on a simulated network that delays, cuts and resets, from random seeds.
#include "runtime/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;

class bad_network : public on_io_backend {
protected:
    static constexpr int rounds = 20;

    loop_options faults(int round) const {
        loop_options options;
        options.kind = io_backend_kind::sim;
        options.buffer_count = 8;
        options.buffer_size = 256;
        options.sim.seed = eddy::testing::seed_of_this_run() + static_cast<std::uint64_t>(round);
        options.sim.short_read = 0.3;
        options.sim.reset = 0.002;
        options.sim.no_buffers = 0.1;
        options.sim.max_delay = 5ms;
        options.sim.socket_buffer = 2000;
        return options;
    }

    /// Runs the body once for each seed, on a loop of its own.
    template <class Body>
    void each_round(Body body) {
        for (int round = 0; round < rounds && !HasFailure(); ++round) {
            TearDown();
            auto made = must(loop::create(faults(round)));
            try {
                made->run(body(static_cast<unsigned>(round)));
            } catch (const std::exception& failure) {
                ADD_FAILURE() << failure.what();
            }
        }
    }
};
INSTANTIATE_TEST_SUITE_P(io, bad_network, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

/// Sets and gets what only it knows, in pipelines, until its connection is reset; true when what it
/// got was right as far as it came.
task<bool> use_cache(endpoint where, int number) {
    try {
        talker client = co_await talker::to(where);
        const std::string key = "key" + std::to_string(number);
        for (int round = 0; round < 20; ++round) {
            const std::string value(static_cast<std::size_t>(number * 7 + round * 131) % 3000,
                                    static_cast<char>('a' + number % 26));
            std::string requests;
            std::string replies;
            for (int i = 0; i < 10; ++i) {
                requests += "*3\r\n$3\r\nSET\r\n$" + std::to_string(key.size()) + "\r\n" + key +
                            "\r\n$" + std::to_string(value.size()) + "\r\n" + value + "\r\nGET " +
                            key + "\r\n";
                replies += "+OK\r\n$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
            }
            struct writing {
                static task<void> all(talker& to, std::string text) {
                    (void)co_await to.socket.write_all(text);
                }
            };
            scope tasks(co_await current_source());
            tasks.spawn(writing::all(client, requests));
            std::string got;
            std::string failure;
            try {
                got = co_await client.bytes(replies.size());
            } catch (const std::exception& reset) {
                failure = reset.what();
            }
            if (!failure.empty()) {
                client.socket.close();
                co_await tasks.join();
                co_return replies.starts_with(client.unread);
            }
            co_await tasks.join();
            if (got != replies) co_return false;
        }
    } catch (const std::exception&) {  // the connect was reset
    }
    co_return true;
}

task<void> use_and_count(endpoint where, int number, int& right) {
    if (co_await use_cache(where, number)) ++right;
}

TEST_P(bad_network, a_caches_replies_are_right_as_far_as_they_come) {
    each_round([](unsigned) -> task<void> {
        constexpr int clients = 30;
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        int right = 0;
        scope all(co_await current_source());
        for (int i = 0; i < clients; ++i) all.spawn(use_and_count(cache->local(), i, right));
        co_await all.join();
        EXPECT_EQ(right, clients);
        co_await until([&] { return cache->count().connections_now == 0; });
        co_await cache->stop(1s);
    });
}

task<void> read_and_drop(stream& from) {
    while (co_await from.read()) continue;
}

/// Sends numbered lines until it is done or reset. It reads meanwhile: if all wrote before they
/// read, all would wait for each other under --slow-reader wait.
task<void> send_lines(endpoint where, int number, int lines) {
    auto connected = co_await loop::current().connect(where);
    if (!connected) co_return;
    scope reading(co_await current_source());
    reading.spawn(read_and_drop(*connected));
    for (int i = 0; i < lines; ++i) {
        const std::string line = std::to_string(number) + " " + std::to_string(i) + " " +
                                 std::string(static_cast<std::size_t>(i * 17) % 500, 'x') + ".\n";
        if (!co_await connected->write_all(line)) break;
    }
    (void)connected->shutdown_write();
    co_await reading.join();
}

/// Reads until it is reset or stopped; checks that lines are whole and each sender's in order.
task<void> read_lines(endpoint where, int senders, int& faults) {
    auto connected = co_await loop::current().connect(where);
    if (!connected) co_return;
    talker reader(std::move(*connected));
    std::vector<int> next(static_cast<std::size_t>(senders), 0);
    try {
        for (;;) {
            const std::string line = co_await reader.line();
            if (line == "end") co_return;
            std::size_t used = 0;
            const auto sender = static_cast<std::size_t>(std::stoi(line, &used));
            const int number = std::stoi(line.substr(used + 1));
            const std::size_t x = static_cast<std::size_t>(number * 17) % 500;
            if (!line.ends_with(" " + std::string(x, 'x') + ".")) ++faults;
            // A sender that was reset may have left part of a line, never of an earlier one.
            if (number < next[sender]) ++faults;
            next[sender] = number + 1;
        }
    } catch (const std::exception&) {  // reset
    }
}

TEST_P(bad_network, a_servers_lines_are_whole_and_in_order) {
    each_round([](unsigned round) -> task<void> {
        constexpr int senders = 10;
        constexpr int lines = 50;
        const char* const policies[] = {"wait", "drop-oldest", "disconnect"};
        subject server("server", {{"port", 0},
                                  {"bind", "127.0.0.1"},
                                  {"slow_reader", policies[round % 3]},
                                  {"max_line", 600},
                                  {"max_queue", "8k"}});
        co_await server.start();
        int faults = 0;
        scope readers(co_await current_source());
        for (int i = 0; i < 5; ++i) readers.spawn(read_lines(server->local(), senders, faults));
        static_cast<void>(co_await loop::current().sleep_for(100ms));
        scope writers(co_await current_source());
        for (int i = 0; i < senders; ++i) writers.spawn(send_lines(server->local(), i, lines));
        co_await writers.join();
        static_cast<void>(co_await loop::current().sleep_for(10s));
        (void)co_await server->send("end");
        co_await server->stop(10s);
        co_await readers.join();
        EXPECT_EQ(faults, 0);
        EXPECT_EQ(server->count().connections_now, 0U);
    });
}

}  // namespace
}  // namespace eddy::runtime
