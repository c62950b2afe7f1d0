// Sender's side of a handoff: what a receiver gets, full queues, limits and cancellation.
#include <eddy/handoff/sender.hpp>

#include <eddy/net/descriptors.hpp>

#include "handoff/send_attempt.hpp"
#include "io/testing.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace eddy::handoff {
namespace {

using testing::error_of;
using testing::must;
using namespace std::chrono_literals;

/// Message and client that a receiver got.
struct taken {
    std::string message;
    unique_fd client;
};

/// A runtime's socket. Blocking calls; a test that waits in them for too long fails.
class receiver {
public:
    /// `name` stands for a name in the abstract namespace.
    explicit receiver(int type, int backlog = 64, std::string name = "")
        : type_(type), name_(std::move(name)) {
        const endpoint at = must(endpoint::unix_path(path()));
        socket_.reset(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::bind(socket_.get(), at.data(), at.size()), 0);
        if (name_.empty()) EXPECT_EQ(::chmod(path().c_str(), 0666), 0);
        EXPECT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
        EXPECT_EQ(::listen(socket_.get(), backlog), 0);
    }

    std::string path() const { return name_.empty() ? folder_.file("handoff.sock") : name_; }
    int socket() const { return socket_.get(); }
    unique_fd accept() const {
        await(socket_.get());
        return unique_fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    /// The message of the next connection.
    taken take() const { return read(accept()); }
    taken read(unique_fd from) const {
        taken got;
        std::vector<std::byte> room(1 << 20);
        for (;;) {
            await(from.get());
            const auto part = must(unix_socket::receive_message(from.get(), room));
            EXPECT_FALSE(part.is_cut);
            if (part.size == 0) return got;
            got.message.append(reinterpret_cast<const char*>(room.data()), part.size);
            EXPECT_EQ(part.surplus, 0u);
            if (part.descriptor) {
                EXPECT_FALSE(got.client);
                got.client.reset(::fcntl(part.descriptor.get(), F_DUPFD_CLOEXEC, 0));
            }
            if (type_ == SOCK_SEQPACKET) return got;
        }
    }

private:
    static void await(int fd) {
        pollfd watched{fd, POLLIN, 0};
        if (::poll(&watched, 1, 40'000) != 1) throw std::runtime_error("nothing came");
    }

    testing::temporary_folder folder_;
    int type_;
    std::string name_;
    unique_fd socket_;
};

struct socket_pair {
    unique_fd client;  // stays with the client
    unique_fd server;  // is handed over
};

socket_pair make_client() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

/// The descriptor is one of the client's connection.
void expect_reaches(const unique_fd& server, const unique_fd& client) {
    char byte = 0;
    EXPECT_EQ(::send(server.get(), "x", 1, MSG_NOSIGNAL), 1);
    EXPECT_EQ(::recv(client.get(), &byte, 1, 0), 1);
    EXPECT_EQ(byte, 'x');
}

sender_options with(socket_kind kind, duration timeout = 40s) {
    sender_options made;
    made.kind = kind;
    made.timeout = timeout;
    return made;
}

constexpr std::array<int, 2> types = {SOCK_STREAM, SOCK_SEQPACKET};
socket_kind kind_of(int type) {
    return type == SOCK_STREAM ? socket_kind::stream : socket_kind::seqpacket;
}
const char* const data = R"({"prompt":"hello","user_id":7})";

class handoff_sender : public testing::on_io_backend {};
INSTANTIATE_TEST_SUITE_P(handoff, handoff_sender,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         testing::io_backend_name);

TEST_P(handoff_sender, passes_a_client_and_its_data) {
    run([&]() -> task<> {
        for (const int type : types) {
            const receiver to(type);
            for (const socket_kind kind : {socket_kind::automatic, kind_of(type)}) {
                const socket_pair client = make_client();
                const sender_options options = with(kind);
                must(co_await hand_over(to.path(), data, client.server.get(), options));
                const taken got = to.take();
                EXPECT_EQ(got.message, data);
                expect_reaches(got.client, client.client);
                EXPECT_GE(::fcntl(client.server.get(), F_GETFD), 0) << "the caller's is open";
            }
        }
    });
}

TEST_P(handoff_sender, passes_no_data_as_one_zero_byte) {
    run([&]() -> task<> {
        const receiver to(SOCK_SEQPACKET);
        const socket_pair client = make_client();
        must(co_await hand_over(to.path(), "", client.server.get()));
        const taken got = to.take();
        EXPECT_EQ(got.message, std::string(1, '\0'));
        expect_reaches(got.client, client.client);
    });
}

TEST_P(handoff_sender, reports_a_receiver_that_is_not_there) {
    const testing::temporary_folder folder;
    run([&]() -> task<> {
        const socket_pair client = make_client();
        const int fd = client.server.get();
        EXPECT_EQ(error_of(co_await hand_over(folder.file("no"), data, fd)), errno_code(ENOENT));
        EXPECT_EQ(error_of(co_await hand_over("", data, fd)), errc::bad_address);
        EXPECT_EQ(error_of(co_await hand_over(std::string(108, 'x'), data, fd)), errc::bad_address);
        const receiver to(SOCK_STREAM);
        const sender_options other = with(socket_kind::seqpacket);
        EXPECT_EQ(error_of(co_await hand_over(to.path(), data, fd, other)), errno_code(EPROTOTYPE));
        EXPECT_EQ(error_of(co_await hand_over(to.path(), data, 1'000'000)), errno_code(EBADF));
    });
}

task<> hand_over_to(std::string path, std::string message, int client, bool& done) {
    const sender_options options = with(socket_kind::automatic);
    must(co_await hand_over(path, message, client, options));
    done = true;
}

TEST_P(handoff_sender, waits_while_a_stream_socket_is_full) {
    // More than a socket's buffer holds.
    const std::string long_data(std::size_t{3} << 20, 'd');
    run([&]() -> task<> {
        const receiver to(SOCK_STREAM);
        const socket_pair client = make_client();
        bool done = false;
        taken got;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(hand_over_to(to.path(), long_data, client.server.get(), done));
            for (int i = 0; i < 3; ++i) co_await here().yield();
            EXPECT_FALSE(done) << "it cannot be in the kernel yet";
            std::thread reader([&] { got = to.take(); });
            while (!done) must(co_await here().sleep_for(1ms));
            // The end of the message is the end of the connection.
            reader.join();
        });
        EXPECT_TRUE(got.message == long_data);
        expect_reaches(got.client, client.client);
    });
}

TEST_P(handoff_sender, waits_for_a_receiver_that_does_not_accept) {
    run([&]() -> task<> {
        for (const int type : types) {
            const receiver to(type, 0);
            const socket_pair client = make_client();
            const sender_options options = with(kind_of(type), 30ms);
            int passed = 0;
            std::error_code full;
            while (!full) {
                full = error_of(co_await hand_over(to.path(), data, client.server.get(), options));
                passed += full ? 0 : 1;
            }
            EXPECT_EQ(full, errc::timed_out);
            EXPECT_GE(passed, 1);
            bool done = false;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(hand_over_to(to.path(), data, client.server.get(), done));
                for (int i = 0; i < 3; ++i) co_await here().yield();
                EXPECT_FALSE(done);
                for (int i = 0; i < passed; ++i) EXPECT_EQ(to.take().message, data);
            });
            EXPECT_TRUE(done);
            EXPECT_EQ(to.take().message, data);
        }
    });
}

