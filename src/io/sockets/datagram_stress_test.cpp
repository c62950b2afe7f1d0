// Message sockets under stress: without buffers, without a receiver, with sends that wait,
// cancelled and closed at every stage.
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <sys/socket.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(datagram_stress_io);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(datagram_room_io);

constexpr std::size_t socket_count = 100;
constexpr std::size_t datagrams_each = 20;

std::vector<std::byte> numbered(std::size_t socket, std::size_t number) {
    return pattern(socket * 1000 + number).next(number % 7 == 0 ? 0 : 100 + number);
}

/// Receives them all, holding some leases meanwhile, each checked again when it is given back.
task<void> receive_numbered(datagram& from, std::size_t socket, std::size_t hold,
                            std::size_t& complete) {
    const auto is_right = [socket](const datagram_message& message, std::size_t number) {
        const std::vector<std::byte> expected = numbered(socket, number);
        return std::equal(expected.begin(), expected.end(), message.payload.bytes().begin(),
                          message.payload.bytes().end());
    };
    std::deque<std::pair<datagram_message, std::size_t>> held;
    for (std::size_t i = 0; i < datagrams_each; ++i) {
        held.emplace_back(must(co_await from.receive()), i);
        EXPECT_TRUE(is_right(held.back().first, i)) << "socket " << socket << ", datagram " << i;
        if (held.size() <= hold) continue;
        EXPECT_TRUE(is_right(held.front().first, held.front().second)) << "changed while held";
        held.pop_front();
    }
    for (const auto& [message, number] : held) EXPECT_TRUE(is_right(message, number));
    ++complete;
}

TEST_P(datagram_stress_io, an_exhausted_pool_loses_and_mixes_nothing) {
    loop_options tiny;
    tiny.datagram_count = 4;
    tiny.datagram_size = 1024;
    make_loop(tiny);
    run([this]() -> task<> {
        std::vector<datagram> sockets;
        for (std::size_t i = 0; i < socket_count; ++i)
            sockets.push_back(must(here().bind_datagram(loopback())));
        datagram from = must(here().bind_datagram(loopback()));
        std::size_t complete = 0;
        co_await join_scope([&](scope& children) -> task<> {
            for (std::size_t i = 0; i < socket_count; ++i)
                children.spawn(receive_numbered(sockets[i], i, random().below(4), complete));
            for (std::size_t number = 0; number < datagrams_each; ++number) {
                for (std::size_t i = 0; i < socket_count; ++i)
                    must(from.send_to(numbered(i, number), sockets[i].local()));
                if (random().below(3) == 0) co_await here().yield();
            }
        });
        EXPECT_EQ(complete, socket_count);
    });
}

TEST_P(datagram_stress_io, unreceived_messages_wait_and_hold_no_others_back) {
    loop_options small;
    small.datagram_count = 128;
    make_loop(small);
    run([this]() -> task<> {
        constexpr int many = 200;  // more than a driver queues, less than a socket's buffer holds
        datagram busy = must(here().bind_datagram(loopback()));
        datagram idle = must(here().bind_datagram(loopback()));
        datagram from = must(here().bind_datagram(loopback()));
        const endpoint to_idle = idle.local();
        const endpoint to_busy = busy.local();
        must(from.send_to(as_bytes("first"), to_idle));
        EXPECT_EQ(must(co_await idle.receive()).payload.text(), "first");
        for (int i = 0; i < many; ++i) {
            must(from.send_to(i % 10 == 9 ? const_bytes() : as_bytes(std::to_string(i)), to_idle));
            if (i % 5 != 0) continue;
            must(from.send_to(as_bytes("busy"), to_busy));
            EXPECT_EQ(must(co_await busy.receive()).payload.text(), "busy");
        }
        for (int i = 0; i < many; ++i)
            EXPECT_EQ(must(co_await idle.receive()).payload.text(),
                      i % 10 == 9 ? "" : std::to_string(i));
    });
}

