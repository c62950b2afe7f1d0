// Socket banks of the kernel: sockets by the thousand, rings, and what TCP does at a close.
#include "io/socket_bank/socket_bank.hpp"
#include "io/socket_bank/socket_bank_testing.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_KERNEL_IO_BACKEND(socket_bank_kernel_io);

struct socket_ends {
    unique_fd banked;
    unique_fd peer;
};

/// A pair of Unix sockets that hold few bytes.
socket_ends make_sockets() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        throw std::runtime_error("socketpair failed");
    const int least = 1;
    for (const int each : ends) setsockopt(each, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

/// Bytes that have come, without waiting.
std::string received(int fd) {
    char bytes[64 * 1024];
    const ssize_t count = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    return count < 0 ? std::string() : std::string(bytes, static_cast<std::size_t>(count));
}

socket_bank_options with_tables_of(std::uint32_t size, std::uint32_t capacity) {
    socket_bank_options options;
    options.capacity = capacity;
    options.table_size = size;
    return options;
}

TEST_P(socket_bank_kernel_io, has_the_implementation_of_its_loop) {
    run([]() -> task<> {
        recorder seen;
        const auto bank = must(socket_bank::open(4, seen));
        EXPECT_EQ(bank->kind(), loop::current().kind());
        EXPECT_EQ(error_of(bank->add(stream())), errc::unsupported);
        socket_bank_options options;
        options.capacity = 4;
        options.direct_descriptors = false;
        EXPECT_EQ(checked_bank(options, seen).kind(), io_backend_kind::epoll);
        co_return;
    });
}

TEST_P(socket_bank_kernel_io, plain_descriptors_serve_where_direct_ones_are_refused) {
    run([this]() -> task<> {
        recorder seen;
        socket_bank_options options;
        options.capacity = 4;
        options.direct_descriptors = false;
        checked_bank bank(options, seen);
        connection ends = co_await connect();
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        pattern sent(1);
        pattern expected(1);
        const auto bytes = sent.next(more_than_fits);
        bank.write(slot, bytes);
        bank.flush();
        co_await here().yield();
        EXPECT_EQ(seen.writes, 0u);
        co_await expect_pattern(ends.client, expected, bytes.size());
        co_await seen.wait_writes(1);
        ends.client.close();
        co_await seen.wait_hangups(1);
        bank.close(slot);
        co_await seen.wait_closed(1);
    });
}

TEST_P(socket_bank_kernel_io, sees_a_reset) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        const linger reset{1, 0};
        EXPECT_EQ(
            setsockopt(ends.client.native_handle(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)),
            0);
        ends.client.close();
        co_await seen.wait_hangups(1);
        EXPECT_EQ(seen.hangups, std::vector<std::uint32_t>{slot});
        bank.write(slot, "x");
        bank.flush();
        co_await seen.wait_writes(1);
        EXPECT_LT(seen.written[slot].back(), 0);
    });
}

TEST_P(socket_bank_kernel_io, a_reset_ends_a_write_that_waits) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        const std::vector<std::byte> bytes(more_than_fits);
        bank.write(slot, bytes);
        bank.flush();
        co_await here().yield();
        EXPECT_EQ(seen.writes, 0u);
        ends.client.close();  // with unread bytes
        co_await seen.wait_writes(1);
        EXPECT_LT(seen.written[slot].back(), 0);
        co_await seen.wait_hangups(1);
    });
}

TEST_P(socket_bank_kernel_io, input_that_is_not_read_costs_the_peer_nothing) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        // The request's body has come, and nothing reads it.
        const std::vector<std::byte> body(40'000);
        must(co_await ends.client.write_all(body));
        const auto on_its_way = [&] {
            int bytes = 0;
            EXPECT_EQ(ioctl(ends.client.native_handle(), SIOCOUTQ, &bytes), 0);
            return bytes;
        };
        while (on_its_way() > 0) must(co_await here().sleep_for(1ms));
        const std::uint32_t slot = must(bank.add(std::move(ends.server)));
        pattern sent(1);
        pattern expected(1);
        const auto answer = sent.next(1'000'000);
        bank.write(slot, answer);
        bank.flush();
        co_await seen.wait_writes(1);
        bank.close(slot);
        bank.flush();
        co_await seen.wait_closed(1);
        co_await expect_pattern(ends.client, expected, answer.size());
        EXPECT_EQ((co_await read_rest(ends.client)).end, errc::end_of_stream);
    });
}

