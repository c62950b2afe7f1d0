// Exhaustion of the pool of receive buffers: slower, but never bytes of another stream.
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "io/posix/sockets.hpp"
#include "io/testing.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <deque>
#include <string>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(buffers_io);

constexpr std::size_t stream_count = 200;
constexpr std::size_t bytes_each = 20'000;

struct barrier {
    std::size_t missing = stream_count;
    event complete;
    void arrive() {
        if (--missing == 0) complete.set();
    }
};

task<void> send_pattern(stream& to, std::uint64_t number) {
    const std::vector<std::byte> bytes = pattern(number).next(bytes_each);
    must(co_await to.write_all(bytes));
    must(to.shutdown_write());
}

/// Reads to the end and keeps up to `hold` leases meanwhile, each checked when it is given back.
task<void> receive_pattern(stream& from, std::uint64_t number, std::size_t hold,
                           barrier& everybody_holds, std::size_t& complete) {
    struct held_lease {
        lease bytes;
        pattern expected;
    };
    std::deque<held_lease> held;
    pattern expected(number);
    bool arrived = false;
    for (;;) {
        auto received = co_await from.read();
        if (!received) {
            EXPECT_EQ(received.error(), errc::end_of_stream);
            break;
        }
        const pattern before = expected;
        EXPECT_TRUE(expected.continues_with(received->bytes())) << "bytes of somebody else";
        held.push_back({std::move(*received), before});
        if (!std::exchange(arrived, true)) {
            everybody_holds.arrive();
            must(co_await everybody_holds.complete.wait());
        }
        if (held.size() > hold) {
            EXPECT_TRUE(held.front().expected.continues_with(held.front().bytes.bytes()))
                << "a lease changed while it was held";
            held.pop_front();
        }
    }
    for (held_lease& each : held) EXPECT_TRUE(each.expected.continues_with(each.bytes.bytes()));
    complete += expected.position() == bytes_each;
}

TEST_P(buffers_io, an_exhausted_pool_loses_and_mixes_nothing) {
    loop_options tiny;
    tiny.buffer_count = 4;
    tiny.buffer_size = 512;
    tiny.max_spare_buffers = 1000;
    make_loop(tiny);
    run([this]() -> task<> {
        std::vector<connection> all;
        for (std::size_t i = 0; i < stream_count; ++i) all.push_back(co_await connect());
        barrier everybody_holds;
        std::size_t complete = 0;
        co_await join_scope([&](scope& children) -> task<> {
            for (std::size_t i = 0; i < stream_count; ++i) {
                children.spawn(receive_pattern(all[i].server, i, random().below(4), everybody_holds,
                                               complete));
                children.spawn(send_pattern(all[i].client, i));
            }
            co_return;
        });
        EXPECT_EQ(complete, stream_count);
        connection idle = co_await connect();
        EXPECT_EQ(co_await count_leases(idle), 4u + 1000u) << "a buffer did not come back";
    });
}

TEST_P(buffers_io, streams_that_fill_their_buffers_are_lent_a_few_larger_ones) {
    constexpr std::uint32_t ordinary = 512;
    constexpr std::size_t streams = 10;
    constexpr std::size_t bytes = 60'000;
    // The simulator has none.
    const std::size_t most = simulated() ? 0 : large_buffer_count;
    loop_options tiny;
    tiny.buffer_count = 16;
    tiny.buffer_size = ordinary;
    make_loop(tiny);
    run([&]() -> task<> {
        std::vector<connection> all;
        std::vector<lease> held;
        std::vector<pattern> expected;
        std::size_t large = 0;
        for (std::size_t i = 0; i < streams; ++i) {
            all.push_back(co_await connect());
            const std::vector<std::byte> sent = pattern(i).next(bytes);
            must(co_await all[i].client.write_all(sent));
            must(all[i].client.shutdown_write());
            expected.emplace_back(i);
            // The first read never lends a large buffer.
            held.push_back(must(co_await all[i].server.read()));
            EXPECT_LE(held[i].size(), ordinary);
            EXPECT_TRUE(expected[i].continues_with(held[i].bytes()));
            for (int tries = 0; tries < 60 && held[i].size() <= ordinary; ++tries) {
                held[i].reset();
                held[i] = must(co_await all[i].server.read());
                EXPECT_TRUE(expected[i].continues_with(held[i].bytes()));
            }
            EXPECT_LE(held[i].size(), ordinary * large_buffer_factor);
            large += held[i].size() > ordinary;
        }
        EXPECT_EQ(large, most);
        // Returned buffers are lent again.
        large = 0;
        for (std::size_t i = 0; i < streams; ++i) {
            for (;;) {
                held[i].reset();
                auto more = co_await all[i].server.read();
                if (!more) break;
                held[i] = std::move(*more);
                EXPECT_TRUE(expected[i].continues_with(held[i].bytes()));
                large += i == streams - 1 && held[i].size() > ordinary;
            }
            EXPECT_EQ(expected[i].position(), bytes);
        }
        EXPECT_EQ(large > 0, most > 0);
    });
}

