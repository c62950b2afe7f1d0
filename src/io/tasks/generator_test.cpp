// Generators: values on demand, their ends, and the leases of a stream with backpressure.
#include <eddy/io/generator.hpp>

#include <eddy/base/frame_pool.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "io/testing.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(generator_io);

async_generator<int> count_to(int last, int& made) {
    for (int i = 1; i <= last; ++i) {
        if (i % 2 == 0) co_await loop::current().yield();
        ++made;
        co_yield i;
    }
}

TEST_P(generator_io, makes_values_as_they_are_asked_for) {
    run([]() -> task<> {
        int made = 0;
        auto numbers = count_to(3, made);
        EXPECT_EQ(made, 0) << "it is lazy";
        for (int expected = 1; expected <= 3; ++expected) {
            const std::optional<int> got = co_await numbers.next();
            EXPECT_EQ(got, expected);
            EXPECT_EQ(made, expected);
        }
        for (int i = 0; i < 2; ++i) {
            const std::optional<int> over = co_await numbers.next();
            EXPECT_FALSE(over);
        }
    });
}

TEST_P(generator_io, values_cost_no_allocation) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "this build takes every frame from malloc";
    run([]() -> task<> {
        int made = 0;
        const auto once = [](int& count) -> task<> {
            auto numbers = count_to(100, count);
            while (co_await numbers.next()) {
            }
        };
        std::uint64_t before = 0;
        for (int i = 0; i < 11; ++i) {
            // The same call each time: the compiler may put the frame of another into its caller's.
            co_await once(made);
            if (i == 0) before = frame_allocations();
        }
        EXPECT_EQ(frame_allocations(), before);
        EXPECT_EQ(made, 1100);
    });
}

struct flag_at_end {
    bool* flag;
    ~flag_at_end() { *flag = true; }
};
async_generator<int> hold_something(bool& ended) {
    const flag_at_end held{&ended};
    for (int i = 0;; ++i) co_yield i;
}

TEST_P(generator_io, may_be_left_half_way_or_unbegun) {
    run([]() -> task<> {
        bool ended = false;
        {
            auto numbers = hold_something(ended);
            static_cast<void>(co_await numbers.next());
            static_cast<void>(co_await numbers.next());
            EXPECT_FALSE(ended);
        }
        EXPECT_TRUE(ended) << "what it holds dies with it";
        ended = false;
        {
            auto unbegun = hold_something(ended);
            auto moved = std::move(unbegun);
        }
        EXPECT_FALSE(ended);
    });
}

async_generator<int> throw_after_one() {
    co_yield 1;
    co_await loop::current().yield();
    throw std::runtime_error("on purpose");
}

TEST_P(generator_io, an_exception_comes_out_of_next_and_ends_it) {
    run([]() -> task<> {
        auto numbers = throw_after_one();
        const std::optional<int> first = co_await numbers.next();
        EXPECT_EQ(first, 1);
        bool caught = false;
        try {
            static_cast<void>(co_await numbers.next());
        } catch (const std::runtime_error&) {
            caught = true;
        }
        EXPECT_TRUE(caught);
        const std::optional<int> over = co_await numbers.next();
        EXPECT_FALSE(over);
    });
}

async_generator<std::error_code> outcomes_of_waits(event& never) {
    for (;;) co_yield error_of(co_await never.wait());
}
task<std::error_code> next_of(async_generator<std::error_code>& from) {
    co_return *co_await from.next();
}

TEST_P(generator_io, is_cancelled_with_the_awaiting_task) {
    run([this]() -> task<> {
        event never;
        auto waits = outcomes_of_waits(never);
        for (int i = 0; i < 3; ++i) {
            // Each request has a source of its own, and the generator continues after it.
            cancel_source source(co_await current_source());
            std::error_code got;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](async_generator<std::error_code>& from, cancel_source& by,
                                  std::error_code& to) -> task<> {
                    to = co_await next_of(from).under(by);
                }(waits, source, got));
                co_await here().yield();
                EXPECT_FALSE(got);
                source.request();
            });
            EXPECT_EQ(got, errc::cancelled);
        }
    });
}

