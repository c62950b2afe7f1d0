// Tests of the server runtime over UDP.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

class datagram_server : public on_io_backend {
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
    /// One that the server knows, and sends messages to: it has said "hello" twice.
    task<mouth> join(subject& server) {
        const std::uint64_t before = server->count().bytes_in;
        mouth made = opened(server);
        for (const std::uint64_t sent : {5U, 10U}) {
            made.say("hello");
            co_await until([&] { return server->count().bytes_in >= before + sent; });
        }
        co_return made;
    }
    /// Receives the messages of another one's join().
    static task<void> hear_join(mouth& one) {
        for (int i = 0; i < 2; ++i) EXPECT_EQ(co_await one.hear(), "hello");
    }
};
INSTANTIATE_TEST_SUITE_P(io, datagram_server,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

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
        co_await hear_join(a);
        mouth c = co_await join(server);
        co_await hear_join(a);
        co_await hear_join(b);
        a.say("news");
        EXPECT_EQ(co_await b.hear(), "news");
        EXPECT_EQ(co_await c.hear(), "news");
        EXPECT_EQ(must_do(co_await server->send("to all")), 3U);
        EXPECT_EQ(co_await a.hear(), "to all");

        const metrics counted = server->count();
        EXPECT_EQ(counted.connections_now, 3U);
        EXPECT_EQ(counted.connections_total, 3U);
        EXPECT_EQ(counted.messages_in, 7U);
        EXPECT_EQ(counted.messages_out, 2U + 4U + 2U + 3U);
        co_await server->stop(1s);
        EXPECT_EQ(server->count().connections_now, 0U);
        EXPECT_EQ((co_await server->send("late")).error().status, 409);
        co_await server.start();
        co_await server->stop(0s);
    });
}

TEST_P(datagram_server, what_pages_have_browsers_send_is_dropped_of_a_new_peer) {
    std::string quic("\xc3\0\0\0\1", 5);
    quic.resize(1200, 'q');
    for (const std::string& sent :
         {std::string("\0\x01\0\0\x21\x12\xa4\x42secret secret", 21), quic}) {
        run([&]() -> task<void> {
            subject server("server", over_udp({}));
            co_await server.start();
            mouth a = co_await join(server);
            mouth page = opened(server);
            for (int i = 0; i < 3; ++i) page.say(sent);
            co_await until([&] { return server->count().dropped == 3; });
            EXPECT_EQ(server->count().connections_total, 1U);
            // One that has sent other datagrams may send what it likes.
            mouth b = co_await join(server);
            co_await hear_join(a);
            b.say(sent);
            EXPECT_EQ(co_await a.hear(), sent);
            EXPECT_EQ(server->count().dropped, 3U);
            co_await server->stop(0s);
        });
    }
}

