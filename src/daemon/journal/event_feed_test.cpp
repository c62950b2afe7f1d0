// Tests of the feed of events: what followers get, its limit, filters and its end.
#include "daemon/journal/event_feed.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "daemon/control/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Collects what a follower writes. While it is held, a write waits.
class collector final : public http::body_writer {
public:
    task<result<>> write(std::string_view piece) override {
        const auto released = co_await free.wait();
        if (!released) co_return released;
        text += piece;
        if (!piece.empty()) arrived.set();
        co_return result<>();
    }
    /// "started a"; a loss as "lost 3".
    std::vector<std::string> events() const {
        std::vector<std::string> all;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            const json each = json::parse(line);
            const std::string what = each.at("event");
            all.push_back(
                what + " " +
                (what == "lost" ? each.at("count").dump() : each.at("name").get<std::string>()));
        }
        return all;
    }
    event free;
    event arrived;
    std::string text;
};

runtime_event made(event_kind kind, std::string name) {
    runtime_event event;
    event.kind = kind;
    event.name = std::move(name);
    event.id = "id-" + event.name;
    event.type = "cache";
    return event;
}

class event_feed_test : public testing::Test {
protected:
    event_feed_test() {
        loop_options options;
        options.kind = io_backend_kind::epoll;
        loop_ = std::move(*loop::create(options));
    }

    static task<void> collect(std::unique_ptr<http::body_producer> from, collector& to) {
        EXPECT_TRUE(co_await from->produce(to));
    }
    /// The kept events that the query chooses.
    std::vector<std::string> kept(event_query query) {
        query.follows = false;
        collector all;
        all.free.set();
        loop_->run(collect(feed_->lines(std::move(query)), all));
        return all.events();
    }

    std::unique_ptr<loop> loop_;
    const std::shared_ptr<event_feed> feed_ = std::make_shared<event_feed>();
};

TEST_F(event_feed_test, followers_get_each_event_from_then_on) {
    feed_->note(made(event_kind::created, "before"));
    collector first;
    first.free.set();
    loop_->run(join_scope([&](scope& all) -> task<void> {
        EXPECT_FALSE(feed_->has_followers());
        all.spawn(collect(feed_->lines({.follows = true}), first));
        EXPECT_TRUE(feed_->has_followers());
        feed_->note(made(event_kind::started, "a"));
        static_cast<void>(co_await first.arrived.wait());
        feed_->note(made(event_kind::removed, "a"));
        co_await feed_->close();
    }));
    EXPECT_THAT(first.events(), ElementsAre("started a", "removed a"));
    EXPECT_FALSE(feed_->has_followers());
    EXPECT_THAT(kept({}), ElementsAre("created before", "started a", "removed a"));
}

TEST_F(event_feed_test, a_slow_follower_gets_the_number_of_lost_events) {
    collector slow;
    loop_->run(join_scope([&](scope& all) -> task<void> {
        all.spawn(collect(feed_->lines({.follows = true}), slow));
        static_cast<void>(co_await loop::current().yield());
        for (std::size_t i = 0; i < event_feed::event_limit + 3; ++i)
            feed_->note(made(event_kind::started, "x"));
        slow.free.set();
        static_cast<void>(co_await slow.arrived.wait());
        co_await feed_->close();
    }));
    EXPECT_THAT(slow.events(), SizeIs(event_feed::event_limit + 1));
    EXPECT_EQ(slow.events()[0], "lost 3");
}

TEST_F(event_feed_test, filters_choose_one_of_each_list) {
    feed_->note(made(event_kind::started, "a"));
    runtime_event other = made(event_kind::stopped, "b");
    other.type = "server";
    other.group = "web";
    other.owner = "a";
    feed_->note(std::move(other));
    EXPECT_THAT(kept({.filter = {.types = {"server"}}}), ElementsAre("stopped b"));
    EXPECT_THAT(kept({.filter = {.kinds = {event_kind::started, event_kind::failed}}}),
                ElementsAre("started a"));
    EXPECT_THAT(kept({.filter = {.matches = {"@web", "zzz"}}}), ElementsAre("stopped b"));
    EXPECT_THAT(kept({.filter = {.matches = {"id-a"}}}), ElementsAre("started a"));
    EXPECT_THAT(kept({.filter = {.owners = {"a"}}}), ElementsAre("stopped b"));
    EXPECT_THAT(kept({.filter = {.groups = {"web", "x"}}}), ElementsAre("stopped b"));
    EXPECT_THAT(kept({.filter = {.matches = {"*"}, .types = {"cache"}, .groups = {"web"}}}),
                ElementsAre());
    const auto now = std::chrono::system_clock::now();
    EXPECT_THAT(kept({.filter = {.since = now + std::chrono::hours(1)}}), ElementsAre());
    EXPECT_THAT(kept({.filter = {.until = now - std::chrono::hours(1)}}), ElementsAre());
}

TEST_F(event_feed_test, after_a_number_and_of_another_daemon) {
    feed_->note(made(event_kind::started, "a"));
    const std::uint64_t number = feed_->last_number();
    feed_->note(made(event_kind::stopped, "a"));
    EXPECT_THAT(kept({.after = number}), ElementsAre("stopped a"));
    EXPECT_THAT(kept({.after = 7}), ElementsAre("started a", "stopped a"));
    EXPECT_THAT(kept({.after = number + 1'000'000}), ElementsAre("started a", "stopped a"));
}

TEST_F(event_feed_test, until_ends_it) {
    collector all;
    all.free.set();
    const auto soon = std::chrono::system_clock::now() + std::chrono::milliseconds(20);
    loop_->run(collect(feed_->lines({.filter = {.until = soon}, .follows = true}), all));
    EXPECT_EQ(all.text, "");
}

TEST_F(event_feed_test, long_details_are_cut_and_names_of_kinds_are_read) {
    runtime_event failed = made(event_kind::failed, "a");
    for (std::size_t i = 0; i < event_feed::detail_bytes_limit; ++i) failed.detail += "ä";
    feed_->note(std::move(failed));
    const json shown = json::parse(event_json(*feed_->read(0).events[0]));
    EXPECT_LE(shown.at("detail").get<std::string>().size(), event_feed::detail_bytes_limit + 3);
    EXPECT_THAT(shown.at("detail").get<std::string>(), HasSubstr("ä..."));
    for (const std::string_view name : event_kind_names())
        EXPECT_EQ(to_string(*parse_event_kind(name)), name);
    EXPECT_FALSE(parse_event_kind("exploded"));
}

}  // namespace
}  // namespace eddy::daemon