TEST_P(socket_bank_kernel_io, resets_connections_that_another_process_shares) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        connection ends = co_await connect();
        const unique_fd copy(fcntl(ends.server.native_handle(), F_DUPFD_CLOEXEC, 0));
        // Received bytes change nothing.
        must(co_await ends.client.write_all("a request"));
        std::uint32_t slot = must(bank.add(std::move(ends.server)));
        bank.break_off(slot);
        co_await seen.wait_closed(1);
        EXPECT_EQ((co_await read_rest(ends.client)).end, errno_code(ECONNRESET));
        // Other sockets have no such end, and lose nothing.
        socket_ends plain = make_sockets();
        slot = must(bank.add(std::move(plain.banked)));
        bank.write(slot, "all");
        co_await seen.wait_writes(1);
        bank.break_off(slot);
        co_await seen.wait_closed(2);
        stream client = must(here().adopt(std::move(plain.peer)));
        const rest end = co_await read_rest(client);
        EXPECT_EQ(end.size, 3u);
        EXPECT_EQ(end.end, errc::end_of_stream);
    });
}

TEST_P(socket_bank_kernel_io, the_same_over_a_unix_socket) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(4, seen);
        socket_ends ends = make_sockets();
        const int most = 200'000;
        setsockopt(ends.peer.get(), SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
        const std::string body(150'000, 'x');
        EXPECT_EQ(send(ends.peer.get(), body.data(), body.size(), MSG_DONTWAIT),
                  static_cast<ssize_t>(body.size()));
        stream client = must(here().adopt(std::move(ends.peer)));
        const std::uint32_t slot = must(bank.add(std::move(ends.banked)));
        bank.write(slot, "answer");
        bank.flush();
        co_await seen.wait_writes(1);
        bank.close(slot);
        bank.flush();
        co_await seen.wait_closed(1);
        const rest end = co_await read_rest(client);
        EXPECT_EQ(end.size, 6u);
        EXPECT_EQ(end.end, errc::end_of_stream);
    });
}

TEST_P(socket_bank_kernel_io, several_rings_are_one_bank) {
    run([]() -> task<> {
        recorder seen;
        checked_bank bank(with_tables_of(3, 20), seen);
        std::vector<socket_ends> all;
        for (std::uint32_t i = 0; i < 20; ++i) {
            all.push_back(make_sockets());
            EXPECT_EQ(must(bank.add(std::move(all.back().banked))), i);
        }
        EXPECT_EQ(error_of(bank.add(make_sockets().banked)), errc::limit_reached);
        std::vector<std::string> texts;
        for (std::uint32_t i = 0; i < 20; ++i) texts.push_back("for " + std::to_string(i));
        for (int round = 0; round < 3; ++round) {
            for (std::uint32_t i = 0; i < 20; ++i) bank.write(i, texts[i]);
            bank.flush();
            co_await seen.wait_writes(20 * (static_cast<std::size_t>(round) + 1));
            for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(received(all[i].peer.get()), texts[i]);
        }
        for (std::uint32_t i = 0; i < 20; ++i) all[i].peer.reset();
        co_await seen.wait_hangups(20);
        for (std::uint32_t i = 0; i < 20; ++i) {
            EXPECT_TRUE(seen.has_hung_up(i));
            bank.close(i);
        }
        bank.flush();
        co_await seen.wait_closed(20);
        EXPECT_EQ(bank.size(), 0u);
    });
}

