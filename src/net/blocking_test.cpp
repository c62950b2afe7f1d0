// Blocking sockets: the same conversation over every kind of address, timeouts, names.
#include <eddy/net/blocking.hpp>

#include <eddy/net/tcp.hpp>
#include <eddy/net/udp.hpp>

#include "base/files/temporary_folder.hpp"
#include "io/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace eddy {
namespace {

using testing::error_of;
using testing::must;
using testing::temporary_folder;
using namespace std::chrono_literals;

endpoint at(std::string_view address, std::uint16_t port = 0) {
    return must(endpoint::ip(address, port));
}

/// Two ends of a TCP connection.
struct pair {
    pair() {
        auto accepting = must(blocking::listen(at("127.0.0.1")));
        client = must(blocking::connect(accepting.local()));
        server = must(accepting.accept());
    }
    blocking::stream client;
    blocking::stream server;
};

class blocking_sockets : public ::testing::TestWithParam<const char*> {
protected:
    endpoint address() const {
        const std::string name = GetParam();
        if (name == "unix") return must(endpoint::unix_path(folder_.path() + "/socket"));
        return at(name == "ipv6" ? "::1" : "127.0.0.1");
    }
    temporary_folder folder_;
};
INSTANTIATE_TEST_SUITE_P(net, blocking_sockets, ::testing::Values("ipv4", "ipv6", "unix"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(blocking_sockets, talk_to_each_other) {
    auto accepting = must(blocking::listen(address()));
    auto client = must(blocking::connect(accepting.local(), 5s));
    auto server = must(accepting.accept());
    EXPECT_EQ(client.peer(), accepting.local());

    must(client.write_all("hello"));
    std::array<std::byte, 5> five;
    must(server.read_exactly(five));
    EXPECT_EQ(as_text(five), "hello");

    must(server.write_all("and good"));
    must(server.write_all("bye"));
    must(server.shutdown_write());
    std::string all;
    for (;;) {
        std::array<std::byte, 4> some;
        const auto size = client.read_some(some);
        if (!size) {
            EXPECT_EQ(size.error(), errc::end_of_stream);
            break;
        }
        all += as_text(const_bytes(some).first(*size));
    }
    EXPECT_EQ(all, "and goodbye");
    std::array<std::byte, 4> more;
    EXPECT_EQ(error_of(client.read_exactly(more)), errc::end_of_stream);

    must(client.write_all("abc"));
    must(client.shutdown_write());
    std::size_t came = 99;
    EXPECT_EQ(error_of(server.read_exactly(more, &came)), errc::truncated);
    EXPECT_EQ(as_text(const_bytes(more).first(came)), "abc");
    EXPECT_EQ(error_of(server.read_exactly(more, &came)), errc::end_of_stream);
    EXPECT_EQ(came, 0U);
}

TEST_P(blocking_sockets, wait_until_a_slow_peer_has_taken_all) {
    auto accepting = must(blocking::listen(address()));
    auto client = must(blocking::connect(accepting.local()));
    auto server = must(accepting.accept());
    std::vector<std::byte> sent(16 * 1024 * 1024);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 >> 3);
    std::vector<std::byte> received(sent.size());
    std::thread reader([&] { must(server.read_exactly(received)); });
    must(client.write_all(sent));
    reader.join();
    EXPECT_TRUE(sent == received);
}

TEST_P(blocking_sockets, know_how_long_to_wait) {
    auto accepting = must(blocking::listen(address()));
    accepting.set_timeout(1ms);
    EXPECT_EQ(error_of(accepting.accept()), errc::timed_out);
    auto client = must(blocking::connect(accepting.local()));
    auto server = must(accepting.accept());

    std::array<std::byte, 8> into;
    client.set_timeout(1ms);
    EXPECT_EQ(error_of(client.read_some(into)), errc::timed_out);
    must(server.write_all("four"));
    EXPECT_EQ(error_of(client.read_exactly(into)), errc::timed_out);
    std::vector<std::byte> much(64 * 1024 * 1024);
    EXPECT_EQ(error_of(client.write_all(much)), errc::timed_out);
}

TEST_P(blocking_sockets, without_time_do_not_wait_at_all) {
    auto accepting = must(blocking::listen(address()));
    accepting.set_timeout(0ns);
    EXPECT_EQ(error_of(accepting.accept()), errno_code(EAGAIN));
    auto client = must(blocking::connect(accepting.local()));
    auto server = must(accepting.accept());
    std::array<std::byte, 8> into;
    client.set_timeout(0ns);
    EXPECT_EQ(error_of(client.read_some(into)), errno_code(EAGAIN));
    std::vector<std::byte> much(64 * 1024 * 1024);
    const std::size_t some = must(client.write_some(much));
    EXPECT_GT(some, 0U);
    EXPECT_LT(some, much.size());
    while (client.write_some(much)) {
    }
    EXPECT_EQ(error_of(client.write_some(much)), errno_code(EAGAIN));
}

TEST_P(blocking_sockets, write_some_waits_for_room_and_not_for_all) {
    auto accepting = must(blocking::listen(address()));
    auto client = must(blocking::connect(accepting.local()));
    auto server = must(accepting.accept());
    const std::vector<std::byte> much(64 * 1024 * 1024);
    const std::size_t some = must(client.write_some(much));
    EXPECT_GT(some, 0U);
    EXPECT_LT(some, much.size());
}

TEST_P(blocking_sockets, wait_also_where_another_has_made_the_socket_non_blocking) {
    auto accepting = must(blocking::listen(address()));
    auto client = must(blocking::connect(accepting.local()));
    auto server = must(accepting.accept());
    ASSERT_EQ(fcntl(client.native_handle(), F_SETFL, O_NONBLOCK), 0);
    std::array<std::byte, 5> five;
    // The server answers only what it has read, so the client's read has to wait.
    std::thread peer([&] {
        std::array<std::byte, 4> four;
        must(server.read_exactly(four));
        must(server.write_all("hello"));
    });
    must(client.write_all("four"));
    must(client.read_exactly(five));
    peer.join();
    EXPECT_EQ(as_text(five), "hello");
}

TEST(blocking_unix, a_listener_removes_its_own_file_and_no_other_of_its_path) {
    const temporary_folder folder;
    const std::string path = folder.file("socket");
    const endpoint where = must(endpoint::unix_path(path));
    auto first = must(blocking::listen(where));
    std::filesystem::remove(path);
    auto second = must(blocking::listen(where));
    first.close();
    EXPECT_TRUE(std::filesystem::exists(path));
    blocking::listener moved;
    moved = std::move(second);
    moved.close();
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(blocking_unix, connects_within_its_time_while_the_backlog_is_full) {
    const temporary_folder folder;
    const endpoint where = must(endpoint::unix_path(folder.file("s")));
    listen_options least;
    least.backlog = 0;
    blocking::listener listening = must(blocking::listen(where, least));
    std::vector<blocking::stream> waiting;
    std::error_code refused;
    while (!refused) {
        auto made = blocking::connect(where, 0s);
        refused = error_of(made);
        if (made) waiting.push_back(std::move(*made));
    }
    EXPECT_EQ(refused, errno_code(EAGAIN));
    EXPECT_EQ(error_of(blocking::connect(where, 20ms)), errc::timed_out);
    std::thread accepting([&] {
        std::this_thread::sleep_for(5ms);  // so that the client waits, mostly
        for (std::size_t i = 0; i <= waiting.size(); ++i) must(listening.accept());
    });
    blocking::stream client = must(blocking::connect(where, 40s));
    accepting.join();
    timeval left{1, 1};
    socklen_t size = sizeof(left);
    EXPECT_EQ(getsockopt(client.native_handle(), SOL_SOCKET, SO_SNDTIMEO, &left, &size), 0);
    EXPECT_EQ(left.tv_sec + left.tv_usec, 0) << "the time is connect()'s alone";
}

TEST_P(blocking_sockets, fail_once_closed) {
    auto accepting = must(blocking::listen(address()));
    const endpoint where = accepting.local();
    auto client = must(blocking::connect(where));
    auto server = must(accepting.accept());
    client.close();
    std::array<std::byte, 8> into;
    EXPECT_EQ(error_of(client.read_some(into)), errc::closed);
    EXPECT_EQ(error_of(client.write_all("x")), errc::closed);
    EXPECT_EQ(error_of(client.shutdown_write()), errc::closed);
    EXPECT_EQ(error_of(server.read_some(into)), errc::end_of_stream);
    // The first may still go into the socket's buffer; then the answer is an error, not a signal.
    while (server.write_all("x")) {
    }
    accepting.close();
    EXPECT_EQ(error_of(accepting.accept()), errc::closed);
    const auto refused = blocking::connect(where);
    EXPECT_FALSE(refused);
    if (where.is_unix()) EXPECT_FALSE(std::filesystem::exists(where.to_string()));
}

TEST_P(blocking_sockets, move_to_a_loop_and_back) {
    auto accepting = must(blocking::listen(address()));
    auto client = must(blocking::connect(accepting.local()));
    auto server = must(accepting.accept());
    auto where = must(loop::create({}));
    unique_fd back = where->run([](unique_fd fd) -> task<unique_fd> {
        stream peer = must(loop::current().adopt(std::move(fd)));
        must(co_await peer.write_all("from the loop"));
        co_return must(peer.detach());
    }(server.release()));
    server = must(blocking::stream::adopt(std::move(back)));
    must(server.write_all(", and not"));
    std::array<std::byte, 22> all;
    must(client.read_exactly(all));
    EXPECT_EQ(as_text(all), "from the loop, and not");
}

TEST(blocking_tcp, connects_by_name) {
    auto accepting = must(blocking::listen(at("127.0.0.1")));
    auto client = must(blocking::connect("localhost", accepting.local().port()));
    EXPECT_TRUE(accepting.accept());
    EXPECT_EQ(client.peer().port(), accepting.local().port());
    EXPECT_EQ(error_of(blocking::connect("", 80)), errc::bad_address);
    // RFC 6761 keeps this name from ever existing. Without any name server, asking fails.
    const auto error = error_of(blocking::resolve("nowhere.invalid", 80));
    EXPECT_TRUE(error == errc::name_not_found || error == errc::resolver_failed) << error.message();
}

TEST(blocking_tcp, distinguishes_refused_and_unanswered_connects) {
    std::uint16_t port = 0;
    {
        auto accepting = must(blocking::listen(at("127.0.0.1")));
        port = accepting.local().port();
    }
    EXPECT_EQ(error_of(blocking::connect(at("127.0.0.1", port))), errno_code(ECONNREFUSED));
    // A listener whose queue is full lets connections wait.
    auto accepting = must(blocking::listen(at("127.0.0.1"), {.backlog = 0}));
    std::vector<blocking::stream> waiting;
    for (;;) {
        auto one = blocking::connect(accepting.local(), 50ms);
        if (!one) {
            EXPECT_EQ(one.error(), errc::timed_out);
            break;
        }
        waiting.push_back(std::move(*one));
        ASSERT_LT(waiting.size(), 100U);
    }
}

TEST(blocking_tcp, takes_the_socket_options) {
    pair both;
    tcp::socket_options options;
    options.nodelay = false;
    options.keepalive = true;
    options.keepalive_probes = 3;
    must(tcp::apply(both.client.native_handle(), options));
    int probes = 0;
    socklen_t size = sizeof probes;
    ASSERT_EQ(getsockopt(both.client.native_handle(), IPPROTO_TCP, TCP_KEEPCNT, &probes, &size), 0);
    EXPECT_EQ(probes, 3);
}

TEST(blocking_tcp, lingers_and_gives_up_as_configured) {
    pair both;
    tcp::socket_options options;
    options.linger = 3s;
    options.user_timeout = 9s;
    options.traffic_class = 0x28;
    const int fd = both.client.native_handle();
    must(tcp::apply(fd, options));
    linger how{};
    socklen_t size = sizeof how;
    ASSERT_EQ(getsockopt(fd, SOL_SOCKET, SO_LINGER, &how, &size), 0);
    EXPECT_EQ(how.l_onoff, 1);
    EXPECT_EQ(how.l_linger, 3);
    int value = 0;
    size = sizeof value;
    ASSERT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
    EXPECT_EQ(value, 9000);
    ASSERT_EQ(getsockopt(fd, IPPROTO_IP, IP_TOS, &value, &size), 0);
    EXPECT_EQ(value, 0x28);

    options.linger = 0s;
    must(tcp::apply(fd, options));
    both.client.close();
    std::array<std::byte, 4> into;
    EXPECT_EQ(error_of(both.server.read_some(into)), errno_code(ECONNRESET));
}

TEST(blocking_tcp, connects_from_an_address_and_by_a_device) {
    auto accepting = must(blocking::listen(at("127.0.0.1")));
    local_binding from;
    from.address = at("127.0.0.7");
    from.device = "lo";
    auto client = must(blocking::connect(accepting.local(), 5s, from));
    EXPECT_EQ(client.local().host(), "127.0.0.7");
    EXPECT_EQ(must(accepting.accept()).peer(), client.local());
    const std::uint16_t port = accepting.local().port();
    EXPECT_EQ(must(blocking::connect("127.0.0.1", port, 5s, from)).local().host(), "127.0.0.7");
    from.device = "none-such";
    EXPECT_EQ(error_of(blocking::connect(accepting.local(), 5s, from)), errno_code(ENODEV));
    from.device.clear();
    from.address = at("::1");
    EXPECT_EQ(error_of(blocking::connect(accepting.local(), 5s, from)), errno_code(EAFNOSUPPORT));
}

TEST(blocking_udp, sends_and_receives_messages) {
    for (const char* host : {"127.0.0.1", "::1"}) {
        auto a = must(blocking::bind(at(host)));
        auto b = must(blocking::bind(at(host)));
        std::array<std::byte, 8> into;
        must(a.send_to(as_bytes("one"), b.local()));
        must(a.send_to({}, b.local()));
        must(a.send_to(as_bytes("longer than eight"), b.local()));
        auto got = must(b.receive(into));
        EXPECT_EQ(as_text(const_bytes(into).first(got.size)), "one");
        EXPECT_EQ(got.from, a.local());
        EXPECT_FALSE(got.truncated);
        EXPECT_EQ(must(b.receive(into)).size, 0U);
        got = must(b.receive(into));
        EXPECT_EQ(as_text(const_bytes(into).first(got.size)), "longer t");
        EXPECT_TRUE(got.truncated);
        b.set_timeout(1ms);
        EXPECT_EQ(error_of(b.receive(into)), errc::timed_out);
    }
}

TEST(blocking_udp, reports_a_closed_port) {
    auto a = must(blocking::bind(at("127.0.0.1")));
    endpoint nobody;
    {
        auto gone = must(blocking::bind(at("127.0.0.1")));
        nobody = gone.local();
    }
    must(a.connect(nobody));
    must(a.send_to(as_bytes("hello?"), endpoint()));
    a.set_timeout(5s);
    std::array<std::byte, 8> into;
    EXPECT_EQ(error_of(a.receive(into)), errno_code(ECONNREFUSED));
    a.close();
    EXPECT_EQ(error_of(a.receive(into)), errc::closed);
    EXPECT_EQ(error_of(a.connect(nobody)), errc::closed);
}

}  // namespace
}  // namespace eddy
