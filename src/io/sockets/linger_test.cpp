// Lingering close: its duration, its ends, and the bytes that the peer gets meanwhile.
#include "io/sockets/linger.hpp"

#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(linger_io);

constexpr linger_limits endless{.whole = 1h, .idle = 1h};

task<void> answer_and_linger(stream peer, linger_limits limits) {
    must(co_await peer.write_all("the answer"));
    must(peer.shutdown_write());
    co_await linger(peer, limits);
}

/// All bytes until the end, and the error that ends them.
task<std::pair<std::string, std::error_code>> rest_of(stream& from) {
    std::string text;
    for (;;) {
        const result<lease> got = co_await from.read();
        if (!got) co_return std::pair(std::move(text), got.error());
        text += got->text();
    }
}

TEST_P(linger_io, lets_a_peer_that_still_sends_have_the_last_bytes) {
    run([&]() -> task<void> {
        connection pair = co_await connect();
        co_await join_scope([&](scope& children) -> task<void> {
            children.spawn(answer_and_linger(std::move(pair.server), endless));
            const std::vector<std::byte> piece(std::size_t{256} << 10);
            for (int i = 0; i < 64; ++i) must(co_await pair.client.write_all(piece));
            const auto [text, end] = co_await rest_of(pair.client);
            EXPECT_EQ(text, "the answer");
            EXPECT_EQ(end, errc::end_of_stream);
            EXPECT_EQ(lingering_connections(), 1U);
            pair.client.close();
        });
        EXPECT_EQ(lingering_connections(), 0U);
    });
}

TEST_P(linger_io, ends_when_the_peer_is_silent) {
    run([&]() -> task<void> {
        connection pair = co_await connect();
        must(co_await pair.client.write_all("one more"));
        co_await linger(pair.server, {.whole = 1h, .idle = 10ms});
        pair.server.close();
        EXPECT_EQ((co_await rest_of(pair.client)).second, errc::end_of_stream);
    });
}

TEST_P(linger_io, ends_in_time_though_the_peer_sends_without_end) {
    run([&]() -> task<void> {
        connection pair = co_await connect();
        bool has_ended = false;
        co_await join_scope([&](scope& children) -> task<void> {
            children.spawn([](stream peer, bool& over) -> task<void> {
                co_await linger(peer, {.whole = 20ms, .idle = 1h});
                over = true;
            }(std::move(pair.server), has_ended));
            while (co_await pair.client.write_all("x")) must(co_await here().sleep_for(1ms));
        });
        EXPECT_TRUE(has_ended);
    });
}

TEST_P(linger_io, ends_when_it_is_cancelled) {
    run([&]() -> task<void> {
        connection pair = co_await connect();
        scope children(co_await current_source());
        children.spawn(answer_and_linger(std::move(pair.server), endless));
        EXPECT_EQ((co_await rest_of(pair.client)).first, "the answer");
        children.cancel();
        co_await children.join();
        EXPECT_EQ(lingering_connections(), 0U);
        stream closed;
        co_await linger(closed, endless);
    });
}

TEST_P(linger_io, ends_the_oldest_at_the_limit) {
    run([&]() -> task<void> {
        std::vector<connection> pairs;
        scope children(co_await current_source());
        for (std::size_t i = 0; i < max_lingering; ++i) {
            pairs.push_back(co_await connect());
            children.spawn(answer_and_linger(std::move(pairs.back().server), endless));
        }
        while (lingering_connections() < max_lingering) co_await here().yield();
        EXPECT_EQ(children.children(), max_lingering);
        for (std::size_t i = 0; i < 3; ++i) {
            pairs.push_back(co_await connect());
            children.spawn(answer_and_linger(std::move(pairs.back().server), endless));
        }
        while (children.children() > max_lingering) co_await here().yield();
        EXPECT_EQ(lingering_connections(), max_lingering);
        // The first ones are closed, and their further bytes are answered by a reset.
        while (co_await pairs[2].client.write_all("x")) must(co_await here().sleep_for(1ms));
        must(co_await pairs[3].client.write_all("x"));
        must(co_await here().sleep_for(5ms));
        EXPECT_TRUE(co_await pairs[3].client.write_all("x"));
        children.cancel();
        co_await children.join();
    });
}

}  // namespace
}  // namespace eddy::testing
