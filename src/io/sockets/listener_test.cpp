// Listeners: addresses, conflicts, and cleanup.
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(listener_io);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(listener_kernel_io);

task<void> expect_conversation(loop& here, listener& accepting, endpoint to) {
    stream client = must(co_await here.connect(to));
    stream server = must(co_await accepting.accept());
    must(co_await client.write_all("ping"));
    EXPECT_EQ(must(co_await server.read()).text(), "ping");
    must(co_await server.write_all("pong"));
    EXPECT_EQ(must(co_await client.read()).text(), "pong");
}

TEST_P(listener_io, takes_ipv4_and_returns_the_port_it_got) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        EXPECT_NE(accepting.local().port(), 0);
        EXPECT_EQ(accepting.local().host(), "127.0.0.1");
        co_await expect_conversation(here(), accepting, accepting.local());
    });
}

TEST_P(listener_io, takes_ipv6) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(must(endpoint::ip("::1", 0))));
        co_await expect_conversation(here(), accepting, accepting.local());
    });
}

TEST_P(listener_io, a_dual_stack_wildcard_takes_both) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(must(endpoint::ip("*", 0))));
        const std::uint16_t port = accepting.local().port();
        co_await expect_conversation(here(), accepting, must(endpoint::ip("127.0.0.1", port)));
        co_await expect_conversation(here(), accepting, must(endpoint::ip("::1", port)));
    });
}

TEST_P(listener_io, an_ipv6_only_wildcard_takes_only_ipv6) {
    run([this]() -> task<> {
        listen_options only;
        only.dual_stack = false;
        // The kernel chooses a port that is free for IPv6; another program may have it for IPv4.
        for (int tries = 0; tries < 50; ++tries) {
            listener accepting = must(here().listen(must(endpoint::ip("::", 0)), only));
            const std::uint16_t port = accepting.local().port();
            const endpoint by_ipv4 = must(endpoint::ip("127.0.0.1", port));
            if (error_of(co_await here().connect(by_ipv4)) != errno_code(ECONNREFUSED)) continue;
            // Refused, so the same port is free for IPv4.
            auto other = here().listen(must(endpoint::ip("0.0.0.0", port)));
            if (!other) continue;
            co_await expect_conversation(here(), accepting, must(endpoint::ip("::1", port)));
            co_await expect_conversation(here(), *other, by_ipv4);
            co_return;
        }
        ADD_FAILURE() << "no port that both families could have for themselves";
    });
}

TEST_P(listener_io, a_port_in_use_is_refused_until_it_is_free) {
    run([this]() -> task<> {
        listener first = must(here().listen(loopback()));
        const endpoint taken = first.local();
        EXPECT_EQ(error_of(here().listen(taken)), errno_code(EADDRINUSE));
        first.close();
        listener second = must(here().listen(taken));
        co_await expect_conversation(here(), second, taken);
    });
}

TEST_P(listener_io, a_closed_one_refuses) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        const endpoint where = accepting.local();
        accepting.close();
        EXPECT_FALSE(accepting);
        EXPECT_EQ(error_of(co_await accepting.accept()), errc::closed);
        EXPECT_EQ(error_of(co_await here().connect(where)), errno_code(ECONNREFUSED));
    });
}

TEST_P(listener_io, closing_ends_unaccepted_connections) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        std::vector<stream> clients;
        for (int i = 0; i < 10; ++i)
            clients.push_back(must(co_await here().connect(accepting.local())));
        // On some io-backends part of them has left the kernel's queue by now.
        static_cast<void>(must(co_await accepting.accept()));
        accepting.close();
        for (std::size_t i = 1; i < clients.size(); ++i) {
            const std::error_code ended = error_of(co_await clients[i].read());
            EXPECT_TRUE(ended == errno_code(ECONNRESET) || ended == errc::end_of_stream)
                << ended.message();
        }
    });
}

TEST_P(listener_io, closing_ends_an_accept_that_waits) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        std::error_code seen;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](listener& from, std::error_code& error) -> task<> {
                error = error_of(co_await from.accept());
            }(accepting, seen));
            co_await here().yield();
            accepting.close();
        });
        EXPECT_EQ(seen, errc::cancelled);
    });
}