TEST_P(handoff_sender, can_be_cancelled) {
    const std::string long_data(std::size_t{3} << 20, 'd');
    run([&]() -> task<> {
        const receiver to(SOCK_STREAM, 0);
        const socket_pair client = make_client();
        const int fd = client.server.get();
        EXPECT_EQ(co_await testing::cancelled_during(hand_over(to.path(), long_data, fd)),
                  errc::cancelled)
            << "while the socket is full";
        EXPECT_EQ(co_await testing::cancelled_during(hand_over(to.path(), data, fd)),
                  errc::cancelled)
            << "while the receiver does not accept";
        EXPECT_GE(::fcntl(fd, F_GETFD), 0);
    });
}

TEST_P(handoff_sender, reports_a_receiver_that_hangs_up) {
    const std::string long_data(std::size_t{3} << 20, 'd');
    run([&]() -> task<> {
        const receiver to(SOCK_STREAM);
        const socket_pair client = make_client();
        std::error_code seen;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(
                [](std::string path, std::string message, int fd, std::error_code& into) -> task<> {
                    into = error_of(co_await hand_over(path, message, fd));
                }(to.path(), long_data, client.server.get(), seen));
            for (int i = 0; i < 3; ++i) co_await here().yield();
            to.accept().reset();
        });
        EXPECT_TRUE(seen == errno_code(EPIPE) || seen == errno_code(ECONNRESET)) << seen.message();
    });
}

