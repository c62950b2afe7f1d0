// Proxies over UDP: sessions, their backends, limits and expiry.
#include "runtime/proxy/datagram_proxy.hpp"

#include "runtime/proxy/testing.hpp"
#include "runtime/serving/inherited_listeners.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using namespace proxy::testing;
using ::testing::HasSubstr;

class datagram_proxies : public on_io_backend {};
INSTANTIATE_TEST_SUITE_P(io, datagram_proxies,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

/// A socket of the test.
struct peer {
    explicit peer(const char* host = "127.0.0.1", std::uint16_t port = 0)
        : socket(must(loop::current().bind_datagram(must(endpoint::ip(host, port))))) {}

    std::string address() const { return socket.local().to_string(); }
    std::string name() const { return "udp://" + address(); }
    void say(std::string_view text, const endpoint& to) {
        must(socket.send_to(as_bytes(text), to));
    }
    /// The next datagram; `from` is its sender.
    task<std::string> next() {
        auto got = must(co_await with_timeout(20s, socket.receive()));
        from = got.from;
        co_return std::string(got.payload.text());
    }

    datagram socket;
    endpoint from;
};

/// Answers each datagram with its own text before it, until it is cancelled.
task<void> answer_all(peer& by, std::string with) {
    for (;;) {
        auto got = co_await by.socket.receive();
        if (!got) co_return;
        const std::string text = with + std::string(got->payload.text());
        static_cast<void>(by.socket.send_to(as_bytes(text), got->from));
    }
}

json udp_before(const std::vector<std::string>& backends, json options = {}) {
    options["listen"] = "udp://127.0.0.1:0";
    std::string all;
    for (const std::string& each : backends) all += (all.empty() ? "" : ",") + each;
    options["backend"] = all;
    return options;
}

/// Sends until the answer to it comes: datagrams may be lost.
task<std::string> ask(peer& client, std::string text, endpoint to) {
    client.say(text, to);
    co_return co_await client.next();
}

TEST_P(datagram_proxies, pass_datagrams_on_both_ways) {
    run([]() -> task<void> {
        peer backend;
        subject s("proxy", udp_before({backend.address()}));
        co_await s.start();
        peer client;
        client.say("question", s->local());
        EXPECT_EQ(co_await backend.next(), "question");
        backend.say("answer", backend.from);
        EXPECT_EQ(co_await client.next(), "answer");
        EXPECT_EQ(client.from, s->local());
        // Empty ones, and one after another on one session.
        client.say("", s->local());
        const endpoint session = backend.from;
        EXPECT_EQ(co_await backend.next(), "");
        EXPECT_EQ(backend.from, session);
        const std::string large(9000, 'x');
        client.say(large, s->local());
        EXPECT_EQ(co_await backend.next(), large);
        backend.say(large, backend.from);
        EXPECT_EQ(co_await client.next(), large);
        const metrics now = s->count();
        EXPECT_EQ(now.connections_now, 1U);
        EXPECT_EQ(now.messages_in, 3U);
        EXPECT_EQ(now.messages_out, 2U);
        EXPECT_EQ(now.bytes_in, 9008U);
        EXPECT_EQ(now.bytes_out, 9006U);
        EXPECT_EQ(by_backend(s, "backend_bytes_sent_total")[backend.name()], 9008);
        EXPECT_EQ(by_backend(s, "backend_bytes_received_total")[backend.name()], 9006);
        EXPECT_EQ(by_backend(s, "backend_connections")[backend.name()], 1);
        co_await s->stop(0s);
        EXPECT_EQ(s->count().connections_now, 0U);
    });
}

TEST_P(datagram_proxies, give_clients_backends_in_turn_and_keep_them) {
    run([]() -> task<void> {
        peer a;
        peer b;
        scope answering;
        answering.spawn(answer_all(a, "a "));
        answering.spawn(answer_all(b, "b "));
        subject s("proxy", udp_before({a.address(), b.address()}));
        co_await s.start();
        std::vector<peer> clients(6);
        std::map<std::string, int> counts;
        for (peer& each : clients) {
            const std::string first = co_await ask(each, "x", s->local());
            ++counts[first];
            for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await ask(each, "x", s->local()), first);
        }
        EXPECT_EQ(counts, (std::map<std::string, int>{{"a x", 3}, {"b x", 3}}));
        co_await s->stop(0s);
        answering.cancel();
        co_await answering.join();
    });
}

