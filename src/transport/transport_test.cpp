// URIs: valid ones, the errors of others, and the sockets that they open.
#include <eddy/transport/transport.hpp>

#include <eddy/net/descriptors.hpp>
#include <eddy/net/unix.hpp>

#include "io/testing.hpp"
#include "net/lingering_socket.hpp"
#include "transport/shm_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace eddy::transport {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::must;
using namespace std::chrono_literals;

TEST(transport_uri, reads_and_writes_every_form) {
    struct row {
        std::string_view uri;
        address parsed;
        std::string_view again;  // the usual form, if it is another
    };
    const row rows[] = {
        {"tcp://127.0.0.1:6379", {scheme::tcp, "127.0.0.1", 6379, ""}, {}},
        {"tcp://[::1]:6379", {scheme::tcp, "::1", 6379, ""}, {}},
        {"tcp://[fe80::1%lo]:1", {scheme::tcp, "fe80::1%lo", 1, ""}, {}},
        {"tcp://db.example:0", {scheme::tcp, "db.example", 0, ""}, {}},
        {"tcp://db_1.example.:80", {scheme::tcp, "db_1.example.", 80, ""}, {}},
        {"tcp://*:65535", {scheme::tcp, "", 65535, ""}, {}},
        {"tcp://:80", {scheme::tcp, "", 80, ""}, "tcp://*:80"},
        {"TCP://LocalHost:00080", {scheme::tcp, "LocalHost", 80, ""}, "tcp://LocalHost:80"},
        {"udp://0.0.0.0:514", {scheme::udp, "0.0.0.0", 514, ""}, {}},
        {"tls://example.org:443", {scheme::tls, "example.org", 443, ""}, {}},
        {"tls://[::1]:443?ca=/a b?c.pem",
         {scheme::tls, "::1", 443, "", {"", "", "/a b?c.pem"}},
         {}},
        {"tls://*:443?cert=/c&key=/k&ca=/a", {scheme::tls, "", 443, "", {"/c", "/k", "/a"}}, {}},
        {"tls://*:443?cert=/c&ca=/a&clients=optional",
         {scheme::tls, "", 443, "", {"/c", "", "/a", "optional"}},
         {}},
        {"tls://*:443?prefer=client&ciphersuites=A:B&ciphers=C&max=1.3&min=1.2&cert=/c",
         {scheme::tls, "", 443, "", {"/c", "", "", "", "", "1.2", "1.3", "C", "A:B", "client"}},
         "tls://*:443?cert=/c&min=1.2&max=1.3&ciphers=C&ciphersuites=A:B&prefer=client"},
        {"tls://h:443?verify=chain&ca=/a",
         {scheme::tls, "h", 443, "", {"", "", "/a", "", "chain"}},
         "tls://h:443?ca=/a&verify=chain"},
        {"tls://*:443?key=/k=&cert=c&",
         {scheme::tls, "", 443, "", {"c", "/k=", ""}},
         "tls://*:443?cert=c&key=/k="},
        {"unix:///run/eddy/control.sock",
         {scheme::unix_socket, "", 0, "/run/eddy/control.sock"},
         {}},
        {"unix://@name", {scheme::unix_socket, "", 0, "@name"}, {}},
        {"unix:///a b/%41?x#y:1", {scheme::unix_socket, "", 0, "/a b/%41?x#y:1"}, {}},
        {"shm:///run/cache.shm", {scheme::shm, "", 0, "/run/cache.shm"}, {}},
        {"shm://@db?allow=33,0", {scheme::shm, "", 0, "@db", {}, {}, {"33,0"}}, {}},
        {"shm://:4242", {scheme::shm, "", 0, ":4242"}, {}},
        {"shm://:0080?allow=33", {scheme::shm, "", 0, ":80", {}, {}, {"33"}}, "shm://:80?allow=33"},
        {"handoff:///run/llm.sock", {scheme::handoff, "", 0, "/run/llm.sock"}, {}},
        {"handoff:///llm?mode=0600&type=stream&allow=33,0",
         {scheme::handoff, "", 0, "/llm", {}, {"stream", "0600", "33,0"}},
         "handoff:///llm?type=stream&mode=0600&allow=33,0"},
        {"handoff://@llm?allow=33", {scheme::handoff, "", 0, "@llm", {}, {"", "", "33"}}, {}},
    };
    for (const row& row : rows) {
        const auto parsed = parse(row.uri);
        ASSERT_TRUE(parsed) << row.uri << ": " << explain(row.uri, parsed.error());
        EXPECT_EQ(*parsed, row.parsed) << row.uri;
        EXPECT_EQ(parsed->to_string(), row.again.empty() ? row.uri : row.again);
        EXPECT_EQ(*parse(parsed->to_string()), *parsed);
    }
}

