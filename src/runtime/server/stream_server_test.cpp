// Tests of the server runtime over streams: recipients, framings, start and stop.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(stream_server);

/// A client that the server knows of: `eddy send` has reached it.
task<talker> join(subject& server) {
    const std::uint64_t before = server->count().connections_now;
    talker made = co_await talker::to(server->local());
    co_await until([&] { return server->count().connections_now > before; });
    co_return made;
}

TEST_P(stream_server, a_line_reaches_every_client_but_its_sender) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        talker c = co_await join(server);
        co_await a.say("hello\n");
        EXPECT_EQ(co_await b.line(), "hello");
        EXPECT_EQ(co_await c.line(), "hello");
        co_await b.say("hi\n");
        EXPECT_EQ(co_await a.line(), "hi");
        EXPECT_EQ(co_await c.line(), "hi");

        const metrics counted = server->count();
        EXPECT_EQ(counted.connections_now, 3U);
        EXPECT_EQ(counted.connections_total, 3U);
        EXPECT_EQ(counted.messages_in, 2U);
        EXPECT_EQ(counted.messages_out, 4U);
        EXPECT_EQ(counted.bytes_in, 9U);
        EXPECT_EQ(counted.bytes_out, 18U);
        EXPECT_EQ(counted.latency->count(), 2U);
        co_await server->stop(0s);
    });
}

TEST_P(stream_server, lines_of_many_in_one_turn_come_whole_and_in_each_senders_order) {
    run([&]() -> task<void> {
        constexpr int clients = 8;
        constexpr int lines = 50;
        subject server("server", any_port);
        co_await server.start();
        std::vector<talker> all;
        for (int i = 0; i < clients; ++i) all.push_back(co_await join(server));
        for (int n = 0; n < lines; ++n) {
            for (int i = 0; i < clients; ++i)
                co_await all[static_cast<std::size_t>(i)].say(std::to_string(i) + ":" +
                                                              std::to_string(n) + "\n");
        }
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

TEST_P(stream_server, a_line_may_arrive_in_pieces_and_many_in_one) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        for (const char* piece : {"on", "e\ntw", "o\r\nthree\n", "\n", "fo", "ur\n"}) {
            co_await a.say(piece);
            static_cast<void>(co_await here().sleep_for(1ms));
        }
        for (const char* line : {"one", "two\r", "three", "", "four"})
            EXPECT_EQ(co_await b.line(), line);
        EXPECT_EQ(server->count().messages_in, 5U);
        co_await server->stop(0s);
    });
}

TEST_P(stream_server, a_last_line_without_newline_is_a_line) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        co_await a.say("whole\npart");
        must(a.socket.shutdown_write());
        EXPECT_EQ(co_await b.line(), "whole");
        EXPECT_EQ(co_await b.line(), "part");
        EXPECT_EQ(co_await a.rest(), "");
        co_await until([&] { return server->count().connections_now == 1; });
        co_await server->stop(0s);
    });
}

TEST_P(stream_server, a_client_that_stops_sending_still_gets_what_was_sent_before) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        co_await b.say("for a\n");
        EXPECT_EQ(co_await a.line(), "for a");
        must(a.socket.shutdown_write());
        EXPECT_EQ(co_await a.rest(), "");
        co_await server->stop(0s);
    });
}

TEST_P(stream_server, send_reaches_everyone_and_says_how_many) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        EXPECT_EQ(must_do(co_await server->send("to nobody")), 0U);
        talker a = co_await join(server);
        talker b = co_await join(server);
        EXPECT_EQ(must_do(co_await server->send("news")), 2U);
        EXPECT_EQ(must_do(co_await server->send("more\nlines\n")), 2U);
        for (talker* t : {&a, &b}) {
            EXPECT_EQ(co_await t->line(), "news");
            EXPECT_EQ(co_await t->line(), "more");
            EXPECT_EQ(co_await t->line(), "lines");
        }
        EXPECT_EQ(server->count().messages_out, 6U);
        co_await server->stop(0s);
        const auto refused = co_await server->send("late");
        EXPECT_EQ(refused.error().status, 409);
        EXPECT_THAT(refused.error().message, HasSubstr("eddy start subject"));
    });
}

TEST_P(stream_server, raw_bytes_pass_unchanged) {
    run([&]() -> task<void> {
        subject server("server", with({{"framing", "raw"}}));
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        const std::string bytes("\0\n\xff no newline", 15);
        co_await a.say(bytes);
        EXPECT_EQ(co_await b.bytes(bytes.size()), bytes);
        EXPECT_EQ(must_do(co_await server->send("x")), 2U);
        EXPECT_EQ(co_await b.bytes(1), "x");
        co_await server->stop(0s);
    });
}