TEST_P(socket_bank_kernel_io, thousands_wait_at_one_time) {
    run([this]() -> task<> {
        // More than a ring has entries for, in both directions.
        constexpr std::uint32_t count = 4000;
        recorder seen;
        checked_bank bank(with_tables_of(2500, count), seen);
        std::vector<socket_ends> all;
        for (std::uint32_t i = 0; i < count; ++i) {
            all.push_back(make_sockets());
            must(bank.add(std::move(all.back().banked)));
        }
        const std::string text(20'000, 'x');  // more than such a socket holds
        for (std::uint32_t i = 0; i < count; ++i) bank.write(i, text);
        bank.flush();
        co_await here().yield();
        EXPECT_EQ(seen.writes, 0u);
        std::vector<std::size_t> sizes(count);
        std::size_t left = count;
        while (left > 0) {
            for (std::uint32_t i = 0; i < count; ++i) {
                if (sizes[i] == text.size()) continue;
                sizes[i] += received(all[i].peer.get()).size();
                if (sizes[i] == text.size()) --left;
            }
            co_await here().yield();
        }
        co_await seen.wait_writes(count);
        for (std::uint32_t i = 0; i < count; ++i)
            EXPECT_EQ(seen.written[i], std::vector<int>{0}) << i;
        // All hang up at one time, half of them in the middle of a write.
        for (std::uint32_t i = 0; i < count; i += 2) bank.write(i, text);
        bank.flush();
        for (socket_ends& each : all) each.peer.reset();
        co_await seen.wait_hangups(count);
        co_await seen.wait_writes(count + count / 2);
        for (std::uint32_t i = 0; i < count; i += 2) EXPECT_LT(seen.written[i].back(), 0) << i;
        for (std::uint32_t i = 0; i < count; ++i) bank.close(i);
        bank.flush();
        co_await seen.wait_closed(count);
        EXPECT_EQ(bank.size(), 0u);
    });
}

TEST_P(socket_bank_kernel_io, thousands_of_waiting_writes_are_closed) {
    run([]() -> task<> {
        constexpr std::uint32_t count = 3000;
        recorder seen;
        checked_bank bank(count, seen);
        std::vector<socket_ends> all;
        const std::string text(20'000, 'x');
        for (std::uint32_t i = 0; i < count; ++i) {
            all.push_back(make_sockets());
            bank.write(must(bank.add(std::move(all.back().banked))), text);
        }
        bank.flush();
        for (std::uint32_t i = 0; i < count; ++i) bank.close(i);
        bank.flush();
        co_await seen.wait_closed(count);
        EXPECT_EQ(seen.writes, 0u);
        for (const socket_ends& each : all)
            while (!received(each.peer.get()).empty()) {
            }
        for (const socket_ends& each : all) {
            char byte;
            EXPECT_EQ(recv(each.peer.get(), &byte, 1, 0), 0);
        }
    });
}

TEST_P(socket_bank_kernel_io, more_sockets_than_the_process_may_have_files) {
    run([]() -> task<> {
        // Both ends are in a bank, so that few plain descriptors are in use.
        constexpr std::uint32_t pairs = 22'500;
        recorder seen;
        recorder peers_seen;
        checked_bank bank(pairs, seen);
        checked_bank peers(pairs, peers_seen);
        if (bank.kind() != io_backend_kind::uring) co_return;  // without direct descriptors
        for (std::uint32_t i = 0; i < pairs; ++i) {
            socket_ends ends = make_sockets();
            must(bank.add(std::move(ends.banked)));
            must(peers.add(std::move(ends.peer)));
        }
        EXPECT_EQ(bank.size() + peers.size(), 45'000u);
        for (int round = 0; round < 2; ++round) {
            for (std::uint32_t i = 0; i < pairs; ++i) bank.write(i, "data: {}\n\n");
            bank.flush();
            co_await seen.wait_writes(pairs * (static_cast<std::size_t>(round) + 1));
        }
        for (std::uint32_t i = 0; i < pairs; ++i)
            EXPECT_EQ(seen.written[i], (std::vector<int>{0, 0})) << i;
        for (std::uint32_t i = 0; i < pairs; ++i) bank.close(i);
        bank.flush();
        co_await seen.wait_closed(pairs);
        co_await peers_seen.wait_hangups(pairs);
        EXPECT_TRUE(seen.hangups.empty());
    });
}

TEST_P(socket_bank_kernel_io, a_shared_description_does_not_disturb_the_next_socket) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(1, seen);
        socket_ends first = make_sockets();
        const unique_fd copy(fcntl(first.banked.get(), F_DUPFD_CLOEXEC, 0));
        bank.close(must(bank.add(std::move(first.banked))));
        co_await seen.wait_closed(1);
        socket_ends second = make_sockets();
        EXPECT_EQ(must(bank.add(std::move(second.banked))), 0u);
        first.peer.reset();
        // Later events of another socket show that the loop has processed it.
        recorder marked;
        checked_bank mark(1, marked);
        socket_ends third = make_sockets();
        must(mark.add(std::move(third.banked)));
        third.peer.reset();
        co_await marked.wait_hangups(1);
        for (int turn = 0; turn < 10; ++turn) co_await here().yield();
        EXPECT_TRUE(seen.hangups.empty());
        second.peer.reset();
        co_await seen.wait_hangups(1);
    });
}

