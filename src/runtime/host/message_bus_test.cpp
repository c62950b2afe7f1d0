// Tests of the message bus: delivery, limits, and many publishers on several loops.
#include "runtime/host/message_bus.hpp"

#include <eddy/io/loop_group.hpp>

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(subscriptions);

task<std::string> next_text(subscription& from) {
    const bus_message got = must(co_await from.next());
    co_return *got.bytes;
}

TEST_P(subscriptions, get_the_messages_of_their_topic_in_order) {
    run([&]() -> task<void> {
        const neighbours all;
        auto one = std::make_shared<test_host>(all, "one");
        auto two = std::make_shared<test_host>(all, "two");
        EXPECT_EQ(must_do(one->publish("news", "nothing subscribes yet")), 0U);
        subscription first = must_do(one->subscribe("news"));
        subscription second = must_do(two->subscribe("news"));
        subscription other = must_do(two->subscribe("other"));
        EXPECT_EQ(must_do(one->publish("news", "a")), 2U);
        EXPECT_EQ(must_do(two->publish("news", "b")), 2U);
        EXPECT_EQ(must_do(two->publish("other", "c")), 1U);
        const bus_message shared = must(co_await first.next());
        EXPECT_EQ(*shared.bytes, "a");
        EXPECT_EQ(must(co_await second.next()).bytes, shared.bytes) << "it was copied";
        EXPECT_EQ(co_await next_text(first), "b");
        EXPECT_EQ(co_await next_text(second), "b");
        EXPECT_EQ(co_await next_text(other), "c");
    });
}

TEST_P(subscriptions, drop_what_is_queued_at_their_end) {
    run([&]() -> task<void> {
        const neighbours all;
        auto one = std::make_shared<test_host>(all, "one");
        subscription kept = must_do(one->subscribe("news"));
        subscription ended = must_do(one->subscribe("news"));
        must_do(one->publish("news", "a"));
        const bus_message shared = must(co_await kept.next());
        EXPECT_EQ(shared.bytes.use_count(), 2);
        ended.end();
        EXPECT_EQ(shared.bytes.use_count(), 1);
        EXPECT_EQ(must_do(one->publish("news", "b")), 1U);
        const auto none = co_await ended.next();
        EXPECT_EQ(none.error(), errc::closed);
    });
}

task<void> publish_later(std::shared_ptr<host> by, std::string message) {
    static_cast<void>(co_await loop::current().sleep_for(2ms));
    must_do(by->publish("news", std::move(message)));
}

TEST_P(subscriptions, wait_until_something_is_published) {
    run([&]() -> task<void> {
        const neighbours all;
        auto one = std::make_shared<test_host>(all, "one");
        subscription mine = must_do(one->subscribe("news"));
        for (const std::string text : {"first", "second"}) {
            scope tasks;
            tasks.spawn(publish_later(one, text));
            EXPECT_EQ(co_await next_text(mine), text);
            co_await tasks.join();
        }
        {
            const subscription gone = must_do(one->subscribe("short"));
            EXPECT_EQ(must_do(one->publish("short", "x")), 1U);
        }
        EXPECT_EQ(must_do(one->publish("short", "x")), 0U);
    });
}

TEST_P(subscriptions, drop_what_is_above_their_limits_and_count_it) {
    run([&]() -> task<void> {
        const neighbours all;
        auto one = std::make_shared<test_host>(all, "one");
        subscription mine = must_do(one->subscribe("t"));
        for (std::size_t i = 0; i < max_queued_messages; ++i)
            EXPECT_EQ(must_do(one->publish("t", std::to_string(i))), 1U);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(must_do(one->publish("t", "lost")), 0U);
        for (std::size_t i = 0; i < max_queued_messages; ++i) {
            const bus_message got = must(co_await mine.next());
            EXPECT_EQ(*got.bytes, std::to_string(i));
            EXPECT_EQ(got.dropped_before, 0U);
        }
        EXPECT_EQ(must_do(one->publish("t", "after")), 1U);
        const bus_message after = must(co_await mine.next());
        EXPECT_EQ(*after.bytes, "after");
        EXPECT_EQ(after.dropped_before, 3U);

        const std::string large(max_message_bytes, 'x');
        constexpr std::size_t fitting = max_queued_message_bytes / max_message_bytes;
        for (std::size_t i = 0; i < fitting; ++i) EXPECT_EQ(must_do(one->publish("t", large)), 1U);
        EXPECT_EQ(must_do(one->publish("t", "x")), 0U);
        EXPECT_EQ((co_await next_text(mine)).size(), large.size());
        EXPECT_EQ(must_do(one->publish("t", "x")), 1U);
    });
}

TEST_P(subscriptions, names_and_messages_are_limited) {
    run([&]() -> task<void> {
        const neighbours all;
        auto one = std::make_shared<test_host>(all, "one");
        const std::string longest(max_topic_bytes, 't');
        subscription mine = must_do(one->subscribe(longest));
        EXPECT_EQ(must_do(one->publish(longest, "x")), 1U);
        for (const std::string& name : {std::string(), longest + "t"}) {
            EXPECT_EQ(one->subscribe(name).error().status, 400);
            EXPECT_EQ(one->publish(name, "x").error().status, 400);
        }
        const auto refused = one->publish("t", std::string(max_message_bytes + 1, 'x'));
        EXPECT_EQ(refused.error().status, 400);
        EXPECT_THAT(refused.error().message, HasSubstr("1048577 bytes"));
        co_return;
    });
}

