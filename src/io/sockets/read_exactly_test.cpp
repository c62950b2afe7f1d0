// read_exactly(): all bytes or an error with their count, at every split, and fairness where they
// come without end.
#include <eddy/io/pipe.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>

#include "io/testing.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(read_exactly_io);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(read_exactly_kernel_io);

task<void> send_and_close(stream& to, std::uint64_t number, std::size_t total, std::uint64_t seed) {
    co_await send_pattern(to, number, total, seed, 18);
    to.close();
}

/// Reads `total` bytes of the pattern in spans of random sizes, then the end.
task<void> expect_pattern(stream& from, std::uint64_t number, std::size_t total,
                          std::uint64_t seed) {
    pattern expected(number);
    random_generator dice(seed);
    while (total > 0) {
        std::vector<std::byte> into(std::min(total, dice.below(std::size_t{1} << dice.below(22))));
        std::size_t received = 1;
        must(co_await from.read_exactly(into, &received));
        EXPECT_EQ(received, into.size());
        EXPECT_TRUE(expected.continues_with(into));
        total -= into.size();
    }
    std::array<std::byte, 3> more;
    EXPECT_EQ(error_of(co_await from.read_exactly(more)), errc::end_of_stream);
}

TEST_P(read_exactly_io, fills_spans_of_any_size_from_pieces_of_any_size) {
    loop_options options;
    options.sim.short_read = 0.3;
    options.sim.max_delay = 1ms;
    make_loop(options);
    run([this]() -> task<> {
        for (const std::size_t total : {0u, 1u, 5'000u, 300'000u, 6'000'000u}) {
            connection pair = co_await connect();
            pipe_ends ends = must(make_pipe());
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(send_and_close(pair.client, 1, total, random()()));
                children.spawn(expect_pattern(pair.server, 1, total, random()()));
                children.spawn(send_and_close(ends.writer, 2, total, random()()));
                children.spawn(expect_pattern(ends.reader, 2, total, random()()));
                co_return;
            });
        }
    });
}

TEST_P(read_exactly_io, takes_not_one_byte_more) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        must(co_await pair.client.write_all("headbody and more"));
        std::array<std::byte, 4> into;
        must(co_await pair.server.read_exactly(into));
        EXPECT_EQ(as_text(into), "head");
        must(co_await pair.server.read_exactly({}));
        must(co_await pair.server.read_exactly(into));
        EXPECT_EQ(as_text(into), "body");
        const lease rest = must(co_await pair.server.read());
        EXPECT_EQ(rest.text(), " and more");
    });
}

TEST_P(read_exactly_io, an_end_in_the_middle_is_not_one_at_the_beginning) {
    run([this]() -> task<> {
        for (const std::string_view text : {"", "abc"}) {
            connection pair = co_await connect();
            must(co_await pair.client.write_all(text));
            must(pair.client.shutdown_write());
            std::array<std::byte, 8> into;
            std::size_t received = 99;
            const auto outcome = co_await pair.server.read_exactly(into, &received);
            EXPECT_EQ(error_of(outcome), text.empty() ? errc::end_of_stream : errc::truncated);
            EXPECT_EQ(received, text.size());
            EXPECT_EQ(as_text(const_bytes(into).first(received)), text);
        }
    });
}

TEST_P(read_exactly_io, a_reset_is_the_sockets_error) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        must(co_await pair.server.write_all("never read"));
        // The bytes must have arrived before the close; the answer to them shows it.
        must(co_await pair.client.write_all("y"));
        std::array<std::byte, 1> one;
        must(co_await pair.server.read_exactly(one));
        pair.client.close();
        std::array<std::byte, 10> into;
        EXPECT_EQ(error_of(co_await pair.server.read_exactly(into)), errno_code(ECONNRESET));
    });
}

/// A read whose state others check while it waits.
struct reading {
    std::size_t received = 99;
    std::error_code error;
};

task<void> read_into(stream& from, mutable_bytes into, reading& state) {
    state.error = error_of(co_await from.read_exactly(into, &state.received));
}

TEST_P(read_exactly_io, a_cancelled_one_says_where_to_go_on) {
    run([this]() -> task<> {
        for (const bool cancel : {true, false}) {
            connection pair = co_await connect();
            std::array<std::byte, 10> into;
            reading state;
            scope children(co_await current_source());
            children.spawn(read_into(pair.server, into, state));
            must(co_await pair.client.write_all("four"));
            while (state.received < 4) co_await here().yield();
            EXPECT_FALSE(state.error);
            if (cancel)
                children.cancel();
            else
                pair.server.close();
            co_await children.join();
            EXPECT_EQ(state.error, errc::cancelled);
            EXPECT_EQ(state.received, 4u);
            if (!cancel) {
                EXPECT_EQ(error_of(co_await pair.server.read_exactly(into)), errc::closed);
                continue;
            }
            must(co_await pair.client.write_all("sixsix"));
            must(co_await pair.server.read_exactly(mutable_bytes(into).subspan(state.received)));
            EXPECT_EQ(as_text(into), "foursixsix");
            // One that begins cancelled takes nothing.
            must(co_await pair.client.write_all("x"));
            state.received = 99;
            children.spawn(read_into(pair.server, into, state));
            co_await children.join();
            EXPECT_EQ(state.error, errc::cancelled);
            EXPECT_EQ(state.received, 0u);
        }
    });
}

