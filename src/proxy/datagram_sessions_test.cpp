// Sessions of UDP clients: backends by name, and the limit of what waits for their look-up.
#include "proxy/datagram_sessions.hpp"

#include <eddy/io/timeout.hpp>

#include "io/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::proxy {
namespace {

using namespace eddy::testing;
using namespace std::chrono_literals;

EDDY_ON_EVERY_IO_BACKEND(datagram_sessions_of);

class recorder final : public datagram_observer {
public:
    void note_failed_backend(const backend& /*which*/, std::error_code why) noexcept override {
        failed = why;
    }
    void note_dropped(std::string_view why) noexcept override { dropped = why; }

    std::error_code failed;
    std::string dropped;
};

/// Bytes of the test's own.
class unpooled final : public lease_owner {
public:
    void give_back(std::byte* /*data*/, std::uint32_t /*id*/) noexcept override {}
};

std::shared_ptr<balancer> one_backend(std::string host, std::uint16_t port) {
    transport::address where;
    where.kind = transport::scheme::udp;
    where.host = std::move(host);
    where.port = port;
    const std::vector<wanted_backend> wanted = {{.where = where}};
    return std::make_shared<balancer>(balancing{}, update_backends({}, wanted, 1));
}

endpoint at(std::uint16_t port) { return must(endpoint::ip("127.0.0.1", port)); }

TEST_P(datagram_sessions_of, a_backend_by_name_get_all_that_came_meanwhile) {
    run([]() -> task<void> {
        // Whichever address of localhost comes first.
        datagram there = must(loop::current().bind_datagram(must(endpoint::ip("*", 0))));
        datagram front = must(loop::current().bind_datagram(at(0)));
        datagram client = must(loop::current().bind_datagram(at(0)));
        serving::counters counted;
        recorder seen;
        datagram_sessions sessions(front, counted, seen);
        sessions.set({}, one_backend("localhost", there.local().port()));
        for (const std::string_view text : {"one", "two"}) {
            must(client.send_to(as_bytes(text), front.local()));
            sessions.take(must(co_await front.receive()));
        }
        for (const std::string_view text : {"one", "two"}) {
            const auto got = must(co_await there.receive());
            EXPECT_EQ(got.payload.text(), text);
            must(there.send_to(got.payload.bytes(), got.from));
            EXPECT_EQ(must(co_await client.receive()).payload.text(), text);
        }
        EXPECT_EQ(sessions.count(), 1U);
        co_await sessions.end();
        EXPECT_EQ(counted.connections_now.value(), 0U);
    });
}

TEST_P(datagram_sessions_of, a_name_with_two_addresses_try_the_other_one_after_a_refusal) {
    // The simulator refuses no datagrams.
    if (simulated()) return;
    for (const char* const served : {"127.0.0.1", "::1"}) {
        run([served]() -> task<void> {
            datagram there = must(loop::current().bind_datagram(must(endpoint::ip(served, 0))));
            datagram front = must(loop::current().bind_datagram(at(0)));
            serving::counters counted;
            recorder seen;
            datagram_sessions sessions(front, counted, seen);
            sessions.set({}, one_backend("localhost", there.local().port()));
            std::size_t sent = 0;
            for (int clients = 0; clients < 2; ++clients) {
                datagram client = must(loop::current().bind_datagram(at(0)));
                result<datagram_message> got = fail(errc::timed_out);
                for (sent = 0; !got && sent < 100; ++sent) {
                    must(client.send_to(as_bytes("x"), front.local()));
                    sessions.take(must(co_await front.receive()));
                    got = co_await with_timeout(50ms, there.receive());
                }
                EXPECT_TRUE(got);
            }
            EXPECT_EQ(sent, 1U) << "the second client begins with the address that answers";
            EXPECT_FALSE(seen.failed);
            co_await sessions.end();
        });
    }
}

TEST_P(datagram_sessions_of, an_unknown_name_are_dropped_and_looked_up_again) {
    run([]() -> task<void> {
        datagram front = must(loop::current().bind_datagram(at(0)));
        datagram client = must(loop::current().bind_datagram(at(0)));
        serving::counters counted;
        recorder seen;
        datagram_sessions sessions(front, counted, seen);
        datagram_limits limits;
        limits.connect_timeout = 50ms;
        const auto backends = one_backend("no-such-host.test", 1);
        sessions.set(limits, backends);
        for (std::uint64_t i = 1; i <= 2; ++i) {
            must(client.send_to(as_bytes("x"), front.local()));
            sessions.take(must(co_await front.receive()));
            while (counted.dropped.value() < i) must(co_await loop::current().sleep_for(1ms));
            EXPECT_TRUE(seen.failed);
        }
        EXPECT_GE(backends->all().front().its->sum(&backend_counters::failures), 2U);
        co_await sessions.end();
    });
}

TEST_P(datagram_sessions_of, a_name_that_is_looked_up_keep_a_limited_number_of_bytes) {
    // The simulator knows at once that it has no such name.
    if (simulated()) return;
    run([]() -> task<void> {
        datagram front = must(loop::current().bind_datagram(at(0)));
        serving::counters counted;
        recorder seen;
        datagram_sessions sessions(front, counted, seen);
        sessions.set({}, one_backend("no-such-host.test", 1));
        unpooled owner;
        std::vector<std::byte> bytes(64 * 1024);
        constexpr std::uint32_t most = max_waiting_bytes / (64 * 1024);
        for (std::uint32_t i = 0; i < most + 3; ++i) {
            datagram_message made;
            made.payload = lease(owner, bytes.data(), 64 * 1024, i);
            made.segment_size = 64 * 1024;
            made.from = at(static_cast<std::uint16_t>(1000 + i % 2));
            sessions.take(made);
        }
        EXPECT_EQ(counted.dropped.value(), 3U);
        EXPECT_EQ(seen.dropped, "too many wait for the look-up of a backend's name");
        co_await sessions.end();
    });
}

}  // namespace
}  // namespace eddy::proxy
