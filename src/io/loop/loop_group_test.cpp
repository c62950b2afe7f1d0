// Loop groups: the loop of each posted task, and the end of all by stopping.
#include <eddy/io/loop_group.hpp>

#include <eddy/base/log.hpp>
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace eddy::testing {
namespace {

class loop_group_io : public ::testing::TestWithParam<io_backend_kind> {
protected:
    /// Null where the kernel refuses io_uring.
    static std::unique_ptr<loop_group> start(std::size_t threads) {
        loop_group_options options;
        options.threads = threads;
        options.loop.kind = GetParam();
        auto made = loop_group::start(options);
        if (!made && GetParam() == io_backend_kind::uring) return nullptr;
        return must(std::move(made));
    }
};

INSTANTIATE_TEST_SUITE_P(io, loop_group_io,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         io_backend_name);

#define EDDY_SKIP_IF_REFUSED(group) \
    if (!(group)) GTEST_SKIP() << "io_uring is refused here"

task<void> note_thread(std::mutex& mutex, std::set<std::thread::id>& seen, std::latch& done) {
    co_await loop::current().yield();
    {
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
    }
    done.count_down();
}

TEST_P(loop_group_io, runs_tasks_on_the_loop_they_were_sent_to) {
    auto group = start(3);
    EDDY_SKIP_IF_REFUSED(group);
    ASSERT_EQ(group->size(), 3u);
    std::mutex mutex;
    std::vector<std::set<std::thread::id>> threads(3);
    std::latch done(300);
    for (std::size_t i = 0; i < 300; ++i)
        ASSERT_TRUE(group->post(i % 3, note_thread(mutex, threads[i % 3], done)));
    done.wait();
    std::set<std::thread::id> all;
    for (const auto& each : threads) {
        EXPECT_EQ(each.size(), 1u);
        all.insert(each.begin(), each.end());
    }
    EXPECT_EQ(all.size(), 3u);
    EXPECT_EQ(all.count(std::this_thread::get_id()), 0u);
}

task<void> sleep_until_cancelled(std::atomic<int>& begun, std::atomic<int>& cancelled) {
    ++begun;
    begun.notify_one();
    auto slept = co_await loop::current().sleep_for(std::chrono::hours(1));
    cancelled += error_of(slept) == errc::cancelled;
}

TEST_P(loop_group_io, stopping_cancels_and_awaits_every_task) {
    if (GetParam() == io_backend_kind::sim) GTEST_SKIP() << "an hour passes at once there";
    auto group = start(2);
    EDDY_SKIP_IF_REFUSED(group);
    std::atomic<int> begun{0};
    std::atomic<int> cancelled{0};
    for (std::size_t i = 0; i < 10; ++i)
        ASSERT_TRUE(group->post(i % 2, sleep_until_cancelled(begun, cancelled)));
    for (int seen = 0; (seen = begun.load()) < 10;) begun.wait(seen);
    group->stop();
    EXPECT_EQ(cancelled, 10);
    EXPECT_EQ(error_of(group->post(0, sleep_until_cancelled(begun, cancelled))), errc::closed);
    EXPECT_EQ(begun, 10) << "a refused task never runs";
    group->stop();
}

task<void> hand_back(std::atomic<int>& ran) {
    ++ran;
    co_return;
}

TEST_P(loop_group_io, every_accepted_task_runs_however_stopping_falls) {
    for (int round = 0; round < 30; ++round) {
        auto group = start(2);
        EDDY_SKIP_IF_REFUSED(group);
        std::atomic<int> ran{0};
        std::atomic<int> accepted{0};
        std::latch warm(3);
        std::vector<std::thread> posters;
        for (int t = 0; t < 3; ++t)
            posters.emplace_back([&] {
                warm.count_down();
                for (std::size_t i = 0; i < 2000; ++i) {
                    if (!group->post(i % 2, hand_back(ran))) break;
                    ++accepted;
                }
            });
        warm.wait();
        group->stop();
        for (std::thread& poster : posters) poster.join();
        EXPECT_EQ(ran, accepted);
    }
}

task<void> fail_there() {
    co_await loop::current().yield();
    throw std::runtime_error("on purpose");
}

TEST_P(loop_group_io, a_failing_task_is_logged_and_ends_nothing_else) {
    auto group = start(1);
    EDDY_SKIP_IF_REFUSED(group);
    std::mutex mutex;
    std::string logged;
    set_log_sink([&](log_level, std::string_view line) {
        const std::lock_guard lock(mutex);
        logged += line;
    });
    ASSERT_TRUE(group->post(0, fail_there()));
    std::set<std::thread::id> seen;
    std::latch done(1);
    std::mutex seen_mutex;
    ASSERT_TRUE(group->post(0, note_thread(seen_mutex, seen, done)));
    done.wait();
    group->stop();
    set_log_sink({});
    EXPECT_NE(logged.find("on purpose"), std::string::npos);
}

task<void> accept_some(endpoint where, std::atomic<int>& here, std::atomic<int>& accepted,
                       std::promise<endpoint>& listening) {
    listen_options shared;
    shared.reuse_port = true;
    listener accepting = must(loop::current().listen(where, shared));
    listening.set_value(accepting.local());
    for (;;) {
        auto peer = co_await accepting.accept();
        if (!peer) break;
        ++here;
        ++accepted;
        accepted.notify_one();
    }
}

task<void> connect_once(endpoint where, std::latch& done) {
    static_cast<void>(co_await loop::current().connect(where));
    done.count_down();
}

TEST_P(loop_group_io, loops_share_a_port) {
    if (GetParam() == io_backend_kind::sim) GTEST_SKIP() << "each simulator has its own network";
    auto group = start(2);
    EDDY_SKIP_IF_REFUSED(group);
    endpoint where = must(endpoint::ip("127.0.0.1", 0));
    std::atomic<int> accepted{0};
    std::atomic<int> by_loop[2] = {0, 0};
    for (std::size_t i = 0; i < 2; ++i) {
        std::promise<endpoint> listening;
        ASSERT_TRUE(group->post(i, accept_some(where, by_loop[i], accepted, listening)));
        where = listening.get_future().get();
    }
    std::latch connected(100);
    for (std::size_t i = 0; i < 100; ++i)
        ASSERT_TRUE(group->post(i % 2, connect_once(where, connected)));
    connected.wait();
    for (int seen = 0; (seen = accepted.load()) < 100;) accepted.wait(seen);
    group->stop();
    EXPECT_EQ(accepted, 100);
    // The kernel chooses by a hash of both addresses: that one loop gets none of 100 connections
    // from as many ports has a probability of 2 * 0.5^100, less than 2e-30.
    for (const std::atomic<int>& of_loop : by_loop) EXPECT_GT(of_loop, 0);
}

task<void> greet(unique_fd connection) {
    stream peer = must(loop::current().adopt(std::move(connection)));
    const auto asked = co_await peer.read();
    if (asked) static_cast<void>(co_await peer.write_all(asked->text()));
}

task<void> accept_for(loop_group& group, std::size_t other, std::promise<endpoint>& listening) {
    listener accepting = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
    listening.set_value(accepting.local());
    while (auto peer = co_await accepting.accept())
        must(group.post(other, greet(must(peer->detach()))));
}

task<void> ask(endpoint where, std::string question, std::atomic<int>& right, std::latch& done) {
    stream server = must(co_await loop::current().connect(where));
    must(co_await server.write_all(question));
    const auto answer = co_await server.read();
    if (answer && answer->text() == question) ++right;
    done.count_down();
}

TEST_P(loop_group_io, a_connection_moves_to_another_loop) {
    if (GetParam() == io_backend_kind::sim) GTEST_SKIP() << "each simulator has its own network";
    auto group = start(2);
    EDDY_SKIP_IF_REFUSED(group);
    std::promise<endpoint> listening;
    ASSERT_TRUE(group->post(0, accept_for(*group, 1, listening)));
    const endpoint where = listening.get_future().get();
    std::atomic<int> right{0};
    std::latch answered(100);
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(group->post(static_cast<std::size_t>(i % 2),
                                ask(where, "question " + std::to_string(i), right, answered)));
    answered.wait();
    group->stop();
    EXPECT_EQ(right, 100);
}

TEST(loop_group_test, makes_a_loop_for_each_processor_by_default) {
    loop_group_options options;
    options.loop.kind = io_backend_kind::epoll;
    auto group = must(loop_group::start(options));
    EXPECT_GE(group->size(), 1u);
    EXPECT_LE(group->size(), std::thread::hardware_concurrency());
}

}  // namespace
}  // namespace eddy::testing
