// Addresses of clients that have reset their connections by the time a runtime serves them.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::MatchesRegex;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(reset_clients);

constexpr std::uint64_t clients = 10;

/// Clients that send a text and reset the connection at once, until all were seen.
task<void> send_and_reset(subject& to, std::string_view text) {
    const std::uint64_t before = to->count().connections_total + to->count().connections_refused;
    for (std::uint64_t i = 0; i < clients; ++i) {
        talker client = co_await talker::to(to->local());
        EXPECT_TRUE(client.socket.try_write(as_bytes(text)));
        client.socket.abort();
    }
    co_await until([&] {
        const metrics now = to->count();
        return now.connections_total + now.connections_refused == before + clients;
    });
}

TEST_P(reset_clients, are_named_in_the_journal_of_a_server) {
    for (const int threads : {1, 2}) {
        run([threads]() -> task<void> {
            subject s("server", with({{"log_traffic", true}, {"threads", threads}}));
            co_await s.start();
            co_await send_and_reset(s, "hello\n");
            co_await until([&] { return s->count().connections_now == 0; });
            co_await s->stop(0s);
            std::vector<std::string> named;
            for (const std::string& line : s.events.lines)
                if (line.find(" connected from ") != std::string::npos) named.push_back(line);
            EXPECT_EQ(named.size(), clients);
            EXPECT_THAT(named, ::testing::Each(MatchesRegex(
                                   "client [0-9]+ connected from 127\\.0\\.0\\.1:[0-9]+")));
        });
    }
}

TEST_P(reset_clients, of_this_machine_are_no_others_to_protected_mode) {
    run([]() -> task<void> {
        subject s("cache", any_port);
        co_await s.start();
        co_await send_and_reset(s, "PING\r\n");
        EXPECT_EQ(s->count().connections_refused, 0U);
        co_await s->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
