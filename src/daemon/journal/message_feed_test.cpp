// Tests of the feed: followers, the limits of its ring, and its end.
#include "daemon/journal/message_feed.hpp"

#include <eddy/io/scope.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace eddy::daemon {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

/// Collects what a follower writes. While it is held, a write waits.
class collector final : public http::body_writer {
public:
    task<result<>> write(std::string_view piece) override {
        const auto released = co_await free.wait();
        if (!released) co_return released;
        text += piece;
        arrived.set();
        co_return result<>();
    }
    event free;
    event arrived;
    std::string text;
};

class message_feed_test : public testing::Test {
protected:
    message_feed_test() {
        loop_options options;
        options.kind = io_backend_kind::epoll;
        loop_ = std::move(*loop::create(options));
        feed_ = std::make_shared<message_feed>(*loop_);
    }

    /// Follows until the body ends.
    static task<void> collect(std::unique_ptr<http::body_producer> from, collector& to) {
        EXPECT_TRUE(co_await from->produce(to));
    }

    std::unique_ptr<loop> loop_;
    std::shared_ptr<message_feed> feed_;
};

TEST_F(message_feed_test, followers_get_each_message_from_then_on) {
    feed_->write("without followers\n");
    EXPECT_FALSE(feed_->has_followers());
    collector first;
    collector second;
    first.free.set();
    second.free.set();
    loop_->run(join_scope([&](scope& all) -> task<void> {
        all.spawn(collect(feed_->follow(), first));
        EXPECT_TRUE(feed_->has_followers());
        feed_->write("one\n");
        static_cast<void>(co_await first.arrived.wait());
        all.spawn(collect(feed_->follow(), second));
        std::thread([&] { feed_->write("two\n"); }).join();
        static_cast<void>(co_await second.arrived.wait());
        feed_->close();
    }));
    EXPECT_EQ(first.text, "one\ntwo\n");
    EXPECT_EQ(second.text, "two\n");
    EXPECT_FALSE(feed_->has_followers());
}

TEST_F(message_feed_test, a_slow_follower_gets_the_number_of_lost_messages) {
    constexpr std::size_t more = 3;
    collector slow;
    loop_->run(join_scope([&](scope& all) -> task<void> {
        all.spawn(collect(feed_->follow(), slow));
        for (std::size_t i = 0; i < message_feed::message_limit + more; ++i) feed_->write("x\n");
        slow.free.set();
        static_cast<void>(co_await slow.arrived.wait());
        feed_->close();
    }));
    EXPECT_THAT(slow.text, StartsWith("... 3 messages are lost: the reader was too slow\nx\n"));
}

TEST_F(message_feed_test, bytes_are_limited) {
    collector slow;
    loop_->run(join_scope([&](scope& all) -> task<void> {
        all.spawn(collect(feed_->follow(), slow));
        feed_->write(std::string(message_feed::byte_limit, 'a'));
        feed_->write("last\n");
        slow.free.set();
        static_cast<void>(co_await slow.arrived.wait());
        feed_->write(std::string(message_feed::byte_limit + 1, 'b'));
        slow.arrived.reset();
        static_cast<void>(co_await slow.arrived.wait());
        feed_->close();
    }));
    EXPECT_EQ(slow.text,
              "... 1 messages are lost: the reader was too slow\nlast\n"
              "... 1 messages are lost: the reader was too slow\n");
}

}  // namespace
}  // namespace eddy::daemon
