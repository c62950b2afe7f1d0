// Streams over shared memory in loops: transfer, ends, cancellation, peers that fail.
#include <eddy/shm/shm.hpp>

#include <eddy/io/scope.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/blocking.hpp>
#include <eddy/net/unix.hpp>

#include "io/testing.hpp"
#include "net/lingering_socket.hpp"
#include "net/peer_process.hpp"
#include "shm/crowd.hpp"
#include "shm/testing.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eddy::shm {
namespace {

using testing::error_of;
using testing::must;
using namespace std::chrono_literals;

/// Positions begin where 32-bit ones, signed and not, and signed 64-bit ones would end soon.
constexpr std::uint64_t begins[] = {0, (1ull << 31) - 5000, (1ull << 32) - 5000,
                                    (1ull << 63) - 5000};

struct ends {
    stream client;
    stream server;
};

class shm_streams : public testing::on_io_backend {
protected:
    std::string path() const { return folder_.file("s"); }

    static task<ends> connected(std::string at, options client, listen_options server) {
        listener accepting = must(shm::listen(at, server));
        ends made;
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(accept_one(&accepting, &made.server));
            made.client = must(co_await shm::connect(at, client));
            co_await children.join();
        });
        co_return made;
    }
    task<ends> connected(options both = {}) const {
        listen_options server;
        static_cast<options&>(server) = both;
        return connected(path(), both, server);
    }
    static task<void> accept_one(listener* from, stream* to) {
        *to = must(co_await from->accept());
    }
    static task<std::error_code> read_error(stream* from) {
        co_return error_of(co_await from->read());
    }
    /// Once another task waits for it.
    static task<int> close_soon(stream* which) {
        co_await loop::current().yield();
        which->close();
        co_return 0;
    }
    static task<int> kill_soon(pid_t which) {
        co_await loop::current().yield();
        ::kill(which, SIGKILL);
        co_return 0;
    }
    static task<void> accept_until_cancelled(listener* from) {
        EXPECT_EQ(error_of(co_await from->accept()), errc::cancelled);
    }
    static task<void> expect_pattern(stream* from, std::uint64_t number, std::size_t total) {
        testing::pattern content(number);
        while (content.position() < total) {
            const lease part = must(co_await from->read());
            if (!content.continues_with(part.bytes())) {
                ADD_FAILURE() << "other bytes before " << content.position();
                co_return;
            }
        }
    }
    /// A process that connects, writes "written" and then waits to be killed.
    static pid_t fork_client(std::string at) {
        const pid_t child = ::fork();
        if (child != 0) return child;
        loop_options chosen;
        chosen.kind = io_backend_kind::epoll;
        auto own = loop::create(chosen);
        if (own) (*own)->run(connect_and_wait(at));
        ::_exit(1);
    }
    static task<void> connect_and_wait(std::string at) {
        for (;;) {
            auto client = co_await shm::connect(at);
            if (!client) {
                must(co_await loop::current().sleep_for(1ms));
                continue;
            }
            must(co_await client->write_all("written"));
            static_cast<void>(co_await client->read());
            co_return;
        }
    }

private:
    testing::temporary_folder folder_;
};
INSTANTIATE_TEST_SUITE_P(shm, shm_streams,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         testing::io_backend_name);

TEST_P(shm_streams, carry_bytes_both_ways) {
    run([&]() -> task<> {
        ends pair = co_await connected();
        must(co_await pair.client.write_all("ping"));
        EXPECT_EQ(must(co_await pair.server.read()).text(), "ping");
        must(co_await pair.server.write_all("pong"));
        std::vector<std::byte> into(4);
        must(co_await pair.client.read_exactly(into));
        EXPECT_EQ(as_text(into), "pong");
        EXPECT_EQ(must(unix_socket::peer_credentials(pair.server)).pid, ::getpid());
    });
}

TEST_P(shm_streams, carry_more_than_a_ring_past_every_size_of_position) {
    for (const std::uint64_t begin : begins) {
        for (const bool is_asymmetric : {false, true}) {
            run([&]() -> task<> {
                options small;
                small.ring_size = min_ring_size;
                small.first_position = begin;
                small.asymmetric_fence = is_asymmetric;
                ends pair = co_await connected(small);
                constexpr std::size_t total = 1'000'000;
                co_await with_scope([&](scope& children) -> task<> {
                    children.spawn(testing::send_pattern(pair.client, 1, total, 1, 18));
                    children.spawn(testing::send_pattern(pair.server, 2, total, 2, 12));
                    children.spawn(expect_pattern(&pair.server, 1, total));
                    children.spawn(expect_pattern(&pair.client, 2, total));
                    co_await children.join();
                });
            });
        }
    }
}