TEST_P(listener_io, accepts_in_the_order_of_connecting) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        std::vector<stream> clients;
        for (int i = 0; i < 300; ++i)
            clients.push_back(must(co_await here().connect(accepting.local())));
        for (const stream& client : clients) {
            stream server = must(co_await accepting.accept());
            EXPECT_EQ(server.peer(), client.local());
        }
    });
}

TEST_P(listener_io, a_port_without_a_listener_refuses_connections) {
    run([this]() -> task<> {
        EXPECT_EQ(error_of(co_await here().connect(loopback(1))), errno_code(ECONNREFUSED));
    });
}

TEST_P(listener_kernel_io, two_share_a_port_when_both_say_so) {
    run([this]() -> task<> {
        listen_options shared;
        shared.reuse_port = true;
        listener first = must(here().listen(loopback(), shared));
        EXPECT_EQ(error_of(here().listen(first.local())), errno_code(EADDRINUSE));
        listener second = must(here().listen(first.local(), shared));
        EXPECT_EQ(second.local(), first.local());
        co_return;
    });
}

TEST_P(listener_kernel_io, too_many_open_files_passes_when_some_are_closed) {
    if (sanitizer_needs_descriptors()) GTEST_SKIP() << "UBSan needs descriptors of its own";
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        // connect() has its socket before the limit is lowered; accept() has none left.
        stream client = must(co_await here().connect(accepting.local()));
        rlimit before;
        EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        const unique_fd lowest(open("/dev/null", O_RDONLY | O_CLOEXEC));
        rlimit none = before;
        none.rlim_cur = static_cast<rlim_t>(lowest.get());
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(error_of(co_await accepting.accept()), errno_code(EMFILE));
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        stream server = must(co_await accepting.accept());
        must(co_await client.write_all("x"));
        EXPECT_EQ(must(co_await server.read()).text(), "x");
    });
}

TEST_P(listener_kernel_io, where_descriptors_are_few_none_is_taken_ahead_of_an_accept) {
    if (sanitizer_needs_descriptors()) GTEST_SKIP() << "UBSan needs descriptors of its own";
    run([this]() -> task<> {
        rlimit before;
        EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        rlimit few = before;
        few.rlim_cur = 256;
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        listener accepting = must(here().listen(loopback()));
        stream client = must(co_await here().connect(accepting.local()));
        stream server = must(co_await accepting.accept());
        constexpr int more = 20;
        std::vector<stream> clients;
        for (int i = 0; i < more; ++i)
            clients.push_back(must(co_await here().connect(accepting.local())));
        const auto lowest = [] { return unique_fd(open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); };
        const int free = lowest();
        for (int turn = 0; turn < 50; ++turn)
            must(co_await here().sleep_for(std::chrono::milliseconds(1)));
        EXPECT_EQ(lowest(), free) << "those that connected wait in the kernel's queue";
        for (int i = 0; i < more; ++i) clients.push_back(must(co_await accepting.accept()));
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    });
}

TEST_P(listener_kernel_io, takes_a_unix_path_and_removes_it) {
    run([this]() -> task<> {
        temporary_folder folder;
        const std::string path = folder.file("socket");
        const endpoint where = must(endpoint::unix_path(path));
        listen_options options;
        options.unix_mode = 0600;
        listener accepting = must(here().listen(where, options));
        EXPECT_EQ(accepting.local(), where);
        struct stat info;
        EXPECT_EQ(lstat(path.c_str(), &info), 0);
        EXPECT_TRUE(S_ISSOCK(info.st_mode));
        EXPECT_EQ(info.st_mode & 0777, 0600u);
        co_await expect_conversation(here(), accepting, where);
        accepting.close();
        EXPECT_FALSE(std::filesystem::exists(path));
    });
}

