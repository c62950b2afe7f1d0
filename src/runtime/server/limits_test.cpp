// Tests of the server's limits: connections, lines, rates, idle clients, slow readers.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(server_limits);

task<talker> join(subject& server) {
    const std::uint64_t before = server->count().connections_now;
    talker made = co_await talker::to(server->local());
    co_await until([&] { return server->count().connections_now > before; });
    co_return made;
}

TEST_P(server_limits, connections_over_the_limit_get_the_reason_and_are_closed) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_connections", 2}}));
        co_await server.start();
        talker a = co_await join(server);
        {
            talker b = co_await join(server);
            for (int i = 0; i < 3; ++i) {
                talker late = co_await talker::to(server->local());
                EXPECT_EQ(co_await late.rest(), "error: the server is full; try again later\n");
            }
        }
        co_await until([&] { return server->count().connections_now == 1; });
        talker c = co_await join(server);
        co_await a.say("room again\n");
        EXPECT_EQ(co_await c.line(), "room again");

        const metrics counted = server->count();
        EXPECT_EQ(counted.connections_now, 2U);
        EXPECT_EQ(counted.connections_total, 3U);
        EXPECT_EQ(counted.connections_refused, 3U);
        EXPECT_TRUE(server.events.has("2 connections, which is the limit"));
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, raw_clients_over_the_limit_are_reset_without_a_word) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_connections", 1}, {"framing", "raw"}}));
        co_await server.start();
        talker a = co_await join(server);
        // It may be reset before connect() has returned.
        result<stream> late = co_await here().connect(server->local());
        if (late) {
            talker client(std::move(*late));
            const last_bytes rest = co_await rest_of(client);
            EXPECT_EQ(rest.text, "");
            EXPECT_EQ(rest.end, errno_code(ECONNRESET));
        }
        co_await until([&] { return server->count().connections_refused == 1; });
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, what_many_clients_do_is_noted_once_a_minute) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        for (int i = 0; i < 20; ++i) {
            talker client = co_await talker::to(server->local());
            co_await client.say(std::string("\x16\x03\x01\x02\x00\x01\x00", 7));
            EXPECT_EQ(co_await client.rest(), "");
        }
        EXPECT_EQ(server->count().errors, 20U);
        co_await server->stop(0s);
        EXPECT_EQ(std::ranges::count_if(server.events.lines,
                                        [](const std::string& line) {
                                            return line.contains("it began a TLS handshake");
                                        }),
                  1);
    });
}

TEST_P(server_limits, a_raised_limit_holds_at_once) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_connections", 1}}));
        co_await server.start();
        talker a = co_await join(server);
        must_do(server->apply(server.parse(with({{"max_connections", 2}}))));
        talker b = co_await join(server);
        co_await a.say("hello\n");
        EXPECT_EQ(co_await b.line(), "hello");
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, the_longest_line_passes_and_one_byte_more_does_not) {
    run([&]() -> task<void> {
        for (const std::size_t most : {std::size_t{1}, std::size_t{100}, std::size_t{64 * 1024}}) {
            subject server("server", with({{"max_line", most}}));
            co_await server.start();
            talker a = co_await join(server);
            talker b = co_await join(server);
            const std::string longest(most, 'x');
            co_await a.say(longest + "\n" + longest + "\n");
            EXPECT_EQ(co_await b.line(), longest);
            EXPECT_EQ(co_await b.line(), longest);
            co_await a.say("y\n" + longest + "x\nnever\n");
            EXPECT_EQ(co_await b.line(), "y");
            EXPECT_THAT(co_await a.rest(), HasSubstr("error: a line is longer than "));
            a.socket.close();
            co_await until([&] { return server->count().connections_now == 1; });
            EXPECT_EQ(server->count().errors, 1U);
            EXPECT_TRUE(server.events.has("it sent a line longer than"));
            EXPECT_EQ(must_do(co_await server->send("end")), 1U);
            EXPECT_EQ(co_await b.line(), "end");
            co_await server->stop(0s);
        }
    });
}