TEST_P(stream_server, one_connection_gone_leaves_the_others_alone) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        talker a = co_await join(server);
        talker b = co_await join(server);
        {
            talker gone = co_await join(server);
            co_await gone.say("unfinished");
        }
        co_await until([&] { return server->count().connections_now == 2; });
        co_await a.say("still here\n");
        // The unfinished line comes first, unless the connection was reset.
        std::string line = co_await b.line();
        if (line == "unfinished") line = co_await b.line();
        EXPECT_EQ(line, "still here");
        co_await server->stop(0s);
    });
}

TEST_P(stream_server, a_thousand_clients_that_come_and_vanish_leave_nothing) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        co_await server.start();
        constexpr std::uint64_t clients = 1000;
        for (std::uint64_t i = 0; i < clients; ++i) {
            talker t = co_await talker::to(server->local());
            if (i % 3 == 1) co_await t.say("line " + std::to_string(i) + "\n");
            if (i % 3 == 2) co_await t.say("part of a line");
        }
        co_await until([&] {
            const metrics c = server->count();
            return c.connections_total == clients && c.connections_now == 0;
        });
        EXPECT_EQ(server->count().connections_refused, 0U);
        EXPECT_EQ(must_do(co_await server->send("anybody there?")), 0U);
        co_await server->stop(0s);
        EXPECT_EQ(server->count().connections_now, 0U);
    });
}

TEST_P(stream_server, it_starts_again_after_a_stop) {
    run([&]() -> task<void> {
        subject server("server", any_port);
        for (int round = 0; round < 3; ++round) {
            EXPECT_EQ(server->local().family(), AF_UNSPEC);
            co_await server.start();
            EXPECT_NE(server->local().port(), 0);
            EXPECT_THAT(co_await server.failure_to_start(), HasSubstr("runs already"));
            talker a = co_await join(server);
            talker b = co_await join(server);
            co_await a.say("round\n");
            EXPECT_EQ(co_await b.line(), "round");
            co_await server->stop(0s);
            co_await server->stop(0s);
            EXPECT_EQ(co_await a.rest(), "");
            EXPECT_EQ(server->count().connections_now, 0U);
        }
        EXPECT_EQ(server->count().connections_total, 6U);
    });
}

TEST_P(stream_server, stopping_refuses_new_clients_and_delivers_what_is_queued) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_queue", "8M"}}));
        co_await server.start();
        talker reader = co_await join(server);
        // More than the sockets between them hold, so that a queue builds up.
        const std::string message((4 << 20) - 1, 'x');
        EXPECT_EQ(must_do(co_await server->send(message)), 1U);

        scope stopping(co_await current_source());
        stopping.spawn(server->stop(30s));
        static_cast<void>(co_await here().sleep_for(1ms));
        EXPECT_FALSE(co_await here().connect(server->local()));
        EXPECT_EQ((co_await reader.rest()).size(), message.size() + 1);
        co_await stopping.join();
        EXPECT_EQ(server->count().connections_now, 0U);
    });
}

TEST_P(stream_server, a_drain_that_takes_too_long_is_cut_off) {
    run([&]() -> task<void> {
        subject server("server", with({{"max_queue", "64M"}}));
        co_await server.start();
        talker never_reads = co_await join(server);
        EXPECT_EQ(must_do(co_await server->send(std::string(30 << 20, 'x'))), 1U);
        const time_point before = here().now();
        co_await server->stop(20ms);
        EXPECT_GE(here().now() - before, 20ms);
        EXPECT_EQ(server->count().connections_now, 0U);
    });
}

TEST_P(stream_server, the_second_on_a_port_names_the_first_in_its_error) {
    run([&]() -> task<void> {
        const neighbours both;
        subject first("server", any_port, "first", both);
        co_await first.start();
        json same = any_port;
        same["port"] = first->local().port();
        subject second("server", same, "second", both);
        const std::string told = co_await second.failure_to_start();
        EXPECT_THAT(told, HasSubstr("the runtime first serves on TCP port " +
                                    std::to_string(first->local().port())));
        EXPECT_THAT(told, HasSubstr("eddy stop first"));
        co_await first->stop(0s);
        co_await second.start();
        co_await second->stop(0s);
    });
}

TEST_P(stream_server, a_port_of_another_program_is_named_with_what_to_do) {
    run([&]() -> task<void> {
        listener other = must(here().listen(loopback()));
        json same = any_port;
        same["port"] = other.local().port();
        subject server("server", same);
        auto started = co_await server->start();
        EXPECT_EQ(started.error().status, 409);
        EXPECT_THAT(started.error().message, HasSubstr("in use by another program"));
        EXPECT_THAT(started.error().message, HasSubstr("ss -lpnt"));
        EXPECT_EQ(server->local().family(), AF_UNSPEC);
    });
}

}  // namespace
}  // namespace eddy::runtime
