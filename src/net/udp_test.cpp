// UDP sockets: binding, connecting by name, multicast groups and options, on every io-backend.
#include <eddy/net/udp.hpp>

#include <eddy/net/resolver.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <vector>

namespace eddy {
namespace {

using testing::error_of;
using testing::must;

class udp_sockets : public testing::on_io_backend {};
INSTANTIATE_TEST_SUITE_P(net, udp_sockets,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

class udp_kernel_sockets : public testing::on_io_backend {};
INSTANTIATE_TEST_SUITE_P(net, udp_kernel_sockets,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         testing::io_backend_name);

TEST_P(udp_sockets, exchange_datagrams) {
    run([&]() -> task<> {
        datagram one = must(udp::bind("localhost", 0));
        datagram other = must(udp::bind("127.0.0.1", 0));
        EXPECT_NE(one.local().port(), 0);
        must(one.send_to(as_bytes("question"), other.local()));
        auto got = must(co_await other.receive());
        EXPECT_EQ(got.payload.text(), "question");
        EXPECT_EQ(got.from, one.local());
        must(other.send_to(as_bytes(""), got.from));
        EXPECT_EQ(must(co_await one.receive()).payload.size(), 0U) << "empty ones count, too";

        const std::vector<std::byte> much(udp::max_payload + 1);
        EXPECT_EQ(error_of(one.send_to(much, other.local())), errno_code(EMSGSIZE));
    });
}

TEST_P(udp_sockets, refuse_bad_and_taken_addresses) {
    run([&]() -> task<> {
        EXPECT_EQ(error_of(udp::bind("example.org", 0)), errc::bad_address);
        datagram one = must(udp::bind("127.0.0.1", 0));
        EXPECT_EQ(error_of(udp::bind("127.0.0.1", one.local().port())), errno_code(EADDRINUSE));
        co_return;
    });
}

TEST_P(udp_sockets, connect_to_hosts_by_name) {
    run([&]() -> task<> {
        for (const char* host : {"127.0.0.1", "::1", "localhost"}) {
            // The address of "localhost" depends on the hosts file, so its server has both
            // families.
            datagram server = must(udp::bind("*", 0));
            datagram client = must(co_await udp::connect(host, server.local().port()));
            EXPECT_EQ(client.peer().port(), server.local().port());
            must(client.send_to(as_bytes("hello"), {}));
            const datagram_message got = must(co_await server.receive());
            EXPECT_EQ(got.payload.text(), "hello");
            must(co_await server.send(as_bytes("welcome"), got.from));
            EXPECT_EQ(must(co_await client.receive()).payload.text(), "welcome");
        }
    });
}

TEST_P(udp_sockets, connecting_reports_why_a_name_has_no_address) {
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await udp::connect("not a name", 1)), errc::bad_address);
        resolver_options nowhere;
        nowhere.servers = "127.0.0.1:1";
        nowhere.timeout = std::chrono::milliseconds(200);
        resolver names(nowhere);
        udp::connect_options options;
        options.names = &names;
        EXPECT_TRUE(error_of(co_await udp::connect(std::string("nobody.invalid"), 1, options)));
    });
}

TEST_P(udp_kernel_sockets, stop_connecting_when_cancelled) {
    run([&]() -> task<> {
        datagram silent = must(udp::bind("127.0.0.1", 0));  // a name server without answers
        resolver_options asking;
        asking.servers = silent.local().to_string();
        resolver names(asking);
        udp::connect_options options;
        options.names = &names;
        const std::string host = "somebody.test";
        EXPECT_EQ(co_await testing::cancelled_before(udp::connect(host, 1, options)),
                  errc::cancelled);
        EXPECT_EQ(error_of(silent.try_receive()), errno_code(EAGAIN)) << "nobody was asked";
        EXPECT_EQ(co_await testing::cancelled_during(udp::connect(host, 1, options)),
                  errc::cancelled);
        EXPECT_EQ(names.running(), 0U);
        // A numeric address waits for nothing, and so there is nothing to cancel.
        const std::string numeric = "127.0.0.1";
        EXPECT_EQ(co_await testing::cancelled_before(udp::connect(numeric, 1, options)),
                  std::error_code());
    });
}

// ---- multicast

std::uint32_t loopback_index() {
    const auto index = udp::interface_index("lo");
    return index ? *index : 0;
}