TEST_P(read_exactly_io, goes_on_when_its_handle_moves) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        std::array<std::byte, 8> into;
        reading state;
        state.error = errno_code(EBUSY);
        scope children(co_await current_source());
        children.spawn(read_into(pair.server, into, state));
        must(co_await pair.client.write_all("half"));
        while (state.received < 4) co_await here().yield();
        const stream elsewhere = std::move(pair.server);
        must(co_await pair.client.write_all("+all"));
        co_await children.join();
        EXPECT_FALSE(state.error) << state.error.message();
        EXPECT_EQ(as_text(into), "half+all");
    });
}

// ---- fairness

/// Stream with endless bytes, like the fastest of peers. A read that must wait gets some a turn
/// later.
class endless_driver final : public stream_driver, private timer {
public:
    bool start(read_operation& op) override {
        if (op.had_its_share()) {
            waiting_ = &op;
            loop::current().arm(*this, loop::current().now());
            return false;
        }
        op.set_size(std::min(op.into().size(), piece));
        return true;
    }
    bool start(write_operation&) override { return true; }
    void cancel(read_operation&) noexcept override {}
    void cancel(write_operation&) noexcept override {}
    result<> shutdown_write() noexcept override { return {}; }
    endpoint local() const noexcept override { return {}; }
    endpoint peer() const noexcept override { return {}; }
    int native_handle() const noexcept override { return -1; }
    void close() noexcept override {}

    std::size_t piece = 1;
    std::size_t waits = 0;

private:
    void fire() noexcept override {
        ++waits;
        waiting_->set_size(1);
        std::exchange(waiting_, nullptr)->complete_later();
    }

    read_operation* waiting_ = nullptr;
};

TEST_P(read_exactly_io, a_turn_has_a_limit_of_bytes_and_of_reads) {
    run([]() -> task<> {
        endless_driver driver;
        stream endless(driver);
        constexpr std::size_t most_bytes = read_exactly_operation::most_bytes_a_turn;
        constexpr std::size_t most_reads = read_exactly_operation::most_reads_a_turn;

        std::vector<std::byte> many(most_reads);
        must(co_await endless.read_exactly(many));
        EXPECT_EQ(driver.waits, 0u) << "what one turn may take";
        many.resize(most_reads + 1);
        must(co_await endless.read_exactly(many));
        EXPECT_EQ(driver.waits, 1u);

        driver.waits = 0;
        driver.piece = most_bytes / 2;
        std::vector<std::byte> large(most_bytes);
        must(co_await endless.read_exactly(large));
        EXPECT_EQ(driver.waits, 0u);
        large.resize(10 * most_bytes);
        must(co_await endless.read_exactly(large));
        EXPECT_EQ(driver.waits, 9u);
    });
}

/// Counts the turns of the loop during a read of `size` bytes.
task<void> count_turns(const std::size_t& received, std::size_t size, std::size_t& turns) {
    while (received < size) {
        if (received > 0) ++turns;
        co_await loop::current().yield();
    }
}

constexpr std::size_t packets = 200;

/// Puts packets of one byte each, of which a read gets one, into `out`, and reads them all.
void expect_turns(loop& here, const unique_fd& out, stream from) {
    for (std::size_t i = 0; i < packets; ++i) ASSERT_EQ(write(out.get(), "x", 1), 1);
    std::size_t turns = 0;
    here.run([](stream source, std::size_t& counted) -> task<> {
        std::array<std::byte, packets> into;
        std::size_t received = 0;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(count_turns(received, packets, counted));
            must(co_await source.read_exactly(into, &received));
        });
    }(std::move(from), turns));
    EXPECT_GE(turns, packets / read_exactly_operation::most_reads_a_turn);
}

TEST_P(read_exactly_kernel_io, a_socket_with_much_to_read_leaves_others_their_turns) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const unique_fd out(ends[0]);
    unique_fd in(ends[1]);
    if (GetParam() == io_backend_kind::uring)
        GTEST_SKIP() << "reads of the ring end with the buffers of a turn";
    expect_turns(here(), out, must(here().adopt(std::move(in))));
}

TEST_P(read_exactly_kernel_io, a_pipe_with_much_to_read_leaves_others_their_turns) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_DIRECT | O_CLOEXEC), 0);
    const unique_fd out(ends[1]);
    unique_fd in(ends[0]);
    // A page each.
    if (fcntl(out.get(), F_SETPIPE_SZ, 1 << 20) < 0)
        GTEST_SKIP() << "no pipe as large as that is allowed here";
    expect_turns(here(), out, must(here().adopt(std::move(in))));
}

}  // namespace
}  // namespace eddy::testing