TEST_P(shm_streams, end_after_all_that_was_written) {
    run([&]() -> task<> {
        ends pair = co_await connected();
        must(co_await pair.client.write_all("written before"));
        must(pair.client.shutdown_write());
        EXPECT_EQ(error_of(co_await pair.client.write_all("after")), errno_code(EPIPE));
        EXPECT_EQ(must(co_await pair.server.read()).text(), "written before");
        EXPECT_EQ(error_of(co_await pair.server.read()), errc::end_of_stream);
        EXPECT_EQ(error_of(co_await pair.server.read()), errc::end_of_stream) << "for ever";
        must(co_await pair.server.write_all("the other half goes on"));
        EXPECT_EQ(must(co_await pair.client.read()).text(), "the other half goes on");
        must(co_await pair.server.write_all("and is not lost"));
        pair.server.close();
        EXPECT_EQ(must(co_await pair.client.read()).text(), "and is not lost");
        EXPECT_EQ(error_of(co_await pair.client.read()), errc::end_of_stream);
    });
}

TEST_P(shm_streams, end_waits_when_the_peer_closes) {
    run([&]() -> task<> {
        ends pair = co_await connected();
        auto [read, closed] = co_await when_all(read_error(&pair.server), close_soon(&pair.client));
        EXPECT_EQ(read, errc::end_of_stream);
        // The end of the socket comes behind that of the bytes.
        std::error_code written;
        while (!written) {
            written = error_of(co_await pair.server.write_all("x"));
            must(co_await loop::current().sleep_for(1ms));
        }
        EXPECT_EQ(written, errno_code(EPIPE));
    });
}

TEST_P(shm_streams, end_waits_when_they_are_closed_or_cancelled_here) {
    run([&]() -> task<> {
        ends pair = co_await connected();
        auto [read, closed] = co_await when_all(read_error(&pair.server), close_soon(&pair.server));
        EXPECT_EQ(read, errc::cancelled);
        EXPECT_EQ(error_of(co_await pair.server.read()), errc::closed);

        ends other = co_await connected();
        EXPECT_EQ(error_of(co_await with_timeout(1ms, other.server.read())), errc::timed_out);
        const std::vector<std::byte> many(1'000'000);
        EXPECT_EQ(error_of(co_await with_timeout(1ms, other.server.write_all(many))),
                  errc::timed_out);
        must(co_await other.client.write_all("goes on"));
        EXPECT_EQ(must(co_await other.server.read()).text(), "goes on");
    });
}

TEST_P(shm_streams, write_what_there_is_room_for) {
    run([&]() -> task<> {
        ends pair = co_await connected();
        const std::vector<std::byte> many(1'000'000);
        EXPECT_EQ(must(pair.client.try_write(many)), options().ring_size);
        EXPECT_EQ(must(pair.client.try_write(many)), 0u);
        EXPECT_GT(must(co_await pair.server.read()).size(), 0u);
        EXPECT_GT(must(pair.client.try_write(many)), 0u);
    });
}

TEST_P(shm_streams, lend_bytes_where_they_lie) {
    run([&]() -> task<> {
        ends pair = co_await connected();
        EXPECT_TRUE(must(peek(pair.server)).empty());
        must(co_await pair.client.write_all("first"));
        must(co_await pair.client.write_all("second"));
        EXPECT_EQ(as_text(must(peek(pair.server))), "firstsecond");
        consume(pair.server, 5);
        EXPECT_EQ(as_text(must(peek(pair.server))), "second");
        consume(pair.server, 6);
        pair.client.close();
        EXPECT_EQ(error_of(peek(pair.server)), errc::end_of_stream);
    });
}

TEST_P(shm_streams, end_by_a_reset_after_an_abort) {
    run([&]() -> task<> {
        for (const bool waits : {false, true}) {
            ends pair = co_await connected();
            must(co_await pair.server.write_all("part of it"));
            std::error_code end;
            scope waiting(co_await current_source());
            if (waits) {
                EXPECT_EQ(must(co_await pair.client.read()).text(), "part of it");
                waiting.spawn([](stream* from, std::error_code* into) -> task<> {
                    *into = error_of(co_await from->read());
                }(&pair.client, &end));
                co_await loop::current().yield();
            }
            pair.server.abort();
            EXPECT_FALSE(pair.server);
            co_await waiting.join();
            if (!waits) {
                EXPECT_EQ(must(co_await pair.client.read()).text(), "part of it");
                end = error_of(co_await pair.client.read());
            }
            EXPECT_EQ(end, errno_code(ECONNRESET));
        }
    });
}

