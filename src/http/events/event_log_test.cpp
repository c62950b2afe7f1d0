// Event log: replay, limits, policies for slow subscribers, the end.
#include <eddy/http/event_log.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {
namespace {

using namespace testing;

// A client that takes what is written while its gate is open.
class slow_client final : public body_writer {
public:
    task<result<>> write(std::string_view piece) override {
        ++waiting;
        const auto open = co_await gate.wait();
        --waiting;
        if (!open) co_return open;
        text += piece;
        co_return result<>();
    }

    event gate;
    std::string text;
    int waiting = 0;
};

class http_event_log : public eddy::testing::on_io_backend {
protected:
    static response follow(event_log& log, std::string_view id = {}) {
        sse_options options;
        options.heartbeat = duration::max();
        return log.subscribe(id, options);
    }

    static task<void> stream_to(response from, body_writer& to, std::error_code& ended) {
        const auto done = co_await from.body.producer()->produce(to);
        ended = error_of(done);
    }

    /// Data of the events in a text.
    static std::vector<std::string> events_of(std::string_view text) {
        std::vector<std::string> all;
        sse::parser parser;
        for (;;) {
            const sse::step step = parser.parse(text);
            if (step.what != sse::step_kind::event) return all;
            all.push_back(parser.event().data);
            text.remove_prefix(step.consumed);
        }
    }

    /// All that a log yields to a client with this id, up to now.
    std::vector<std::string> replay(event_log& log, std::string_view id) {
        slow_client client;
        client.gate.set();
        std::error_code ended;
        run([&]() -> task<void> {
            co_await with_scope([&](scope& beside) {
                beside.spawn(stream_to(follow(log, id), client, ended));
                return settle();
            });
        });
        return events_of(client.text);
    }

    /// A few turns of the loop.
    static task<void> settle() {
        for (int i = 0; i < 5; ++i) must(co_await loop::current().sleep_for(100us));
    }
};

using texts = std::vector<std::string>;

TEST_P(http_event_log, replays_what_is_behind_an_id) {
    event_log log;
    const std::string one = must(log.publish("1"));
    must(log.publish("2", "kind"));
    const std::string three = must(log.publish("3"));
    EXPECT_EQ(replay(log, one), (texts{"2", "3"}));
    EXPECT_EQ(replay(log, three), texts{});
    EXPECT_EQ(replay(log, ""), texts{});
    EXPECT_EQ(log.size(), 3U);
    EXPECT_EQ(log.subscribers(), 0U);
}

TEST_P(http_event_log, replays_all_behind_an_id_that_it_does_not_know) {
    event_log log;
    event_log other;
    must(log.publish("1"));
    const std::string id = must(other.publish("x"));
    const std::string life = must(log.publish("2"));
    const texts all{"1", "2"};
    for (const std::string& each :
         {id, std::string("7"), std::string("a-b"), std::string("-"), life + "x", life + "0",
          std::string("99999999999999999999999-1")})
        EXPECT_EQ(replay(log, each), all) << each;
}

TEST_P(http_event_log, streams_events_as_they_are_published) {
    event_log log;
    slow_client first;
    slow_client second;
    first.gate.set();
    second.gate.set();
    std::error_code ended = errc::closed;
    std::error_code also = errc::closed;
    run([&]() -> task<void> {
        co_await join_scope([&](scope& beside) -> task<void> {
            beside.spawn(stream_to(follow(log), first, ended));
            beside.spawn(stream_to(follow(log), second, also));
            EXPECT_EQ(log.subscribers(), 2U);
            for (int i = 0; i < 3; ++i) {
                must(log.publish(std::to_string(i)));
                co_await settle();
                EXPECT_EQ(events_of(first.text).size(), static_cast<std::size_t>(i + 1));
            }
            must(log.publish("last"));
            log.close();
        });
    });
    EXPECT_EQ(ended, std::error_code());
    EXPECT_EQ(events_of(first.text), (texts{"0", "1", "2", "last"}));
    EXPECT_EQ(first.text, second.text);
    EXPECT_EQ(error_of(log.publish("x")), errc::closed);
    EXPECT_EQ(log.subscribers(), 0U);
}

TEST_P(http_event_log, keeps_at_most_so_many_events) {
    event_log_options options;
    options.max_events = 2;
    event_log log(options);
    const std::string id = must(log.publish("1"));
    must(log.publish("2"));
    must(log.publish("3"));
    EXPECT_EQ(log.size(), 2U);
    EXPECT_EQ(replay(log, id), (texts{"2", "3"}));
    must(log.publish("4"));
    EXPECT_EQ(replay(log, id), (texts{"3", "4"}));
}

TEST_P(http_event_log, keeps_at_most_so_many_bytes) {
    event_log_options options;
    options.max_bytes = 1000;
    event_log log(options);
    EXPECT_EQ(error_of(log.publish(std::string(1000, 'x'))),
              std::make_error_code(std::errc::message_size));
    EXPECT_EQ(log.size(), 0U);
    for (int i = 0; i < 10; ++i) {
        must(log.publish(std::string(400, 'x')));
        EXPECT_LE(log.bytes(), 1000U);
    }
    EXPECT_EQ(log.size(), 2U);
    must(log.publish(std::string(900, 'x')));
    EXPECT_EQ(log.size(), 1U);
}

TEST_P(http_event_log, refuses_a_type_that_is_no_name) {
    event_log log;
    EXPECT_EQ(error_of(log.publish("x", "a\nid: 9")), errc::malformed);
    EXPECT_EQ(log.size(), 0U);
}

TEST_P(http_event_log, a_long_replay_goes_out_in_batches) {
    event_log log;
    const std::string id = must(log.publish("first"));
    for (int i = 0; i < 50; ++i) must(log.publish(std::string(1000, 'x')));
    slow_client client;
    std::error_code ended;
    run([&]() -> task<void> {
        co_await with_scope([&](scope& beside) -> task<void> {
            beside.spawn(stream_to(follow(log, id), client, ended));
            co_await settle();
            EXPECT_EQ(client.waiting, 1);
            client.gate.set();
            client.gate.reset();
            co_await settle();
            EXPECT_GT(client.text.size(), event_log::batch_bytes / 2);
            EXPECT_LE(client.text.size(), event_log::batch_bytes);
            client.gate.set();
            co_await settle();
        });
    });
    EXPECT_EQ(events_of(client.text).size(), 50U);
}

class http_event_log_policy : public http_event_log {
protected:
    /// A log of two events, the first of them on its way to a client that does not read.
    void with_slow_client(slow_reader_policy policy, std::function<task<void>()> then) {
        event_log_options options;
        options.max_events = 2;
        options.policy = policy;
        log_.emplace(options);
        run([&]() -> task<void> {
            co_await with_scope([&](scope& beside) -> task<void> {
                beside.spawn(stream_to(follow(*log_), client_, ended_));
                must(log_->publish("1"));
                co_await settle();
                EXPECT_EQ(client_.waiting, 1);
                must(log_->publish("2"));
                must(log_->publish("3"));
                co_await then();
            });
        });
    }

