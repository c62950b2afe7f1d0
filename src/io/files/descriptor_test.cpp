// Foreign descriptors: polled for other libraries, or adopted as streams.
#include <eddy/io/scope.hpp>

#include "io/posix/sockets.hpp"
#include "io/testing.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_KERNEL_IO_BACKEND(descriptor_io);

struct descriptor_pair {
    unique_fd first;
    unique_fd second;
};

descriptor_pair make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) throw std::runtime_error("pipe2 failed");
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

descriptor_pair make_sockets() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        throw std::runtime_error("socketpair failed");
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

task<void> wait_for(loop& here, int fd, readiness wanted, int& ready) {
    if (wanted == readiness::readable)
        must(co_await here.wait_readable(fd));
    else if (wanted == readiness::writable)
        must(co_await here.wait_writable(fd));
    else
        must(co_await here.wait_hangup(fd));
    ++ready;
}

void put(int fd, std::string_view text) {
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST_P(descriptor_io, a_poll_waits_until_ready) {
    run([this]() -> task<> {
        const descriptor_pair ends = make_pipe();
        for (int i = 0; i < 3; ++i) {
            int ready = 0;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(wait_for(here(), ends.first.get(), readiness::readable, ready));
                for (int turn = 0; turn < 3; ++turn) co_await here().yield();
                EXPECT_EQ(ready, 0);
                put(ends.second.get(), "x");
            });
            EXPECT_EQ(ready, 1);
            // Still ready: it is a level, not an edge.
            must(co_await here().wait_readable(ends.first.get()));
            char byte;
            EXPECT_EQ(read(ends.first.get(), &byte, 1), 1);
        }
        must(co_await here().wait_writable(ends.second.get()));
    });
}

TEST_P(descriptor_io, the_end_of_the_peer_is_readiness) {
    run([this]() -> task<> {
        descriptor_pair ends = make_pipe();
        int ready = 0;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(wait_for(here(), ends.first.get(), readiness::readable, ready));
            co_await here().yield();
            ends.second.reset();
        });
        EXPECT_EQ(ready, 1);
    });
}

TEST_P(descriptor_io, a_hang_up_is_noticed_behind_what_is_unread) {
    run([this]() -> task<> {
        for (const bool closes : {true, false}) {
            descriptor_pair ends = make_sockets();
            int ready = 0;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(wait_for(here(), ends.first.get(), readiness::hung_up, ready));
                put(ends.second.get(), "x");
                must(co_await here().wait_readable(ends.first.get()));
                for (int turn = 0; turn < 3; ++turn) co_await here().yield();
                EXPECT_EQ(ready, 0);
                if (closes)
                    ends.second.reset();
                else
                    ::shutdown(ends.second.get(), SHUT_WR);
            });
            EXPECT_EQ(ready, 1);
            char byte;
            EXPECT_EQ(read(ends.first.get(), &byte, 1), 1) << "it is still there";
        }
    });
}

TEST_P(descriptor_io, one_descriptor_may_be_polled_several_times_at_once) {
    run([this]() -> task<> {
        const descriptor_pair ends = make_sockets();
        int readable = 0;
        int writable = 0;
        co_await join_scope([&](scope& children) -> task<> {
            for (int i = 0; i < 3; ++i)
                children.spawn(wait_for(here(), ends.first.get(), readiness::readable, readable));
            children.spawn(wait_for(here(), ends.first.get(), readiness::writable, writable));
            while (writable == 0) co_await here().yield();
            EXPECT_EQ(readable, 0);
            put(ends.second.get(), "x");
        });
        EXPECT_EQ(readable, 3);
        EXPECT_EQ(writable, 1);
    });
}

TEST_P(descriptor_io, the_socket_of_a_stream_may_be_polled_beside_it) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        int ready = 0;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(
                wait_for(here(), pair.server.native_handle(), readiness::readable, ready));
            co_await here().yield();
            must(co_await pair.client.write_all("x"));
        });
        EXPECT_EQ(ready, 1);
        EXPECT_EQ(must(co_await pair.server.read()).text(), "x");
        // No descriptor keeps the socket open: its peer observes the end.
        pair.server.close();
        EXPECT_EQ(error_of(co_await pair.client.read()), errc::end_of_stream);
    });
}

