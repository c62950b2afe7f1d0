// Streams: delivery once and in order, both ways of reading, the orders of ending.
#include <eddy/io/stream.hpp>

#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "io/testing.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(stream_io);

enum class reading { lease, into };

/// Sends everything back until the peer has finished, then finishes too.
task<void> echo(stream peer, reading form) {
    std::vector<std::byte> room(form == reading::into ? 3000 : 0);
    for (;;) {
        if (form == reading::into) {
            const auto size = co_await peer.read_some(room);
            if (!size) break;
            if (!co_await peer.write_all(const_bytes(room).first(*size))) break;
        } else {
            const auto received = co_await peer.read();
            if (!received) break;
            EXPECT_GT(received->size(), 0u);
            if (!co_await peer.write_all(received->bytes())) break;
        }
    }
    static_cast<void>(peer.shutdown_write());
}

/// Reads to the end and checks that it is the pattern.
task<std::uint64_t> expect_pattern(stream& from, std::uint64_t number, reading form) {
    pattern expected(number);
    std::vector<std::byte> room(form == reading::into ? 5000 : 0);
    for (;;) {
        if (form == reading::into) {
            const auto size = co_await from.read_some(room);
            if (!size) {
                EXPECT_EQ(size.error(), errc::end_of_stream);
                break;
            }
            EXPECT_TRUE(expected.continues_with(const_bytes(room).first(*size)));
        } else {
            const auto received = co_await from.read();
            if (!received) {
                EXPECT_EQ(received.error(), errc::end_of_stream);
                break;
            }
            EXPECT_TRUE(expected.continues_with(received->bytes()));
        }
    }
    co_return expected.position();
}

task<void> send_to_end(stream& to, std::uint64_t number, std::size_t total, std::uint64_t seed) {
    co_await send_pattern(to, number, total, seed, 22);
    must(to.shutdown_write());
}

TEST_P(stream_io, echoes_random_sizes_up_to_several_megabytes) {
    run([this]() -> task<> {
        for (const reading form : {reading::lease, reading::into}) {
            for (const std::size_t total : {1u, 100u, 16'384u, 100'000u, 6'000'000u}) {
                connection pair = co_await connect();
                std::uint64_t back = 0;
                co_await join_scope([&](scope& children) -> task<> {
                    children.spawn(echo(std::move(pair.server), form));
                    children.spawn(send_to_end(pair.client, total, total, random()()));
                    back = co_await expect_pattern(pair.client, total, form);
                });
                EXPECT_EQ(back, total);
            }
        }
    });
}

TEST_P(stream_io, several_connections_do_not_mix) {
    run([this]() -> task<> {
        constexpr std::size_t each = 300'000;
        std::vector<connection> all;
        for (int i = 0; i < 20; ++i) all.push_back(co_await connect());
        std::size_t complete = 0;
        co_await join_scope([&](scope& children) -> task<> {
            for (std::size_t i = 0; i < all.size(); ++i) {
                const reading form = i % 2 ? reading::lease : reading::into;
                children.spawn(echo(std::move(all[i].server), form));
                children.spawn(send_to_end(all[i].client, i, each, random()()));
                children.spawn([](stream& from, std::size_t number, std::size_t& done) -> task<> {
                    done += co_await expect_pattern(from, number, reading::lease) == each;
                }(all[i].client, i, complete));
            }
            co_return;
        });
        EXPECT_EQ(complete, all.size());
    });
}

/// Large messages, then small ones, then large ones.
task<> send_by_phases(stream& to, std::uint64_t number) {
    pattern content(number);
    for (int phase = 0; phase < 10; ++phase) {
        const std::size_t size = phase % 2 ? 10 : 20'000;
        for (int i = 0; i < 40; ++i) {
            const std::vector<std::byte> bytes = content.next(size);
            must(co_await to.write_all(bytes));
            if (i % 4 == 0) co_await loop::current().yield();
        }
    }
    must(to.shutdown_write());
}

task<result<lease>> read_once(stream& from) { co_return co_await from.read(); }

TEST_P(stream_io, large_and_small_messages_lose_nothing_when_reads_are_given_up) {
    run([this]() -> task<> {
        constexpr std::uint64_t total = 5 * 40 * (20'000 + 10);
        for (std::uint64_t round = 0; round < 5; ++round) {
            connection pair = co_await connect();
            pattern expected(round);
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(send_by_phases(pair.client, round));
                while (expected.position() < total) {
                    const duration patience = std::chrono::microseconds(random().below(30));
                    const auto received = co_await with_timeout(patience, read_once(pair.server));
                    if (received)
                        EXPECT_TRUE(expected.continues_with(received->bytes()));
                    else
                        EXPECT_EQ(received.error(), errc::timed_out);
                    if (random().chance(0.2)) co_await here().yield();
                }
            });
            EXPECT_EQ(error_of(co_await pair.server.read()), errc::end_of_stream);
        }
    });
}