TEST_P(datagram_proxies, move_a_session_whose_backend_refuses) {
    run([]() -> task<void> {
        peer good;
        scope answering;
        answering.spawn(answer_all(good, "good "));
        const std::string dead = peer().address();
        subject s("proxy", udp_before({dead, good.address()}));
        co_await s.start();
        // The first client gets the dead backend; its datagram is lost, and the next one moves it.
        peer client;
        client.say("lost", s->local());
        co_await until(
            [&] { return by_backend(s, "backend_failures_total")["udp://" + dead] == 1; });
        EXPECT_EQ(s->count().connections_now, 1U);
        EXPECT_EQ(co_await ask(client, "x", s->local()), "good x");
        EXPECT_EQ(s->count().connections_now, 1U);
        EXPECT_EQ(by_backend(s, "backend_connections")["udp://" + dead], 0);
        EXPECT_TRUE(s.events.has("a backend failed: udp://" + dead));
        co_await s->stop(0s);
        answering.cancel();
        co_await answering.join();
    });
}

TEST_P(datagram_proxies, eject_a_backend_that_refuses) {
    run([]() -> task<void> {
        peer good;
        scope answering;
        answering.spawn(answer_all(good, "good "));
        const std::string dead = peer().address();
        subject s("proxy", udp_before({dead, good.address()}));
        co_await s.start();
        std::vector<peer> clients(10);
        const auto failures = [&] {
            return by_backend(s, "backend_failures_total")["udp://" + dead];
        };
        for (peer& each : clients) {
            each.say("x", s->local());
            const double before = failures();
            for (int i = 0; i < 20 && failures() == before; ++i)
                must(co_await loop::current().sleep_for(1ms));
        }
        EXPECT_EQ(by_backend(s, "backend_up")["udp://" + dead], 0);
        EXPECT_GE(failures(), 3);
        EXPECT_LE(failures(), 5);
        co_await s->stop(0s);
        answering.cancel();
        co_await answering.join();
    });
}

TEST_P(datagram_proxies, drop_datagrams_that_no_backend_takes) {
    run([]() -> task<void> {
        subject s("proxy", udp_before({"no-such-runtime"}));
        co_await s.start();
        peer client;
        client.say("x", s->local());
        co_await until([&] { return s->count().dropped == 1; });
        EXPECT_TRUE(s.events.has("a datagram was dropped: no backend takes it"));
        co_await s->stop(0s);
    });
}

TEST_P(datagram_proxies, end_idle_sessions) {
    run([]() -> task<void> {
        peer backend;
        subject s("proxy", udp_before({backend.address()}, {{"idle_timeout", "100ms"}}));
        co_await s.start();
        peer client;
        client.say("one", s->local());
        EXPECT_EQ(co_await backend.next(), "one");
        co_await until([&] { return s->count().connections_now == 0; });
        EXPECT_EQ(by_backend(s, "backend_connections")[backend.name()], 0);
        // A late answer reaches no one, and the client begins anew.
        client.say("two", s->local());
        EXPECT_EQ(co_await backend.next(), "two");
        EXPECT_EQ(s->count().connections_total, 2U);
        co_await s->stop(0s);
    });
}