TEST_P(descriptor_io, a_regular_file_is_always_ready) {
    run([this]() -> task<> {
        temporary_folder folder;
        const unique_fd file(open(folder.file("file").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
        EXPECT_TRUE(file);
        must(co_await here().wait_readable(file.get()));
        must(co_await here().wait_writable(file.get()));
    });
}

TEST_P(descriptor_io, a_bad_descriptor_is_an_error) {
    run([this]() -> task<> {
        EXPECT_EQ(error_of(co_await here().wait_readable(-1)), errno_code(EBADF));
        EXPECT_EQ(error_of(here().adopt(unique_fd())), errno_code(EBADF));
    });
}

TEST_P(descriptor_io, an_adopted_socket_is_a_stream) {
    run([this]() -> task<> {
        for (const bool nonblocking : {false, true}) {
            descriptor_pair ends = make_sockets();
            if (nonblocking) fcntl(ends.first.get(), F_SETFL, O_NONBLOCK);
            put(ends.second.get(), "before");
            stream adopted = must(here().adopt(std::move(ends.first)));
            EXPECT_EQ(must(co_await adopted.read()).text(), "before");
            must(co_await adopted.write_all("back"));
            char text[4];
            EXPECT_EQ(read(ends.second.get(), text, sizeof(text)), 4);
            ends.second.reset();
            EXPECT_EQ(error_of(co_await adopted.read()), errc::end_of_stream);
        }
    });
}

/// Another process's copy of an adopted socket, with which that process sets it to blocking mode.
void make_blocking(int copy) {
    EXPECT_EQ(fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) & ~O_NONBLOCK), 0);
}

/// Ends the connection if the loop blocks, so that a test fails instead of hanging.
class rescue {
public:
    explicit rescue(int peer) : thread_([this, peer] { watch(peer); }) {}
    ~rescue() {
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
        }
        over_.notify_all();
        thread_.join();
    }

private:
    void watch(int peer) {
        std::unique_lock lock(mutex_);
        if (!over_.wait_for(lock, 20s, [this] { return is_over_; })) shutdown(peer, SHUT_RDWR);
    }

    std::mutex mutex_;
    std::condition_variable over_;
    bool is_over_ = false;
    std::thread thread_;
};

task<void> put_later(loop& here, int fd, std::string_view text) {
    co_await here.yield();
    EXPECT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

TEST_P(descriptor_io, reads_of_a_socket_that_another_process_makes_blocking_wait_in_the_loop) {
    run([this]() -> task<> {
        descriptor_pair ends = make_sockets();
        const unique_fd copy(fcntl(ends.first.get(), F_DUPFD_CLOEXEC, 0));
        const rescue in_case(ends.second.get());
        stream adopted = must(here().adopt(std::move(ends.first)));
        put(ends.second.get(), "one");
        make_blocking(copy.get());
        EXPECT_EQ(must(co_await adopted.read()).text(), "one");
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(put_later(here(), ends.second.get(), "two"));
            auto second = co_await adopted.read();
            EXPECT_TRUE(second);
            if (second) EXPECT_EQ(second->text(), "two");
        });
    });
}

TEST_P(descriptor_io, writes_to_a_socket_that_another_process_makes_blocking_do_not_wait) {
    run([this]() -> task<> {
        temporary_folder folder;
        const unique_fd file(open(folder.file("file").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
        const std::string much(1 << 20, 'x');
        put(file.get(), much);
        for (const bool sends_file : {false, true}) {
            descriptor_pair ends = make_sockets();
            const unique_fd copy(fcntl(ends.first.get(), F_DUPFD_CLOEXEC, 0));
            const rescue in_case(ends.second.get());
            stream adopted = must(here().adopt(std::move(ends.first)));
            make_blocking(copy.get());
            // More than the socket's buffer has room for.
            for (int i = 0; i < 8; ++i) {
                const auto sent = sends_file ? adopted.try_send_file({}, file.get(), 0, much.size())
                                             : adopted.try_write(std::as_bytes(std::span(much)));
                EXPECT_TRUE(sent || sent.error() == errc::unsupported) << sent.error().message();
            }
        }
        co_return;
    });
}

TEST_P(descriptor_io, a_closed_stream_whose_socket_lives_on_elsewhere_is_gone) {
    run([this]() -> task<> {
        descriptor_pair ends = make_sockets();
        const unique_fd handed_over(fcntl(ends.first.get(), F_DUPFD_CLOEXEC, 0));
        stream adopted = must(here().adopt(std::move(ends.first)));
        put(ends.second.get(), "x");
        EXPECT_EQ(must(co_await adopted.read()).text(), "x");
        adopted.close();
        for (int i = 0; i < 3; ++i) co_await here().yield();
        // Bytes for the socket's new owner do not concern the loop.
        put(ends.second.get(), "y");
        must(co_await here().sleep_for(1ms));
        char text[4];
        EXPECT_EQ(recv(handed_over.get(), text, sizeof(text), MSG_DONTWAIT), 1);
        EXPECT_EQ(text[0], 'y');
    });
}

void put_with_descriptor(int fd, std::string_view text, int passed) {
    iovec piece{const_cast<char*>(text.data()), text.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &passed, sizeof(passed));
    EXPECT_EQ(sendmsg(fd, &message, 0), static_cast<ssize_t>(text.size()));
}

task<std::string> read_text(stream& from, std::size_t size) {
    std::string text;
    while (text.size() < size) text += must(co_await from.read()).text();
    co_return text;
}

TEST_P(descriptor_io, passed_descriptors_do_not_stop_the_bytes) {
    run([this]() -> task<> {
        // The kernel ends a read where a descriptor was passed, though more bytes are there.
        descriptor_pair ends = make_sockets();
        stream adopted = must(here().adopt(std::move(ends.first)));
        for (int i = 0; i < 10; ++i) {
            put(ends.second.get(), "one ");
            put_with_descriptor(ends.second.get(), "two ", STDERR_FILENO);
            put(ends.second.get(), "three");
            EXPECT_EQ(co_await read_text(adopted, 13), "one two three");
        }
    });
}

TEST_P(descriptor_io, a_detached_stream_is_closed_and_its_connection_lives) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        must(co_await pair.client.write_all("before"));
        unique_fd given = must(pair.server.detach());
        EXPECT_EQ(error_of(co_await pair.server.read()), errc::closed);
        EXPECT_EQ(error_of(pair.server.detach()), errno_code(EBADF));
        stream taken = must(here().adopt(std::move(given)));
        EXPECT_EQ(co_await read_text(taken, 6), "before");
        must(co_await taken.write_all("after"));
        EXPECT_EQ(co_await read_text(pair.client, 5), "after");
    });
}

