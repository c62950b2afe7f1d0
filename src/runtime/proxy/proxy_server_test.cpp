// Proxies: what clients and backends see of the tunnel between them, what is counted, and its end.
#include "runtime/proxy/proxy_server.hpp"

#include <eddy/net/tcp.hpp>

#include "runtime/proxy/proxy_worker.hpp"
#include "runtime/proxy/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using namespace proxy::testing;
using ::testing::HasSubstr;

class proxies : public on_io_backend {
protected:
    /// Runs the body, and a proxy before one backend meanwhile.
    template <class Body>
    void run_before_one(Body body, const json& options = {}) {
        run([&]() -> task<void> {
            backend_end backend;
            subject s("proxy", before({backend.address()}, options));
            co_await s.start();
            co_await body(s, backend);
            co_await s->stop(0s);
        });
    }
    /// The same before two.
    template <class Body>
    void run_before_two(Body body, const json& options = {}) {
        run([&]() -> task<void> {
            backend_end a;
            backend_end b;
            subject s("proxy", before({a.address(), b.address()}, options));
            co_await s.start();
            co_await body(s, a, b);
            co_await s->stop(0s);
        });
    }
};
INSTANTIATE_TEST_SUITE_P(io, proxies,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

/// Bytes whose order shows.
std::string pattern(std::size_t size) {
    std::string made(size, '\0');
    std::uint32_t state = 1;
    for (char& each : made) {
        state = state * 1664525 + 1013904223;
        each = static_cast<char>(state >> 24);
    }
    return made;
}

task<void> send_and_finish(stream& to, const std::string& text) {
    must(co_await to.write_all(text));
    must(to.shutdown_write());
}

task<void> receive_rest(talker& from, last_bytes& into) { into = co_await rest_of(from); }

TEST_P(proxies, pass_bytes_on_both_ways) {
    run([]() -> task<void> {
        backend_end backend;
        subject s("proxy", before({backend.address()}));
        co_await s.start();
        tunnel_ends t = co_await through(s, backend);
        co_await t.client.say("question\n");
        EXPECT_EQ(co_await t.backend.line(), "question");
        co_await t.backend.say("the answer\n");
        EXPECT_EQ(co_await t.client.line(), "the answer");
        const std::string name = backend.name();
        using counts = std::map<std::string, double>;
        co_await until([&] { return s->count().bytes_out == 11; });
        EXPECT_EQ(s->count().bytes_in, 9U);
        EXPECT_EQ(by_backend(s, "backend_connections"), (counts{{name, 1}}));
        EXPECT_EQ(by_backend(s, "backend_connections_total"), (counts{{name, 1}}));
        EXPECT_EQ(by_backend(s, "backend_failures_total"), (counts{{name, 0}}));
        EXPECT_EQ(by_backend(s, "backend_bytes_sent_total"), (counts{{name, 9}}));
        EXPECT_EQ(by_backend(s, "backend_bytes_received_total"), (counts{{name, 11}}));
        t.client.socket.close();
        EXPECT_EQ((co_await rest_of(t.backend)).end, errc::end_of_stream);
        t.backend.socket.close();
        co_await until([&] { return s->count().connections_now == 0; });
        EXPECT_EQ(by_backend(s, "backend_connections"), (counts{{name, 0}}));
        co_await s->stop(0s);
        EXPECT_EQ(by_backend(s, "backend_bytes_sent_total"), (counts{{name, 9}})) << "lost";
        EXPECT_EQ(s->count().bytes_in, 9U);
        EXPECT_EQ(s->count().errors, 0U);
    });
}

TEST_P(proxies, let_the_backend_speak_first) {
    run_before_one([](subject& s, backend_end& backend) -> task<void> {
        tunnel_ends t = co_await through(s, backend);
        co_await t.backend.say("220 ready\n");
        EXPECT_EQ(co_await t.client.line(), "220 ready");
    });
}

TEST_P(proxies, pass_a_half_close_on_while_the_answer_still_flows) {
    run_before_one([](subject& s, backend_end& backend) -> task<void> {
        for (const bool from_client : {true, false}) {
            tunnel_ends t = co_await through(s, backend);
            talker& first = from_client ? t.client : t.backend;
            talker& second = from_client ? t.backend : t.client;
            co_await send_and_finish(first.socket, "all of it");
            const last_bytes got = co_await rest_of(second);
            EXPECT_EQ(got.text, "all of it");
            EXPECT_EQ(got.end, errc::end_of_stream);
            co_await second.say("one\n");
            EXPECT_EQ(co_await first.line(), "one");
            co_await send_and_finish(second.socket, "two");
            const last_bytes rest = co_await rest_of(first);
            EXPECT_EQ(rest.text, "two");
            EXPECT_EQ(rest.end, errc::end_of_stream);
            co_await until([&] { return s->count().connections_now == 0; });
        }
    });
}

TEST_P(proxies, carry_much_both_ways_at_once) {
    run_before_one([](subject& s, backend_end& backend) -> task<void> {
        tunnel_ends t = co_await through(s, backend);
        const std::string up = pattern(3 << 20);
        const std::string down = pattern(5 << 20).substr(1);
        last_bytes at_backend;
        last_bytes at_client;
        co_await join_scope([&](scope& all) -> task<void> {
            all.spawn(send_and_finish(t.client.socket, up));
            all.spawn(send_and_finish(t.backend.socket, down));
            all.spawn(receive_rest(t.backend, at_backend));
            all.spawn(receive_rest(t.client, at_client));
            co_return;
        });
        EXPECT_TRUE(at_backend.text == up);
        EXPECT_TRUE(at_client.text == down);
        EXPECT_EQ(at_backend.end, errc::end_of_stream);
        EXPECT_EQ(at_client.end, errc::end_of_stream);
        EXPECT_EQ(s->count().bytes_in, up.size());
        EXPECT_EQ(s->count().bytes_out, down.size());
    });
}

TEST_P(proxies, hold_little_for_a_side_that_does_not_read) {
    run_before_one([](subject& s, backend_end& backend) -> task<void> {
        // More tunnels than leases of the loop may wait in.
        constexpr std::size_t count = eddy::proxy::most_held_leases + 6;
        std::vector<tunnel_ends> all;
        tcp::socket_options small;
        small.send_buffer = small.receive_buffer = 64 * 1024;
        for (std::size_t i = 0; i < count; ++i) {
            all.push_back(co_await through(s, backend));
            must(tcp::apply(all.back().client.socket, small));
            must(tcp::apply(all.back().backend.socket, small));
        }
        const std::string block = pattern(64 * 1024);
        std::vector<std::size_t> sent(count);
        const auto fill = [&](std::size_t i) {
            const const_bytes rest = as_bytes(block).subspan(sent[i] % block.size());
            const std::size_t size = must(all[i].backend.socket.try_write(rest));
            sent[i] += size;
            return size > 0;
        };
        for (int idle = 0; idle < 20; ++idle) {
            for (std::size_t i = 0; i < count; ++i)
                if (fill(i)) idle = 0;
            must(co_await loop::current().sleep_for(1ms));
        }
        // At most a buffer for each direction is received and not passed on.
        const metrics counted = s->count();
        const auto received = by_backend(s, "backend_bytes_received_total").at(backend.name());
        EXPECT_LE(received - static_cast<double>(counted.bytes_out.value()),
                  static_cast<double>(count * 8 * (16 * 1024 + 512)));
        // All bytes arrive, in order, at a slow reader, too.
        std::vector<last_bytes> received_by(count);
        co_await join_scope([&](scope& readers) -> task<void> {
            for (std::size_t i = 0; i < count; ++i) {
                must(all[i].backend.socket.shutdown_write());
                readers.spawn(receive_rest(all[i].client, received_by[i]));
            }
            co_return;
        });
        for (std::size_t i = 0; i < count; ++i) {
            const last_bytes& got = received_by[i];
            EXPECT_EQ(got.text.size(), sent[i]) << i;
            std::string wanted;
            while (wanted.size() < sent[i]) wanted += block;
            EXPECT_TRUE(got.text == wanted.substr(0, sent[i])) << i;
        }
    });
}

TEST_P(proxies, give_clients_backends_in_turn) {
    run_before_two([](subject& s, backend_end& a, backend_end& b) -> task<void> {
        for (int i = 0; i < 3; ++i) {
            tunnel_ends first = co_await through(s, a);
            tunnel_ends second = co_await through(s, b);
        }
        const std::map<std::string, double> wanted{{a.name(), 3}, {b.name(), 3}};
        co_await until([&] { return by_backend(s, "backend_connections_total") == wanted; });
    });
}

TEST_P(proxies, give_clients_the_backend_with_the_fewest_connections) {
    run_before_two(
        [](subject& s, backend_end& a, backend_end& b) -> task<void> {
            tunnel_ends stays = co_await through(s, a);
            for (int i = 0; i < 3; ++i) {
                tunnel_ends leaves = co_await through(s, b);
                leaves.client.socket.close();
                leaves.backend.socket.close();
                co_await until([&] { return s->count().connections_now == 1; });
            }
        },
        {{"strategy", "least-connections"}});
}

TEST_P(proxies, try_the_next_backend_when_one_refuses) {
    run([]() -> task<void> {
        backend_end alive;
        const std::string dead = dead_address();
        subject s("proxy", before({dead, alive.address()}));
        co_await s.start();
        for (int i = 0; i < 4; ++i) {
            tunnel_ends t = co_await through(s, alive);
            co_await t.client.say("x\n");
            EXPECT_EQ(co_await t.backend.line(), "x");
        }
        EXPECT_EQ(by_backend(s, "backend_failures_total").at("tcp://" + dead), 2);
        EXPECT_EQ(s->count().errors, 0U);
        co_await s->stop(0s);
        EXPECT_TRUE(s.events.has("a backend failed: \"tcp://" + dead + "\""));
        EXPECT_TRUE(s.events.has("1 more connections to backends failed since the last report"));
    });
}

TEST_P(proxies, close_a_client_that_no_backend_takes) {
    run([]() -> task<void> {
        subject s("proxy", before({dead_address(), dead_address()}));
        co_await s.start();
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(co_await end_of_rejected(s), errno_code(ECONNRESET)) << "it is no answer";
        co_await until([&] { return s->count().connections_now == 0; });
        EXPECT_EQ(s->count().errors, 3U);
        for (const auto& [name, failures] : by_backend(s, "backend_failures_total"))
            EXPECT_EQ(failures, 3) << "each is tried once for each client: " << name;
        co_await s->stop(0s);
        EXPECT_TRUE(s.events.has("a client was closed: no backend took a connection"));
        EXPECT_TRUE(s.events.has("2 more clients were closed, as they got no backend"));
    });
}

TEST_P(proxies, say_that_no_backend_serves) {
    run([]() -> task<void> {
        backend_end alive;
        json options = before({dead_address()}, {{"connect_timeout", "1s"}});
        subject s("proxy", options);
        co_await s.start();
        EXPECT_EQ(s->fault(), "") << "before the first client";
        for (int i = 0; i < 3; ++i) {
            const std::error_code end = co_await end_of_rejected(s);
            EXPECT_EQ(end, errno_code(ECONNRESET));
        }
        const std::string name = "tcp://" + options["backend"].get<std::string>();
        EXPECT_EQ(s->fault(), "no backend of --backend serves: " + name + " fails its clients");
        options["drain_backend"] = name;
        must_do(s->apply(s.parse(options)));
        EXPECT_EQ(s->fault(), "no backend of --backend serves: " + name + " is drained");
        options["backend"] = name + "," + alive.address();
        must_do(s->apply(s.parse(options)));
        EXPECT_EQ(s->fault(), "");
        co_await s->stop(0s);
        EXPECT_EQ(s->fault(), "");
    });
}

TEST_P(proxies, without_backends_say_so) {
    run([]() -> task<void> {
        subject s("proxy",
                  before({"absent"}, {{"protocol", "http"}, {"route", {"a.test/x=none"}}}));
        co_await s.start();
        EXPECT_EQ(s->fault(), "no backend of --route a.test/x serves: none is known");
        co_await s->stop(0s);
    });
}

TEST_P(proxies, end_a_tunnel_when_one_side_is_reset) {
    run_before_one([](subject& s, backend_end& backend) -> task<void> {
        for (const bool from_client : {true, false}) {
            tunnel_ends t = co_await through(s, backend);
            talker& first = from_client ? t.client : t.backend;
            talker& second = from_client ? t.backend : t.client;
            co_await first.say("part of it");
            EXPECT_EQ(co_await second.bytes(10), "part of it");
            first.socket.abort();
            EXPECT_EQ((co_await rest_of(second)).end, errno_code(ECONNRESET))
                << "what has come must not look whole";
            co_await until([&] { return s->count().connections_now == 0; });
        }
    });
}

TEST_P(proxies, pass_on_what_a_backend_says_before_it_refuses_the_rest) {
    run_before_one([](subject& s, backend_end& backend) -> task<void> {
        tunnel_ends t = co_await through(s, backend);
        co_await t.client.say("GET /");
        EXPECT_EQ(co_await t.backend.bytes(5), "GET /");
        co_await t.backend.say("too much\n");
        t.backend.socket.close();
        EXPECT_EQ(co_await t.client.line(), "too much");
        // Further bytes of the client are dropped, for half a minute.
        if (loop::current().kind() == io_backend_kind::sim)
            while (co_await t.client.socket.write_all("more"))
                must(co_await loop::current().sleep_for(10ms));
        else
            t.client.socket.close();
        co_await until([&] { return s->count().connections_now == 0; });
    });
}

TEST_P(proxies, close_idle_tunnels_and_keep_busy_ones) {
    run_before_one(
        [](subject& s, backend_end& backend) -> task<void> {
            if (loop::current().kind() != io_backend_kind::sim) co_return;  // by a clock of its own
            tunnel_ends idle = co_await through(s, backend);
            tunnel_ends busy = co_await through(s, backend);
            for (int i = 0; i < 30; ++i) {
                must(co_await loop::current().sleep_for(100ms));
                // One way is enough.
                co_await busy.backend.say("beat\n");
                EXPECT_EQ(co_await busy.client.line(), "beat");
            }
            EXPECT_EQ(s->count().connections_now, 1U);
            EXPECT_EQ(co_await idle.client.rest(), "");
            EXPECT_EQ(co_await idle.backend.rest(), "");
        },
        {{"idle_timeout", "1s"}});
}

TEST_P(proxies, let_tunnels_end_by_themselves_until_the_deadline_of_a_stop) {
    run([]() -> task<void> {
        backend_end backend;
        subject s("proxy", before({backend.address()}));
        co_await s.start();
        tunnel_ends t = co_await through(s, backend);
        const endpoint at = s->local();
        co_await join_scope([&](scope& stopping) -> task<void> {
            stopping.spawn([](subject& of) -> task<void> { co_await of->stop(30s); }(s));
            for (;;) {
                const result<stream> late = co_await loop::current().connect(at);
                if (!late) break;
                must(co_await loop::current().sleep_for(1ms));
            }
            co_await t.client.say("last question\n");
            EXPECT_EQ(co_await t.backend.line(), "last question");
            co_await send_and_finish(t.backend.socket, "last answer\n");
            EXPECT_EQ(co_await t.client.line(), "last answer");
            must(t.client.socket.shutdown_write());
        });
        // The deadline ends the tunnels that do not end by themselves.
        subject second("proxy", before({backend.address()}));
        co_await second.start();
        tunnel_ends stays = co_await through(second, backend);
        co_await second->stop(20ms);
        EXPECT_EQ(co_await stays.client.rest(), "");
        EXPECT_EQ(co_await stays.backend.rest(), "");
    });
}

TEST_P(proxies, close_clients_beyond_the_limit) {
    run_before_one(
        [](subject& s, backend_end& backend) -> task<void> {
            tunnel_ends t = co_await through(s, backend);
            // No words, which a protocol would misread.
            EXPECT_EQ(co_await end_of_rejected(s), errno_code(ECONNRESET));
            EXPECT_EQ(s->count().connections_refused, 1U);
            co_await t.client.say("still here\n");
            EXPECT_EQ(co_await t.backend.line(), "still here");
        },
        {{"max_connections", 1}});
}

task<void> echo(stream peer) {
    for (;;) {
        result<lease> got = co_await peer.read();
        if (!got) break;
        if (!co_await peer.write_all(got->bytes())) break;
    }
}

task<void> echo_all(backend_end& from, scope& all) {
    for (;;) {
        talker next = co_await from.accept();
        all.spawn(echo(std::move(next.socket)));
    }
}

task<void> exchange(endpoint with, int number, int& done) {
    talker client = co_await talker::to(with);
    for (int i = 0; i < 20; ++i) {
        const std::string line = std::to_string(number) + ":" + std::to_string(i);
        co_await client.say(line + "\n");
        EXPECT_EQ(co_await client.line(), line);
    }
    ++done;
}

TEST_P(proxies, serve_a_hundred_clients_on_one_thread_and_on_several) {
    run([]() -> task<void> {
        for (const int threads : {1, 3}) {
            backend_end a;
            backend_end b;
            subject s("proxy", before({a.address(), b.address()}, {{"threads", threads}}));
            co_await s.start();
            int done = 0;
            scope echoes;
            scope accepting;
            const auto accept = [](backend_end& from, scope& all) -> task<void> {
                try {
                    co_await echo_all(from, all);
                } catch (const std::runtime_error&) {  // it was closed
                }
            };
            accepting.spawn(accept(a, echoes));
            accepting.spawn(accept(b, echoes));
            co_await join_scope([&](scope& clients) -> task<void> {
                for (int i = 0; i < 100; ++i) clients.spawn(exchange(s->local(), i, done));
                co_return;
            });
            EXPECT_EQ(done, 100);
            EXPECT_EQ(s->count().connections_total, 100U);
            EXPECT_EQ(s->count().bytes_in, s->count().bytes_out);
            for (const auto& [name, count] : by_backend(s, "backend_connections_total"))
                EXPECT_EQ(count, 50) << name;
            accepting.cancel();
            co_await accepting.join();
            echoes.cancel();
            co_await echoes.join();
            co_await s->stop(0s);
        }
    });
}

TEST_P(proxies, take_other_backends_while_they_run) {
    run([]() -> task<void> {
        backend_end a;
        backend_end b;
        subject s("proxy", before({a.address()}));
        co_await s.start();
        tunnel_ends old = co_await through(s, a);
        must_do(s->apply(s.parse(before({b.address()}))));
        tunnel_ends fresh = co_await through(s, b);
        co_await old.client.say("stays\n");
        EXPECT_EQ(co_await old.backend.line(), "stays");
        EXPECT_EQ(by_backend(s, "backend_connections"),
                  (std::map<std::string, double>{{b.name(), 1}}));
        must_do(s->apply(s.parse(before({b.address(), a.address()}))));
        EXPECT_EQ(by_backend(s, "backend_connections").at(b.name()), 1);
        EXPECT_FALSE(s->apply(s.parse(with({})))) << "it needs one";
        co_await s->stop(0s);
    });
}

TEST_P(proxies, start_again_after_a_stop) {
    run([]() -> task<void> {
        backend_end backend;
        subject s("proxy", before({backend.address()}));
        for (int i = 1; i <= 2; ++i) {
            co_await s.start();
            EXPECT_FALSE(co_await s->start()) << "it runs";
            tunnel_ends t = co_await through(s, backend);
            co_await t.client.say("x\n");
            EXPECT_EQ(co_await t.backend.line(), "x");
            co_await s->stop(0s);
            EXPECT_EQ(by_backend(s, "backend_connections_total").at(backend.name()), i);
        }
    });
}

}  // namespace
}  // namespace eddy::runtime::proxy