TEST_P(stream_io, writes_many_pieces_in_order_and_skips_empty_ones) {
    run([this]() -> task<> {
        for (const std::size_t count : {1u, 2u, 16u, 17u, 100u, 1000u}) {
            connection pair = co_await connect();
            pattern content(count);
            std::vector<std::vector<std::byte>> storage;
            std::vector<const_bytes> pieces;
            std::size_t total = 0;
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t size = random().chance(0.5) ? 0 : random().below(9000);
                storage.push_back(content.next(size));
                total += size;
            }
            for (const auto& piece : storage) pieces.emplace_back(piece);
            std::uint64_t received = 0;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](stream& to, std::vector<const_bytes>& what) -> task<> {
                    must(co_await to.write_all(what));
                    must(to.shutdown_write());
                }(pair.client, pieces));
                received = co_await expect_pattern(pair.server, count, reading::lease);
            });
            EXPECT_EQ(received, total);
        }
    });
}

TEST_P(stream_io, writing_nothing_is_done_at_once) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        must(co_await pair.client.write_all(""));
        const std::array<const_bytes, 40> nothing{};
        must(co_await pair.client.write_all(nothing));
        must(co_await pair.client.write_all(std::span<const const_bytes>()));
        must(co_await pair.client.write_all("x"));
        EXPECT_EQ(must(co_await pair.server.read()).text(), "x");
    });
}

TEST_P(stream_io, half_close_leaves_the_other_direction_open) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        must(co_await pair.client.write_all("question"));
        must(pair.client.shutdown_write());
        std::string question;
        for (;;) {
            const auto received = co_await pair.server.read();
            if (!received) {
                EXPECT_EQ(received.error(), errc::end_of_stream);
                break;
            }
            question += received->text();
        }
        EXPECT_EQ(question, "question");
        must(co_await pair.server.write_all("answer"));
        EXPECT_EQ(must(co_await pair.client.read()).text(), "answer");
        EXPECT_TRUE(error_of(co_await pair.client.write_all("late")));
    });
}

TEST_P(stream_io, bytes_come_before_the_end_and_the_end_stays) {
    run([this]() -> task<> {
        for (const reading form : {reading::lease, reading::into}) {
            connection pair = co_await connect();
            const std::vector<std::byte> bytes = pattern(1).next(50'000);
            must(co_await pair.client.write_all(bytes));
            pair.client.close();
            EXPECT_EQ(co_await expect_pattern(pair.server, 1, form), bytes.size());
            for (int i = 0; i < 3; ++i) {
                EXPECT_EQ(error_of(co_await pair.server.read()), errc::end_of_stream);
                std::byte byte[1];
                EXPECT_EQ(error_of(co_await pair.server.read_some(byte)), errc::end_of_stream);
            }
        }
    });
}

TEST_P(stream_io, a_peer_that_closes_with_bytes_unread_is_a_reset) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        must(co_await pair.server.write_all("never read"));
        // The bytes must have arrived before the close; the answer to them shows it.
        must(co_await pair.client.write_all("y"));
        EXPECT_EQ(must(co_await pair.server.read()).text(), "y");
        pair.client.close();
        EXPECT_EQ(error_of(co_await pair.server.read()), errno_code(ECONNRESET));
        EXPECT_TRUE(error_of(co_await pair.server.write_all("to nobody")));
    });
}

TEST_P(stream_io, an_abort_is_a_reset_behind_what_the_peer_has) {
    run([this]() -> task<> {
        for (const bool has_read : {false, true}) {
            connection pair = co_await connect();
            must(co_await pair.client.write_all("hello"));
            must(co_await pair.server.write_all("part of it"));
            if (has_read) EXPECT_EQ(must(co_await pair.server.read()).text(), "hello");
            std::string got;
            while (got.size() < 10) got += must(co_await pair.client.read()).text();
            pair.server.abort();
            EXPECT_FALSE(pair.server);
            pair.server.abort();
            EXPECT_EQ(error_of(co_await pair.client.read()), errno_code(ECONNRESET));
        }
    });
}