TEST_P(shm_streams, have_no_orderly_end_after_a_cancelled_write) {
    run([&]() -> task<> {
        ends pair = co_await connected();
        const auto write = [](stream& to) -> task<result<>> {
            const std::vector<std::byte> much(8 * 1024 * 1024);
            co_return co_await to.write_all(const_bytes(much));
        };
        EXPECT_EQ(error_of(co_await with_timeout(5ms, write(pair.server))), errc::timed_out);
        pair.server.close();
        std::error_code end;
        while (!end) end = error_of(co_await pair.client.read());
        EXPECT_EQ(end, errno_code(ECONNRESET));
    });
}

TEST_P(shm_streams, go_over_the_socket_where_a_side_shares_no_memory) {
    for (const bool client_shares : {false, true}) {
        run([&]() -> task<> {
            options client;
            client.share_memory = client_shares;
            listen_options server;
            server.share_memory = !client_shares;
            ends pair = co_await connected(path(), client, server);
            must(co_await pair.client.write_all("over the socket"));
            EXPECT_EQ(must(co_await pair.server.read()).text(), "over the socket");
            EXPECT_EQ(error_of(peek(pair.server)), errc::unsupported);
            pair.server.close();
            EXPECT_EQ(error_of(co_await pair.client.read()), errc::end_of_stream);
        });
    }
}

TEST_P(shm_streams, are_accepted_beside_clients_that_stall) {
    run([&]() -> task<> {
        listen_options server;
        server.handshake_timeout = 1h;
        listener accepting = must(shm::listen(path(), server));
        std::vector<stream> stalled;
        for (int i = 0; i < 20; ++i) stalled.push_back(must(co_await unix_socket::connect(path())));
        stream accepted;
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(accept_one(&accepting, &accepted));
            stream client = must(co_await shm::connect(path()));
            must(co_await client.write_all("at once"));
            co_await children.join();
            EXPECT_EQ(must(co_await accepted.read()).text(), "at once");
        });
        EXPECT_EQ(failed_handshakes(accepting), 0u);
    });
}

TEST_P(shm_streams, are_accepted_beside_more_stalled_clients_than_may_wait) {
    run([&]() -> task<> {
        listen_options server;
        server.handshake_timeout = 1h;
        listener accepting = must(shm::listen(path(), server));
        std::vector<stream> stalled;
        for (std::size_t i = 0; i < 3 * max_waiting_connections; ++i)
            stalled.push_back(must(co_await unix_socket::connect(path())));
        stream accepted;
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(accept_one(&accepting, &accepted));
            stream client = must(co_await shm::connect(path()));
            must(co_await client.write_all("at once"));
            co_await children.join();
            EXPECT_EQ(must(co_await accepted.read()).text(), "at once");
        });
        EXPECT_EQ(failed_handshakes(accepting), 2 * max_waiting_connections + 1);
    });
}

TEST_P(shm_streams, have_ports_for_addresses) {
    run([&]() -> task<> {
        listener accepting = must(shm::listen(":0"));
        const std::uint16_t port = port_of(accepting.local().to_string());
        EXPECT_NE(port, 0);
        const std::string path = ":" + std::to_string(port);
        EXPECT_EQ(error_of(shm::listen(path)), errno_code(EADDRINUSE));
        options client;
        client.server_users = {::geteuid() + 1};
        EXPECT_EQ(error_of(co_await shm::connect(path, client)), errno_code(ECONNREFUSED));
        client.server_users.push_back(::geteuid());
        stream made = must(co_await shm::connect(path, client));
        must(co_await made.write_all("hello"));
        stream accepted = must(co_await accepting.accept());
        EXPECT_EQ(must(co_await accepted.read()).text(), "hello");
        EXPECT_EQ(error_of(co_await shm::connect(":x")), errc::bad_address);
        EXPECT_EQ(error_of(shm::listen(":70000")), errc::bad_address);
    });
}