TEST_P(handoff_sender, raises_the_buffer_for_a_long_packet) {
    // Beyond the default of net.core.wmem_default.
    const std::string long_data(300'000, 'd');
    run([&]() -> task<> {
        const receiver to(SOCK_SEQPACKET);
        const socket_pair client = make_client();
        const sender_options options = with(socket_kind::seqpacket);
        must(co_await hand_over(to.path(), long_data, client.server.get(), options));
        EXPECT_TRUE(to.take().message == long_data);
        const std::string endless(std::size_t{16} << 20, 'd');
        EXPECT_EQ(error_of(co_await hand_over(to.path(), endless, client.server.get(), options)),
                  errno_code(EMSGSIZE));
    });
}

task<> expect_unsupported() {
    EXPECT_EQ(error_of(co_await hand_over("/none", data, 0)), errc::unsupported);
}

TEST(handoff_sender_simulated, is_unsupported) {
    loop_options wanted;
    wanted.kind = io_backend_kind::sim;
    must(loop::create(wanted))->run(expect_unsupported());
}

TEST(handoff_sender_blocking, passes_a_client_and_its_data) {
    for (const int type : types) {
        const receiver to(type);
        for (const socket_kind kind : {socket_kind::automatic, kind_of(type)}) {
            const socket_pair client = make_client();
            must(hand_over_blocking(to.path(), data, client.server.get(), with(kind)));
            const taken got = to.take();
            EXPECT_EQ(got.message, data);
            expect_reaches(got.client, client.client);
        }
    }
}

TEST(handoff_sender_blocking, finds_the_type_of_an_abstract_name) {
    const std::string name = "@eddy-handoff-test-" + std::to_string(getpid());
    const socket_pair client = make_client();
    EXPECT_EQ(error_of(hand_over_blocking(name, data, client.server.get())),
              errno_code(ECONNREFUSED));
    for (const int type : types) {
        const receiver to(type, 64, name);
        must(hand_over_blocking(name, data, client.server.get()));
        EXPECT_EQ(to.take().message, data);
    }
}

TEST(handoff_sender_blocking, waits_for_a_receiver) {
    const std::string long_data(std::size_t{3} << 20, 'd');
    const receiver to(SOCK_STREAM, 0);
    const socket_pair client = make_client();
    const int fd = client.server.get();
    EXPECT_EQ(
        error_of(hand_over_blocking(to.path(), long_data, fd, with(socket_kind::stream, 30ms))),
        errc::timed_out);
    std::thread sender(
        [&] { must(hand_over_blocking(to.path(), long_data, fd, with(socket_kind::stream))); });
    const taken broken = to.take();
    EXPECT_LT(broken.message.size(), long_data.size()) << "the first sender gave up";
    EXPECT_TRUE(to.take().message == long_data);
    sender.join();
}

TEST(handoff_sender_blocking, reports_a_receiver_that_is_not_there) {
    const testing::temporary_folder folder;
    const socket_pair client = make_client();
    EXPECT_EQ(error_of(hand_over_blocking(folder.file("none"), data, client.server.get())),
              errno_code(ENOENT));
}

/// The child of the next test: an unprivileged sender with few descriptors. Exit status 0 if
/// descriptors in flight reached the limit, and a handoff succeeded once they were received.
int send_too_many(const std::string& path, int notify) {
    constexpr rlim_t limit = 32;
    const rlimit few{limit, limit};
    const socket_pair client = make_client();
    // A user of its own: descriptors in flight are counted for all processes of a user.
    const uid_t user = 1'000'000 + static_cast<uid_t>(getpid());
    if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) return 2;
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 3;
    const int fd = client.server.get();
    std::error_code seen;
    for (rlim_t i = 0; i < 2 * limit && !seen; ++i)
        seen = error_of(hand_over_blocking(path, data, fd, with(socket_kind::seqpacket, 20ms)));
    if (seen != errno_code(ETOOMANYREFS)) return 4;
    if (::write(notify, "x", 1) != 1) return 5;
    return hand_over_blocking(path, data, fd, with(socket_kind::seqpacket)) ? 0 : 6;
}

TEST(handoff_sender_blocking, retries_while_too_many_descriptors_are_in_flight) {
    if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
    const receiver to(SOCK_SEQPACKET, 1024);
    int notice[2];
    ASSERT_EQ(::pipe2(notice, O_CLOEXEC), 0);
    const unique_fd from(notice[0]);
    unique_fd notify(notice[1]);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(send_too_many(to.path(), notify.get()));
    notify.reset();
    char byte = 0;
    const bool limited = ::read(from.get(), &byte, 1) == 1;
    // The messages in flight, then the one that waits.
    int whole = 0;
    while (limited) {
        pollfd watched{to.socket(), POLLIN, 0};
        if (::poll(&watched, 1, 100) == 1) {
            // One reached its timeout: it connected, and sent nothing.
            const taken got = to.take();
            EXPECT_TRUE(got.message == data || got.message.empty()) << got.message;
            whole += got.message == data && got.client ? 1 : 0;
        } else {
            siginfo_t ended{};
            if (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) ==
                    0 &&
                ended.si_pid == child)
                break;
        }
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_GT(whole, 1);
}

TEST(handoff_sender_blocking, waits_grow_up_to_a_limit) {
    retry_pause pauses;
    EXPECT_EQ(pauses.next(), retry_pause::first);
    duration before = retry_pause::first;
    for (int i = 0; i < 20; ++i) {
        const duration now = pauses.next();
        EXPECT_GE(now, before);
        EXPECT_LE(now, retry_pause::longest);
        before = now;
    }
    EXPECT_EQ(before, retry_pause::longest);
}

}  // namespace
}  // namespace eddy::handoff