// ---- leases()

TEST_P(generator_io, leases_bring_all_bytes_and_then_end) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        constexpr std::size_t total = 1'000'000;
        pattern sent(1);
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](stream& to, pattern& from) -> task<> {
                const auto bytes = from.next(total);
                must(co_await to.write_all(bytes));
                must(to.shutdown_write());
            }(pair.client, sent));
            auto incoming = leases(pair.server);
            pattern expected(1);
            std::size_t size = 0;
            for (;;) {
                const auto received = co_await incoming.next();
                if (!received) break;
                must(received->has_value() ? result<>() : fail(received->error()));
                EXPECT_TRUE(expected.continues_with((*received)->bytes()));
                size += (*received)->size();
            }
            EXPECT_EQ(size, total);
        });
    });
}

TEST_P(generator_io, an_error_is_the_last_lease) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        auto incoming = leases(pair.server);
        pair.server.close();
        const auto received = co_await incoming.next();
        EXPECT_TRUE(received.has_value());
        EXPECT_EQ(received->error(), errc::closed);
        const auto over = co_await incoming.next();
        EXPECT_FALSE(over.has_value());
    });
}

TEST_P(generator_io, leases_may_be_held_beyond_the_ring_of_buffers) {
    loop_options options;
    options.buffer_count = 4;
    options.buffer_size = 1024;
    options.max_spare_buffers = 10;
    make_loop(options);
    run([this]() -> task<> {
        connection pair = co_await connect();
        constexpr std::size_t total = 64 * 1024;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](stream& to) -> task<> {
                pattern from(1);
                const auto bytes = from.next(total);
                must(co_await to.write_all(bytes));
            }(pair.client));
            auto incoming = leases(pair.server);
            pattern expected(1);
            std::size_t size = 0;
            std::vector<lease> held;
            while (size < total) {
                auto received = co_await incoming.next();
                lease bytes = must(std::move(*received));
                size += bytes.size();
                held.push_back(std::move(bytes));
                if (held.size() < 10) continue;
                for (const lease& each : held) EXPECT_TRUE(expected.continues_with(each.bytes()));
                held.clear();
            }
            for (const lease& each : held) EXPECT_TRUE(expected.continues_with(each.bytes()));
        });
        // All came back, and the ring serves again.
        connection idle = co_await connect();
        EXPECT_EQ(co_await count_leases(idle), 4u + 10u);
    });
}

TEST_P(generator_io, not_asking_holds_the_peer_back) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        auto incoming = leases(pair.server);
        pattern from(1);
        pattern expected(1);
        must(co_await pair.client.write_all(as_bytes("!")));
        {
            auto first = co_await incoming.next();
            EXPECT_EQ(must(std::move(*first)).text(), "!");
        }
        // Now no value is awaited, while the peer sends until it has to wait for good.
        std::size_t sent = 0;
        const std::vector<std::byte> piece(16 * 1024);
        for (int vain = 0; vain < 50;) {
            const std::size_t size = must(pair.client.try_write(piece));
            sent += size;
            vain = size == 0 ? vain + 1 : 0;
            if (size == 0) static_cast<void>(co_await here().sleep_for(1ms));
            EXPECT_LT(sent, 64u * 1024 * 1024) << "nothing holds the peer back";
            if (sent >= 64u * 1024 * 1024) break;
        }
        EXPECT_EQ(must(pair.client.try_write(piece)), 0u);
        // The sent bytes are there, and make room again.
        std::size_t received = 0;
        while (received < sent) {
            const auto next = co_await incoming.next();
            received += (*next)->size();
        }
        EXPECT_EQ(received, sent);
        co_await here().yield();
        std::size_t more = 0;
        while (more == 0) {
            more = must(pair.client.try_write(piece));
            if (more == 0) static_cast<void>(co_await here().sleep_for(1ms));
        }
    });
}

}  // namespace
}  // namespace eddy::testing