/// Error if this machine does not carry a group on its loopback device.
std::error_code multicast_fails(const char* any, const char* group) {
    auto address = must(endpoint::ip(group, 0));
    datagram_options through_lo;
    through_lo.multicast_interface = loopback_index();
    auto receiver = udp::bind(any, 0);
    if (!receiver) return receiver.error();
    if (auto joined = receiver->join(address, loopback_index()); !joined) return joined.error();
    auto sender = udp::bind(any, 0, through_lo);
    if (!sender) return sender.error();
    address.set_port(receiver->local().port());
    return error_of(sender->send_to(as_bytes("x"), address));
}

task<> expect_group(bool simulated, const char* any, const char* host, const char* group) {
    udp::socket_options shared;
    shared.reuse_address = true;
    shared.multicast_interface = loopback_index();
    datagram member = must(udp::bind(any, 0, shared));
    const std::uint16_t port = member.local().port();
    datagram second = must(udp::bind(any, port, shared));
    datagram stranger = must(udp::bind(any, port, shared));
    datagram sender = must(udp::bind(any, 0, shared));
    const endpoint everybody = must(endpoint::ip(group, port));
    must(udp::join(member, group, "lo"));
    must(udp::join(second, group, std::to_string(loopback_index())));
    EXPECT_EQ(error_of(udp::join(second, group, "lo")), errno_code(EADDRINUSE));

    must(sender.send_to(as_bytes("to all"), everybody));
    for (datagram* one : {&member, &second}) {
        const datagram_message got = must(co_await one->receive());
        EXPECT_EQ(got.payload.text(), "to all");
        EXPECT_EQ(got.from.port(), sender.local().port());
    }
    must(udp::leave(second, group, "lo"));
    EXPECT_EQ(error_of(udp::leave(second, group, "lo")), errno_code(EADDRNOTAVAIL));
    must(sender.send_to(as_bytes("to one"), everybody));
    EXPECT_EQ(must(co_await member.receive()).payload.text(), "to one");

    if (simulated) {
        // Without loopback no socket on this host receives it. Datagrams that leave by the loopback
        // device itself come back all the same.
        udp::socket_options deaf = shared;
        deaf.multicast_loop = false;
        must(sender.set(deaf));
        must(sender.send_to(as_bytes("to others"), everybody));
        must(sender.set(shared));
    }
    must(sender.send_to(as_bytes("end"), everybody));
    EXPECT_EQ(must(co_await member.receive()).payload.text(), "end");
    EXPECT_EQ(error_of(second.try_receive()), errno_code(EAGAIN));
    EXPECT_EQ(error_of(stranger.try_receive()), errno_code(EAGAIN)) << "it has never joined";

    if (simulated) co_return;  // there, chance picks the socket that gets a single datagram
    must(sender.send_to(as_bytes("alone"), must(endpoint::ip(host, port))));
    EXPECT_EQ(must(co_await stranger.receive()).payload.text(), "alone") << "the last bound";
}

TEST_P(udp_sockets, members_of_a_group_receive_its_messages) {
    std::error_code why;
    if (!simulated())
        run([&]() -> task<> {
            why = multicast_fails("0.0.0.0", "239.255.77.7");
            co_return;
        });
    if (why) GTEST_SKIP() << "no IPv4 multicast on lo: " << why.message();
    run([&]() -> task<> {
        co_await expect_group(simulated(), "0.0.0.0", "127.0.0.1", "239.255.77.7");
    });
}

TEST_P(udp_sockets, members_of_an_ipv6_group_receive_its_messages) {
    std::error_code why;
    if (!simulated())
        run([&]() -> task<> {
            why = multicast_fails("::", "ff15::7777");
            co_return;
        });
    if (why) GTEST_SKIP() << "no IPv6 multicast on lo: " << why.message();
    run([&]() -> task<> { co_await expect_group(simulated(), "::", "::1", "ff15::7777"); });
}

TEST_P(udp_sockets, joining_reports_errors) {
    run([&]() -> task<> {
        datagram socket = must(udp::bind("0.0.0.0", 0));
        EXPECT_EQ(error_of(udp::join(socket, "")), errc::bad_address);
        EXPECT_EQ(error_of(udp::join(socket, "all.example")), errc::bad_address);
        EXPECT_EQ(error_of(udp::join(socket, "127.0.0.1")), errno_code(EINVAL));
        EXPECT_EQ(error_of(udp::join(socket, "239.1.2.3", "no-such-if")), errno_code(ENODEV));
        EXPECT_EQ(error_of(udp::join(socket, "239.1.2.3", "4000000")), errno_code(ENODEV));
        EXPECT_EQ(must(udp::interface_index("")), 0u);
        EXPECT_EQ(must(udp::interface_index("7")), 7u);
        co_return;
    });
}