TEST_P(datagram_proxies, keep_sessions_while_datagrams_flow_in_either_direction) {
    if (!simulated()) return;  // times are exact there
    run([]() -> task<void> {
        peer backend;
        subject s("proxy", udp_before({backend.address()}, {{"idle_timeout", "1s"}}));
        co_await s.start();
        peer client;
        client.say("x", s->local());
        EXPECT_EQ(co_await backend.next(), "x");
        for (int i = 0; i < 10; ++i) {
            must(co_await loop::current().sleep_for(700ms));
            backend.say("tick", backend.from);
            EXPECT_EQ(co_await client.next(), "tick");
        }
        EXPECT_EQ(s->count().connections_now, 1U);
        must(co_await loop::current().sleep_for(1100ms));
        EXPECT_EQ(s->count().connections_now, 0U);
        co_await s->stop(0s);
    });
}

TEST_P(datagram_proxies, drop_new_clients_beyond_the_limit) {
    run([]() -> task<void> {
        peer backend;
        scope answering;
        answering.spawn(answer_all(backend, ""));
        json options = udp_before({backend.address()}, {{"max_connections", 2}});
        subject s("proxy", options);
        co_await s.start();
        std::vector<peer> clients(3);
        for (std::size_t i = 0; i < 2; ++i)
            EXPECT_EQ(co_await ask(clients[i], "x", s->local()), "x");
        clients[2].say("x", s->local());
        co_await until([&] { return s->count().connections_refused == 1; });
        EXPECT_EQ(s->count().dropped, 1U);
        EXPECT_EQ(s->count().connections_now, 2U);
        EXPECT_TRUE(s.events.has("the limit of clients is reached (--max-connections)"));
        // Sessions that exist stay.
        EXPECT_EQ(co_await ask(clients[0], "y", s->local()), "y");
        options["max_connections"] = 3;
        must_do(s->apply(s.parse(options)));
        EXPECT_EQ(co_await ask(clients[2], "z", s->local()), "z");
        co_await s->stop(0s);
        answering.cancel();
        co_await answering.join();
    });
}

TEST_P(datagram_proxies, never_circulate_datagrams_with_a_backend_or_themselves) {
    run([]() -> task<void> {
        peer backend;
        subject s("proxy", udp_before({backend.address()}));
        co_await s.start();
        // A forged datagram looks like this one of the backend.
        backend.say("x", s->local());
        co_await until([&] { return s->count().dropped == 1; });
        EXPECT_EQ(s->count().connections_now, 0U);
        co_await s->stop(0s);
    });
}

TEST_P(datagram_proxies, take_other_backends_while_they_run) {
    run([]() -> task<void> {
        peer a;
        peer b;
        scope answering;
        answering.spawn(answer_all(a, "a "));
        answering.spawn(answer_all(b, "b "));
        subject s("proxy", udp_before({a.address()}));
        co_await s.start();
        peer old;
        EXPECT_EQ(co_await ask(old, "x", s->local()), "a x");
        json changed = udp_before({b.address()});
        must_do(s->apply(s.parse(changed)));
        peer fresh;
        EXPECT_EQ(co_await ask(fresh, "x", s->local()), "b x");
        EXPECT_EQ(co_await ask(old, "x", s->local()), "a x");
        co_await s->stop(0s);
        answering.cancel();
        co_await answering.join();
    });
}

TEST_P(datagram_proxies, reach_runtimes_by_name_once_they_run) {
    run([]() -> task<void> {
        const neighbours both;
        const auto listens = std::make_shared<test_host>(both, "listens");
        subject server("server", {{"listen", "udp://127.0.0.1:0"}}, "listens", listens);
        subject s("proxy", udp_before({"listens"}), "subject", both);
        co_await s.start();
        peer client;
        client.say("x", s->local());
        co_await until([&] { return s->count().dropped == 1; });
        co_await server.start();
        listens->has_started();
        co_await until([&] { return by_backend(s, "backend_up").size() == 1; });
        client.say("x", s->local());
        co_await until([&] { return server->count().messages_in == 1; });
        EXPECT_EQ(by_backend(s, "backend_bytes_sent_total").at("listens"), 1);
        co_await s->stop(0s);
        co_await server->stop(0s);
    });
}