TEST_P(descriptor_io, a_socket_is_detached_as_it_was_adopted) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        const std::string large(256 * 1024, 'x');
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](stream& to, std::string_view text) -> task<> {
                must(co_await to.write_all(text));
            }(pair.client, large));
            EXPECT_EQ(co_await read_text(pair.server, large.size()), large);
        });
        const unique_fd given = must(pair.server.detach());
        int asks_for_the_rest = -1;
        socklen_t size = sizeof(asks_for_the_rest);
        EXPECT_EQ(getsockopt(given.get(), IPPROTO_TCP, TCP_INQ, &asks_for_the_rest, &size), 0);
        EXPECT_EQ(asks_for_the_rest, 0);
    });
}

TEST_P(descriptor_io, urgent_data_does_not_stop_the_bytes) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        const int fd = pair.client.native_handle();
        // The second time after a large message, behind which bytes may be received otherwise.
        for (const std::size_t size : {std::size_t{1}, std::size_t{256 * 1024}}) {
            const std::string large(size, 'x');
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](stream& to, std::string_view text) -> task<> {
                    must(co_await to.write_all(text));
                }(pair.client, large));
                EXPECT_EQ(co_await read_text(pair.server, size), large);
            });
            for (int i = 0; i < 10; ++i) {
                EXPECT_EQ(send(fd, "one ", 4, 0), 4);
                EXPECT_EQ(send(fd, "!", 1, MSG_OOB), 1);
                EXPECT_EQ(send(fd, "two", 3, 0), 3);
                // The urgent byte itself is not delivered.
                EXPECT_EQ(co_await read_text(pair.server, 7), "one two");
            }
        }
    });
}

TEST_P(descriptor_io, a_huge_write_to_a_fast_reader_gives_others_their_turns) {
    run([this]() -> task<> {
        constexpr std::size_t size = 64 * 1024 * 1024;
        connection pair = co_await connect();
        const unique_fd reading(fcntl(pair.server.native_handle(), F_DUPFD_CLOEXEC, 0));
        EDDY_ASSERT(fcntl(reading.get(), F_SETFL, 0) == 0);  // epoll's sockets do not block
        std::size_t received = 0;
        std::jthread reader([&] {
            std::vector<char> into(1024 * 1024);
            while (received < size) {
                const ssize_t got = recv(reading.get(), into.data(), into.size(), 0);
                if (got <= 0) return;
                received += static_cast<std::size_t>(got);
            }
        });
        const std::vector<std::byte> bytes(size);
        bool over = false;
        std::size_t turns = 0;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](connection& to, const_bytes all, bool& done) -> task<> {
                must(co_await to.client.write_all(all));
                done = true;
            }(pair, bytes, over));
            while (!over) {
                co_await here().yield();
                ++turns;
            }
        });
        reader.join();
        EXPECT_EQ(received, size);
        EXPECT_GE(turns, size / most_bytes_a_turn - 1);
    });
}

}  // namespace
}  // namespace eddy::testing
