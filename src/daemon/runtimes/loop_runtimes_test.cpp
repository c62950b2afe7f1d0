// Tests of calls on instances: they reach the one of a number on its loop, or say that it is gone.
#include "daemon/runtimes/loop_runtimes.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "daemon/control/json.hpp"
#include "daemon/testing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t number = 7;

/// Keeps the thread of its loop.
task<void> wait_while(const std::atomic<bool>& is_busy) {
    while (is_busy) std::this_thread::yield();
    co_return;
}

class loop_runtimes_test : public ::testing::Test {
public:
    void TearDown() override { EXPECT_EQ(testing::instances.load(), 0) << "instances were lost"; }

    using steps = task<void> (*)(loop_runtimes_test&);
    void live(steps body) { control_->run(body(*this)); }

    task<void> start(json options) {
        auto checked = runtime::settings::parse(types_[0].options, options);
        EXPECT_TRUE(checked);
        auto up = co_await where_.start(number, types_[0], "a", std::move(*checked), journal_);
        EXPECT_TRUE(up);
    }
    /// True when a call before a stop reaches the instance.
    task<outcome<outcome<bool>>> prepare() {
        const auto reach = [](runtime::instance&) { return outcome<bool>(true); };
        const outcome<bool> when_gone = false;
        co_return co_await where_.prepare_on_instance(number, 60s, reach, when_gone);
    }
    task<void> stop(outcome<std::string>& into) { into = co_await where_.stop(number, 0s); }

    const std::vector<runtime::type> types_ = testing::fake_types();
    const std::unique_ptr<loop> control_ = std::move(*loop::create(epoll()));
    const std::unique_ptr<loop_group> loops_ = std::move(*loop_group::start(one_loop()));
    const std::shared_ptr<runtime_journal> journal_ = std::make_shared<runtime_journal>(*control_);
    loop_runtimes where_{*loops_, 0};

private:
    static loop_options epoll() {
        loop_options options;
        options.kind = io_backend_kind::epoll;
        return options;
    }
    static loop_group_options one_loop() {
        loop_group_options options;
        options.threads = 1;
        options.loop = epoll();
        return options;
    }
};

TEST_F(loop_runtimes_test, calls_an_instance_on_its_loop) {
    live([](loop_runtimes_test& with) -> task<void> {
        co_await with.start({{"port", 80}});
        const auto port = [home = std::this_thread::get_id()](runtime::instance& on) {
            EXPECT_NE(std::this_thread::get_id(), home);
            return outcome<int>(on.local().port());
        };
        const auto got = co_await with.where_.on_instance(number, 60s, port);
        EXPECT_EQ(got, 80);
        auto send = [text = std::string("hello")](runtime::instance& to) mutable {
            return to.send(std::move(text));
        };
        const auto sent = co_await with.where_.on_instance(number, 60s, std::move(send));
        EXPECT_EQ(sent, 5U);
        const auto refuse_it = [](runtime::instance& to) { return to.send("refuse"); };
        const auto refused = co_await with.where_.on_instance(number, 60s, refuse_it);
        EXPECT_EQ(refused.error().message, "no listener");
        EXPECT_TRUE(co_await with.where_.stop(number, 0s));
    });
}

TEST_F(loop_runtimes_test, calls_nothing_under_a_number_without_an_instance) {
    live([](loop_runtimes_test& with) -> task<void> {
        const auto fail = [](runtime::instance&) -> outcome<> {
            ADD_FAILURE() << "it was called";
            return {};
        };
        const auto none = co_await with.where_.on_instance(number, 60s, fail);
        EXPECT_EQ(none.error().status, 409);
        EXPECT_EQ(none.error().message, "it is not running");
        co_await with.start({{"port", 80}});
        const auto other = co_await with.where_.on_instance(number + 1, 60s, fail);
        EXPECT_EQ(other.error().status, 409);
        const auto prepared = co_await with.prepare();
        EXPECT_EQ(prepared, true);
        EXPECT_TRUE(co_await with.where_.stop(number, 0s));
    });
}

/// The change that wanted them has ended, and a stop may follow it.
TEST_F(loop_runtimes_test, takes_no_listeners_once_the_wait_for_a_busy_loop_has_ended) {
    live([](loop_runtimes_test& with) -> task<void> {
        co_await with.start({{"port", 80}});
        const int before = testing::listener_handovers;
        std::atomic<bool> is_busy{true};
        EXPECT_TRUE(with.loops_->post(0, wait_while(is_busy)));
        const auto taken = co_await with.where_.take_listeners(number);
        EXPECT_EQ(taken.error().status, 503);
        is_busy = false;
        EXPECT_TRUE(co_await with.where_.stop(number, 0s));
        EXPECT_EQ(testing::listener_handovers, before);
    });
}

/// A stop continues there when its caller no longer waits.
TEST_F(loop_runtimes_test, prepares_and_changes_nothing_once_the_stop_has_begun) {
    testing::lingering = true;
    live([](loop_runtimes_test& with) -> task<void> {
        co_await with.start({{"lingering", true}});
        scope meanwhile(co_await current_source());
        outcome<std::string> stopped = refuse(500, "it has not ended");
        meanwhile.spawn(with.stop(stopped));
        // Sent behind the stop, so that the loop takes it next.
        co_await loop::current().yield();
        const auto prepared = co_await with.prepare();
        EXPECT_EQ(prepared, false);
        const auto count = [](runtime::instance& on) {
            return outcome<std::uint64_t>(on.count().connections_now);
        };
        const auto counted = co_await with.where_.on_instance(number, 60s, count);
        EXPECT_EQ(counted, 3U) << "it is still there";
        const auto change = [](runtime::instance&) -> outcome<> {
            ADD_FAILURE() << "it was changed";
            return {};
        };
        const auto changed = co_await with.where_.change_instance(number, 60s, change);
        EXPECT_EQ(changed.error().status, 409);
        testing::lingering = false;
        co_await meanwhile.join();
        EXPECT_TRUE(stopped);
        const auto gone = co_await with.where_.on_instance(number, 60s, count);
        EXPECT_EQ(gone.error().status, 409);
    });
    testing::lingering = false;
}

}  // namespace
}  // namespace eddy::daemon
