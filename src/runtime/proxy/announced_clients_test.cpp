// PROXY headers of a proxy: of clients that another proxy announces, and for backends.
#include <eddy/net/unix.hpp>

#include "runtime/proxy/testing.hpp"
#include "wire/proxy_protocol/transcript.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using namespace proxy::testing;
using ::testing::HasSubstr;

class announced_clients : public on_io_backend {};
INSTANTIATE_TEST_SUITE_P(io, announced_clients,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

const std::string header = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n";

TEST_P(announced_clients, are_announced_to_backends_in_turn) {
    run([]() -> task<void> {
        for (const int threads : {1, 2}) {
            backend_end backend;
            subject s("proxy", before({backend.address()}, {{"accept_proxy", "127.0.0.0/8"},
                                                            {"send_proxy", "v1"},
                                                            {"threads", threads}}));
            co_await s.start();
            talker client = co_await talker::to(s->local());
            // The first bytes come with the header, and follow it.
            co_await client.say(header + "hello\n");
            talker to = co_await backend.accept();
            EXPECT_EQ(co_await to.line() + "\n", header);
            EXPECT_EQ(co_await to.line(), "hello");
            co_await to.say("answer\n");
            EXPECT_EQ(co_await client.line(), "answer");
            EXPECT_EQ(by_backend(s, "backend_bytes_sent_total")[backend.name()],
                      static_cast<double>(header.size() + 6));
            co_await s->stop(0s);
        }
    });
}

TEST_P(announced_clients, of_a_server_that_speaks_first_are_announced_before_any_byte) {
    run([]() -> task<void> {
        backend_end backend;
        subject s("proxy", before({backend.address()}, {{"send_proxy", "v2"}}));
        co_await s.start();
        tunnel_ends t = co_await through(s, backend);
        const std::string got = co_await t.backend.bytes(28);
        EXPECT_EQ(proxy_protocol::transcript(got, {}),
                  "127.0.0.1|" + std::to_string(t.client.socket.local().port()) + " > 127.0.0.1|" +
                      std::to_string(s->local().port()) + ", 0 behind it");
        co_await t.backend.say("welcome\n");
        EXPECT_EQ(co_await t.client.line(), "welcome");
        co_await s->stop(0s);
    });
}

TEST_P(announced_clients, of_a_unix_socket_have_no_address) {
    run([]() -> task<void> {
        for (const std::string& version : {std::string("v1"), std::string("v2")}) {
            const temporary_folder folder;
            backend_end backend;
            subject s("proxy", {{"unix", folder.file("s")},
                                {"backend", backend.address()},
                                {"send_proxy", version}});
            co_await s.start();
            talker client = co_await talker::to(s->local());
            talker to = co_await backend.accept();
            if (version == "v1")
                EXPECT_EQ(co_await to.line(), "PROXY UNKNOWN\r");
            else
                EXPECT_EQ(proxy_protocol::transcript(co_await to.bytes(16), {}),
                          "own addresses, 0 behind it");
            co_await client.say("hello\n");
            EXPECT_EQ(co_await to.line(), "hello");
            co_await s->stop(0s);
        }
    });
}

TEST_P(announced_clients, come_from_trusted_peers_alone) {
    run([]() -> task<void> {
        backend_end backend;
        subject s("proxy", before({backend.address()}, {{"accept_proxy", "10.0.0.1,unix"}}));
        co_await s.start();
        tunnel_ends t = co_await through(s, backend);
        co_await t.client.say(header);
        EXPECT_EQ(co_await t.backend.line() + "\n", header);
        co_await s->stop(0s);
    });
}

TEST_P(announced_clients, with_a_malformed_header_reach_no_backend) {
    run([]() -> task<void> {
        backend_end backend;
        subject s("proxy", before({backend.address()}, {{"accept_proxy", "127.0.0.1"}}));
        co_await s.start();
        for (int i = 0; i < 3; ++i) {
            talker client = co_await talker::to(s->local());
            co_await client.say("PROXY TCP4 192.0.2.7\r\n");
            EXPECT_EQ(co_await client.rest(), "");
        }
        EXPECT_EQ(s->count().errors, 3U);
        EXPECT_EQ(by_backend(s, "backend_connections_total")[backend.name()], 0);
        EXPECT_EQ(s->count().handshakes_now, 0U);
        co_await s->stop(0s);
        EXPECT_TRUE(s.events.has("2 more connections had no valid PROXY header"));
    });
}

TEST_P(announced_clients, are_no_failure_where_a_health_check_only_connects) {
    run([]() -> task<void> {
        backend_end backend;
        subject s("proxy", before({backend.address()}, {{"accept_proxy", "127.0.0.1"}}));
        co_await s.start();
        {
            const talker checks = co_await talker::to(s->local());
        }
        {
            talker resets = co_await talker::to(s->local());
            resets.socket.abort();
        }
        talker client = co_await talker::to(s->local());
        co_await client.say(header);
        talker to = co_await backend.accept();
        co_await until([&] { return s->count().handshakes_now == 0; });
        EXPECT_EQ(s->count().errors, 0U);
        EXPECT_EQ(s->count().connections_total, 1U);
        co_await s->stop(0s);
    });
}

TEST_P(announced_clients, have_as_much_time_as_a_handshake) {
    // Ten seconds of the simulator's.
    if (!simulated()) return;
    run([]() -> task<void> {
        backend_end backend;
        subject s("proxy", before({backend.address()}, {{"accept_proxy", "127.0.0.1"}}));
        co_await s.start();
        talker client = co_await talker::to(s->local());
        co_await client.say("PROXY TCP4 ");
        const time_point begun = loop::current().now();
        EXPECT_EQ(co_await client.rest(), "");
        EXPECT_GE(loop::current().now() - begun, 9s);
        EXPECT_LE(loop::current().now() - begun, 11s);
        EXPECT_TRUE(s.events.has("it was not sent in time"));
        co_await s->stop(0s);
    });
}

TEST_P(announced_clients, end_with_a_stop_while_their_header_is_awaited) {
    run([]() -> task<void> {
        backend_end backend;
        subject s("proxy", before({backend.address()}, {{"accept_proxy", "127.0.0.1"}}));
        co_await s.start();
        talker client = co_await talker::to(s->local());
        co_await until([&] { return s->count().handshakes_now == 1; });
        co_await s->stop(10s);
        EXPECT_EQ(co_await client.rest(), "");
    });
}

TEST_P(announced_clients, of_http_are_in_the_fields_of_requests) {
    run([]() -> task<void> {
        backend_end backend;
        subject s("proxy", before({backend.address()},
                                  {{"accept_proxy", "127.0.0.1"}, {"protocol", "http"}}));
        co_await s.start();
        talker client = co_await talker::to(s->local());
        co_await client.say(header + "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        talker to = co_await backend.accept();
        std::string head;
        for (std::string line = co_await to.line(); line != "\r"; line = co_await to.line())
            head += line + "\n";
        EXPECT_THAT(head, HasSubstr("X-Forwarded-For: 192.0.2.7\r\n"));
        co_await s->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime::proxy