    std::optional<event_log> log_;
    slow_client client_;
    std::error_code ended_;
};

TEST_P(http_event_log_policy, disconnect) {
    with_slow_client(slow_reader_policy::disconnect, [&]() -> task<void> {
        must(log_->publish("4"));
        client_.gate.set();
        co_await settle();
    });
    EXPECT_EQ(ended_, errc::limit_reached);
    EXPECT_EQ(events_of(client_.text), texts{"1"});
    EXPECT_EQ(log_->missed(), 0U);
}

TEST_P(http_event_log_policy, drop_oldest) {
    with_slow_client(slow_reader_policy::drop_oldest, [&]() -> task<void> {
        must(log_->publish("4"));
        must(log_->publish("5"));
        client_.gate.set();
        co_await settle();
    });
    EXPECT_EQ(ended_, errc::cancelled);
    EXPECT_EQ(events_of(client_.text), (texts{"1", "4", "5"}));
    EXPECT_EQ(log_->missed(), 2U);
}

TEST_P(http_event_log_policy, wait) {
    bool is_published = false;
    with_slow_client(slow_reader_policy::wait, [&]() -> task<void> {
        EXPECT_EQ(error_of(log_->publish("4")), errc::limit_reached);
        EXPECT_EQ(log_->size(), 2U);
        client_.gate.set();
        must(co_await log_->progress());
        must(log_->publish("4"));
        is_published = true;
        co_await settle();
    });
    EXPECT_TRUE(is_published);
    EXPECT_EQ(events_of(client_.text), (texts{"1", "2", "3", "4"}));
}

TEST_P(http_event_log_policy, a_subscriber_that_leaves_makes_room) {
    event_log_options options;
    options.max_events = 1;
    options.policy = slow_reader_policy::wait;
    event_log log(options);
    run([&]() -> task<void> {
        {
            const response unread = follow(log);
            must(log.publish("1"));
            EXPECT_EQ(error_of(log.publish("2")), errc::limit_reached);
        }
        must(log.publish("2"));
        co_return;
    });
    EXPECT_EQ(log.size(), 1U);
}

EDDY_HTTP_ON_EVERY_BACKEND(http_event_log);
EDDY_HTTP_ON_EVERY_BACKEND(http_event_log_policy);

}  // namespace
}  // namespace eddy::http
