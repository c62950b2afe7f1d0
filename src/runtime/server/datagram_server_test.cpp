// Tests of the server runtime over UDP.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

class datagram_server : public on_backend {
public:
    /// A UDP socket of a test.
    struct mouth {
        datagram socket;
        endpoint server;

        void say(std::string_view text) { must(socket.send_to(as_bytes(text), server)); }
        task<std::string> hear() {
            auto got = must(co_await socket.receive());
            co_return std::string(got.payload.text());
        }
    };
    mouth opened(subject& server) {
        return {must(here().bind_datagram(loopback())), server->local()};
    }
    /// One that the server knows.
    task<mouth> join(subject& server) {
        const std::uint64_t before = server->count().connections_now;
        mouth made = opened(server);
        made.say("hello");
        co_await until([&] { return server->count().connections_now > before; });
        co_return made;
    }
};
INSTANTIATE_TEST_SUITE_P(io, datagram_server,
                         ::testing::Values(backend_kind::uring, backend_kind::epoll,
                                           backend_kind::sim),
                         eddy::testing::backend_name);

json over_udp(json options) {
    options["udp"] = true;
    return with(std::move(options));
}

TEST_P(datagram_server, a_datagram_reaches_the_other_known_peers) {
    run([&]() -> task<void> {
        subject server("server", over_udp({}));
        co_await server.start();
        mouth a = co_await join(server);
        mouth b = co_await join(server);
        EXPECT_EQ(co_await a.hear(), "hello");
        mouth c = co_await join(server);
        EXPECT_EQ(co_await a.hear(), "hello");
        EXPECT_EQ(co_await b.hear(), "hello");
        a.say("news");
        EXPECT_EQ(co_await b.hear(), "news");
        EXPECT_EQ(co_await c.hear(), "news");
        EXPECT_EQ(must_do(co_await server->send("to all")), 3U);
        EXPECT_EQ(co_await a.hear(), "to all");

        const metrics counted = server->count();
        EXPECT_EQ(counted.connections_now, 3U);
        EXPECT_EQ(counted.connections_total, 3U);
        EXPECT_EQ(counted.messages_in, 4U);
        EXPECT_EQ(counted.messages_out, 3U + 2U + 3U);
        co_await server->stop(1s);
        EXPECT_EQ(server->count().connections_now, 0U);
        EXPECT_EQ((co_await server->send("late")).error().status, 409);
        co_await server.start();
        co_await server->stop(0s);
    });
}

TEST_P(datagram_server, peers_that_are_silent_are_forgotten) {
    if (!simulated()) GTEST_SKIP() << "needs a clock that nothing else disturbs";
    run([&]() -> task<void> {
        subject server("server", over_udp({{"idle_timeout", "100ms"}}));
        co_await server.start();
        mouth silent = co_await join(server);
        mouth speaks = co_await join(server);
        const time_point before = here().now();
        while (server->count().connections_now == 2) {
            static_cast<void>(co_await here().sleep_for(20ms));
            speaks.say("still here");
        }
        EXPECT_GE(here().now() - before, 80ms);
        EXPECT_LE(here().now() - before, 120ms);
        EXPECT_EQ(must_do(co_await server->send("news")), 1U);
        co_await until([&] { return server->count().connections_now == 0; });
        EXPECT_EQ(must_do(co_await server->send("news")), 0U);
        co_await server->stop(0s);
    });
}

TEST_P(datagram_server, without_a_timeout_peers_are_forgotten_after_five_minutes) {
    if (!simulated()) GTEST_SKIP() << "takes five minutes";
    run_with_threads([&]() -> task<void> {
        subject server("server", over_udp({}));
        co_await server.start();
        mouth silent = co_await join(server);
        const time_point before = here().now();
        co_await until([&] { return server->count().connections_now == 0; });
        EXPECT_GE(here().now() - before, 299s);
        EXPECT_LE(here().now() - before, 301s);
        co_await server->stop(0s);
    });
}

