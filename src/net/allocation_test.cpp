// Queued writers, lookups and connects without memory, failing at each of their allocations in
// turn; and the paths of a queued writer that make none. In programs without sanitizers.
#include <eddy/net/queued_writer.hpp>
#include <eddy/net/rate_limit.hpp>
#include <eddy/net/resolver.hpp>
#include <eddy/net/tcp.hpp>

#include "base/counted_memory.hpp"
#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#if EDDY_COUNTS_ALLOCATIONS

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_KERNEL_IO_BACKEND(memory_net);

/// Far above what any step here asks for.
constexpr std::uint64_t most_tries = 20'000;

TEST_P(memory_net, a_queued_writer_that_can_queue_nothing_ends_behind_what_it_has_sent) {
    run([this]() -> task<> {
        queued_writer_options options;
        options.max_queued_bytes = 64 << 20;
        const std::vector<std::byte> much = pattern(1).next(32 << 20);
        std::uint64_t tries = 0;
        for (bool enough = false; !enough && tries < most_tries; ++tries) {
            connection ends = co_await connect();
            scope tasks(co_await current_source());
            std::size_t sent = 0;
            {
                queued_writer out(ends.client, tasks, options);
                std::error_code queued;
                {
                    const no_spare_frames cold;
                    const no_memory soon(tries);
                    queued = error_of(out.enqueue(const_bytes(much)));
                    enough = !soon.is_out();
                }
                if (queued) {
                    EXPECT_EQ(queued, errno_code(ENOMEM));
                    EXPECT_EQ(error_of(out.enqueue("next")), errno_code(ENOMEM));
                    EXPECT_EQ(error_of(co_await out.flush()), errno_code(ENOMEM));
                    EXPECT_EQ(out.queued_bytes(), 0u);
                    EXPECT_FALSE(out.high_watermark_active());
                } else {
                    enough = true;
                    EXPECT_GT(out.queued_bytes(), 0u) << "the test needs a message that is torn";
                }
            }
            tasks.cancel();
            co_await tasks.join();
            ends.client.close();
            pattern expected(1);
            while (const auto piece = co_await ends.server.read()) {
                EXPECT_TRUE(expected.continues_with(piece->bytes()));
                sent += piece->size();
            }
            EXPECT_GT(sent, 0u);
            EXPECT_LT(sent, much.size());
        }
        EXPECT_GE(tries, 4u) << "the bytes, the queue, and two coroutines";
        EXPECT_LT(tries, most_tries);
    });
}

TEST_P(memory_net, a_queued_writer_with_a_backlog_drops_it_when_memory_is_out) {
    run([this]() -> task<> {
        connection ends = co_await connect();
        scope tasks(co_await current_source());
        {
            queued_writer out(ends.client, tasks);
            while (out.queued_bytes() == 0) must(out.enqueue(std::string(60'000, '-')));
            const std::string more(60'000, '+');
            std::error_code queued;
            {
                const no_memory now;
                queued = error_of(out.enqueue(more));
            }
            EXPECT_EQ(queued, errno_code(ENOMEM));
            EXPECT_EQ(out.error(), errno_code(ENOMEM));
            EXPECT_EQ(out.queued_bytes(), 0u);
        }
        tasks.cancel();
        co_await tasks.join();
    });
}

TEST_P(memory_net, a_queued_writer_whose_peer_reads_allocates_nothing) {
    run([this]() -> task<> {
        connection ends = co_await connect();
        scope tasks(co_await current_source());
        {
            queued_writer out(ends.client, tasks);
            std::byte room[64];
            std::uint64_t before = 0;
            for (int i = 0; i < 1100; ++i) {
                if (i == 100) before = allocations();
                must(out.enqueue("a message of a usual size"));
                EXPECT_EQ(must(co_await ends.server.read_some(room)), 25u);
                must(co_await out.ready());
                must(co_await out.reserve(25));
                must(co_await out.flush());
                must(co_await out.flush_within(10s));
            }
            EXPECT_EQ(allocations() - before, 0u);
        }
        co_await tasks.join();
    });
}

TEST_P(memory_net, a_rate_limiter_allocates_nothing) {
    run([this]() -> task<> {
        rate_limiter limit(100'000, 10, here().now());
        std::uint64_t before = 0;
        for (int i = 0; i < 600; ++i) {
            if (i == 100) before = allocations();
            must(co_await limit.take(5));
        }
        EXPECT_EQ(allocations() - before, 0u);
    });
}

task<> look_up(resolver& names, std::error_code& error) {
    try {
        error = error_of(co_await names.resolve("host.test", 80));
    } catch (const std::bad_alloc&) {
        error = errno_code(ENOMEM);
    }
}

TEST_P(memory_net, a_lookup_without_memory_gives_its_turn_back) {
    run([this]() -> task<> {
        datagram silent = must(here().bind_datagram(loopback()));
        resolver_options options;
        options.servers = silent.local().to_string();
        options.hosts_file = "";
        options.max_concurrent = 1;
        resolver names(options);
        std::uint64_t tries = 0;
        for (bool enough = false; !enough && tries < most_tries; ++tries) {
            scope tasks(co_await current_source());
            std::error_code error;
            {
                const no_spare_frames cold;
                const no_memory soon(tries);
                try {
                    tasks.spawn(look_up(names, error));
                } catch (const std::bad_alloc&) {
                    error = errno_code(ENOMEM);
                }
                enough = !soon.is_out();
            }
            co_await here().yield();
            if (enough) EXPECT_EQ(names.running(), 1u);
            tasks.cancel();
            co_await tasks.join();
            EXPECT_TRUE(error);
            EXPECT_EQ(names.running(), 0u) << "after " << tries << " allocations";
            EXPECT_EQ(names.waiting(), 0u);
        }
        EXPECT_GT(tries, 5u);
        EXPECT_LT(tries, most_tries);
    });
}

task<> connect_any(std::vector<endpoint> addresses, std::error_code& error) {
    tcp::connect_options options;
    options.attempt_delay = 5ms;
    error = error_of(co_await tcp::connect_any(std::move(addresses), options));
}

TEST_P(memory_net, a_race_of_addresses_goes_on_without_the_one_that_has_no_memory) {
    run([this]() -> task<> {
        // Connects wait without an accept once the backlog is full.
        listen_options short_queue;
        short_queue.backlog = 0;
        listener full = must(here().listen(loopback(), short_queue));
        const endpoint where = full.local();
        scope tasks(co_await current_source());
        std::error_code fillers[4];
        for (std::error_code& each : fillers) tasks.spawn(connect_any({where}, each));
        must(co_await here().sleep_for(20ms));
        std::error_code error;
        tasks.spawn(connect_any({where, where, where}, error));
        {
            const no_spare_frames cold;
            const no_memory now;
            must(co_await here().sleep_for(100ms));
        }
        EXPECT_FALSE(error) << "the first attempt still waits: " << error.message();
        tasks.cancel();
        co_await tasks.join();
        EXPECT_EQ(error, errc::cancelled);
    });
}

}  // namespace
}  // namespace eddy::testing
#endif  // EDDY_COUNTS_ALLOCATIONS
