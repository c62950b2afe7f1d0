// Unix sockets: paths, abstract names, and the peer's credentials.
#include <eddy/net/unix.hpp>

#include <eddy/net/tcp.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace eddy {
namespace {

using testing::error_of;
using testing::must;
using namespace std::chrono_literals;

class unix_sockets : public testing::on_io_backend {
protected:
    static task<void> exchange(std::string path) {
        listener accepting = must(unix_socket::listen(path));
        EXPECT_EQ(accepting.local().to_string(), path);
        stream client = must(co_await unix_socket::connect(path));
        stream server = must(co_await accepting.accept());
        must(co_await client.write_all("hello"));
        EXPECT_EQ(must(co_await server.read()).text(), "hello");
        for (const stream* end : {&client, &server}) {
            const auto peer = must(unix_socket::peer_credentials(*end));
            EXPECT_EQ(peer.pid, getpid());
            EXPECT_EQ(peer.uid, getuid());
            EXPECT_EQ(peer.gid, getgid());
        }
    }
};
INSTANTIATE_TEST_SUITE_P(net, unix_sockets,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

TEST_P(unix_sockets, connect_by_path_and_know_their_peer) {
    const testing::temporary_folder folder;
    run([&]() { return exchange(folder.file("a.sock")); });
    EXPECT_NE(access(folder.file("a.sock").c_str(), F_OK), 0) << "the file goes with its listener";
}

TEST_P(unix_sockets, connect_by_abstract_name) {
    run([&]() { return exchange("@eddy-unix-test-" + std::to_string(getpid())); });
}

TEST_P(unix_sockets, refuse_bad_and_absent_paths) {
    const testing::temporary_folder folder;
    run([&]() -> task<> {
        EXPECT_EQ(error_of(unix_socket::listen("")), errc::bad_address);
        EXPECT_EQ(error_of(unix_socket::listen(std::string(108, 'x'))), errc::bad_address);
        EXPECT_EQ(error_of(co_await unix_socket::connect(std::string(108, 'x'))),
                  errc::bad_address);
        EXPECT_EQ(error_of(co_await unix_socket::connect(folder.file("none"))), errno_code(ENOENT));
        listener first = must(unix_socket::listen(folder.file("b")));
        EXPECT_EQ(error_of(unix_socket::listen(folder.file("b"))), errno_code(EADDRINUSE));
    });
}

TEST_P(unix_sockets, stop_connecting_when_cancelled) {
    const testing::temporary_folder folder;
    const std::string path = folder.file("d");
    loop_options slow;
    slow.sim.min_delay = slow.sim.max_delay = 1ms;
    make_loop(slow);
    run([&]() -> task<> {
        listener accepting = must(unix_socket::listen(path));
        EXPECT_EQ(co_await testing::cancelled_before(unix_socket::connect(path)), errc::cancelled);
        // The kernel connects within the call, or says EAGAIN: there only the simulator waits.
        if (simulated()) {
            EXPECT_EQ(co_await testing::cancelled_during(unix_socket::connect(path)),
                      errc::cancelled);
        }
        EXPECT_EQ(error_of(co_await with_timeout(5ms, accepting.accept())), errc::timed_out)
            << "nobody has come";
        stream client = must(co_await unix_socket::connect(path));
        EXPECT_TRUE(must(co_await accepting.accept()));
    });
}

TEST_P(unix_sockets, have_the_permissions_asked_for) {
    if (simulated()) GTEST_SKIP() << "the simulator has no files";
    const testing::temporary_folder folder;
    run([&]() -> task<> {
        listen_options options;
        options.unix_mode = 0600;
        listener accepting = must(unix_socket::listen(folder.file("c"), options));
        struct stat info;
        EXPECT_EQ(stat(folder.file("c").c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0600U);
        co_return;
    });
}

TEST_P(unix_sockets, without_a_file_have_no_permissions) {
    run([&]() -> task<void> {
        listen_options options;
        options.unix_mode = 0600;
        EXPECT_EQ(error_of(unix_socket::listen("@eddy-unix-test", options)), errno_code(EINVAL));
        co_return;
    });
}

TEST_P(unix_sockets, alone_have_credentials) {
    run([&]() -> task<> {
        testing::connection ends = co_await connect();
        EXPECT_EQ(error_of(unix_socket::peer_credentials(ends.client)), errc::unsupported);
        ends.client.close();
        EXPECT_EQ(error_of(unix_socket::peer_credentials(ends.client)), errc::unsupported);
    });
}

}  // namespace
}  // namespace eddy
