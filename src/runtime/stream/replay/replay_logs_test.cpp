// Replay logs: what is kept of streams, and what goes at the limit.
#include "runtime/stream/replay/replay_logs.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::runtime::stream {
namespace {

stream_request request_of(std::string user, std::string id) {
    stream_request made;
    made.user_id = std::move(user);
    made.request_id = std::move(id);
    return made;
}

/// Bytes that an event of this text takes.
std::size_t size_of(std::string_view event, std::uint64_t id) {
    return ("id: " + std::to_string(id) + "\n").size() + event.size() + replay_logs::event_overhead;
}

TEST(replay_logs, names_are_of_a_user_and_a_request) {
    EXPECT_NE(replay_logs::name_of(request_of("1", "23")),
              replay_logs::name_of(request_of("12", "3")));
    EXPECT_NE(replay_logs::name_of(request_of("1:2", "3")),
              replay_logs::name_of(request_of("1", "2:3")));
    EXPECT_EQ(replay_logs::name_of(request_of("", "1")), "");
    EXPECT_EQ(replay_logs::name_of(request_of("1", "")), "");
}

TEST(replay_logs, give_what_is_behind_an_id) {
    replay_logs all(10'000);
    replay_log& log = *all.make("a");
    EXPECT_EQ(all.append(log, "x\n\n"), "id: 1\nx\n\n");
    EXPECT_EQ(all.append(log, "y\n\n"), "id: 2\ny\n\n");
    EXPECT_EQ(all.find("a"), &log);
    EXPECT_EQ(all.find("b"), nullptr);
    EXPECT_EQ(all.read_behind(log, 0), "id: 1\nx\n\nid: 2\ny\n\n");
    EXPECT_EQ(all.read_behind(log, 1), "id: 2\ny\n\n");
    EXPECT_EQ(all.read_behind(log, 2), "");
    log.last = "end";
    EXPECT_EQ(all.read_behind(log, 2), "end");
    EXPECT_FALSE(log.covers(3));
    EXPECT_FALSE(log.covers(UINT64_MAX));
    all.erase(log);
    EXPECT_EQ(all.find("a"), nullptr);
    EXPECT_EQ(all.used_bytes(), 0U);
}

TEST(replay_logs, lose_their_oldest_events_at_the_limit) {
    const std::string event(10, 'x');
    const std::size_t base = replay_logs::log_overhead + 2;
    replay_logs all(base + 2 * size_of(event, 1));
    replay_log& log = *all.make("a");
    all.append(log, event);
    all.append(log, event);
    EXPECT_TRUE(log.covers(0));
    EXPECT_EQ(all.used_bytes(), base + 2 * size_of(event, 1));
    all.append(log, event);
    EXPECT_FALSE(log.covers(0));
    EXPECT_TRUE(log.covers(1));
    EXPECT_EQ(all.read_behind(log, 1), "id: 2\nxxxxxxxxxxid: 3\nxxxxxxxxxx");
    // One that is too large for all is sent, and not kept.
    const std::string large(1000, 'y');
    EXPECT_EQ(all.append(log, large), "id: 4\n" + large);
    EXPECT_FALSE(log.covers(3));
    EXPECT_TRUE(log.covers(4)) << "nothing was missed behind it";
    all.append(log, event);
    EXPECT_EQ(all.read_behind(log, 4), "id: 5\nxxxxxxxxxx");
    EXPECT_LE(all.used_bytes(), base + 2 * size_of(event, 1));
}

TEST(replay_logs, of_streams_that_are_over_go_first) {
    const std::size_t base = replay_logs::log_overhead + 2;
    replay_logs all(3 * base + size_of("x", 1) - 1);
    replay_log& live = *all.make("a");
    all.move(live, log_stage::awaited, 5);
    replay_log& first = *all.make("b");
    replay_log& second = *all.make("c");
    all.move(first, log_stage::ended, 1);
    all.move(second, log_stage::ended, 2);
    EXPECT_EQ(all.first_of(log_stage::ended), &first);
    all.append(live, "x");
    EXPECT_EQ(all.find("b"), nullptr);
    EXPECT_NE(all.find("c"), nullptr);
    EXPECT_NE(all.make("d"), nullptr);
    EXPECT_EQ(all.find("c"), nullptr);
    EXPECT_EQ(all.make("e"), nullptr) << "streams that are there keep theirs";
    EXPECT_EQ(all.count(log_stage::followed), 1U);
    EXPECT_EQ(all.count(log_stage::awaited), 1U);
}

}  // namespace
}  // namespace eddy::runtime::stream