std::string many_users(std::size_t count) {
    std::string all = "0";
    while (--count > 0) all += ",0";
    return all;
}

TEST(transport_uri, says_what_is_wrong) {
    struct row {
        std::string uri;
        std::string_view reason;
    };
    const row rows[] = {
        {"", "scheme"},
        {"tcp", "scheme"},
        {"127.0.0.1:80", "scheme"},
        {"tcp:/127.0.0.1:80", "scheme"},
        {"tcp:127.0.0.1:80", "scheme"},
        {"http://example.org:80", "none of tcp://, udp://, unix://"},
        {"://host:80", "none of"},
        {"tcp ://host:80", "none of"},
        {"tcpp://host:80", "none of"},
        {"tcp://", "port is missing"},
        {"tcp://host", "port is missing"},
        {"tcp://host:", "port is missing"},
        {"tcp://[::1]", "port is missing"},
        {"tcp://[::1]80", "port is missing"},
        {"tcp://host:x", "no number"},
        {"tcp://host:-1", "no number"},
        {"tcp://host:+1", "no number"},
        {"tcp://host: 80", "no number"},
        {"tcp://host:80 ", "no number"},
        {"tcp://host:80/", "no number"},
        {"tcp://host:80/path", "no number"},
        {"tcp://host:65536", "65535"},
        {"tcp://host:000080", "65535"},
        {"tcp://host:99999999999999999999", "65535"},
        {"tcp://::1:80", "brackets"},
        {"tcp://user:secret@host:80", "brackets"},
        {"tcp://user@host:80", "no host name"},
        {"tcp://ho st:80", "no host name"},
        {"tcp://ho/st:80", "no host name"},
        {"tcp://**:80", "no host name"},
        {"tcp://1.2.3.4.5:80", "no IPv4 address"},
        {"tcp://256.0.0.1:80", "no IPv4 address"},
        {"tcp://[::1:80", "bracket"},
        {"tcp://host:80?ca=/x", "no number"},
        {"tls://host:80?ca", "\"ca\" has no value: write ca=VALUE"},
        {"tls://host:80?ca=", "has no value"},
        {"tls://host:80?ca=/x&ca=/y", "twice"},
        {"tls://host:80?clients=some", "clients= is yes, no or optional, not \"some\""},
        {"tls://host:80?CA=/x", "not \"CA\""},
        {"tls://host:80?cert=/x&&", "not \"\""},
        {"tls://host:80?key=/x", "add cert=FILE"},
        {"tls://host:80?verify=chain", "add ca=FILE"},
        {"tls://host:80?verify=no", "verify= is name or chain, not \"no\""},
        {"tls://host:80?min=1.1", "min= is 1.2 or 1.3, not \"1.1\""},
        {"tls://host:80?max=2", "not \"2\""},
        {"tls://host:80?min=1.3&max=1.2", "no version lies between"},
        {"tls://host:80?name=a%20b", "name= is the server's name"},
        {"tls://host:80?prefer=me", "prefer= is server or client"},
        {"handoff://run/x.sock", "absolute"},
        {"handoff:///x?kind=stream", "with type, mode, allow, not \"kind\""},
        {"handoff:///x?type=dgram", "type= is seqpacket or stream, not \"dgram\""},
        {"handoff:///x?mode=1777", "mode= is octal digits, such as 0660, not \"1777\""},
        {"handoff:///x?mode=0668", "octal"},
        {"handoff:///x?mode=", "has no value"},
        {"handoff://@x?mode=0600", "mode= is for a socket's file, and \"@x\" has none"},
        {"handoff:///x?allow=root", "allow= is the numbers of at most 64 users"},
        {"handoff:///x?allow=1,", "not \"1,\""},
        {"handoff:///x?allow=4294967295", "numbers"},
        {"handoff:///x?allow=" + many_users(65), "numbers"},
        {"tcp://[]:80", "no IPv6 address"},
        {"tcp://[127.0.0.1]:80", "no IPv6 address"},
        {"tcp://[::g]:80", "no IPv6 address"},
        {"tcp://[*]:80", "no IPv6 address"},
        {"tcp://" + std::string(254, 'a') + ":80", "253"},
        {"unix://", "absolute"},
        {"unix://run/x.sock", "absolute"},
        {"unix://./x.sock", "absolute"},
        {"unix:///" + std::string(107, 'p'), "107"},
        {"unix://@", "107"},
        {std::string("unix:///a\0b", 11), "zero byte"},
        {"unix:///x?mode=0600", "has no parameters"},
        {"unix://@x?allow=1000", "has no parameters"},
        {"tcp://" + std::string(2000, 'a'), "1024"},
    };
    for (const row& row : rows) {
        const auto parsed = parse(row.uri);
        EXPECT_EQ(error_of(parsed), errc::bad_address) << row.uri;
        const std::string said = explain(row.uri, errc::bad_address);
        EXPECT_THAT(said, HasSubstr(row.reason)) << row.uri;
        EXPECT_LT(said.size(), 400U);
    }
    EXPECT_THAT(explain("tcp://\x1b[31m:80\n", errc::bad_address), HasSubstr("tcp://?[31m:80?"))
        << "nothing that drives a terminal";
}