TEST_P(socket_bank_kernel_io, a_shared_connection_ends_if_it_is_shut_down) {
    run([this]() -> task<> {
        constexpr std::uint32_t count = 500;
        recorder seen;
        socket_bank_options options = with_tables_of(200, count);
        options.shuts_down = true;
        checked_bank bank(options, seen);
        const std::string text(20'000, 'x');
        std::vector<unique_fd> shared;
        std::vector<stream> peers;
        for (std::uint32_t i = 0; i < count; ++i) {
            socket_ends ends = make_sockets();
            shared.emplace_back(fcntl(ends.banked.get(), F_DUPFD_CLOEXEC, 0));
            const std::uint32_t slot = must(bank.add(std::move(ends.banked)));
            peers.push_back(must(here().adopt(std::move(ends.peer))));
            // Some writes have gone, some wait.
            if (i % 3 > 0) bank.write(slot, i % 3 == 1 ? "gone" : std::string_view(text));
        }
        bank.flush();
        for (std::uint32_t i = 0; i < count; ++i) bank.close(i);
        bank.flush();
        co_await seen.wait_closed(count);
        EXPECT_EQ(seen.writes, (count + 1) / 3);
        for (std::uint32_t i = 0; i < count; ++i) {
            const rest end = co_await read_rest(peers[i]);
            EXPECT_EQ(end.end, errc::end_of_stream);
            if (i % 3 < 2) EXPECT_EQ(end.size, i % 3 == 0 ? 0u : 4u);
        }
    });
}

TEST_P(socket_bank_kernel_io, the_same_socket_may_come_again) {
    run([]() -> task<> {
        recorder seen;
        checked_bank bank(2, seen);
        socket_ends ends = make_sockets();
        // Each copy gets the same number where the bank has closed the one before.
        const auto copy = [&] { return unique_fd(fcntl(ends.banked.get(), F_DUPFD_CLOEXEC, 0)); };
        bank.close(must(bank.add(copy())));
        co_await seen.wait_closed(1);
        const std::uint32_t again = must(bank.add(copy()));
        const std::uint32_t twice = must(bank.add(copy()));
        EXPECT_NE(again, twice);
        bank.write(again, "a");
        bank.write(twice, "b");
        bank.flush();
        co_await seen.wait_writes(2);
        EXPECT_EQ(received(ends.peer.get()).size(), 2u);
        ends.peer.reset();
        co_await seen.wait([&] { return seen.has_hung_up(twice); });
    });
}

TEST_P(socket_bank_kernel_io, waits_for_room_whether_the_socket_is_blocking_or_not) {
    run([this]() -> task<> {
        recorder seen;
        checked_bank bank(1, seen);
        for (const int before : {O_NONBLOCK, 0}) {
            socket_ends ends = make_sockets();
            // The description may be another owner's, too: its flag is left alone, and may change.
            const unique_fd copy(fcntl(ends.banked.get(), F_DUPFD_CLOEXEC, 0));
            EXPECT_EQ(fcntl(copy.get(), F_SETFL, before), 0);
            const std::uint32_t slot = must(bank.add(std::move(ends.banked)));
            EXPECT_EQ(fcntl(copy.get(), F_GETFL) & O_NONBLOCK, before);
            for (const int now : {before, O_NONBLOCK, 0}) {
                EXPECT_EQ(fcntl(copy.get(), F_SETFL, now), 0);
                const std::string text(50'000, 'x');
                const std::size_t writes = seen.writes;
                bank.write(slot, text);
                bank.flush();
                co_await here().yield();
                EXPECT_EQ(seen.writes, writes);
                for (std::size_t size = 0; size < text.size();) {
                    size += received(ends.peer.get()).size();
                    co_await here().yield();
                }
                co_await seen.wait_writes(writes + 1);
                EXPECT_EQ(seen.written[slot].back(), 0);
            }
            const std::size_t closed = seen.closed.size();
            bank.close(slot);
            co_await seen.wait_closed(closed + 1);
        }
    });
}

TEST_P(socket_bank_kernel_io, a_socket_that_cannot_be_added_is_closed) {
    run([]() -> task<> {
        recorder seen;
        checked_bank bank(with_tables_of(1, 3), seen);
        EXPECT_EQ(error_of(bank.add(unique_fd())), errno_code(EBADF));
        must(bank.add(make_sockets().banked));
        EXPECT_EQ(bank.size(), 1u);
        if (bank.kind() != io_backend_kind::uring || sanitizer_needs_descriptors()) co_return;
        // No descriptor is left for the next ring.
        socket_ends ends = make_sockets();
        rlimit usual{};
        EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
        rlimit none = usual;
        none.rlim_cur = 3;
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        const auto refused = bank.add(std::move(ends.banked));
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
        EXPECT_EQ(error_of(refused), errno_code(EMFILE));
        EXPECT_EQ(bank.size(), 1u);
        char byte;
        EXPECT_EQ(recv(ends.peer.get(), &byte, 1, MSG_DONTWAIT), 0);
        EXPECT_EQ(must(bank.add(make_sockets().banked)), 1u);
    });
}

}  // namespace
}  // namespace eddy::testing
