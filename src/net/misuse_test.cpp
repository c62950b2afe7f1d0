// Misuse of this layer as docs/lifetimes.md lists it: see io/misuse_test.cpp.
#include <eddy/net/queued_writer.hpp>
#include <eddy/net/resolver.hpp>
#include <eddy/net/udp.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy {
namespace {

using testing::connection;
using testing::must;

class net_misuse_death : public testing::on_io_backend {
protected:
    void SetUp() override {
        // Each death is one of a new process, which has a loop of its own; a fork would share ours.
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        on_io_backend::SetUp();
    }
};
INSTANTIATE_TEST_SUITE_P(net, net_misuse_death,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

task<> flush(queued_writer& out) { static_cast<void>(co_await out.flush()); }

TEST_P(net_misuse_death, a_queued_writer_with_waiting_coroutines) {
    const auto leave = [this] {
        run([this]() -> task<> {
            connection pair = co_await connect();
            const std::vector<std::byte> much(32 << 20);  // more than a socket takes
            queued_writer_options options;
            options.max_queued_bytes = much.size();
            co_await with_scope([&](scope& children) -> task<> {
                queued_writer out(pair.client, children, options);
                must(out.enqueue(const_bytes(much)));
                children.spawn(flush(out));
                co_return;
            });
        });
    };
    EXPECT_DEATH(leave(), "a queued_writer was destroyed while a coroutine waits");
}

task<> look_up(resolver& names) { static_cast<void>(co_await names.resolve("somebody.test", 1)); }

TEST_P(net_misuse_death, a_resolver_with_waiting_coroutines) {
    if (simulated()) GTEST_SKIP() << "there no lookup waits";
    const auto leave = [this] {
        run([]() -> task<> {
            datagram silent = must(udp::bind("127.0.0.1", 0));
            resolver_options options;
            options.servers = silent.local().to_string();
            co_await with_scope([&](scope& children) -> task<> {
                resolver names(options);
                children.spawn(look_up(names));
                co_return;
            });
        });
    };
    EXPECT_DEATH(leave(), "a resolver was destroyed while a coroutine waits");
}

}  // namespace
}  // namespace eddy