TEST_P(stream_io, an_abort_ends_what_waits) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        std::vector<std::error_code> ends;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](stream& of, std::vector<std::error_code>& into) -> task<> {
                into.push_back(error_of(co_await of.read()));
            }(pair.server, ends));
            children.spawn([](stream& of, std::vector<std::error_code>& into) -> task<> {
                const std::vector<std::byte> much(std::size_t{32} << 20);
                into.push_back(error_of(co_await of.write_all(much)));
            }(pair.server, ends));
            for (int i = 0; i < 3; ++i) co_await here().yield();
            EXPECT_TRUE(ends.empty());
            pair.server.abort();
        });
        EXPECT_EQ(ends, (std::vector<std::error_code>(2, errc::cancelled)));
        std::error_code end;
        while (!end) end = error_of(co_await pair.client.read());
        EXPECT_EQ(end, errno_code(ECONNRESET));
    });
}

/// Where another process has the socket, too, closing it does not end the connection.
TEST_P(stream_io, an_abort_resets_a_socket_that_is_shared) {
    if (simulated()) GTEST_SKIP() << "it has no descriptors";
    run([this]() -> task<> {
        connection pair = co_await connect();
        const unique_fd other(::dup(pair.server.native_handle()));
        pair.server.abort();
        EXPECT_EQ(error_of(co_await pair.client.read()), errno_code(ECONNRESET));
    });
}

/// A Unix socket signals a reset only if bytes were not read.
TEST_P(stream_io, an_abort_of_a_unix_socket_is_an_end_unless_bytes_are_unread) {
    run([this]() -> task<> {
        const temporary_folder folder;
        listener accepting = must(here().listen(must(endpoint::unix_path(folder.file("s")))));
        stream client = must(co_await here().connect(accepting.local()));
        stream server = must(co_await accepting.accept());
        must(co_await server.write_all("all"));
        server.abort();
        EXPECT_EQ(must(co_await client.read()).text(), "all");
        EXPECT_EQ(error_of(co_await client.read()), errc::end_of_stream);
    });
}

TEST_P(stream_io, writing_to_a_closed_peer_fails_in_the_end) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        pair.client.close();
        const std::vector<std::byte> bytes(10'000);
        std::error_code seen;
        while (!seen) {
            seen = error_of(co_await pair.server.write_all(bytes));
            must(co_await here().sleep_for(10us));
        }
        EXPECT_TRUE(seen == errno_code(EPIPE) || seen == errno_code(ECONNRESET)) << seen.message();
    });
}

TEST_P(stream_io, a_peer_that_never_reads_holds_the_writer) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        const std::vector<std::byte> bytes = pattern(5).next(64 << 20);
        const auto write = [](stream& to, const_bytes what) -> task<result<>> {
            co_return co_await to.write_all(what);
        };
        const auto written = co_await with_timeout(20ms, write(pair.client, bytes));
        EXPECT_EQ(error_of(written), errc::timed_out);
        // The sent bytes are a beginning of those to be sent.
        pair.client.close();
        pattern expected(5);
        for (;;) {
            const auto received = co_await pair.server.read();
            if (!received) break;
            EXPECT_TRUE(expected.continues_with(received->bytes()));
        }
        EXPECT_GT(expected.position(), 0u);
        EXPECT_LT(expected.position(), bytes.size());
    });
}

TEST_P(stream_io, reads_and_writes_wait_at_the_same_time) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        const std::vector<std::byte> bytes = pattern(9).next(20 << 20);
        co_await join_scope([&](scope& children) -> task<> {
            for (stream* end : {&pair.client, &pair.server})
                children.spawn([](stream& to, const_bytes what) -> task<> {
                    must(co_await to.write_all(what));
                    must(to.shutdown_write());
                }(*end, bytes));
            for (stream* end : {&pair.client, &pair.server})
                children.spawn([](stream& from, std::size_t size) -> task<> {
                    EXPECT_EQ(co_await expect_pattern(from, 9, reading::lease), size);
                }(*end, bytes.size()));
            co_return;
        });
    });
}

TEST_P(stream_io, closing_ends_what_waits) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        const std::vector<std::byte> bytes(64 << 20);
        std::error_code read_error, write_error;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](stream& from, std::error_code& seen) -> task<> {
                seen = error_of(co_await from.read());
            }(pair.client, read_error));
            children.spawn([](stream& to, const_bytes what, std::error_code& seen) -> task<> {
                seen = error_of(co_await to.write_all(what));
            }(pair.client, bytes, write_error));
            must(co_await here().sleep_for(5ms));
            EXPECT_FALSE(read_error);
            EXPECT_FALSE(write_error);
            pair.client.close();
            EXPECT_FALSE(pair.client);
            EXPECT_FALSE(read_error) << "waits end from the loop, not inside close()";
        });
        EXPECT_EQ(read_error, errc::cancelled);
        EXPECT_EQ(write_error, errc::cancelled);
    });
}

