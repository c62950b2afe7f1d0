// Binding and exchanging datagrams on every backend.
#include <eddy/net/udp.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy {
namespace {

using testing::error_of;
using testing::must;

class udp_sockets : public testing::on_backend {};
INSTANTIATE_TEST_SUITE_P(net, udp_sockets,
                         ::testing::Values(backend_kind::uring, backend_kind::epoll,
                                           backend_kind::sim),
                         testing::backend_name);

TEST_P(udp_sockets, exchange_datagrams) {
    run([&]() -> task<> {
        datagram one = must(udp::bind("localhost", 0));
        datagram other = must(udp::bind("127.0.0.1", 0));
        EXPECT_NE(one.local().port(), 0);
        must(one.send_to(as_bytes("question"), other.local()));
        auto got = must(co_await other.receive());
        EXPECT_EQ(got.payload.text(), "question");
        EXPECT_EQ(got.from, one.local());
        must(other.send_to(as_bytes(""), got.from));
        EXPECT_EQ(must(co_await one.receive()).payload.size(), 0U) << "empty ones count, too";

        const std::vector<std::byte> much(udp::max_payload + 1);
        EXPECT_EQ(error_of(one.send_to(much, other.local())), errno_code(EMSGSIZE));
    });
}

TEST_P(udp_sockets, refuse_bad_and_taken_addresses) {
    run([&]() -> task<> {
        EXPECT_EQ(error_of(udp::bind("example.org", 0)), errc::bad_address);
        datagram one = must(udp::bind("127.0.0.1", 0));
        EXPECT_EQ(error_of(udp::bind("127.0.0.1", one.local().port())), errno_code(EADDRINUSE));
        co_return;
    });
}

}  // namespace
}  // namespace eddy
