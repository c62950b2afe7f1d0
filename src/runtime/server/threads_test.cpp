// Tests of a server with several threads: what holds with one holds across loops.
#include <eddy/io/timeout.hpp>

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(server_threads);

json with(json options) {
    options.update({{"port", 0}, {"bind", "127.0.0.1"}, {"threads", 3}});
    return options;
}

/// A client that its loop knows.
task<talker> join(subject& server) {
    const std::uint64_t before = server->count().connections_now;
    talker made = co_await talker::to(server->local());
    co_await until([&] { return server->count().connections_now > before; });
    co_return made;
}

task<std::vector<talker>> join_all(subject& server, int clients) {
    std::vector<talker> all;
    for (int i = 0; i < clients; ++i) all.push_back(co_await join(server));
    co_return all;
}

TEST_P(server_threads, a_line_reaches_the_clients_of_all_loops_but_its_sender) {
    run([&]() -> task<void> {
        subject server("server", with({}));
        co_await server.start();
        std::vector<talker> all = co_await join_all(server, 6);
        for (std::size_t sender = 0; sender < all.size(); ++sender) {
            co_await all[sender].say("from " + std::to_string(sender) + "\n");
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (i != sender)
                    EXPECT_EQ(co_await all[i].line(), "from " + std::to_string(sender));
            }
        }
        // One has a line before its loop has counted it.
        co_await until([&] {
            const metrics now = server->count();
            return now.messages_out == 30 && now.latency->count() == 6;
        });
        const metrics counted = server->count();
        EXPECT_EQ(counted.connections_now, 6U);
        EXPECT_EQ(counted.messages_in, 6U);
        EXPECT_EQ(counted.messages_out, 30U);
        EXPECT_EQ(counted.latency->count(), 6U);
        EXPECT_TRUE(server.events.has("3 threads serve its clients"));
        co_await server->stop(0s);
        EXPECT_EQ(server->count().connections_now, 0U);
        EXPECT_EQ(server->count().messages_out, 30U);
    });
}

TEST_P(server_threads, lines_come_whole_and_in_each_senders_order) {
    run([&]() -> task<void> {
        constexpr int clients = 6;
        constexpr int lines = 300;
        subject server("server", with({}));
        co_await server.start();
        std::vector<talker> all = co_await join_all(server, clients);
        co_await join_scope([&](scope& sending) -> task<void> {
            for (int i = 0; i < clients; ++i) {
                sending.spawn([](talker& by, int number) -> task<void> {
                    for (int n = 0; n < lines; n += 10) {
                        std::string some;
                        for (int k = n; k < n + 10; ++k)
                            some += std::to_string(number) + ":" + std::to_string(k) + "\n";
                        co_await by.say(some);
                        co_await loop::current().yield();
                    }
                }(all[static_cast<std::size_t>(i)], i));
            }
            co_return;
        });
        for (int i = 0; i < clients; ++i) {
            std::vector<int> next(clients, 0);
            for (int got = 0; got < (clients - 1) * lines; ++got) {
                const std::string line = co_await all[static_cast<std::size_t>(i)].line();
                const auto from = static_cast<std::size_t>(std::stoi(line));
                EXPECT_NE(from, static_cast<std::size_t>(i));
                EXPECT_EQ(line, std::to_string(from) + ":" + std::to_string(next[from]++));
            }
        }
        co_await server->stop(0s);
    });
}

TEST_P(server_threads, the_limit_of_connections_holds_across_loops) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_connections", 4}}));
        co_await server.start();
        std::vector<talker> all = co_await join_all(server, 4);
        talker late = co_await talker::to(server->local());
        EXPECT_EQ(co_await late.rest(), "error: the server is full; try again later\n");
        must_do(server->apply(server.parse(with({{"max_connections", 5}}))));
        all.push_back(co_await join(server));
        co_await all.back().say("in\n");
        EXPECT_EQ(co_await all.front().line(), "in");
        co_await server->stop(0s);
    });
}

TEST_P(server_threads, the_global_rate_is_shared_across_loops) {
    run([&]() -> task<void> {
        subject server("server", with({{"global_rate_limit", 20}}));
        co_await server.start();
        std::vector<talker> all = co_await join_all(server, 3);
        std::string lines;
        for (int i = 0; i < 15; ++i) lines += "line\n";
        const time_point before = here().now();
        co_await all[0].say(lines);
        co_await all[1].say(lines);
        for (int i = 0; i < 30; ++i) EXPECT_EQ(co_await all[2].line(), "line");
        EXPECT_GE(here().now() - before, 490ms);
        co_await server->stop(0s);
    });
}

