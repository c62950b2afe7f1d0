// Cancellation of every kind of wait: at once, exactly once, and without loss of arrived data.
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(cancel_io);

/// Starts `wait` in a scope, lets the loop turn, cancels, and returns the error of the wait.
template <class Wait>
task<std::error_code> cancelled_wait(Wait wait) {
    std::error_code seen;
    bool ended = false;
    const auto child = [&]() -> task<> {
        seen = co_await wait();
        ended = true;
    };
    scope children(co_await current_source());
    children.spawn(child());
    for (int i = 0; i < 3; ++i) co_await loop::current().yield();
    EXPECT_FALSE(ended) << "it did not wait: " << seen.message();
    children.cancel();
    children.cancel();
    co_await children.join();
    co_return seen;
}

TEST_P(cancel_io, ends_a_read) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        const auto lease_read = [&]() -> task<std::error_code> {
            co_return error_of(co_await pair.server.read());
        };
        EXPECT_EQ(co_await cancelled_wait(lease_read), errc::cancelled);
        const auto read_into = [&]() -> task<std::error_code> {
            std::byte room[16];
            co_return error_of(co_await pair.server.read_some(room));
        };
        EXPECT_EQ(co_await cancelled_wait(read_into), errc::cancelled);
        // The stream is as good as before.
        must(co_await pair.client.write_all("later"));
        EXPECT_EQ(must(co_await pair.server.read()).text(), "later");
    });
}

TEST_P(cancel_io, ends_a_write) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        const std::vector<std::byte> bytes(64 << 20);
        const auto write = [&]() -> task<std::error_code> {
            co_return error_of(co_await pair.client.write_all(bytes));
        };
        EXPECT_EQ(co_await cancelled_wait(write), errc::cancelled);
    });
}

TEST_P(cancel_io, ends_an_accept_and_loses_no_connection) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        const auto accept = [&]() -> task<std::error_code> {
            co_return error_of(co_await accepting.accept());
        };
        EXPECT_EQ(co_await cancelled_wait(accept), errc::cancelled);
        for (int i = 0; i < 20; ++i) {
            // The connection and the cancellation come in any order.
            const auto impatient = [](listener& from) -> task<result<stream>> {
                co_return co_await from.accept();
            };
            stream client = must(co_await here().connect(accepting.local()));
            auto accepted = co_await with_timeout(1us * random().below(30), impatient(accepting));
            if (!accepted) {
                EXPECT_EQ(accepted.error(), errc::timed_out);
                accepted = co_await accepting.accept();
            }
            EXPECT_EQ(must(std::move(accepted)).peer(), client.local());
        }
    });
}

TEST_P(cancel_io, ends_a_connect) {
    run([this]() -> task<> {
        if (simulated()) {
            const auto connect = [&]() -> task<std::error_code> {
                co_return error_of(co_await here().connect(must(endpoint::ip("192.0.2.1", 80))));
            };
            EXPECT_EQ(co_await cancelled_wait(connect), errc::cancelled);
            co_return;
        }
        // No accept, and the kernel's queue has one place: later connects get no answer.
        listen_options one;
        one.backlog = 0;
        listener full = must(here().listen(loopback(), one));
        int connected = 0;
        int cancelled = 0;
        co_await with_scope([&](scope& children) -> task<> {
            for (int i = 0; i < 5; ++i)
                children.spawn([](loop& where, endpoint to, int& well, int& ended) -> task<> {
                    const auto made = co_await where.connect(to);
                    if (made)
                        ++well;
                    else
                        ended += made.error() == errc::cancelled;
                }(here(), full.local(), connected, cancelled));
            while (connected == 0) must(co_await here().sleep_for(1ms));
        });
        EXPECT_GE(cancelled, 3);
        EXPECT_EQ(connected + cancelled, 5);
    });
}

TEST_P(cancel_io, ends_a_sleep) {
    run([this]() -> task<> {
        const auto sleep = [&]() -> task<std::error_code> {
            co_return error_of(co_await here().sleep_for(1h));
        };
        EXPECT_EQ(co_await cancelled_wait(sleep), errc::cancelled);
    });
}