TEST_P(datagram_server, addresses_that_may_be_forged_give_way_at_the_limit) {
    run([&]() -> task<void> {
        subject server("server", over_udp({{"max_connections", 3}}));
        co_await server.start();
        mouth a = co_await join(server);
        std::vector<mouth> once;
        for (std::uint64_t i = 0; i < 5; ++i) {
            once.push_back(opened(server));
            once.back().say("one");
            EXPECT_EQ(co_await a.hear(), "one");
        }
        EXPECT_EQ(server->count().connections_now, 3U);
        EXPECT_EQ(server->count().connections_refused, 0U);
        mouth b = co_await join(server);
        co_await hear_join(a);
        a.say("for b");
        EXPECT_EQ(co_await b.hear(), "for b");
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
        co_await hear_join(a);
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
            EXPECT_EQ(server->count().messages_in, only_in ? 4U : 0U);
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

TEST_P(datagram_server, answers_come_from_the_address_that_a_peer_sends_to) {
    run([&]() -> task<void> {
        for (const char* wildcard : {"*", "0.0.0.0"}) {
            subject server("server", with({{"udp", true}, {"bind", wildcard}}, {{"port", 0}}));
            co_await server.start();
            const endpoint asked = must(endpoint::ip("127.0.0.2", server->local().port()));
            mouth a{must(here().bind_datagram(loopback())), asked};
            // A connected one gets nothing from another address.
            must(a.socket.connect(asked));
            for (int i = 0; i < 2; ++i) must(a.socket.send_to(as_bytes("hello"), {}));
            co_await until([&] { return server->count().bytes_in == 10; });
            mouth b{must(here().bind_datagram(loopback())),
                    must(endpoint::ip("127.0.0.1", server->local().port()))};
            b.say("news");
            EXPECT_EQ(co_await a.hear(), "news");
            EXPECT_EQ(must_do(co_await server->send("to all")), 1U) << "one has spoken once";
            EXPECT_EQ(co_await a.hear(), "to all");
            co_await server->stop(0s);
        }
    });
}

// A group is no address to answer from.
TEST_P(datagram_server, a_peer_that_sends_to_a_broadcast_address_gets_answers) {
    run([&]() -> task<void> {
        subject server("server", with({{"udp", true}, {"bind", "0.0.0.0"}}, {{"port", 0}}));
        co_await server.start();
        datagram_options options;
        options.broadcast = true;
        mouth a{must(here().bind_datagram(loopback(), options)),
                must(endpoint::ip(simulated() ? "255.255.255.255" : "127.255.255.255",
                                  server->local().port()))};
        for (int i = 0; i < 2; ++i) a.say("hello");
        co_await until([&] { return server->count().bytes_in == 10; });
        for (int i = 0; i < 2; ++i) EXPECT_EQ(must_do(co_await server->send("news")), 1U);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(co_await a.hear(), "news");
        co_await server->stop(0s);
    });
}

json at_port(std::uint16_t port) { return with({{"udp", true}, {"port", port}}); }

// The sender's address of a datagram may be forged.
TEST_P(datagram_server, one_forged_datagram_does_not_join_two_servers) {
    run([&]() -> task<void> {
        subject first("server", over_udp({}), "first");
        co_await first.start();
        std::uint16_t port = 0;
        {
            mouth forger = opened(first);
            port = forger.socket.local().port();
            forger.say("forged");
            co_await until([&] { return first->count().connections_now == 1; });
        }
        subject second("server", at_port(port), "second");
        co_await second.start();
        mouth a = co_await join(first);
        mouth b = co_await join(first);
        co_await hear_join(a);
        for (int i = 0; i < 10; ++i) {
            a.say("message");
            EXPECT_EQ(co_await b.hear(), "message");
        }
        EXPECT_EQ(must_do(co_await first->send("to all")), 2U);
        mouth c = co_await join(second);
        EXPECT_EQ(second->count().connections_total, 1U) << "the first server is its peer";
        EXPECT_EQ(second->count().messages_in, 2U);
        EXPECT_EQ(first->count().connections_total, 3U);
        co_await first->stop(0s);
        co_await second->stop(0s);
    });
}

std::uint64_t messages_of(const std::vector<std::unique_ptr<subject>>& servers) {
    std::uint64_t sum = 0;
    for (const auto& each : servers) sum += (*each)->count().messages_in;
    return sum;
}

// As above, by more datagrams: each of three servers is a peer of the other two.
TEST_P(datagram_server, what_servers_forward_to_each_other_ends) {
    run([&]() -> task<void> {
        std::vector<mouth> places;
        for (int i = 0; i < 3; ++i) places.push_back({must(here().bind_datagram(loopback())), {}});
        std::vector<std::unique_ptr<subject>> servers;
        for (mouth& own : places) {
            const std::uint16_t port = own.socket.local().port();
            own.socket.close();
            servers.push_back(std::make_unique<subject>("server", at_port(port)));
            subject& server = *servers.back();
            co_await server.start();
            for (mouth& other : places) {
                if (!other.socket) continue;
                other.server = server->local();
                for (int i = 0; i < 2; ++i) other.say("forged");
            }
        }
        mouth speaker = co_await join(*servers.front());
        for (int i = 0; i < 200; ++i) speaker.say("round and round");
        co_await until([&] { return messages_of(servers) > 1000; });
        std::uint64_t before = 0;
        while (before != messages_of(servers)) {
            before = messages_of(servers);
            must(co_await here().sleep_for(500ms));
        }
        for (auto& each : servers) co_await (*each)->stop(0s);
    });
}

TEST_P(datagram_server, a_peer_over_its_rate_is_heard_again_after_a_second) {
    if (!simulated()) GTEST_SKIP() << "needs a clock that nothing else disturbs";
    run([&]() -> task<void> {
        subject server("server", over_udp({}));
        co_await server.start();
        mouth fast = opened(server);
        mouth slow = opened(server);
        for (int i = 0; i < 1100; ++i) {
            fast.say("x");
            if (i % 100 == 0) must(co_await here().sleep_for(1ms));
        }
        co_await until([&] {
            const metrics now = server->count();
            return now.messages_in + now.dropped == 1100;
        });
        EXPECT_GE(server->count().dropped, 50U) << "1000 are the default";
        slow.say("y");
        co_await until([&] { return server->count().connections_now == 2; });
        const std::uint64_t before = server->count().messages_in;
        must(co_await here().sleep_for(500ms));
        fast.say("x");
        must(co_await here().sleep_for(600ms));
        EXPECT_EQ(server->count().messages_in, before) << "it is heard too early";
        fast.say("x");
        co_await until([&] { return server->count().messages_in == before + 1; });
        co_await server->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