TEST_P(buffers_io, readers_with_their_own_memory_need_none) {
    loop_options tiny;
    tiny.buffer_count = 4;
    tiny.buffer_size = 512;
    make_loop(tiny);
    run([this]() -> task<> {
        // All buffers are lent out, and stay so.
        std::vector<connection> holding;
        std::vector<lease> leases;
        for (int i = 0; i < 20; ++i) {
            holding.push_back(co_await connect());
            must(co_await holding.back().client.write_all("held"));
            leases.push_back(must(co_await holding.back().server.read()));
        }
        connection pair = co_await connect();
        std::array<std::byte, 100> room;
        for (int i = 0; i < 100; ++i) {
            must(co_await pair.client.write_all("ping"));
            EXPECT_EQ(must(co_await pair.server.read_some(room)), 4u);
        }
        for (const lease& each : leases) EXPECT_EQ(each.text(), "held");
    });
}

TEST_P(buffers_io, a_lease_outlives_its_stream) {
    run([this]() -> task<> {
        lease kept;
        {
            connection pair = co_await connect();
            must(co_await pair.client.write_all("kept"));
            kept = must(co_await pair.server.read());
        }
        for (int i = 0; i < 3; ++i) co_await here().yield();
        EXPECT_EQ(kept.text(), "kept");
    });
}

task<void> read_on(stream& from) {
    while (const auto got = co_await from.read()) EXPECT_EQ(got->text().substr(0, 7), "message");
}

TEST_P(buffers_io, a_close_between_a_receive_and_its_completion_leaks_no_buffer) {
    // On io_uring a receive that stays armed may have taken a buffer when its stream closes.
    constexpr int rounds = 400;
    loop_options tiny;
    tiny.buffer_count = 4;
    tiny.buffer_size = 512;
    tiny.max_spare_buffers = 1;
    make_loop(tiny);
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        for (int round = 0; round < rounds; ++round) {
            lease kept;
            {
                stream client = must(co_await here().connect(accepting.local()));
                stream server = must(co_await accepting.accept());
                scope readers(co_await current_source());
                const bool waits = random().chance(0.5);
                if (waits) {
                    readers.spawn(read_on(server));
                } else {
                    // It stays armed behind a read.
                    must(co_await client.write_all("message"));
                    lease first = must(co_await server.read());
                    if (random().chance(0.5)) kept = std::move(first);
                }
                for (std::uint64_t i = random().below(3); i > 0; --i) co_await here().yield();
                for (std::uint64_t i = random().below(3); i > 0; --i) {
                    // By a system call of its own, at once.
                    if (client.native_handle() >= 0)
                        EXPECT_EQ(::send(client.native_handle(), "message", 7, 0), 7);
                    else
                        must(co_await client.write_all("message"));
                    if (i > 1) co_await here().yield();
                }
                for (std::uint64_t i = random().below(3); i > 0; --i) co_await here().yield();
                if (random().chance(0.5)) readers.cancel();
                server.close();
                co_await readers.join();
            }
            if (kept.size() > 0) EXPECT_EQ(kept.text(), "message");
        }
        // The last closes have their completions by then.
        for (int i = 0; i < 10; ++i) co_await here().yield();
        connection idle = co_await connect();
        EXPECT_EQ(co_await count_leases(idle), 4u + 1u) << "a buffer did not come back";
    });
}

TEST_P(buffers_io, a_receive_that_is_stopped_with_a_buffer_gives_it_back) {
    // On io_uring a receive that stays armed is stopped when there is no reader, and by then has
    // taken several; the stream's bytes are read all the same.
    constexpr std::size_t messages = 30;
    loop_options tiny;
    tiny.buffer_count = 16;
    tiny.buffer_size = 512;
    tiny.max_spare_buffers = 1;
    make_loop(tiny);
    run([this]() -> task<> {
        for (int round = 0; round < 20; ++round) {
            connection pair = co_await connect();
            must(co_await pair.client.write_all("x"));
            EXPECT_EQ(must(co_await pair.server.read()).text(), "x");
            for (std::size_t i = 0; i < messages; ++i) {
                must(co_await pair.client.write_all("y"));
                co_await here().yield();
            }
            const bool reads_on = random().chance(0.5);
            for (std::size_t left = reads_on ? messages : 0; left > 0;)
                left -= must(co_await pair.server.read()).size();
        }
        for (int i = 0; i < 10; ++i) co_await here().yield();
        connection idle = co_await connect();
        EXPECT_EQ(co_await count_leases(idle), 16u + 1u) << "a buffer did not come back";
    });
}