task<void> wait_for_end(subscription& of, std::error_code& end) {
    const auto got = co_await of.next();
    if (!got) end = got.error();
}

TEST_P(subscriptions, end_with_their_instance) {
    run([&]() -> task<void> {
        const neighbours all;
        auto one = std::make_shared<test_host>(all, "one");
        auto two = std::make_shared<test_host>(all, "two");
        subscription mine = must_do(one->subscribe("t"));
        subscription others = must_do(two->subscribe("t"));
        std::error_code end;
        {
            scope tasks;
            tasks.spawn(wait_for_end(mine, end));
            co_await loop::current().yield();
            tasks.cancel();
            co_await tasks.join();
        }
        EXPECT_EQ(end, errc::cancelled);
        scope tasks;
        tasks.spawn(wait_for_end(mine, end));
        co_await loop::current().yield();
        one->end();
        co_await tasks.join();
        EXPECT_EQ(end, errc::closed);
        EXPECT_EQ(must_do(two->publish("t", "x")), 1U);
        EXPECT_EQ(co_await next_text(others), "x");
        EXPECT_EQ(one->subscribe("t").error().status, 409);
        EXPECT_EQ((co_await mine.next()).error(), errc::closed);
    });
}

// --- Several loops ---------------------------------------------------------------------------

constexpr int publishers = 6;
constexpr std::size_t loops = 3;
constexpr std::string_view last = "last";

std::unique_ptr<loop_group> start_loops() {
    loop_group_options options;
    options.threads = loops;
    options.loop.kind = io_backend_kind::epoll;
    return std::move(*loop_group::start(options));
}

struct tallied {
    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint64_t> received{0};
    std::atomic<int> collecting{0};
};

/// Receives until `last`; the messages of each publisher have rising numbers.
task<void> collect(std::shared_ptr<host> of, tallied& counts) {
    subscription mine = must_do(of->subscribe("load"));
    ++counts.collecting;
    std::array<int, publishers> before{};
    for (;;) {
        const auto got = co_await mine.next();
        EXPECT_TRUE(got);
        if (!got || *got->bytes == last) break;
        const int publisher = got->bytes->front() - 'a';
        const int number = std::stoi(got->bytes->substr(1));
        EXPECT_GT(number, before.at(static_cast<std::size_t>(publisher)));
        before.at(static_cast<std::size_t>(publisher)) = number;
        ++counts.received;
    }
    --counts.collecting;
}

task<void> publish_many(std::shared_ptr<host> by, int id, tallied& counts, std::latch& done) {
    const char letter = static_cast<char>('a' + id);
    for (int i = 1; i <= 3000; ++i) {
        counts.taken += must_do(by->publish("load", letter + std::to_string(i)));
        if (i % 50 == 0) co_await loop::current().yield();
    }
    done.count_down();
}

TEST(message_bus, loses_nothing_that_was_taken_between_several_loops) {
    auto group = start_loops();
    const neighbours all;
    const auto host_of_all = std::make_shared<test_host>(all, "x");
    tallied counts;
    for (std::size_t i = 0; i < 2 * loops; ++i)
        must(group->post(i % loops, collect(host_of_all, counts)));
    while (counts.collecting < static_cast<int>(2 * loops)) std::this_thread::yield();
    std::latch done(publishers);
    for (int i = 0; i < publishers; ++i)
        must(group->post(static_cast<std::size_t>(i) % loops,
                         publish_many(host_of_all, i, counts, done)));
    done.wait();
    while (counts.collecting > 0) {
        must_do(host_of_all->publish("load", std::string(last)));
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_GT(counts.taken, 0U);
    EXPECT_EQ(counts.received, counts.taken);
    group->stop();
}

/// Instances that come, receive a little and are stopped by another thread.
task<void> live_briefly(const neighbours& among, int rounds, std::atomic<int>& ended) {
    for (int i = 0; i < rounds; ++i) {
        auto mine = std::make_shared<test_host>(among, "brief");
        subscription news = must_do(mine->subscribe("load"));
        static_cast<void>(co_await news.next());
        std::thread stopping([mine] { mine->end(); });
        for (;;) {
            const auto got = co_await news.next();
            if (got) continue;
            EXPECT_EQ(got.error(), errc::closed);
            break;
        }
        stopping.join();
    }
    ++ended;
}

task<void> publish_until(std::shared_ptr<host> by, const std::atomic<int>& ended, int enough,
                         std::latch& done) {
    while (ended < enough) {
        must_do(by->publish("load", "x"));
        co_await loop::current().yield();
    }
    done.count_down();
}

TEST(message_bus, instances_stop_while_others_publish) {
    auto group = start_loops();
    const neighbours all;
    const auto publisher = std::make_shared<test_host>(all, "publisher");
    std::atomic<int> ended{0};
    std::latch done(static_cast<std::ptrdiff_t>(loops));
    for (std::size_t i = 0; i < loops; ++i) {
        must(group->post(i, live_briefly(all, 50, ended)));
        must(group->post(i, publish_until(publisher, ended, loops, done)));
    }
    done.wait();
    group->stop();
}

}  // namespace
}  // namespace eddy::runtime