TEST(transport_uri, survives_any_bytes) {
    random_generator random(testing::seed_of_this_run());
    const std::string_view alphabet = "tcpudnix:/[]@*%.0123456789abf\0\n\xff-";
    for (int i = 0; i < 20'000; ++i) {
        std::string uri = random.chance(0.7) ? "tcp://" : "";
        for (std::uint64_t left = random.below(40); left > 0; --left)
            uri += alphabet[random.below(alphabet.size())];
        const auto parsed = parse(uri);
        if (parsed) EXPECT_EQ(*parse(parsed->to_string()), *parsed) << uri;
        EXPECT_FALSE(explain(uri, parsed ? std::error_code() : parsed.error()).empty());
    }
}

TEST(transport_uri, explains_failures_with_advice) {
    const auto said = [](std::string_view uri, std::error_code error) {
        return explain(uri, error);
    };
    EXPECT_THAT(said("tcp://*:80", errno_code(EADDRINUSE)), HasSubstr("another program"));
    EXPECT_THAT(said("tcp://*:80", errno_code(EACCES)), HasSubstr("below 1024"));
    EXPECT_THAT(said("tcp://9.9.9.9:80", errno_code(EADDRNOTAVAIL)), HasSubstr("this machine"));
    EXPECT_THAT(said("tcp://h:80", errno_code(ECONNREFUSED)), HasSubstr("no server listens"));
    EXPECT_THAT(said("unix:///x", errno_code(ENOENT)), HasSubstr("no such socket"));
    EXPECT_THAT(said("tcp://h:80", errno_code(EMFILE)), HasSubstr("ulimit"));
    EXPECT_THAT(said("tcp://h.example:80", errc::name_not_found), HasSubstr("\"h.example\""));
    EXPECT_THAT(said("tcp://h.example:80", errc::bad_address), HasSubstr("numeric address"));
    EXPECT_THAT(said("tcp://*:80", errc::bad_address), HasSubstr("name a host"));
    EXPECT_THAT(said("tcp://h:80", errc::timed_out), HasSubstr("deadline"));
    EXPECT_THAT(said("tls://h:80", errc::untrusted_certificate), HasSubstr("?ca=FILE"));
    EXPECT_THAT(said("tls://h:80", errc::certificate_refused), HasSubstr("?cert=FILE"));
    EXPECT_THAT(said("tls://h:80", errc::certificate_name_mismatch), HasSubstr("use the name"));
    EXPECT_THAT(said("tls://h:80", errc::not_tls), HasSubstr("tcp://"));
}