TEST_P(buffers_io, a_lease_beyond_the_limit_is_refused_and_nothing_is_lost) {
    loop_options tiny;
    tiny.buffer_count = 4;
    tiny.buffer_size = 512;
    tiny.max_spare_buffers = 3;
    make_loop(tiny);
    run([this]() -> task<> {
        std::vector<connection> all;
        std::vector<lease> held;
        for (std::size_t i = 0; i < 4 + 3; ++i) {
            all.push_back(co_await connect());
            must(co_await all[i].client.write_all("held"));
            held.push_back(must(co_await all[i].server.read()));
        }
        connection late = co_await connect();
        must(co_await late.client.write_all("late"));
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(error_of(co_await late.server.read()), errc::no_buffers);
        // Reads into own memory need no buffer.
        std::array<std::byte, 2> own{};
        EXPECT_EQ(must(co_await late.server.read_some(own)), 2u);
        EXPECT_EQ(as_text(own), "la");
        // Each returned buffer serves again.
        for (const std::size_t which : {std::size_t{0}, held.size() - 1}) {
            held[which].reset();
            held[which] = must(co_await late.server.read());
            EXPECT_EQ(held[which].text(), which == 0 ? "te" : "more");
            must(co_await late.client.write_all("more"));
            EXPECT_EQ(error_of(co_await late.server.read()), errc::no_buffers);
        }
        for (std::size_t i = 1; i + 1 < held.size(); ++i) EXPECT_EQ(held[i].text(), "held");
    });
}

TEST_P(buffers_io, a_message_beyond_the_limit_is_refused_and_not_lost) {
    loop_options tiny;
    tiny.datagram_count = 4;
    tiny.datagram_size = 512;
    tiny.max_spare_buffers = 3;
    make_loop(tiny);
    run([this]() -> task<> {
        datagram to = must(here().bind_datagram(loopback()));
        datagram from = must(here().connect_datagram(to.local()));
        std::vector<datagram_message> held;
        for (std::size_t i = 0; i < 4 + 3; ++i) {
            const std::string number = std::to_string(i);
            must(co_await from.send(as_bytes(number)));
            held.push_back(must(co_await to.receive()));
        }
        must(co_await from.send(as_bytes("late")));
        for (int i = 0; i < 3; ++i) EXPECT_EQ(error_of(co_await to.receive()), errc::no_buffers);
        held.pop_back();
        EXPECT_EQ(must(co_await to.receive()).payload.text(), "late");
        for (std::size_t i = 0; i < held.size(); ++i)
            EXPECT_EQ(held[i].payload.text(), std::to_string(i));
    });
}

TEST(buffer_pool_test, lends_the_last_returned_buffer_first_and_keeps_at_most_its_limit) {
    buffer_pool pool(2, 4096, 3);
    EXPECT_EQ(pool.buffer_size(), 4096u);
    std::byte* const first = pool.take();
    std::byte* const second = pool.take();
    std::byte* const third = pool.take();
    {
        const lease one = pool.lend(first, 10);
        const lease two = pool.lend(second, 20);
        EXPECT_EQ(one.size(), 10u);
        EXPECT_EQ(two.size(), 20u);
    }
    // `two` went back first, then `one`.
    EXPECT_EQ(pool.take(), first);
    EXPECT_EQ(pool.take(), second);
    EXPECT_EQ(pool.take(), nullptr) << "three are out";
    EXPECT_EQ(pool.refusal(), errc::no_buffers);
    pool.give_back(first, 0);
    pool.give_back(second, 0);
    pool.give_back(third, 0);
}

TEST(gather_test, takes_the_pieces_that_are_left_without_the_empty_ones) {
    const std::array<std::string_view, 5> texts{"abc", "", "defg", "", "h"};
    std::vector<const_bytes> pieces;
    for (int i = 0; i < 10; ++i)
        for (const std::string_view text : texts) pieces.push_back(as_bytes(text));
    write_operation op(closed_stream_driver(), pieces);
    EXPECT_FALSE(op.advance(1));
    iovec vectors[max_write_pieces];
    EXPECT_EQ(gather(op, vectors), max_write_pieces);
    EXPECT_EQ(vectors[0].iov_len, 2u);
    EXPECT_EQ(vectors[1].iov_len, 4u);
    EXPECT_EQ(vectors[2].iov_len, 1u);
    EXPECT_FALSE(op.advance(8 * 10 - 2));
    EXPECT_EQ(gather(op, vectors), 1u);
    EXPECT_EQ(vectors[0].iov_len, 1u);
    EXPECT_TRUE(op.advance(1));
}

}  // namespace
}  // namespace eddy::testing