task<void> close_after_first_byte(stream& own, stream& other, int& ended) {
    const auto received = co_await own.read();
    if (received) other.close();
    own.close();
    ++ended;
}

TEST_P(stream_io, a_coroutine_may_close_streams_whose_events_came_with_its_own) {
    run([this]() -> task<> {
        for (int round = 0; round < 50; ++round) {
            connection a = co_await connect();
            connection b = co_await connect();
            int ended = 0;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(close_after_first_byte(a.server, b.server, ended));
                children.spawn(close_after_first_byte(b.server, a.server, ended));
                // Both are ready before the loop polls.
                must(co_await a.client.write_all("a"));
                must(co_await b.client.write_all("b"));
            });
            EXPECT_EQ(ended, 2);
        }
    });
}

TEST_P(stream_io, try_write_takes_what_fits_and_never_waits) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        const std::vector<std::byte> bytes = pattern(3).next(64 << 20);
        EXPECT_EQ(must(pair.client.try_write({})), 0u);
        std::size_t sent = 0;
        for (;;) {
            const std::size_t size = must(pair.client.try_write(const_bytes(bytes).subspan(sent)));
            sent += size;
            if (size == 0) break;
        }
        EXPECT_GT(sent, 0u);
        EXPECT_LT(sent, bytes.size());
        pair.client.close();
        EXPECT_EQ(co_await expect_pattern(pair.server, 3, reading::lease), sent);
    });
}

TEST_P(stream_io, tells_its_addresses) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        EXPECT_EQ(pair.client.peer(), pair.server.local());
        EXPECT_EQ(pair.client.local(), pair.server.peer());
        EXPECT_EQ(pair.client.peer().host(), "127.0.0.1");
        EXPECT_EQ(pair.client.native_handle() >= 0, !simulated());
    });
}

TEST_P(stream_io, a_closed_handle_answers_closed) {
    run([]() -> task<> {
        stream none;
        EXPECT_FALSE(none);
        EXPECT_EQ(error_of(co_await none.read()), errc::closed);
        EXPECT_EQ(error_of(co_await none.write_all("x")), errc::closed);
        EXPECT_EQ(error_of(none.try_write(as_bytes("x"))), errc::closed);
        EXPECT_EQ(error_of(none.shutdown_write()), errc::closed);
        none.close();
    });
}

TEST_P(stream_io, a_handle_may_move_while_its_operations_wait) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        std::string seen;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](stream& from, std::string& text) -> task<> {
                text = must(co_await from.read()).text();
            }(pair.server, seen));
            stream moved = std::move(pair.server);
            must(co_await pair.client.write_all("still here"));
            while (seen.empty()) co_await here().yield();
        });
        EXPECT_EQ(seen, "still here");
    });
}

/// Connects, perhaps sends something, and closes.
task<void> vanish(loop& here, endpoint where, std::uint64_t kind) {
    auto made = co_await here.connect(where);
    if (!made) co_return;
    if (kind == 0) co_return;
    static_cast<void>(co_await made->write_all("half a requ"));
    if (kind == 1) co_return;
    const linger at_once{1, 0};
    if (made->native_handle() >= 0)
        setsockopt(made->native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    if (kind == 2) co_return;
    static_cast<void>(made->shutdown_write());
}

task<void> serve_until_gone(stream peer, std::size_t& open) {
    while (co_await peer.read()) {
    }
    --open;
}

TEST_P(stream_io, a_thousand_connect_and_vanish) {
    run([this]() -> task<> {
        constexpr std::size_t count = 1000;
        std::size_t open = 0;
        co_await join_scope([&](scope& children) -> task<> {
            listener accepting = must(here().listen(loopback()));
            for (std::size_t i = 0; i < count; ++i)
                children.spawn(vanish(here(), accepting.local(), random().below(4)));
            for (std::size_t i = 0; i < count; ++i) {
                auto accepted = co_await accepting.accept();
                ++open;
                children.spawn(serve_until_gone(must(std::move(accepted)), open));
            }
        });
        EXPECT_EQ(open, 0u) << "a connection was left behind";
    });
}

}  // namespace
}  // namespace eddy::testing