TEST_P(datagram_server, a_shorter_timeout_holds_at_once) {
    run([&]() -> task<void> {
        subject server("server", over_udp({}));
        co_await server.start();
        mouth silent = co_await join(server);
        must_do(server->apply(server.parse(over_udp({{"idle_timeout", "30ms"}}))));
        co_await until([&] { return server->count().connections_now == 0; });
        co_await server->stop(0s);
    });
}

TEST_P(datagram_server, peers_over_the_limit_are_not_listened_to) {
    run([&]() -> task<void> {
        subject server("server", over_udp({{"max_connections", 2}}));
        co_await server.start();
        mouth a = co_await join(server);
        mouth b = co_await join(server);
        mouth late = opened(server);
        EXPECT_EQ(co_await a.hear(), "hello");
        late.say("ignored");
        co_await until([&] { return server->count().connections_refused == 1; });
        b.say("heard");
        EXPECT_EQ(co_await a.hear(), "heard");
        EXPECT_EQ(server->count().connections_now, 2U);
        EXPECT_TRUE(server.events.has("2 peers, which is the limit"));
        must_do(server->apply(server.parse(over_udp({{"max_connections", 3}}))));
        late.say("now there is room");
        co_await until([&] { return server->count().connections_now == 3; });
        co_await server->stop(0s);
    });
}

TEST_P(datagram_server, datagrams_over_a_rate_are_dropped_and_counted) {
    run([&]() -> task<void> {
        for (const char* limit : {"rate_limit", "global_rate_limit"}) {
            subject server("server", over_udp({{limit, 5}}));
            co_await server.start();
            mouth a = opened(server);
            for (int i = 0; i < 20; ++i) a.say("x");
            co_await until([&] {
                const metrics c = server->count();
                return c.messages_in + c.dropped == 20;
            });
            EXPECT_GE(server->count().messages_in, 5U);
            if (simulated()) EXPECT_EQ(server->count().messages_in, 5U);
            must_do(server->apply(server.parse(over_udp({{limit, 0}}))));
            const std::uint64_t before = server->count().messages_in;
            for (int i = 0; i < 20; ++i) a.say("x");
            co_await until([&] { return server->count().messages_in == before + 20; });
            co_await server->stop(0s);
        }
    });
}

TEST_P(datagram_server, modes_choose_the_recipients) {
    run([&]() -> task<void> {
        for (const char* mode : {"in", "out"}) {
            subject server("server", over_udp({{"mode", mode}}));
            co_await server.start();
            mouth a = co_await join(server);
            mouth b = co_await join(server);
            const bool only_in = std::string_view(mode) == "in";
            EXPECT_EQ(server->count().messages_in, only_in ? 2U : 0U);
            EXPECT_EQ(server->count().messages_out, 0U);
            const auto sent = co_await server->send("news");
            if (only_in) {
                EXPECT_EQ(sent.error().status, 409);
                EXPECT_TRUE(server.events.has("client 1: hello"));
            } else {
                EXPECT_EQ(sent.value(), 2U);
                EXPECT_EQ(co_await a.hear(), "news");
            }
            co_await server->stop(0s);
        }
    });
}

TEST_P(datagram_server, a_message_must_fit_into_a_datagram) {
    run([&]() -> task<void> {
        subject server("server", over_udp({}));
        co_await server.start();
        const auto refused = co_await server->send(std::string(65'508, 'x'));
        EXPECT_EQ(refused.error().status, 400);
        EXPECT_THAT(refused.error().message, HasSubstr("at most 65507"));
        EXPECT_EQ(must_do(co_await server->send(std::string(65'507, 'x'))), 0U);
        co_await server->stop(0s);
    });
}

TEST_P(datagram_server, the_second_on_a_port_names_the_first_in_its_error) {
    run([&]() -> task<void> {
        const neighbours all;
        subject first("server", over_udp({}), "first", all);
        co_await first.start();
        json same = over_udp({});
        same["port"] = first->local().port();
        subject second("server", same, "second", all);
        EXPECT_THAT(co_await second.failure_to_start(),
                    HasSubstr("the runtime first serves on UDP port"));
        if (simulated()) {  // elsewhere another process may have it
            // TCP has ports of its own.
            same.erase("udp");
            subject third("server", same, "third", all);
            co_await third.start();
            co_await third->stop(0s);
        }
        co_await first->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