class transports : public testing::on_io_backend {
protected:
    static task<void> echo_over(std::string uri) {
        listener accepting = must(transport::listen(uri));
        address there = must(parse(uri));
        there.port = accepting.local().port();
        const std::string to = there.to_string();
        stream client = must(co_await transport::connect(to));
        stream server = must(co_await accepting.accept());
        must(co_await client.write_all("over any transport"));
        EXPECT_EQ(must(co_await server.read()).text(), "over any transport");
    }
};
INSTANTIATE_TEST_SUITE_P(transport, transports,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

TEST_P(transports, carry_streams) {
    const testing::temporary_folder folder;
    const std::string pid = std::to_string(getpid());
    for (const std::string& uri :
         {std::string("tcp://127.0.0.1:0"), std::string("tcp://localhost:0"),
          "unix://" + folder.file("x.sock"), "unix://@eddy-t-" + pid})
        run([&]() { return echo_over(uri); });
}

TEST_P(transports, carry_streams_over_shared_memory) {
    const testing::temporary_folder folder;
    if (simulated()) GTEST_SKIP() << "the simulator shares no memory";
    if (explain("shm:///x", errc::unsupported).find("needs the shm layer") != std::string::npos)
        GTEST_SKIP() << "without the layer shm";
    for (const std::string& uri :
         {"shm://" + folder.file("x.sock"), "shm://@eddy-t-" + std::to_string(getpid())})
        run([&]() { return echo_over(uri); });
}

TEST_P(transports, share_memory_at_ports) {
    EXPECT_EQ(shm_path_of(4242), "@eddy-shm-" + std::to_string(geteuid()) + "-4242");
    if (simulated()) GTEST_SKIP() << "the simulator shares no memory";
    if (explain("shm:///x", errc::unsupported).find("needs the shm layer") != std::string::npos)
        GTEST_SKIP() << "without the layer shm";
    run([&]() -> task<> {
        for (const bool in_parts : {false, true}) {
            const address any = must(parse("shm://:0"));
            listener accepting =
                in_parts ? must(listen_in_parts(any)).below : must(transport::listen(any));
            const std::string name = accepting.local().to_string();
            const std::string uri = "shm://:" + name.substr(name.rfind('-') + 1);
            EXPECT_EQ(error_of(transport::listen(uri)), errno_code(EADDRINUSE));
            const std::string other = uri + "?allow=" + std::to_string(geteuid() + 1);
            EXPECT_EQ(error_of(co_await transport::connect(other)), errno_code(ECONNREFUSED));
            EXPECT_THAT(explain(other, errno_code(ECONNREFUSED)), HasSubstr("allow=33"));
            if (!in_parts) must(co_await transport::connect(uri));
        }
    });
}

TEST_P(transports, share_memory_with_users_that_are_allowed) {
    const testing::temporary_folder folder;
    if (simulated()) GTEST_SKIP() << "the simulator shares no memory";
    if (explain("shm:///x", errc::unsupported).find("needs the shm layer") != std::string::npos)
        GTEST_SKIP() << "without the layer shm";
    const std::string path = "shm://" + folder.file("x.sock");
    run([&]() { return echo_over(path + "?allow=" + std::to_string(geteuid())); });
    const std::string other = path + "?allow=" + std::to_string(geteuid() + 1);
    run([&]() -> task<> {
        const listener accepting = must(transport::listen(path));
        EXPECT_EQ(error_of(co_await transport::connect(other)), errno_code(EACCES));
        EXPECT_THAT(explain(other, errno_code(EACCES)), HasSubstr("allow="));
    });
}

TEST_P(transports, without_a_file_have_no_permissions) {
    const std::string name = "@eddy-t-" + std::to_string(getpid());
    run([&]() -> task<> {
        listen_options options;
        options.unix_mode = 0600;
        EXPECT_EQ(error_of(transport::listen("unix://" + name, options)), errno_code(EINVAL));
        EXPECT_THAT(explain("unix://" + name, errno_code(EINVAL)), HasSubstr("no permissions"));
        if (simulated()) co_return;
        for (const std::string& uri : {"shm://" + name, "handoff://" + name}) {
            const auto refused = error_of(transport::listen(uri, options));
            // The build lacks the layer.
            if (refused == errc::unsupported) continue;
            EXPECT_EQ(refused, errno_code(EINVAL)) << uri;
            must(transport::listen(uri));
        }
    });
}

TEST_P(transports, over_unix_sockets_refuse_descriptors) {
    if (simulated()) GTEST_SKIP() << "the simulator passes none";
    if (!testing::can_refuse_descriptors()) GTEST_SKIP() << "before Linux 6.16";
    const testing::temporary_folder folder;
    run([&]() -> task<> {
        listener accepting = must(transport::listen("unix://" + folder.file("x.sock")));
        stream client = must(co_await unix_socket::connect(folder.file("x.sock")));
        const int fd = client.driver().option_handle();
        EXPECT_EQ(error_of(unix_socket::send_descriptor(fd, "x", fd)), errno_code(EPERM));
        must(co_await client.write_all("bytes alone"));
        stream server = must(co_await accepting.accept());
        EXPECT_EQ(must(co_await server.read()).text(), "bytes alone");
    });
}

TEST_P(transports, carry_datagrams) {
    run([&]() -> task<> {
        datagram one = must(bind_datagram("udp://127.0.0.1:0"));
        datagram other = must(bind_datagram("udp://localhost:0"));
        must(one.send_to(as_bytes("x"), other.local()));
        EXPECT_EQ(must(co_await other.receive()).payload.text(), "x");
    });
}

TEST_P(transports, answer_for_what_they_lack) {
    run([&]() -> task<> {
        for (std::string_view uri : {"shm:///x", "handoff:///x", "udp://h:1"}) {
            if (simulated() || uri.starts_with("udp"))
                EXPECT_EQ(error_of(transport::listen(uri)), errc::unsupported) << uri;
            if (simulated() || !uri.starts_with("shm"))
                EXPECT_EQ(error_of(co_await transport::connect(uri)), errc::unsupported) << uri;
        }
        for (std::string_view uri :
             {"tls://h:1", "shm:///x", "handoff:///x", "tcp://127.0.0.1:1", "unix:///x"})
            EXPECT_EQ(error_of(bind_datagram(uri)), errc::unsupported) << uri;
        EXPECT_THAT(explain("udp://h:1", errc::unsupported), HasSubstr("use tcp://"));

        EXPECT_EQ(error_of(transport::listen("nonsense")), errc::bad_address);
        EXPECT_EQ(error_of(bind_datagram("nonsense")), errc::bad_address);
        EXPECT_EQ(error_of(co_await transport::connect("nonsense")), errc::bad_address);
        EXPECT_EQ(error_of(co_await transport::connect("tcp://*:80")), errc::bad_address);
        EXPECT_EQ(error_of(co_await transport::connect("tcp://127.0.0.1:0")), errc::bad_address);
        EXPECT_EQ(error_of(transport::listen("tcp://example.org:80")), errc::bad_address);
    });
}

TEST_P(transports, give_up_after_the_timeout) {
    if (!simulated()) GTEST_SKIP() << "needs an address that never answers";
    run([&]() -> task<> {
        tcp::connect_options options;
        options.timeout = 2s;
        const address silent = must(parse("tcp://192.0.2.1:80"));
        EXPECT_EQ(error_of(co_await transport::connect(silent, options)), errc::timed_out);
    });
}

TEST_P(transports, stop_connecting_when_cancelled) {
    const testing::temporary_folder folder;
    loop_options slow;
    slow.sim.min_delay = slow.sim.max_delay = 1ms;
    make_loop(slow);
    run([&]() -> task<> {
        const std::string path = "unix://" + folder.file("y.sock");
        listener local = must(transport::listen(path));
        listener remote = must(transport::listen("tcp://127.0.0.1:0"));
        const std::string port = std::to_string(remote.local().port());
        EXPECT_EQ(co_await testing::cancelled_before(transport::connect(path)), errc::cancelled);
        EXPECT_EQ(co_await testing::cancelled_before(transport::connect("tcp://127.0.0.1:" + port)),
                  errc::cancelled);
        for (listener* nobody : {&local, &remote})
            EXPECT_EQ(error_of(co_await with_timeout(5ms, nobody->accept())), errc::timed_out);

        if (simulated()) {
            // In the kernel a Unix socket's connect does not wait.
            EXPECT_EQ(co_await testing::cancelled_during(transport::connect(path)),
                      errc::cancelled);
            EXPECT_EQ(co_await testing::cancelled_during(transport::connect("tcp://192.0.2.1:80")),
                      errc::cancelled);
            co_return;
        }
        // Without an accept: once the queue is full, a later connect gets no answer.
        listen_options one;
        one.backlog = 0;
        const listener full = must(transport::listen("tcp://127.0.0.1:0", one));
        const std::string to = "tcp://127.0.0.1:" + std::to_string(full.local().port());
        std::vector<stream> waiting;
        for (;;) {
            auto connected = co_await with_timeout(50ms, transport::connect(to));
            if (!connected) break;
            waiting.push_back(std::move(*connected));
        }
        EXPECT_EQ(co_await testing::cancelled_during(transport::connect(to)), errc::cancelled);
    });
}

}  // namespace
}  // namespace eddy::transport