TEST_P(shm_streams, wait_for_room_in_a_full_backlog) {
    eddy::listen_options least;
    least.backlog = 0;
    const endpoint at = must(endpoint::unix_path(path()));
    blocking::listener full = must(blocking::listen(at, least));
    std::vector<blocking::stream> waiting;
    for (auto made = blocking::connect(at, 0s); made; made = blocking::connect(at, 0s))
        waiting.push_back(std::move(*made));
    run([&]() -> task<> {
        options client;
        client.handshake_timeout = 20ms;
        EXPECT_EQ(error_of(co_await shm::connect(path(), client)), errc::timed_out);
        client.handshake_timeout = 40s;
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn([](blocking::listener* from, std::size_t count) -> task<> {
                must(co_await loop::current().sleep_for(5ms));  // so that the client waits, mostly
                for (std::size_t i = 0; i < count; ++i) must(from->accept());
                must(co_await loop::current().wait_readable(from->native_handle()));
                stream last = must(loop::current().adopt(must(from->accept()).release()));
                must(co_await accept_over(std::move(last), listen_options()));
            }(&full, waiting.size()));
            must(co_await shm::connect(path(), client));
            co_await children.join();
        });
    });
}

TEST_P(shm_streams, refuse_peers_of_other_protocols_and_late_ones) {
    run([&]() -> task<> {
        listen_options server;
        server.handshake_timeout = 50ms;
        listener accepting = must(shm::listen(path(), server));
        co_await with_scope([&](scope& children) -> task<> {
            stream accepted;
            children.spawn(accept_one(&accepting, &accepted));
            stream talks_http = must(co_await unix_socket::connect(path()));
            must(co_await talks_http.write_all("GET / HTTP/1.1\r\nHost: example\r\n\r\n"));
            stream silent = must(co_await unix_socket::connect(path()));
            while (failed_handshakes(accepting) < 2) must(co_await loop::current().sleep_for(1ms));
            stream good = must(co_await shm::connect(path()));
            co_await children.join();
        });
    });
}

/// A HELLO of a client, with memory or without.
std::string hello_text(bool has_memory) {
    hello message;
    message.ring_size = EDDY_SHM_MIN_RING;
    if (has_memory) message.features = EDDY_SHM_FEATURE_MEMORY;
    return std::string(as_text(encode(message)));
}