TEST_P(udp_sockets, may_broadcast_only_on_request) {
    run([&]() -> task<> {
        datagram socket = must(udp::bind("0.0.0.0", 0));
        const endpoint all = must(endpoint::ip("255.255.255.255", 9));
        const std::error_code plain = error_of(socket.send_to(as_bytes("x"), all));
        if (plain == errno_code(ENETUNREACH)) co_return;  // a machine without a network
        EXPECT_EQ(plain, errno_code(EACCES));
        udp::socket_options loud;
        loud.broadcast = true;
        must(socket.set(loud));
        EXPECT_NE(error_of(socket.send_to(as_bytes("x"), all)), errno_code(EACCES));
    });
}

// ---- options

int option_of(const datagram& socket, int level, int name) {
    int value = -1;
    socklen_t size = sizeof(value);
    EXPECT_EQ(getsockopt(socket.native_handle(), level, name, &value, &size), 0) << name;
    return value;
}

TEST_P(udp_kernel_sockets, have_the_options_that_they_were_opened_with) {
    run([&]() -> task<> {
        udp::socket_options options;
        options.broadcast = true;
        options.reuse_address = true;
        options.receive_buffer = 50'000;
        options.send_buffer = 40'000;
        options.ttl = 7;
        options.traffic_class = 46 << 2;  // expedited forwarding (RFC 3246)
        options.multicast_ttl = 3;
        options.multicast_loop = false;
        options.multicast_interface = loopback_index();
        for (const char* address : {"127.0.0.1", "::1"}) {
            datagram socket = must(udp::bind(address, 0, options));
            const bool six = socket.local().family() == AF_INET6;
            EXPECT_EQ(option_of(socket, SOL_SOCKET, SO_BROADCAST), 1);
            EXPECT_EQ(option_of(socket, SOL_SOCKET, SO_REUSEADDR), 1);
            EXPECT_EQ(option_of(socket, SOL_SOCKET, SO_RCVBUF), 100'000) << "doubled";
            EXPECT_EQ(option_of(socket, SOL_SOCKET, SO_SNDBUF), 80'000);
            EXPECT_EQ(option_of(socket, IPPROTO_IP, IP_TTL), 7);
            EXPECT_EQ(option_of(socket, IPPROTO_IP, IP_TOS), 46 << 2);
            EXPECT_EQ(option_of(socket, IPPROTO_IP, IP_MULTICAST_TTL), 3);
            EXPECT_EQ(option_of(socket, IPPROTO_IP, IP_MULTICAST_LOOP), 0);
            if (six) {
                EXPECT_EQ(option_of(socket, IPPROTO_IPV6, IPV6_UNICAST_HOPS), 7);
                EXPECT_EQ(option_of(socket, IPPROTO_IPV6, IPV6_TCLASS), 46 << 2);
                EXPECT_EQ(option_of(socket, IPPROTO_IPV6, IPV6_MULTICAST_HOPS), 3);
                EXPECT_EQ(option_of(socket, IPPROTO_IPV6, IPV6_MULTICAST_LOOP), 0);
                EXPECT_EQ(option_of(socket, IPPROTO_IPV6, IPV6_MULTICAST_IF),
                          static_cast<int>(loopback_index()));
            }
            must(socket.set({}));
            EXPECT_EQ(option_of(socket, SOL_SOCKET, SO_BROADCAST), 0);
            EXPECT_EQ(option_of(socket, IPPROTO_IP, IP_MULTICAST_TTL), 1);
            EXPECT_EQ(option_of(socket, IPPROTO_IP, IP_MULTICAST_LOOP), 1);
            EXPECT_EQ(option_of(socket, IPPROTO_IP, IP_TTL), 7) << "0 leaves it";
        }
        options.ttl = 256;
        EXPECT_EQ(error_of(udp::bind("127.0.0.1", 0, options)), errno_code(EINVAL));
        co_return;
    });
}

}  // namespace
}  // namespace eddy