TEST_P(datagram_proxies, answer_from_the_address_that_a_client_has_sent_to) {
    run([]() -> task<void> {
        peer backend;
        scope answering;
        answering.spawn(answer_all(backend, ""));
        json options = udp_before({backend.address()});
        options["listen"] = "udp://0.0.0.0:0";
        subject s("proxy", options);
        co_await s.start();
        endpoint second = must(endpoint::ip("127.0.0.2", s->local().port()));
        peer client;
        EXPECT_EQ(co_await ask(client, "x", second), "x");
        EXPECT_EQ(client.from, second);
        co_await s->stop(0s);
        answering.cancel();
        co_await answering.join();
    });
}

TEST_P(datagram_proxies, keep_their_socket_over_a_restart) {
    run([]() -> task<void> {
        peer backend;
        scope answering;
        answering.spawn(answer_all(backend, ""));
        const json options = udp_before({backend.address()});
        subject before_it("proxy", options);
        co_await before_it.start();
        const endpoint where = before_it->local();
        peer client;
        EXPECT_EQ(co_await ask(client, "one", where), "one");
        auto given = co_await before_it->hand_over_listeners();
        client.say("two", where);
        successor next("proxy", options, given);
        must_do(co_await next->start());
        EXPECT_EQ(next->local(), where);
        EXPECT_EQ(co_await client.next(), "two");
        co_await before_it->stop(0s);
        EXPECT_EQ(co_await ask(client, "three", where), "three");
        co_await next->stop(0s);
        answering.cancel();
        co_await answering.join();
    });
}

TEST_P(datagram_proxies, serve_on_when_the_next_instance_does_not_start) {
    run([]() -> task<void> {
        peer backend;
        scope answering;
        answering.spawn(answer_all(backend, ""));
        subject s("proxy", udp_before({backend.address()}));
        co_await s.start();
        auto given = co_await s->hand_over_listeners();
        must_do(s->take_back(*given));
        peer client;
        EXPECT_EQ(co_await ask(client, "x", s->local()), "x");
        co_await s->stop(0s);
        co_await s.start();
        EXPECT_EQ(co_await ask(client, "y", s->local()), "y");
        co_await s->stop(0s);
        answering.cancel();
        co_await answering.join();
    });
}

// Many source addresses of one socket: each is a client of its own.
TEST_P(datagram_proxies, serve_a_thousand_clients_and_free_their_sockets) {
    run([this]() -> task<void> {
        constexpr int many = 1000;
        if (!simulated()) {
            rlimit files{};
            ::getrlimit(RLIMIT_NOFILE, &files);
            files.rlim_cur = std::max<rlim_t>(files.rlim_cur, 4 * many);
            if (files.rlim_cur > files.rlim_max || ::setrlimit(RLIMIT_NOFILE, &files) != 0) {
                std::puts("skipped: too few open files are allowed");
                co_return;
            }
        }
        peer backend;
        scope answering;
        answering.spawn(answer_all(backend, "to "));
        subject s("proxy", udp_before({backend.address()}, {{"idle_timeout", "2s"}}));
        co_await s.start();
        peer clients("0.0.0.0");
        std::set<std::string> answered;
        for (int i = 0; i < many; ++i) {
            const std::string text = std::to_string(i);
            const endpoint from = must(endpoint::ip(
                "127.1." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250), 0));
            const endpoint to = s->local();
            const outgoing_datagram one{as_bytes(text), &to, 0, &from};
            EXPECT_EQ(must(clients.socket.try_send({&one, 1})), 1U);
            answered.insert(co_await clients.next());
        }
        EXPECT_EQ(answered.size(), std::size_t{many});
        EXPECT_EQ(s->count().connections_total, std::uint64_t{many});
        co_await until([&] { return s->count().connections_now == 0; });
        EXPECT_EQ(by_backend(s, "backend_connections")[backend.name()], 0);
        co_await s->stop(0s);
        answering.cancel();
        co_await answering.join();
    });
}

}  // namespace
}  // namespace eddy::runtime::proxy