TEST_P(server_limits, an_endless_line_is_cut_off_before_it_ends) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_line", 1000}}));
        co_await server.start();
        talker a = co_await join(server);
        // The server may close before it has seen all of it.
        (void)co_await a.socket.write_all(std::string_view(std::string(1001, 'x')));
        EXPECT_THAT(co_await a.rest(), HasSubstr("longer than 1000B"));
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, a_client_over_its_rate_is_slowed_down_and_loses_nothing) {
    run([&]() -> task<void> {
        subject server("server", with({{"rate_limit", 20}}));
        co_await server.start();
        talker fast = co_await join(server);
        talker other = co_await join(server);
        std::string lines;
        for (int i = 0; i < 30; ++i) lines += std::to_string(i) + "\n";
        const time_point before = here().now();
        co_await fast.say(lines);
        for (int i = 0; i < 20; ++i) EXPECT_EQ(co_await other.line(), std::to_string(i));
        // The burst is used up: each of the rest has to wait for a twentieth of a second. Another
        // client's share is its own.
        co_await other.say("mine\n");
        EXPECT_EQ(co_await fast.line(), "mine");
        for (int i = 20; i < 30; ++i) EXPECT_EQ(co_await other.line(), std::to_string(i));
        EXPECT_GE(here().now() - before, 490ms);
        EXPECT_EQ(server->count().messages_in, 31U);
        EXPECT_EQ(server->count().dropped, 0U);
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, the_global_rate_is_shared) {
    run([&]() -> task<void> {
        subject server("server", with({{"global_rate_limit", 20}}));
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        talker reader = co_await join(server);
        std::string lines;
        for (int i = 0; i < 15; ++i) lines += "line\n";
        const time_point before = here().now();
        co_await a.say(lines);
        co_await b.say(lines);
        for (int i = 0; i < 30; ++i) EXPECT_EQ(co_await reader.line(), "line");
        EXPECT_GE(here().now() - before, 490ms);
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, a_rate_that_is_lifted_lets_waiting_lines_go_on) {
    run([&]() -> task<void> {
        subject server("server", with({{"rate_limit", 10}}));
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        std::string lines;
        for (int i = 0; i < 2000; ++i) lines += "line\n";
        co_await a.say(lines);
        EXPECT_EQ(co_await b.line(), "line");
        must_do(server->apply(server.parse(with({{"rate_limit", 0}}))));
        for (int i = 1; i < 2000; ++i) EXPECT_EQ(co_await b.line(), "line");
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, raw_reads_are_paced_too) {
    run([&]() -> task<void> {
        subject server("server", with({{"rate_limit", 10}, {"framing", "raw"}}));
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        const time_point before = here().now();
        for (int i = 0; i < 12; ++i) {
            co_await a.say("x");
            EXPECT_EQ(co_await b.bytes(1), "x");
        }
        EXPECT_GE(here().now() - before, 190ms);
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, idle_clients_are_closed_and_busy_ones_are_not) {
    run([&]() -> task<void> {
        // With clocks that do not wait for us, long enough for both to be there at once.
        subject server("server", with({{"idle_timeout", simulated() ? "200ms" : "2s"}}));
        co_await server.start();
        const time_point before = here().now();
        talker idle = co_await join(server);
        talker half = co_await join(server);
        co_await half.say("no newline");
        EXPECT_EQ(co_await idle.rest(), "");
        EXPECT_GE(here().now() - before, 200ms);
        EXPECT_EQ(co_await half.rest(), "");
        EXPECT_EQ(server->count().connections_now, 0U);

        if (!simulated()) {  // a busy machine may be slower than the limit
            co_await server->stop(0s);
            co_return;
        }
        // Sending and receiving both count.
        talker sender = co_await join(server);
        talker listener = co_await join(server);
        for (int i = 0; i < 10; ++i) {
            static_cast<void>(co_await here().sleep_for(50ms));
            co_await sender.say("tick\n");
            EXPECT_EQ(co_await listener.line(), "tick");
        }
        EXPECT_EQ(server->count().connections_now, 2U);
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, a_reader_too_slow_is_disconnected_with_its_memory_bounded) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_queue", "256k"}, {"slow_reader", "disconnect"}}));
        co_await server.start();
        talker never_reads = co_await join(server);
        talker sender = co_await join(server);
        co_await say_until_other_is_disconnected(sender, server);
        EXPECT_TRUE(server.events.has("client 1 reads too slowly: disconnected"));
        EXPECT_GE(server->count().dropped, 1U);
        // Its bytes are whole lines in order, cut off anywhere.
        EXPECT_EQ((co_await never_reads.rest()).find_first_not_of("x\n"), std::string::npos);
        co_await sender.say("go on\n");
        talker third = co_await join(server);
        co_await sender.say("third\n");
        std::string got = co_await third.line();
        while (got != "third") got = co_await third.line();
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, a_slow_reader_loses_the_oldest_whole_lines) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_queue", "256k"}, {"slow_reader", "drop-oldest"}}));
        co_await server.start();
        talker slow = co_await join(server);
        talker sender = co_await join(server);
        int sent = 0;
        while (server->count().dropped < 100) {
            if (sent > 100'000) throw std::runtime_error("nothing is ever dropped");
            co_await sender.say(std::to_string(sent++) + " " + std::string(1000, 'x') + "\n");
            co_await here().yield();
        }
        co_await sender.say("end\n");
        int last = -1;
        int got = 0;
        for (std::string line = co_await slow.line(); line != "end"; line = co_await slow.line()) {
            EXPECT_EQ(line.size(), line.find(' ') + 1001);
            const int number = std::stoi(line);
            EXPECT_GT(number, last);
            last = number;
            ++got;
        }
        EXPECT_EQ(last, sent - 1);
        EXPECT_LT(got, sent);
        EXPECT_EQ(server->count().connections_now, 2U);
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, every_message_is_counted_as_sent_or_dropped) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_queue", "256k"}, {"slow_reader", "drop-oldest"}}));
        co_await server.start();
        talker slow = co_await join(server);
        talker sender = co_await join(server);
        std::string lines;
        for (int i = 0; i < 20; ++i) lines += std::string(499, 'x') + "\n";
        std::uint64_t sent = 0;
        while (server->count().dropped < 1000) {
            if (sent > 200'000) throw std::runtime_error("nothing is ever dropped");
            co_await sender.say(lines);
            sent += 20;
            co_await here().yield();
        }
        co_await sender.say("end\n");
        ++sent;
        std::uint64_t got = 1;
        for (std::string line = co_await slow.line(); line != "end"; line = co_await slow.line())
            ++got;
        co_await until([&] {
            const metrics counted = server->count();
            return counted.messages_out + counted.dropped == sent;
        });
        const metrics counted = server->count();
        EXPECT_EQ(counted.messages_in, sent);
        EXPECT_EQ(counted.messages_out, got);
        EXPECT_EQ(counted.bytes_out, (got - 1) * 500 + 4);
        co_await server->stop(0s);
    });
}

/// Lines of a kilobyte. Where tcp_rmem(7) allows it, the two sockets take up to 36 MiB by
/// themselves.
constexpr int more_than_sockets_hold = 45'000;

TEST_P(server_limits, senders_wait_for_a_slow_reader_and_nothing_is_lost) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_queue", "256k"}, {"slow_reader", "wait"}}));
        co_await server.start();
        talker slow = co_await join(server);
        talker sender = co_await join(server);
        constexpr int lines = more_than_sockets_hold;
        struct writing {
            static task<void> all(talker& from) {
                for (int i = 0; i < lines; ++i)
                    co_await from.say(std::to_string(i) + " " + std::string(1000, 'x') + "\n");
            }
        };
        scope tasks(co_await current_source());
        tasks.spawn(writing::all(sender));
        // The sender is held back: it comes to rest long before its end.
        std::uint64_t before = 0;
        do {
            before = server->count().messages_in;
            static_cast<void>(co_await here().sleep_for(50ms));
        } while (server->count().messages_in != before || before == 0);
        EXPECT_LT(before, static_cast<std::uint64_t>(lines));
        if (simulated()) {  // elsewhere this would take its five seconds
            const auto busy = co_await server->send("urgent");
            EXPECT_EQ(busy.error().status, 503);
            EXPECT_THAT(busy.error().message, HasSubstr("reads too slowly"));
        }

        for (int i = 0; i < lines; ++i) {
            const std::string line = co_await slow.line();
            EXPECT_EQ(std::stoi(line), i);
            EXPECT_EQ(line.size(), line.find(' ') + 1001);
        }
        co_await tasks.join();
        EXPECT_EQ(server->count().dropped, 0U);
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, senders_go_on_when_the_slow_reader_leaves) {
    run([&]() -> task<void> {
        subject server("server",
                       with({{"max_queue", "64k"}, {"max_line", "8k"}, {"slow_reader", "wait"}}));
        co_await server.start();
        talker sender = co_await join(server);
        talker other = co_await join(server);
        static constexpr int lines = more_than_sockets_hold;
        struct tasks_of_test {
            static task<void> send_all(talker& from, bool& done) {
                for (int i = 0; i < lines; ++i) co_await from.say(std::string(1000, 'x') + "\n");
                done = true;
            }
            static task<void> read_all(talker& from) {
                for (int i = 0; i < lines; ++i) co_await from.line();
            }
        };
        bool done = false;
        scope tasks(co_await current_source());
        {
            talker slow = co_await join(server);
            tasks.spawn(tasks_of_test::send_all(sender, done));
            tasks.spawn(tasks_of_test::read_all(other));
            std::uint64_t before = 0;
            do {
                before = server->count().messages_in;
                static_cast<void>(co_await here().sleep_for(50ms));
            } while (server->count().messages_in != before || before == 0);
            EXPECT_FALSE(done);
        }
        co_await tasks.join();
        EXPECT_TRUE(done);
        co_await server->stop(0s);
    });
}

TEST_P(server_limits, a_message_to_send_may_have_half_the_queue) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_queue", "256k"}}));
        co_await server.start();
        talker a = co_await join(server);
        const std::string longest(128 * 1024 - 1, 'x');
        EXPECT_EQ(must_do(co_await server->send(longest)), 1U);
        EXPECT_EQ(co_await a.line(), longest);
        const auto refused = co_await server->send(longest + "x");
        EXPECT_EQ(refused.error().status, 400);
        EXPECT_THAT(refused.error().message, HasSubstr("at most 131072"));
        co_await server->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
