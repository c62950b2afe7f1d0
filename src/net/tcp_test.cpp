// TCP connects by name and by several addresses at once, on every io-backend and in virtual time.
#include <eddy/net/tcp.hpp>

#include <eddy/net/resolver.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace eddy {
namespace {

using testing::error_of;
using testing::must;
using namespace std::chrono_literals;

endpoint at(std::string_view address, std::uint16_t port) {
    return must(endpoint::ip(address, port));
}

int option(const stream& connection, int level, int name) {
    int value = -1;
    socklen_t size = sizeof(value);
    getsockopt(connection.native_handle(), level, name, &value, &size);
    return value;
}

std::pair<int, int> lingering(const stream& connection) {
    linger how{-1, -1};
    socklen_t size = sizeof(how);
    getsockopt(connection.native_handle(), SOL_SOCKET, SO_LINGER, &how, &size);
    return {how.l_onoff, how.l_linger};
}

class tcp_sockets : public testing::on_io_backend {};
INSTANTIATE_TEST_SUITE_P(net, tcp_sockets,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

TEST_P(tcp_sockets, connect_to_localhost_by_name) {
    run([&]() -> task<> {
        // ::1 refuses at once, so 127.0.0.1 is tried without waiting.
        listener accepting = must(tcp::listen("localhost", 0));
        EXPECT_EQ(accepting.local().host(), "127.0.0.1");
        stream client = must(co_await tcp::connect("localhost", accepting.local().port()));
        stream server = must(co_await accepting.accept());
        must(co_await client.write_all("hello"));
        EXPECT_EQ(must(co_await server.read()).text(), "hello");
    });
}

TEST_P(tcp_sockets, listen_on_every_address) {
    run([&]() -> task<> {
        for (std::string_view wildcard : {"", "*"}) {
            listener accepting = must(tcp::listen(wildcard, 0));
            const std::uint16_t port = accepting.local().port();
            stream client = must(co_await tcp::connect("127.0.0.1", port));
            EXPECT_TRUE(co_await accepting.accept());
        }
    });
}

TEST_P(tcp_sockets, refuse_bad_and_taken_addresses) {
    run([&]() -> task<> {
        for (std::string_view bad : {"example.org", "127.0.0", "[::1]", "127.0.0.1:80"})
            EXPECT_EQ(error_of(tcp::listen(bad, 0)), errc::bad_address) << bad;
        listener first = must(tcp::listen("127.0.0.1", 0));
        const std::uint16_t port = first.local().port();
        EXPECT_EQ(error_of(tcp::listen("127.0.0.1", port)), errno_code(EADDRINUSE));
        first.close();
        EXPECT_EQ(error_of(co_await tcp::connect("127.0.0.1", port)), errno_code(ECONNREFUSED));
        EXPECT_EQ(error_of(co_await tcp::connect("", 80)), errc::bad_address);
        EXPECT_EQ(error_of(co_await tcp::connect("no name", 80)), errc::bad_address);
        tcp::connect_options options;
        EXPECT_EQ(error_of(co_await tcp::connect_any({}, options)), errc::bad_address);
    });
}

TEST_P(tcp_sockets, apply_socket_options) {
    run([&]() -> task<> {
        listener accepting = must(tcp::listen("127.0.0.1", 0));
        tcp::connect_options options;
        options.socket.nodelay = false;
        options.socket.keepalive = true;
        options.socket.keepalive_idle = 77s;
        options.socket.keepalive_interval = 100'000s;
        options.socket.keepalive_probes = 3;
        options.socket.send_buffer = 40'000;
        options.socket.receive_buffer = 50'000;
        options.socket.user_timeout = 12'345ms;
        options.socket.traffic_class = 0x28;
        options.socket.linger = 0s;
        stream client = must(co_await tcp::connect("127.0.0.1", accepting.local().port(), options));
        if (simulated()) co_return;
        EXPECT_EQ(option(client, IPPROTO_TCP, TCP_NODELAY), 0);
        EXPECT_EQ(option(client, SOL_SOCKET, SO_KEEPALIVE), 1);
        EXPECT_EQ(option(client, IPPROTO_TCP, TCP_KEEPIDLE), 77);
        EXPECT_EQ(option(client, IPPROTO_TCP, TCP_KEEPINTVL), 32767) << "the kernel's longest";
        EXPECT_EQ(option(client, IPPROTO_TCP, TCP_KEEPCNT), 3);
        EXPECT_EQ(option(client, SOL_SOCKET, SO_SNDBUF), 80'000) << "the kernel doubles it";
        EXPECT_EQ(option(client, SOL_SOCKET, SO_RCVBUF), 100'000);
        EXPECT_EQ(option(client, IPPROTO_TCP, TCP_USER_TIMEOUT), 12'345);
        EXPECT_EQ(option(client, IPPROTO_IP, IP_TOS), 0x28);
        EXPECT_EQ(lingering(client), (std::pair{1, 0}));
        stream server = must(co_await accepting.accept());
        EXPECT_NE(option(server, IPPROTO_TCP, TCP_NODELAY), 0) << "Eddy's sockets start with it";
        must(tcp::apply(server, tcp::socket_options()));
        EXPECT_EQ(lingering(server), (std::pair{0, 0})) << "left as it was";
        EXPECT_EQ(option(server, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
        server.close();
        must(tcp::apply(server, tcp::socket_options()));
    });
}

TEST_P(tcp_sockets, inherit_keepalive_from_their_listener) {
    if (simulated()) GTEST_SKIP() << "the simulator has no options";
    run([&]() -> task<> {
        listener accepting = must(tcp::listen("127.0.0.1", 0));
        struct row {
            std::chrono::seconds idle;
            int interval;
        };
        for (const row& each : {row{300s, 100}, row{1s, 1}, row{32'767s, 10'922}}) {
            must(tcp::apply(accepting.native_handle(), tcp::keepalive_after(each.idle)));
            stream client = must(co_await tcp::connect("127.0.0.1", accepting.local().port()));
            stream server = must(co_await accepting.accept());
            EXPECT_EQ(option(server, SOL_SOCKET, SO_KEEPALIVE), 1);
            EXPECT_EQ(option(server, IPPROTO_TCP, TCP_KEEPIDLE), each.idle.count());
            EXPECT_EQ(option(server, IPPROTO_TCP, TCP_KEEPINTVL), each.interval);
            EXPECT_EQ(option(server, IPPROTO_TCP, TCP_KEEPCNT), 3);
        }
        must(tcp::apply(accepting.native_handle(), tcp::keepalive_after(0s)));
        stream client = must(co_await tcp::connect("127.0.0.1", accepting.local().port()));
        EXPECT_EQ(option(must(co_await accepting.accept()), SOL_SOCKET, SO_KEEPALIVE), 0);
    });
}

TEST_P(tcp_sockets, set_the_traffic_class_of_ipv6_too) {
    run([&]() -> task<> {
        listener accepting = must(tcp::listen("::1", 0));
        stream client = must(co_await tcp::connect("::1", accepting.local().port()));
        if (simulated()) co_return;
        tcp::socket_options options;
        options.traffic_class = 0xb8;
        must(tcp::apply(client, options));
        EXPECT_EQ(option(client, IPPROTO_IPV6, IPV6_TCLASS), 0xb8);
        options.traffic_class = 256;
        EXPECT_EQ(error_of(tcp::apply(client, options)), errno_code(EINVAL));
    });
}

TEST_P(tcp_sockets, reset_the_connection_at_close_without_lingering) {
    run([&]() -> task<> {
        listener accepting = must(tcp::listen("127.0.0.1", 0));
        tcp::connect_options options;
        options.socket.linger = 0s;
        stream client = must(co_await tcp::connect("127.0.0.1", accepting.local().port(), options));
        stream server = must(co_await accepting.accept());
        if (simulated()) co_return;
        client.close();
        EXPECT_EQ(error_of(co_await server.read()), errno_code(ECONNRESET));
    });
}

TEST_P(tcp_sockets, refuse_to_linger_since_that_would_stop_the_loop) {
    run([&]() -> task<> {
        listener accepting = must(tcp::listen("127.0.0.1", 0));
        tcp::connect_options options;
        options.socket.linger = 1s;
        const std::uint16_t port = accepting.local().port();
        EXPECT_EQ(error_of(co_await tcp::connect("127.0.0.1", port, options)), errc::unsupported);
        stream client = must(co_await tcp::connect("127.0.0.1", port));
        EXPECT_EQ(error_of(tcp::apply(client, options.socket)), errc::unsupported);
    });
}

TEST_P(tcp_sockets, connect_from_an_address_of_their_own) {
    run([&]() -> task<> {
        listener accepting = must(tcp::listen("127.0.0.1", 0));
        const std::uint16_t port = accepting.local().port();
        tcp::connect_options options;
        options.local.address = at("127.0.0.7", 0);
        stream client = must(co_await tcp::connect("127.0.0.1", port, options));
        stream server = must(co_await accepting.accept());
        EXPECT_EQ(server.peer().host(), "127.0.0.7");
        EXPECT_EQ(server.peer(), client.local());

        // A port of its own, again and again: nothing waits for TIME_WAIT.
        const endpoint chosen = client.local();
        server.close();
        EXPECT_EQ(error_of(co_await client.read()), errc::end_of_stream);
        client.close();
        options.local.address = chosen;
        listener other = must(tcp::listen("127.0.0.1", 0));
        const std::uint16_t other_port = other.local().port();
        auto again = co_await tcp::connect("127.0.0.1", port, options);
        for (; error_of(again) == errno_code(EADDRINUSE);  // it is still being closed
             again = co_await tcp::connect("127.0.0.1", port, options))
            must(co_await here().sleep_for(1ms));
        EXPECT_EQ(must(std::move(again)).local(), chosen);
        server = must(co_await accepting.accept());
        client = must(co_await tcp::connect("127.0.0.1", other_port, options));
        EXPECT_EQ(client.local(), chosen);
        EXPECT_EQ(error_of(co_await tcp::connect("127.0.0.1", other_port, options)),
                  errno_code(EADDRNOTAVAIL))
            << "both ends are in use together";

        options.local.address = accepting.local();
        EXPECT_EQ(error_of(co_await tcp::connect("127.0.0.1", other_port, options)),
                  errno_code(EADDRINUSE));
        options.local.address = at("::1", 0);
        EXPECT_EQ(error_of(co_await tcp::connect("127.0.0.1", other_port, options)),
                  errno_code(EAFNOSUPPORT));
    });
}

TEST_P(tcp_sockets, connect_by_a_device) {
    run([&]() -> task<> {
        listener accepting = must(tcp::listen("127.0.0.1", 0));
        const std::uint16_t port = accepting.local().port();
        tcp::connect_options options;
        options.local.device = "lo";
        stream client = must(co_await tcp::connect("127.0.0.1", port, options));
        if (!simulated()) {
            char name[32] = {};
            socklen_t size = sizeof(name);
            EXPECT_EQ(getsockopt(client.native_handle(), SOL_SOCKET, SO_BINDTODEVICE, name, &size),
                      0);
            EXPECT_STREQ(name, "lo");
        }
        // The second one is the first sixteen letters and more.
        for (const char* wrong : {"none-such", "a-device-with-a-long-name"}) {
            options.local.device = wrong;
            EXPECT_EQ(error_of(co_await tcp::connect("127.0.0.1", port, options)),
                      errno_code(ENODEV));
        }
        const endpoint path = must(endpoint::unix_path("@eddy-no-device"));
        EXPECT_EQ(error_of(co_await here().connect(path, options.local)), errc::unsupported);
    });
}

/// Connections that wait in a listener's queue, which is full: a later one gets no answer.
task<std::vector<stream>> fill_queue(endpoint of) {
    std::vector<stream> waiting;
    for (;;) {
        auto connected = co_await with_timeout(50ms, loop::current().connect(of));
        if (!connected) {
            EXPECT_EQ(connected.error(), errc::timed_out);
            co_return waiting;
        }
        waiting.push_back(std::move(*connected));
    }
}

TEST_P(tcp_sockets, stop_connecting_when_cancelled) {
    run([&]() -> task<> {
        EXPECT_EQ(co_await testing::cancelled_before(tcp::connect("localhost", 1)),
                  errc::cancelled);

        // An address that gives no answer: on the simulator no host has it.
        listen_options one;
        if (!simulated()) one.backlog = 0;
        listener full = must(tcp::listen("127.0.0.1", 0, one));
        std::vector<stream> waiting;
        if (!simulated()) waiting = co_await fill_queue(full.local());
        const endpoint silent = simulated() ? at("192.0.2.1", 80) : full.local();
        EXPECT_EQ(co_await testing::cancelled_during(tcp::connect(silent.host(), silent.port())),
                  errc::cancelled);

        // Several attempts at once, none of which gets anywhere later.
        tcp::connect_options options;
        options.attempt_delay = 1ms;
        cancel_source stop(co_await current_source());
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](task<result<stream>> race, cancel_source& under) -> task<> {
                EXPECT_EQ(error_of(co_await std::move(race).under(under)), errc::cancelled);
            }(tcp::connect_any({silent, silent, silent}, options), stop));
            must(co_await here().sleep_for(20ms));
            stop.request();
        });
        for (std::size_t i = 0; i < waiting.size(); ++i) must(co_await full.accept());
        EXPECT_EQ(error_of(co_await with_timeout(10ms, full.accept())), errc::timed_out);
        stream client = must(co_await tcp::connect("127.0.0.1", full.local().port()));
        EXPECT_EQ(must(co_await full.accept()).peer(), client.local());
    });
}

TEST_P(tcp_sockets, report_the_error_of_the_address_that_came_furthest) {
    run([&]() -> task<> {
        listener accepting = must(tcp::listen("127.0.0.1", 0));
        const endpoint refusing = accepting.local();
        accepting.close();
        // TCP has no broadcast: that fails on this side already.
        const endpoint unreachable = at("255.255.255.255", 9);
        tcp::connect_options options;
        EXPECT_EQ(error_of(co_await tcp::connect_any({refusing, unreachable}, options)),
                  errno_code(ECONNREFUSED));
        EXPECT_EQ(error_of(co_await tcp::connect_any({unreachable, refusing}, options)),
                  errno_code(ECONNREFUSED));
    });
}

/// Error of a race that is cancelled while it waits for addresses that do not answer.
task<std::error_code> cancelled_race(std::vector<endpoint> addresses) {
    std::error_code error;
    cancel_source stop(co_await current_source());
    co_await join_scope([&](scope& children) -> task<> {
        children.spawn(
            [](task<result<stream>> race, cancel_source& under, std::error_code& seen) -> task<> {
                seen = error_of(co_await std::move(race).under(under));
            }(tcp::connect_any(std::move(addresses), tcp::connect_options()), stop, error));
        must(co_await loop::current().sleep_for(50ms));
        EXPECT_FALSE(error) << "it did not wait: " << error.message();
        stop.request();
    });
    co_return error;
}

/// The race, in virtual time. 192.0.2.x and 2001:db8:: never answer there.
class happy_eyeballs : public testing::on_io_backend {
protected:
    static constexpr std::uint16_t port = 80;

    struct attempt {
        result<stream> outcome;
        duration took;
    };
    static task<attempt> try_all(std::vector<endpoint> addresses, tcp::connect_options options) {
        const time_point start = loop::current().now();
        auto outcome = co_await tcp::connect_any(std::move(addresses), options);
        co_return attempt{std::move(outcome), loop::current().now() - start};
    }
};
INSTANTIATE_TEST_SUITE_P(net, happy_eyeballs, ::testing::Values(io_backend_kind::sim),
                         testing::io_backend_name);

TEST_P(happy_eyeballs, a_silent_address_delays_the_next_by_a_quarter_second) {
    run([&]() -> task<> {
        listener accepting = must(tcp::listen("127.0.0.1", port));
        tcp::connect_options options;
        const attempt got = co_await try_all(
            {at("2001:db8::1", port), at("192.0.2.1", port), at("127.0.0.1", port)}, options);
        EXPECT_TRUE(got.outcome);
        EXPECT_GE(got.took, 500ms);
        EXPECT_LT(got.took, 501ms);
    });
}

TEST_P(happy_eyeballs, a_refusal_starts_the_next_at_once) {
    run([&]() -> task<> {
        listener accepting = must(tcp::listen("127.0.0.9", port));
        tcp::connect_options options;
        const attempt got = co_await try_all(
            {at("::1", port), at("127.0.0.1", port), at("127.0.0.9", port)}, options);
        EXPECT_TRUE(got.outcome);
        EXPECT_EQ(got.outcome->peer(), at("127.0.0.9", port));
        EXPECT_LT(got.took, 1ms);
    });
}

TEST_P(happy_eyeballs, the_first_connection_wins_and_the_others_end) {
    loop_options slow;
    slow.sim.min_delay = slow.sim.max_delay = 400ms;
    make_loop(slow);
    run([&]() -> task<> {
        listener first = must(tcp::listen("::1", port));
        listener second = must(tcp::listen("127.0.0.1", port));
        tcp::connect_options options;
        const attempt got = co_await try_all({at("::1", port), at("127.0.0.1", port)}, options);
        EXPECT_TRUE(got.outcome);
        EXPECT_EQ(got.outcome->peer(), at("::1", port));
        EXPECT_GE(got.took, 400ms);
        EXPECT_LT(got.took, 401ms);
        EXPECT_TRUE(co_await first.accept());
        auto stray = co_await with_timeout(10s, [](listener& from) -> task<result<stream>> {
            co_return co_await from.accept();
        }(second));
        EXPECT_EQ(error_of(stray), errc::timed_out) << "the second attempt was given up";
    });
}

TEST_P(happy_eyeballs, the_whole_race_has_a_deadline) {
    run([&]() -> task<> {
        tcp::connect_options options;
        options.timeout = 3s;
        std::vector<endpoint> silent;
        for (int i = 0; i < 64; ++i) silent.push_back(at("192.0.2." + std::to_string(i), port));
        const attempt got = co_await try_all(silent, options);
        EXPECT_EQ(error_of(got.outcome), errc::timed_out);
        EXPECT_GE(got.took, 3s);
        EXPECT_LT(got.took, 3s + 1ms);
    });
}

TEST_P(happy_eyeballs, a_refusal_does_not_hide_the_deadline) {
    run([&]() -> task<> {
        tcp::connect_options options;
        options.timeout = 3s;
        const attempt got =
            co_await try_all({at("127.0.0.1", port), at("192.0.2.1", port)}, options);
        EXPECT_EQ(error_of(got.outcome), errc::timed_out);
        EXPECT_GE(got.took, 3s);
    });
}

TEST_P(happy_eyeballs, a_refusal_does_not_hide_a_cancellation) {
    run([&]() -> task<> {
        EXPECT_EQ(co_await cancelled_race({at("127.0.0.1", port), at("192.0.2.1", port)}),
                  errc::cancelled);
    });
}

TEST_P(happy_eyeballs, races_the_addresses_of_a_name) {
    const testing::temporary_folder folder;
    const std::string hosts = folder.file("hosts");
    std::ofstream(hosts) << "192.0.2.7 db.test\n127.0.0.1 db.test\n2001:db8::7 db.test\n";
    run([&]() -> task<> {
        resolver_options name_options;
        name_options.hosts_file = hosts;
        resolver names(name_options);
        listener accepting = must(tcp::listen("127.0.0.1", port));
        tcp::connect_options options;
        options.names = &names;
        const time_point start = loop::current().now();
        stream client = must(co_await tcp::connect("db.test", port, options));
        EXPECT_EQ(client.peer(), at("127.0.0.1", port));
        EXPECT_GE(loop::current().now() - start, 500ms) << "2001:db8::7, 192.0.2.7, then this one";
        EXPECT_EQ(error_of(co_await tcp::connect("other.test", port, options)),
                  errc::name_not_found);
    });
}

/// The race in the kernel, where an address that gives no answer is a listener whose queue is full.
class happy_eyeballs_kernel : public testing::on_io_backend {};
INSTANTIATE_TEST_SUITE_P(net, happy_eyeballs_kernel,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         testing::io_backend_name);

TEST_P(happy_eyeballs_kernel, an_address_that_gives_no_answer_delays_the_next_and_is_given_up) {
    run([&]() -> task<> {
        listen_options one;
        one.backlog = 0;
        listener full = must(tcp::listen("127.0.0.1", 0, one));
        const std::vector<stream> waiting = co_await fill_queue(full.local());
        listener good = must(tcp::listen("127.0.0.1", 0));
        listener unused = must(tcp::listen("127.0.0.1", 0));

        tcp::connect_options options;
        options.attempt_delay = 50ms;
        const time_point start = loop::current().now();
        stream client = must(co_await tcp::connect_any(
            {full.local(), full.local(), good.local(), unused.local()}, options));
        const duration took = loop::current().now() - start;
        EXPECT_EQ(client.peer(), good.local());
        EXPECT_GE(took, 100ms) << "two attempts, one after another, each had its time";
        EXPECT_LT(took, 900ms) << "the kernel asks a full listener again after a second";
        stream server = must(co_await good.accept());
        EXPECT_EQ(server.peer(), client.local());

        // The attempts that lost are over: none of them connects when there is room again.
        for (std::size_t i = 0; i < waiting.size(); ++i) must(co_await full.accept());
        for (listener* nobody : {&full, &good, &unused})
            EXPECT_EQ(error_of(co_await with_timeout(50ms, nobody->accept())), errc::timed_out);

        // One that refuses does not delay the next.
        const endpoint refusing = unused.local();
        unused.close();
        options.attempt_delay = 30s;
        client = must(co_await tcp::connect_any({refusing, good.local()}, options));
        EXPECT_EQ(client.peer(), good.local());
    });
}

TEST_P(happy_eyeballs_kernel, no_answer_from_anywhere_ends_at_the_deadline) {
    run([&]() -> task<> {
        listen_options one;
        one.backlog = 0;
        listener full = must(tcp::listen("127.0.0.1", 0, one));
        const std::vector<stream> waiting = co_await fill_queue(full.local());
        tcp::connect_options options;
        options.attempt_delay = 20ms;
        options.timeout = 200ms;
        const auto got = co_await tcp::connect_any({full.local(), full.local()}, options);
        EXPECT_EQ(error_of(got), errc::timed_out);
    });
}

TEST_P(happy_eyeballs_kernel, a_refusal_hides_neither_the_deadline_nor_a_cancellation) {
    run([&]() -> task<> {
        listen_options one;
        one.backlog = 0;
        listener full = must(tcp::listen("127.0.0.1", 0, one));
        const std::vector<stream> waiting = co_await fill_queue(full.local());
        listener gone = must(tcp::listen("127.0.0.1", 0));
        const endpoint refusing = gone.local();
        gone.close();
        tcp::connect_options options;
        options.timeout = 200ms;
        EXPECT_EQ(error_of(co_await tcp::connect_any({refusing, full.local()}, options)),
                  errc::timed_out);
        EXPECT_EQ(co_await cancelled_race({refusing, full.local()}), errc::cancelled);
    });
}

TEST(happy_eyeballs_order, lets_families_take_turns_with_ipv6_first) {
    const std::vector<endpoint> mixed = tcp::interleave_families(
        {at("1.1.1.1", 1), at("2.2.2.2", 1), at("::1", 1), at("3.3.3.3", 1), at("::2", 1)});
    const std::vector<endpoint> expected = {at("::1", 1), at("1.1.1.1", 1), at("::2", 1),
                                            at("2.2.2.2", 1), at("3.3.3.3", 1)};
    EXPECT_EQ(mixed, expected);
    EXPECT_TRUE(tcp::interleave_families({}).empty());
}

}  // namespace
}  // namespace eddy