TEST_P(cancel_io, ends_a_datagram_receive_and_loses_no_datagram) {
    run([this]() -> task<> {
        datagram to = must(here().bind_datagram(loopback()));
        datagram from = must(here().bind_datagram(loopback()));
        const auto receive = [&]() -> task<std::error_code> {
            co_return error_of(co_await to.receive());
        };
        for (int i = 0; i < 10; ++i) {
            EXPECT_EQ(co_await cancelled_wait(receive), errc::cancelled);
            must(from.send_to(as_bytes(std::to_string(i)), to.local()));
            EXPECT_EQ(must(co_await to.receive()).payload.text(), std::to_string(i));
        }
        EXPECT_EQ(co_await cancelled_wait(receive), errc::cancelled);
    });
}

TEST_P(cancel_io, ends_a_poll) {
    if (simulated()) GTEST_SKIP() << "the simulator has no descriptors";
    run([this]() -> task<> {
        const unique_fd counter(eventfd(0, EFD_CLOEXEC));
        const auto poll = [&]() -> task<std::error_code> {
            co_return error_of(co_await here().wait_readable(counter.get()));
        };
        for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await cancelled_wait(poll), errc::cancelled);
        const std::uint64_t one = 1;
        EXPECT_EQ(write(counter.get(), &one, sizeof(one)), 8);
        must(co_await here().wait_readable(counter.get()));
    });
}

TEST_P(cancel_io, ends_a_poll_for_room) {
    if (simulated()) GTEST_SKIP() << "the simulator has no descriptors";
    run([this]() -> task<> {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) throw std::runtime_error("pipe2 failed");
        const unique_fd reader(ends[0]);
        const unique_fd writer(ends[1]);
        std::vector<std::byte> bytes(4096);
        while (write(writer.get(), bytes.data(), bytes.size()) > 0) continue;
        const auto poll = [&]() -> task<std::error_code> {
            co_return error_of(co_await here().wait_writable(writer.get()));
        };
        for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await cancelled_wait(poll), errc::cancelled);
        while (read(reader.get(), bytes.data(), bytes.size()) > 0) continue;
        must(co_await here().wait_writable(writer.get()));
    });
}

TEST_P(cancel_io, before_the_start_nothing_begins) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        co_await join_scope([&](scope& children) -> task<> {
            children.cancel();
            children.spawn([](loop& where, stream& client) -> task<> {
                EXPECT_EQ(error_of(co_await client.write_all("unwanted")), errc::cancelled);
                EXPECT_EQ(error_of(co_await client.read()), errc::cancelled);
                EXPECT_EQ(error_of(co_await where.sleep_for(1h)), errc::cancelled);
                EXPECT_EQ(error_of(co_await where.connect(client.peer())), errc::cancelled);
            }(here(), pair.client));
            co_return;
        });
        must(co_await pair.client.write_all("wanted"));
        EXPECT_EQ(must(co_await pair.server.read()).text(), "wanted");
    });
}

TEST_P(cancel_io, interrupted_reads_lose_no_bytes) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        constexpr std::size_t total = 400'000;
        const auto impatient_read = [](stream& from) -> task<result<lease>> {
            co_return co_await from.read();
        };
        const auto impatient_read_into = [](stream& from,
                                            mutable_bytes room) -> task<result<std::size_t>> {
            co_return co_await from.read_some(room);
        };
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](loop& where, stream& to, std::uint64_t seed) -> task<> {
                random_generator dice(seed);
                pattern content(1);
                for (std::size_t left = total; left > 0;) {
                    const std::size_t size = std::min(left, 1 + dice.below(2000));
                    const auto bytes = content.next(size);
                    must(co_await to.write_all(bytes));
                    left -= size;
                    must(co_await where.sleep_for(1us * dice.below(30)));
                }
                must(to.shutdown_write());
            }(here(), pair.client, random()()));

            pattern expected(1);
            std::vector<std::byte> room(777);
            int interrupted = 0;
            for (;;) {
                const duration patience_here = 1us * random().below(20);
                std::error_code error;
                if (random().chance(0.5)) {
                    const auto got =
                        co_await with_timeout(patience_here, impatient_read(pair.server));
                    error = error_of(got);
                    if (got) EXPECT_TRUE(expected.continues_with(got->bytes()));
                } else {
                    const auto got = co_await with_timeout(patience_here,
                                                           impatient_read_into(pair.server, room));
                    error = error_of(got);
                    if (got) EXPECT_TRUE(expected.continues_with(const_bytes(room).first(*got)));
                }
                interrupted += error == errc::timed_out;
                if (error && error != errc::timed_out) {
                    EXPECT_EQ(error, errc::end_of_stream);
                    break;
                }
            }
            EXPECT_EQ(expected.position(), total);
            EXPECT_GT(interrupted, 0);
        });
    });
}

}  // namespace
}  // namespace eddy::testing