void send_now(const stream& to, std::string_view bytes) {
    EXPECT_EQ(::send(to.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
}

TEST_P(shm_streams, are_accepted_beside_sockets_that_linger) {
    run([&]() -> task<> {
        listen_options server;
        server.handshake_timeout = 100ms;
        listener accepting = must(shm::listen(path(), server));
        struct attempt {
            std::string first;   // without a descriptor
            std::string second;  // with the lingering socket
            int flags = 0;
        };
        const attempt attempts[] = {{"", hello_text(true)},
                                    {std::string(EDDY_SHM_HELLO_SIZE, 'x'), "x"},
                                    {"", "x"},  // until the deadline
                                    {"", "x", MSG_OOB}};
        for (const attempt& each : attempts) {
            testing::lingering_socket passed;
            stream bad = must(co_await unix_socket::connect(path()));
            // Both before the server, which this thread runs, reads the first one.
            if (!each.first.empty()) send_now(bad, each.first);
            EXPECT_TRUE(passed.pass(bad.native_handle(), each.second, each.flags));
            // Its end here is the server's end of the handshake, beside which others are served.
            while (co_await bad.read()) {
            }
            stream accepted;
            co_await with_scope([&](scope& children) -> task<> {
                children.spawn(accept_one(&accepting, &accepted));
                const stream client = must(co_await shm::connect(path()));
                co_await children.join();
            });
        }
        EXPECT_EQ(failed_handshakes(accepting), std::size(attempts));
    });
}

TEST_P(shm_streams, refuse_descriptors_after_the_handshake) {
    if (!testing::can_refuse_descriptors()) GTEST_SKIP() << "the kernel has no SO_PASSRIGHTS";
    run([&]() -> task<> {
        ends made = co_await connected();
        for (const stream* each : {&made.client, &made.server}) {
            testing::lingering_socket passed;
            EXPECT_FALSE(passed.pass(each->driver().option_handle(), "!"));
            EXPECT_EQ(errno, EPERM);
        }
        must(co_await made.client.write_all("still there"));
        EXPECT_EQ(must(co_await made.server.read()).text(), "still there");
    });
}

TEST_P(shm_streams, without_memory_do_not_linger_with_the_first_bytes) {
    run([&]() -> task<> {
        listener accepting = must(shm::listen(path()));
        testing::lingering_socket passed;
        stream bad = must(co_await unix_socket::connect(path()));
        send_now(bad, hello_text(false));
        EXPECT_TRUE(passed.pass(bad.native_handle(), "x"));
        stream accepted = must(co_await accepting.accept());
        EXPECT_EQ(must(co_await accepted.read()).text(), "x");
    });
}

TEST_P(shm_streams, are_for_users_that_may_connect) {
    run([&]() -> task<> {
        listen_options server;
        server.allowed_users = {::geteuid() + 1};
        listener accepting = must(shm::listen(path(), server));
        co_await with_scope([&](scope& children) -> task<> {
            stream accepted;
            children.spawn(accept_until_cancelled(&accepting));
            EXPECT_EQ(error_of(co_await shm::connect(path())), errc::truncated);
            EXPECT_EQ(failed_handshakes(accepting), 1u);
            children.cancel();
            co_await children.join();
        });
        struct stat info{};
        EXPECT_EQ(::stat(path().c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0600u);
    });
}

TEST_P(shm_streams, are_made_with_servers_of_users_that_may_serve) {
    run([&]() -> task<> {
        const listener accepting = must(shm::listen(path()));
        options client;
        client.server_users = {::geteuid() + 1};
        EXPECT_EQ(error_of(co_await shm::connect(path(), client)), errno_code(EACCES));
        client.server_users.push_back(::geteuid());
        EXPECT_EQ(error_of(co_await shm::connect(path(), client)), std::error_code());
    });
}

TEST_P(shm_streams, report_that_a_peer_was_killed_after_what_it_had_written) {
    // The child has a loop of its own, and must not have this one.
    end_loop();
    const pid_t child = fork_client(path());
    make_loop({});
    run([&]() -> task<> {
        listener accepting = must(shm::listen(path()));
        stream accepted = must(co_await accepting.accept());
        std::vector<std::byte> into(7);
        must(co_await accepted.read_exactly(into));
        auto [read, killed] = co_await when_all(read_error(&accepted), kill_soon(child));
        EXPECT_EQ(read, errno_code(ECONNRESET));
        EXPECT_EQ(error_of(co_await accepted.write_all("x")), errno_code(EPIPE));
    });
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
}

TEST_P(shm_streams, leave_nothing_behind) {
    run([&]() -> task<> {
        co_await connected();
        const std::size_t before = testing::open_descriptors();
        for (int i = 0; i < 200; ++i) {
            ends pair = co_await connected();
            must(co_await pair.client.write_all("x"));
            pair.client.close();
            static_cast<void>(co_await pair.server.read());
        }
        // Closed drivers are freed after their last completion.
        while (testing::open_descriptors() > before) must(co_await loop::current().sleep_for(1ms));
        while (testing::mappings() > 0) must(co_await loop::current().sleep_for(1ms));
    });
}

TEST_P(shm_streams, are_refused_with_positions_that_cannot_be) {
    run([&]() -> task<> {
        listen_options server;
        server.first_position = 1ull << 63;
        EXPECT_EQ(error_of(shm::listen(path(), server)), errno_code(EINVAL));
        const listener accepting = must(shm::listen(path()));
        options client;
        client.first_position = ~0ull;
        EXPECT_EQ(error_of(co_await shm::connect(path(), client)), errno_code(EINVAL));
    });
}

TEST_P(shm_streams, are_refused_with_rings_that_cannot_be) {
    run([&]() -> task<> {
        for (const std::size_t size :
             {std::size_t{0}, min_ring_size - 1, min_ring_size + 1, 2 * max_ring_size}) {
            listen_options server;
            server.ring_size = size;
            EXPECT_EQ(error_of(shm::listen(path(), server)), errno_code(EINVAL)) << size;
        }
        co_return;
    });
}

TEST(shm_crowd, is_the_process_with_most_handshakes) {
    const auto itself = [](const unix_socket::peer_process& one) { return one; };
    std::vector<unix_socket::peer_process> under_way = {{1, 5}, {2, 5}, {3, 5},
                                                        {2, 5}, {3, 0}, {2, 5}};
    EXPECT_EQ(most_crowding(under_way, itself), under_way.begin() + 1);
    under_way = {{4, 5}, {2, 5}, {4, 6}};
    EXPECT_EQ(most_crowding(under_way, itself), under_way.begin()) << "the oldest of equals";
    under_way.clear();
    EXPECT_EQ(most_crowding(under_way, itself), under_way.end());
}

}  // namespace
}  // namespace eddy::shm