TEST_P(listener_kernel_io, replaces_a_stale_socket_file_but_no_other) {
    run([this]() -> task<> {
        temporary_folder folder;
        const std::string path = folder.file("socket");
        const endpoint where = must(endpoint::unix_path(path));
        {
            // The remains of a killed process: a bound socket without a process.
            const unique_fd dead(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
            EXPECT_EQ(bind(dead.get(), where.data(), where.size()), 0);
        }
        EXPECT_TRUE(std::filesystem::exists(path));
        listener accepting = must(here().listen(where));
        co_await expect_conversation(here(), accepting, where);
        EXPECT_EQ(error_of(here().listen(where)), errno_code(EADDRINUSE)) << "it is alive";
        stream client = must(co_await here().connect(where));
        accepting.close();

        std::ofstream(path) << "precious";
        EXPECT_EQ(error_of(here().listen(where)), errno_code(EADDRINUSE));
        EXPECT_EQ(std::filesystem::file_size(path), 8u) << "a file that is no socket was touched";
    });
}

TEST_P(listener_kernel_io, removes_its_own_socket_file_and_no_other_of_its_path) {
    run([this]() -> task<> {
        temporary_folder folder;
        const std::string path = folder.file("socket");
        const endpoint where = must(endpoint::unix_path(path));
        listener first = must(here().listen(where));
        std::filesystem::remove(path);
        std::ofstream(path) << "precious";
        first.close();
        EXPECT_EQ(std::filesystem::file_size(path), 8u) << "a file of another program";

        std::filesystem::remove(path);
        first = must(here().listen(where));
        std::filesystem::remove(path);
        listener second = must(here().listen(where));
        first.close();
        co_await expect_conversation(here(), second, where);
        second.close();
        EXPECT_FALSE(std::filesystem::exists(path));
    });
}

TEST_P(listener_kernel_io, says_why_a_unix_path_cannot_be_had) {
    run([this]() -> task<> {
        temporary_folder folder;
        const auto listen_on = [&](const std::string& path) {
            return error_of(here().listen(must(endpoint::unix_path(path))));
        };
        EXPECT_EQ(listen_on(folder.file("absent/socket")), errno_code(ENOENT));
        EXPECT_EQ(error_of(co_await here().connect(must(endpoint::unix_path(folder.file("no"))))),
                  errno_code(ENOENT));
    });
}

TEST_P(listener_kernel_io, takes_an_abstract_unix_name) {
    run([this]() -> task<> {
        // The io-backends are tried at the same time, from the same seed.
        const endpoint where =
            must(endpoint::unix_path("@eddy-io-test-" + std::to_string(::getpid())));
        listener accepting = must(here().listen(where));
        EXPECT_EQ(accepting.local(), where);
        co_await expect_conversation(here(), accepting, where);
    });
}

// ---- sockets that something else has opened

unique_fd bound_socket(int type, const endpoint& to) {
    unique_fd made(::socket(to.family(), type | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(made.get(), to.data(), to.size()), 0);
    return made;
}

/// As a parent process passes it on: inherited by children, in blocking mode or not.
unique_fd listening_socket(const endpoint& to, bool nonblocking) {
    unique_fd made = bound_socket(SOCK_STREAM | (nonblocking ? SOCK_NONBLOCK : 0), to);
    EXPECT_EQ(::listen(made.get(), 16), 0);
    EXPECT_EQ(::fcntl(made.get(), F_SETFD, 0), 0);
    return made;
}

TEST_P(listener_kernel_io, an_adopted_socket_accepts) {
    run([this]() -> task<> {
        for (const bool nonblocking : {false, true}) {
            unique_fd given = listening_socket(loopback(), nonblocking);
            const int number = given.get();
            listener accepting = must(here().adopt_listener(std::move(given)));
            EXPECT_EQ(accepting.native_handle(), number);
            EXPECT_EQ(::fcntl(number, F_GETFD), FD_CLOEXEC);
            co_await expect_conversation(here(), accepting, accepting.local());
            const stream client = must(co_await here().connect(accepting.local()));
            const stream server = must(co_await accepting.accept());
            int no_delay = 0;
            socklen_t size = sizeof(no_delay);
            EXPECT_EQ(
                ::getsockopt(server.native_handle(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &size),
                0);
            EXPECT_NE(no_delay, 0);
        }
    });
}

TEST_P(listener_kernel_io, those_who_share_an_adopted_socket_go_on_listening) {
    run([this]() -> task<> {
        const unique_fd shared = listening_socket(loopback(), false);
        const auto copy = [&shared] { return unique_fd(::dup(shared.get())); };
        listener first = must(here().adopt_listener(copy()));
        const endpoint where = first.local();
        co_await expect_conversation(here(), first, where);
        first.close();
        co_await here().yield();
        stream client = must(co_await here().connect(where));
        listener second = must(here().adopt_listener(copy()));
        stream server = must(co_await second.accept());
        must(co_await client.write_all("ping"));
        EXPECT_EQ(must(co_await server.read()).text(), "ping");
    });
}

TEST_P(listener_kernel_io, an_adopted_unix_socket_keeps_its_file) {
    run([this]() -> task<> {
        temporary_folder folder;
        const std::string path = folder.file("socket");
        const endpoint where = must(endpoint::unix_path(path));
        listener accepting = must(here().adopt_listener(listening_socket(where, false)));
        EXPECT_EQ(accepting.local(), where);
        co_await expect_conversation(here(), accepting, where);
        accepting.close();
        EXPECT_TRUE(std::filesystem::exists(path));
    });
}

TEST_P(listener_kernel_io, a_shared_socket_listens_on_when_its_first_owner_is_gone) {
    run([this]() -> task<> {
        temporary_folder folder;
        const std::string path = folder.file("socket");
        for (const endpoint& at : {loopback(), must(endpoint::unix_path(path))}) {
            listener first = must(here().listen(at));
            const endpoint where = first.local();
            listener second = must(here().adopt_listener(unique_fd(::dup(first.native_handle()))));
            first.driver().set_shared(true);
            first.close();
            co_await here().yield();
            co_await expect_conversation(here(), second, where);
            second.driver().set_shared(false);
            second.close();
            EXPECT_FALSE(std::filesystem::exists(path));
        }
    });
}

TEST_P(listener_kernel_io, a_paused_listener_yields_what_it_has_taken) {
    run([this]() -> task<> {
        listener first = must(here().listen(loopback()));
        const endpoint where = first.local();
        listener second = must(here().adopt_listener(unique_fd(::dup(first.native_handle()))));
        first.driver().set_shared(true);
        // On a ring the kernel accepts ahead once one was awaited.
        std::vector<stream> clients;
        clients.push_back(must(co_await here().connect(where)));
        std::vector<stream> served;
        served.push_back(must(co_await first.accept()));
        for (int i = 0; i < 10; ++i) clients.push_back(must(co_await here().connect(where)));
        first.driver().pause();
        for (;;) {
            result<stream> next = co_await first.accept();
            if (!next) {
                EXPECT_EQ(next.error(), errc::closed);
                break;
            }
            served.push_back(std::move(*next));
        }
        clients.push_back(must(co_await here().connect(where)));
        first.close();
        while (served.size() < clients.size()) served.push_back(must(co_await second.accept()));
        for (stream& each : served) must(co_await each.write_all("x"));
        for (stream& each : clients) EXPECT_EQ(must(co_await each.read()).text(), "x");
    });
}

TEST_P(listener_kernel_io, a_resumed_listener_accepts_again) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        co_await expect_conversation(here(), accepting, accepting.local());
        accepting.driver().pause();
        EXPECT_EQ(error_of(co_await accepting.accept()), errc::closed);
        accepting.driver().resume();
        co_await expect_conversation(here(), accepting, accepting.local());
    });
}

