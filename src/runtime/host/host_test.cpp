// Tests of the host: instances that find each other, and one without a daemon.
#include "runtime/host/host.hpp"

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(hosts);

struct lone_host final : host {
    void request_stop() override {}
    task<outcome<>> keep_options(json) override { co_return outcome<>(); }
};

TEST_P(hosts, without_a_daemon_know_nothing_else) {
    run([&]() -> task<void> {
        lone_host alone;
        EXPECT_EQ(alone.resolve("x").error().status, 503);
        EXPECT_EQ(alone.watch("x").error().status, 503);
        EXPECT_EQ(alone.publish("x", "y").error().status, 503);
        EXPECT_EQ(alone.subscribe("x").error().status, 503);
        const endpoint where = must(endpoint::ip("127.0.0.1", 80));
        const address_note note = alone.note_address({}, where);
        EXPECT_EQ(alone.server_at(where, false), "");
        alone.end();
        co_return;
    });
}

/// A server is found at the port that the system gave it, and talked to.
TEST_P(hosts, resolve_a_server_to_where_it_listens) {
    run([&]() -> task<void> {
        const neighbours all;
        const auto asking = std::make_shared<test_host>(all, "asking");
        const auto its_host = std::make_shared<test_host>(all, "site");
        subject site("server", {{"port", 0}}, "site", its_host);
        address_watch watch = must_do(asking->watch("site"));
        must(co_await watch.changed());
        EXPECT_TRUE(must_do(watch.addresses()).empty());
        for (int round = 0; round < 2; ++round) {
            co_await site.start();
            its_host->has_started();
            must(co_await watch.changed());
            const served_addresses found = must_do(watch.addresses());
            EXPECT_EQ(found.size(), 1U);
            EXPECT_EQ(found.at(0).runtime, "site");
            EXPECT_EQ(found.at(0).where.port, site->local().port());
            stream connected =
                must(co_await transport::connect(found.at(0).where, tcp::connect_options()));
            its_host->stops();
            co_await site->stop(0s);
            must(co_await watch.changed());
            EXPECT_TRUE(must_do(watch.addresses()).empty());
        }
    });
}

TEST_P(hosts, a_runtime_without_peers_refuses_to_send) {
    run([&]() -> task<void> {
        struct silent final : instance {
            task<outcome<>> start() override { co_return outcome<>(); }
            task<void> stop(duration) override { co_return; }
            metrics count() const override { return {}; }
            endpoint local() const override { return {}; }
            outcome<> apply(const settings&) override { return {}; }
        } quiet;
        const auto refused = co_await quiet.send("hello");
        EXPECT_EQ(refused.error().status, 400);
        EXPECT_THAT(refused.error().message, HasSubstr("no clients to send to"));
    });
}

}  // namespace
}  // namespace eddy::runtime
