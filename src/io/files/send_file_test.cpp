// stream::try_send_file(): files sent from the kernel's memory, with other operations beside it.
#include <eddy/io/file.hpp>
#include <eddy/io/pipe.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>

#include "base/files/temporary_folder.hpp"
#include "base/test_rounds.hpp"
#include "io/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

namespace eddy {
namespace {

using namespace std::chrono_literals;
using testing::connection;
using testing::error_of;
using testing::must;

class send_file_io : public testing::on_io_backend {
protected:
    /// A descriptor of a file with `content`.
    unique_fd file_of(std::string_view content) {
        const std::string path = folder_.file("content");
        std::ofstream(path, std::ios::binary) << content;
        return unique_fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    }

    bool is_supported() const {
        const bool is_sqpoll =
            GetParam() == io_backend_kind::uring && testing::with_environment({}).sqpoll;
        return !simulated() && !is_sqpoll;
    }

    testing::temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(io, send_file_io,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

/// Text that repeats nowhere at a page's distance.
std::string long_text(std::size_t size) {
    std::string text;
    for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i) + ";";
    text.resize(size);
    return text;
}

task<> read_to_end(stream& from, std::string& into) {
    for (;;) {
        const auto received = co_await from.read();
        if (!received) co_return;
        into += received->text();
    }
}

/// Sends until the socket is full; returns the number of bytes of the file.
std::size_t send_until_full(stream& to, int file, std::size_t size) {
    std::size_t sent = 0;
    while (sent < size) {
        const std::size_t more = must(to.try_send_file({}, file, sent, size - sent));
        EXPECT_LE(more, stream::max_sent_of_file);
        if (more == 0) break;
        sent += more;
    }
    return sent;
}

std::atomic<int> broken_pipes{0};

/// Connects, reads what there is, and closes, again and again: the first bytes that come then are
/// answered by a reset.
void close_connections(endpoint to, int rounds) {
    std::string into(100'000, ' ');
    for (int i = 0; i < rounds; ++i) {
        const unique_fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(to.port());
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(
            ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
        EXPECT_GT(::recv(client.get(), into.data(), into.size(), 0), 0);
        while (::recv(client.get(), into.data(), into.size(), MSG_DONTWAIT) > 0) {
        }
    }
}

// The kernel sends it also when a part has been taken, and then returns the size of that part.
TEST_P(send_file_io, a_peer_that_closes_in_the_middle_is_no_signal) {
    if (!is_supported()) GTEST_SKIP() << "it copies";
    struct sigaction before{};
    struct sigaction counts{};
    counts.sa_handler = [](int) { ++broken_pipes; };
    sigaction(SIGPIPE, &counts, &before);
    const int rounds = testing::rounds(2000);
    const unique_fd file = file_of(std::string(1 << 20, 'x'));
    broken_pipes = 0;
    run([&]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        std::jthread clients(close_connections, accepting.local(), rounds);
        for (int i = 0; i < rounds; ++i) {
            stream to = must(co_await accepting.accept());
            for (;;) {
                const auto sent = to.try_send_file({}, file.get(), 0, 1 << 20);
                if (!sent) break;
                if (*sent == 0) co_await here().yield();
            }
        }
        clients.join();
    });
    sigaction(SIGPIPE, &before, nullptr);
    EXPECT_EQ(broken_pipes, 0);
}

TEST_P(send_file_io, streams_that_would_copy_are_unsupported_and_send_nothing) {
    run([this]() -> task<> {
        const unique_fd file = file_of("content");
        const const_bytes head = as_bytes(std::string_view("head"));
        pipe_ends pipe = must(make_pipe());
        EXPECT_EQ(error_of(pipe.writer.try_send_file(head, file.get(), 0, 7)), errc::unsupported);
        if (is_supported()) co_return;
        connection pair = co_await connect();
        EXPECT_EQ(error_of(pair.client.try_send_file(head, file.get(), 0, 7)), errc::unsupported);
        pair.client.close();
        EXPECT_EQ(error_of(co_await pair.server.read()), errc::end_of_stream);
        EXPECT_EQ(error_of(stream().try_send_file(head, file.get(), 0, 7)), errc::closed);
    });
}

TEST_P(send_file_io, a_head_and_a_part_arrive_in_order) {
    if (!is_supported()) GTEST_SKIP();
    run([this]() -> task<> {
        const std::string content = long_text(100'000);
        const unique_fd file = file_of(content);
        connection pair = co_await connect();
        const const_bytes head = as_bytes(std::string_view("head:"));
        EXPECT_EQ(must(pair.client.try_send_file(head, file.get(), 10'001, 20'000)), 20'005u);
        EXPECT_EQ(must(pair.client.try_send_file(head, file.get(), 0, 0)), 5u) << "no file at all";
        // The existing bytes of a part that reaches beyond the file's end.
        EXPECT_EQ(must(pair.client.try_send_file({}, file.get(), 99'990, 20)), 10u);
        pair.client.close();
        std::string came;
        co_await read_to_end(pair.server, came);
        EXPECT_TRUE(came ==
                    "head:" + content.substr(10'001, 20'000) + "head:" + content.substr(99'990));
    });
}

TEST_P(send_file_io, what_a_full_socket_has_not_taken_goes_on_later) {
    if (!is_supported()) GTEST_SKIP();
    run([this]() -> task<> {
        const std::string content = long_text(16 << 20);
        const unique_fd file = file_of(content);
        connection pair = co_await connect();
        std::size_t sent = send_until_full(pair.client, file.get(), content.size());
        EXPECT_GT(sent, 0u);
        EXPECT_LT(sent, content.size());
        std::string came;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(
                [](stream& to, int from, const std::string& all, std::size_t& done) -> task<> {
                    while (done < all.size()) {
                        // A write waits for room, and meanwhile nothing else goes.
                        const std::string_view some = std::string_view(all).substr(done, 10'000);
                        co_await join_scope([&](scope& waiting) -> task<> {
                            waiting.spawn([](stream& full, std::string_view what) -> task<> {
                                must(co_await full.write_all(what));
                            }(to, some));
                            co_return;
                        });
                        done += some.size();
                        while (done < all.size()) {
                            const auto more = to.try_send_file({}, from, done, all.size() - done);
                            if (must(more) == 0) break;
                            done += *more;
                        }
                    }
                    to.close();
                }(pair.client, file.get(), content, sent));
            co_await here().yield();
            // The write waits.
            EXPECT_EQ(must(pair.client.try_send_file({}, file.get(), 0, 10)), 0u);
            co_await read_to_end(pair.server, came);
        });
        EXPECT_TRUE(came == content);
    });
}

TEST_P(send_file_io, a_file_that_has_ended_is_truncated) {
    if (!is_supported()) GTEST_SKIP();
    run([this]() -> task<> {
        const unique_fd file = file_of(long_text(10'000));
        connection pair = co_await connect();
        EXPECT_EQ(error_of(pair.client.try_send_file({}, file.get(), 10'000, 1)), errc::truncated);
        const const_bytes head = as_bytes(std::string_view("head"));
        EXPECT_EQ(must(pair.client.try_send_file(head, file.get(), 20'000, 1)), 4u);
        EXPECT_EQ(must(pair.client.try_write(as_bytes(std::string_view("!")))), 1u);
        pair.client.close();
        std::string came;
        co_await read_to_end(pair.server, came);
        EXPECT_EQ(came, "head!") << "the connection is as it was";
    });
}

TEST_P(send_file_io, a_read_that_waits_is_not_disturbed) {
    if (!is_supported()) GTEST_SKIP();
    run([this]() -> task<> {
        const std::string content = long_text(20'000);
        const unique_fd file = file_of(content);
        connection pair = co_await connect();
        for (int i = 0; i < 200; ++i) {
            std::string question;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](stream& from, std::string& into) -> task<> {
                    into = must(co_await from.read()).text();
                }(pair.server, question));
                // Before the read is submitted, after that, and with bytes on their way to it.
                for (int turns = 0; turns < i % 3; ++turns) co_await here().yield();
                EXPECT_EQ(must(pair.server.try_send_file({}, file.get(), 0, 20'000)), 20'000u);
                const std::string asked = std::to_string(i);
                must(co_await pair.client.write_all(asked));
                if (i % 2 == 0)
                    EXPECT_EQ(must(pair.server.try_send_file({}, file.get(), 0, 20'000)), 20'000u);
            });
            EXPECT_EQ(question, std::to_string(i));
            std::string came(i % 2 == 0 ? 40'000 : 20'000, '\0');
            must(co_await pair.client.read_exactly(std::as_writable_bytes(std::span<char>(came))));
            EXPECT_TRUE(came.starts_with(content) && came.ends_with(content));
        }
        const bool blocks = (::fcntl(pair.server.native_handle(), F_GETFL) & O_NONBLOCK) == 0;
        EXPECT_EQ(blocks, GetParam() == io_backend_kind::uring);
    });
}

TEST_P(send_file_io, a_peer_that_has_gone_is_an_error_and_no_signal) {
    if (!is_supported()) GTEST_SKIP();
    struct sigaction before{};
    struct sigaction deadly{};
    deadly.sa_handler = SIG_DFL;
    sigaction(SIGPIPE, &deadly, &before);
    run([this]() -> task<> {
        const unique_fd file = file_of(long_text(10'000));
        connection pair = co_await connect();
        const linger at_once{1, 0};
        ::setsockopt(pair.server.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        pair.server.close();
        for (int i = 0; i < 3; ++i) co_await here().yield();
        std::error_code first;
        while (!first) {
            first = error_of(pair.client.try_send_file({}, file.get(), 0, 10'000));
            co_await here().yield();
        }
        EXPECT_TRUE(first == errno_code(ECONNRESET) || first == errno_code(EPIPE))
            << first.message();
        EXPECT_EQ(error_of(pair.client.try_send_file({}, file.get(), 0, 10'000)),
                  errno_code(EPIPE));
        sigset_t pending;
        sigpending(&pending);
        EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
        EXPECT_EQ(error_of(co_await pair.client.read()), errno_code(ECONNRESET))
            << "what a send has found is not an orderly end";
    });
    sigaction(SIGPIPE, &before, nullptr);
}

}  // namespace
}  // namespace eddy