TEST_P(listener_kernel_io, only_listening_stream_sockets_are_adopted) {
    run([this]() -> task<> {
        const auto refusal = [this](unique_fd given) {
            return error_of(here().adopt_listener(std::move(given)));
        };
        EXPECT_EQ(refusal(bound_socket(SOCK_DGRAM, loopback())), errc::unsupported);
        EXPECT_EQ(refusal(bound_socket(SOCK_STREAM, loopback())), errno_code(EINVAL));
        EXPECT_EQ(refusal(unique_fd(::open("/dev/null", O_RDWR | O_CLOEXEC))),
                  errno_code(ENOTSOCK));
        EXPECT_EQ(refusal(unique_fd()), errno_code(EBADF));
        temporary_folder folder;
        const endpoint where = must(endpoint::unix_path(folder.file("packets")));
        unique_fd packets = bound_socket(SOCK_SEQPACKET, where);
        EXPECT_EQ(::listen(packets.get(), 1), 0);
        EXPECT_EQ(refusal(std::move(packets)), errc::unsupported);
        connection pair = co_await connect();
        EXPECT_EQ(refusal(unique_fd(::dup(pair.server.native_handle()))), errno_code(EINVAL));
    });
}

TEST_P(listener_io, the_simulator_adopts_none) {
    if (!simulated()) GTEST_SKIP() << "the kernel's backends do";
    run([this]() -> task<> {
        EXPECT_EQ(error_of(here().adopt_listener(listening_socket(loopback(), false))),
                  errc::unsupported);
        co_return;
    });
}

}  // namespace
}  // namespace eddy::testing