TEST_P(server_threads, a_reader_too_slow_on_another_loop_is_disconnected) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_queue", "256k"}, {"slow_reader", "disconnect"}}));
        co_await server.start();
        talker never_reads = co_await join(server);
        talker sender = co_await join(server);
        co_await say_until_other_is_disconnected(sender, server);
        EXPECT_TRUE(server.events.has("client 1 reads too slowly: disconnected"));
        EXPECT_GE(server->count().dropped, 1U);
        EXPECT_EQ((co_await never_reads.rest()).find_first_not_of("x\n"), std::string::npos);
        co_await server->stop(0s);
    });
}

TEST_P(server_threads, senders_wait_for_a_slow_reader_on_another_loop_and_nothing_is_lost) {
    run([&]() -> task<void> {
        subject server("server",
                       with({{"max_queue", "64k"}, {"max_line", "4k"}, {"slow_reader", "wait"}}));
        co_await server.start();
        talker slow = co_await join(server);
        talker sender = co_await join(server);
        constexpr int lines = 20'000;
        int sent = 0;
        co_await with_scope([&](scope& sending) -> task<void> {
            sending.spawn([](talker& by, int& count) -> task<void> {
                for (; count < lines; ++count)
                    co_await by.say(std::to_string(count) + " " + std::string(1000, 'x') + "\n");
            }(sender, sent));
            // Until the sender waits, too.
            for (int before = -1; before != sent;) {
                before = sent;
                static_cast<void>(co_await here().sleep_for(100ms));
            }
            EXPECT_LT(sent, lines);
            for (int i = 0; i < lines; ++i) {
                const std::string line = co_await slow.line();
                EXPECT_EQ(line.substr(0, line.find(' ')), std::to_string(i));
            }
        });
        EXPECT_EQ(server->count().dropped, 0U);
        co_await server->stop(0s);
    });
}

TEST_P(server_threads, a_message_to_send_reaches_the_clients_of_all_loops) {
    run([&]() -> task<void> {
        for (const std::string policy : {"disconnect", "wait"}) {
            subject server("server", with({{"slow_reader", policy}}));
            co_await server.start();
            std::vector<talker> all = co_await join_all(server, 5);
            EXPECT_EQ(must_do(co_await server->send("first")), 5U);
            EXPECT_EQ(must_do(co_await server->send("second")), 5U);
            for (talker& each : all) {
                EXPECT_EQ(co_await each.line(), "first");
                EXPECT_EQ(co_await each.line(), "second");
            }
            EXPECT_EQ(server->count().latency->count(), 2U);
            co_await server->stop(0s);
        }
    });
}

TEST_P(server_threads, a_stop_passes_on_what_has_come) {
    run([&]() -> task<void> {
        subject server("server", with({}));
        co_await server.start();
        std::vector<talker> all = co_await join_all(server, 4);
        std::string lines;
        for (int i = 0; i < 2000; ++i) lines += std::to_string(i) + "\n";
        co_await all[0].say(lines);
        co_await until([&] { return server->count().messages_in == 2000; });
        co_await server->stop(10s);
        for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(co_await all[i].rest(), lines);
    });
}

TEST_P(server_threads, the_log_has_the_lines_of_all_loops) {
    if (simulated()) GTEST_SKIP() << "an hour passes at once there, and the disk has a thread";
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject server("server", with({{"log", folder.file("log")}}));
        co_await server.start();
        std::vector<talker> all = co_await join_all(server, 3);
        std::multiset<std::string> said;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::string line = "of " + std::to_string(i);
            said.insert(line);
            co_await all[i].say(line + "\n");
        }
        co_await until([&] { return server->count().messages_in == 3; });
        co_await server->stop(1s);
        std::ifstream file(folder.file("log"));
        std::multiset<std::string> logged;
        for (std::string line; std::getline(file, line);) logged.insert(line);
        EXPECT_EQ(logged, said);
    });
}

TEST_P(server_threads, a_server_starts_again_after_a_stop) {
    run([&]() -> task<void> {
        subject server("server", with({}));
        for (int round = 0; round < 3; ++round) {
            co_await server.start();
            std::vector<talker> all = co_await join_all(server, 3);
            co_await all[0].say("hello\n");
            EXPECT_EQ(co_await all[2].line(), "hello");
            co_await server->stop(0s);
        }
        EXPECT_EQ(server->count().connections_total, 9U);
    });
}

}  // namespace
}  // namespace eddy::runtime