TEST_P(datagram_stress_io, closing_drops_what_is_queued_and_leaks_nothing) {
    loop_options small;
    small.datagram_count = 16;
    make_loop(small);
    run([this]() -> task<> {
        datagram from = must(here().bind_datagram(loopback()));
        for (int round = 0; round < 50; ++round) {
            datagram to = must(here().bind_datagram(loopback()));
            const endpoint where = to.local();
            std::optional<datagram_message> kept;
            for (int i = 0; i < 20; ++i) must(from.send_to(as_bytes("kept"), where));
            if (round % 3 != 0) kept = must(co_await to.receive());
            if (round % 2 == 0) co_await here().yield();
            to.close();
            if (kept) EXPECT_EQ(kept->payload.text(), "kept") << "a lease outlives its socket";
        }
    });
}

/// Receives under a cancel_source until stopped; counts what came and in which order.
task<void> receive_with_interruptions(datagram& from, int count, random_generator& random,
                                      int& next) {
    while (next < count) {
        cancel_source source(co_await current_source());
        std::optional<result<datagram_message>> got;
        const auto receive = [](datagram& socket,
                                std::optional<result<datagram_message>>& into) -> task<void> {
            into.emplace(co_await socket.receive());
        };
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](task<void> body, cancel_source& under) -> task<void> {
                co_await std::move(body).under(under);
            }(receive(from, got), source));
            for (std::uint64_t turns = random.below(4); turns > 0 && !got; --turns)
                co_await loop::current().yield();
            source.request();
        });
        if (*got)
            EXPECT_EQ((*got)->payload.text(), std::to_string(next++));
        else
            EXPECT_EQ(got->error(), errc::cancelled);
    }
}

TEST_P(datagram_stress_io, cancelled_receives_lose_no_message) {
    loop_options small;
    small.datagram_count = 8;
    make_loop(small);
    run([this]() -> task<> {
        constexpr int count = 2000;
        datagram to = must(here().bind_datagram(loopback()));
        datagram from = must(here().bind_datagram(loopback()));
        const endpoint where = to.local();
        int next = 0;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(receive_with_interruptions(to, count, random(), next));
            for (int sent = 0; sent < count;) {
                // No more under way than the socket's buffer holds.
                for (std::uint64_t burst = random().below(20); burst > 0 && sent < count; --burst)
                    must(from.send_to(as_bytes(std::to_string(sent++)), where));
                while (sent - next > 100) must(co_await here().sleep_for(10us));
                co_await here().yield();
            }
        });
        EXPECT_EQ(next, count);
    });
}

TEST_P(datagram_stress_io, sockets_may_be_closed_at_any_moment) {
    run([this]() -> task<> {
        for (int round = 0; round < 300; ++round) {
            datagram to = must(here().bind_datagram(loopback()));
            datagram from = must(here().bind_datagram(loopback()));
            const endpoint where = to.local();
            std::error_code end;
            int received = 0;
            int sent = 0;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](datagram& at, std::error_code& error, int& count) -> task<> {
                    for (;;) {
                        const auto got = co_await at.receive();
                        if (!got) {
                            error = got.error();
                            co_return;
                        }
                        ++count;
                    }
                }(to, end, received));
                for (std::uint64_t step = random().below(6); step > 0; --step) {
                    for (std::uint64_t i = random().below(5); i > 0; --i, ++sent)
                        must(co_await from.send(as_bytes("x"), where));
                    if (random().below(2) == 0) co_await here().yield();
                }
                to.close();
            });
            EXPECT_TRUE(end == errc::cancelled || end == errc::closed) << end.message();
            EXPECT_LE(received, sent);
        }
    });
}

// ---- no room to send: over a Unix socket pair, since loopback UDP always has room

struct message_pair {
    datagram one;
    datagram other;
};

message_pair connected_pair(loop& here) {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) < 0)
        throw std::runtime_error("socketpair");
    return {must(here.adopt_datagram(unique_fd(fds[0]))),
            must(here.adopt_datagram(unique_fd(fds[1])))};
}

/// Sends until there is no more room; how many went.
int fill(datagram& socket) {
    int sent = 0;
    for (;;) {
        const auto gone = socket.send_to(as_bytes(std::to_string(sent)), {});
        if (!gone) {
            EXPECT_EQ(gone.error(), errno_code(EAGAIN));
            return sent;
        }
        ++sent;
    }
}

TEST_P(datagram_room_io, a_send_waits_for_it_and_order_is_kept) {
    run([this]() -> task<> {
        message_pair pair = connected_pair(here());
        for (int round = 0; round < 3; ++round) {
            const int before = fill(pair.one);
            int waited = 0;
            co_await join_scope([&](scope& children) -> task<> {
                for (int i = 0; i < 5; ++i)
                    children.spawn([](datagram& to, int number, int& count) -> task<> {
                        const std::string single = std::to_string(number);
                        const std::string last = std::to_string(number + 2);
                        const outgoing_datagram batch[] = {{as_bytes(std::string_view("batch"))},
                                                           {as_bytes(last)}};
                        must(co_await to.send(as_bytes(single)));
                        EXPECT_EQ(must(co_await to.send(batch)), 2u);
                        ++count;
                    }(pair.one, before + i, waited));
                co_await here().yield();
                EXPECT_EQ(waited, 0);
                EXPECT_EQ(error_of(pair.one.send_to(as_bytes("x"), {})), errno_code(EAGAIN))
                    << "those that wait come first";
                for (int i = 0; i < before + 5; ++i)
                    EXPECT_EQ(must(co_await pair.other.receive()).payload.text(),
                              std::to_string(i));
                for (int i = 0; i < 10; ++i) static_cast<void>(must(co_await pair.other.receive()));
            });
            EXPECT_EQ(waited, 5);
        }
    });
}

TEST_P(datagram_room_io, a_send_that_waits_can_be_cancelled_and_closed) {
    run([this]() -> task<> {
        message_pair pair = connected_pair(here());
        const int before = fill(pair.one);
        const auto send = [](datagram& to) -> task<result<>> {
            co_return co_await to.send(as_bytes("never"));
        };
        EXPECT_EQ(error_of(co_await with_timeout(5ms, send(pair.one))), errc::timed_out);
        std::vector<std::error_code> ends(3);
        co_await join_scope([&](scope& children) -> task<> {
            for (std::error_code& end : ends)
                children.spawn([](datagram& to, std::error_code& into) -> task<> {
                    into = error_of(co_await to.send(as_bytes("never")));
                }(pair.one, end));
            co_await here().yield();
            pair.one.close();
        });
        for (const std::error_code& end : ends) EXPECT_EQ(end, errc::cancelled);
        for (int i = 0; i < before; ++i)
            EXPECT_EQ(must(co_await pair.other.receive()).payload.text(), std::to_string(i));
        EXPECT_EQ(error_of(pair.other.try_receive()), errno_code(EAGAIN));
    });
}

TEST_P(datagram_room_io, a_cancelled_batch_returns_how_much_was_sent) {
    run([this]() -> task<> {
        message_pair pair = connected_pair(here());
        const int little = 32 * 1024;
        EXPECT_EQ(
            setsockopt(pair.one.native_handle(), SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)),
            0);
        const std::vector<std::byte> bytes = pattern(1).next(8'000);
        const std::vector<outgoing_datagram> batch(datagram::max_batch, outgoing_datagram{bytes});
        const auto send = [](datagram& to, std::span<const outgoing_datagram> all,
                             std::size_t& went) -> task<result<std::size_t>> {
            auto sent = co_await to.send(all);
            if (sent) went = *sent;
            co_return sent;
        };

        std::size_t sent = 0;
        EXPECT_EQ(co_await cancelled_before(send(pair.one, batch, sent)), errc::cancelled);
        EXPECT_EQ(co_await cancelled_during(send(pair.one, batch, sent)), std::error_code());
        EXPECT_GT(sent, 0u);
        EXPECT_LT(sent, batch.size());
        // There is no room now, so of this one nothing goes.
        std::size_t later = 0;
        EXPECT_EQ(co_await cancelled_during(send(pair.one, batch, later)), errc::cancelled);
        EXPECT_EQ(later, 0u);

        for (std::size_t i = 0; i < sent; ++i)
            EXPECT_EQ(must(co_await pair.other.receive()).payload.size(), bytes.size());
        EXPECT_EQ(error_of(pair.other.try_receive()), errno_code(EAGAIN)) << "no others went";
        must(co_await pair.one.send(as_bytes("as good as before")));
        EXPECT_EQ(must(co_await pair.other.receive()).payload.text(), "as good as before");
    });
}

}  // namespace
}  // namespace eddy::testing
