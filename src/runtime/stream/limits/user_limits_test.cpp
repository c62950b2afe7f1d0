// Limits of users, alone and in several workers.
#include "runtime/stream/limits/user_limits.hpp"

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace std::chrono_literals;
using eddy::testing::must;
using verdict = user_limits::verdict;

/// Users of one process, and a clock that stands at the beginning of a minute.
class users_of_streams : public ::testing::Test {
protected:
    /// Begins a stream of the user, if it is admitted.
    verdict begin(std::string_view user, std::uint32_t stream) {
        const verdict found = users_.admit(user, now_);
        if (found == verdict::fits) users_.begin(stream);
        return found;
    }
    void end(std::uint32_t stream) { users_.end(stream, now_); }
    void send(std::uint32_t stream, std::uint32_t events) {
        users_.note_events(stream, events, now_);
    }

    time_point now_ = time_point(60'000min);
    user_limits users_;
};

TEST_F(users_of_streams, have_so_many_at_a_time) {
    users_.set({.streams = 2});
    EXPECT_EQ(begin("a", 0), verdict::fits);
    EXPECT_EQ(begin("a", 1), verdict::fits);
    EXPECT_EQ(begin("a", 2), verdict::too_many_streams);
    EXPECT_EQ(begin("b", 2), verdict::fits);
    end(1);
    end(1);
    EXPECT_EQ(begin("a", 1), verdict::fits);
    EXPECT_EQ(begin("a", 3), verdict::too_many_streams);
    EXPECT_EQ(users_.users(), 2U);
    for (const std::uint32_t each : {0U, 1U, 2U, 3U, 100U}) end(each);
    EXPECT_EQ(users_.users(), 0U);
}

TEST_F(users_of_streams, are_not_counted_without_an_id_or_a_limit) {
    EXPECT_EQ(begin("a", 0), verdict::fits);
    EXPECT_EQ(users_.users(), 0U);
    users_.set({.streams = 1, .events = 1});
    for (std::uint32_t i = 1; i < 4; ++i) EXPECT_EQ(begin("", i), verdict::fits);
    EXPECT_EQ(users_.users(), 0U);
    EXPECT_EQ(begin("a", 4), verdict::fits) << "the one before is not counted";
    end(0);
    EXPECT_EQ(begin("a", 0), verdict::too_many_streams);
}

TEST_F(users_of_streams, do_not_count_where_no_stream_begins) {
    users_.set({.streams = 1});
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(users_.admit("a", now_), verdict::fits);
        users_.drop(now_);
        users_.drop(now_);
    }
    EXPECT_EQ(users_.users(), 0U);
    EXPECT_EQ(begin("a", 0), verdict::fits);
    users_.drop(now_);
    EXPECT_EQ(begin("a", 1), verdict::too_many_streams) << "what has begun is not taken back";
}

TEST_F(users_of_streams, are_sent_so_many_events_in_a_minute) {
    users_.set({.events = 10});
    EXPECT_EQ(begin("a", 0), verdict::fits);
    send(0, 9);
    EXPECT_EQ(begin("a", 1), verdict::fits);
    send(1, 5);
    send(100, 5);
    EXPECT_EQ(begin("a", 2), verdict::too_many_events);
    EXPECT_EQ(begin("b", 2), verdict::fits);
    end(0);
    end(1);
    EXPECT_EQ(begin("a", 0), verdict::too_many_events) << "also without a stream";
    now_ += 59s;
    EXPECT_EQ(begin("a", 0), verdict::too_many_events);
    now_ += 1s;
    EXPECT_EQ(begin("a", 0), verdict::fits);
    send(0, 10);
    EXPECT_EQ(begin("a", 1), verdict::too_many_events);
    users_.set({.events = 11});
    EXPECT_EQ(begin("a", 1), verdict::fits);
    users_.set({});
    EXPECT_EQ(begin("a", 3), verdict::fits);
    send(0, UINT32_MAX);
    send(0, UINT32_MAX);
}

TEST_F(users_of_streams, say_when_the_next_minute_begins) {
    EXPECT_EQ(user_limits::until_next_minute(now_), 60s);
    EXPECT_EQ(user_limits::until_next_minute(now_ + 1ns), 60s);
    EXPECT_EQ(user_limits::until_next_minute(now_ + 30s), 30s);
    EXPECT_EQ(user_limits::until_next_minute(now_ + 59'999ms), 1s);
}

TEST_F(users_of_streams, are_kept_without_one_until_the_minute_ends) {
    users_.set({.events = 1});
    for (std::uint32_t i = 0; i < 8; ++i) {
        begin("user " + std::to_string(i), i);
        if (i > 0) send(i, 1);
    }
    for (std::uint32_t i = 0; i < 8; ++i) end(i);
    EXPECT_EQ(users_.users(), 7U) << "one was sent nothing";
    now_ += 1min;
    begin("new", 0);
    begin("newer", 1);
    EXPECT_EQ(users_.users(), 2U);
    end(0);
    send(1, 1);
    end(1);
    users_.set({.streams = 1});
    EXPECT_EQ(users_.users(), 0U) << "events do not count any more";
}

TEST_F(users_of_streams, without_one_are_so_many_at_most) {
    users_.set({.events = 1});
    for (std::size_t i = 0; i <= user_limits::max_idle_users; ++i) {
        ASSERT_EQ(begin(std::to_string(i), 0), verdict::fits);
        send(0, 1);
        end(0);
    }
    EXPECT_EQ(users_.users(), user_limits::max_idle_users);
    EXPECT_EQ(begin("1", 0), verdict::too_many_events);
    EXPECT_EQ(begin("0", 0), verdict::fits) << "the first one was forgotten";
}

TEST_F(users_of_streams, with_long_ids_are_different_ones) {
    users_.set({.streams = 1});
    const std::string most(user_limits::max_name, 'x');
    const std::string more = most + "a";
    EXPECT_EQ(begin(most, 0), verdict::fits);
    EXPECT_EQ(begin(more, 1), verdict::fits);
    EXPECT_EQ(begin(most + "b", 2), verdict::fits);
    EXPECT_EQ(begin(more, 3), verdict::too_many_streams);
}

TEST(user_limits, hold_for_all_workers_together) {
    const auto board = must(worker_board::make());
    worker_share first(board, 0);
    user_limits here(&first);
    const time_point now(60'000min);
    here.set({.streams = 2, .events = 10});
    const auto begin = [&](user_limits& in, std::uint32_t stream) {
        const verdict found = in.admit("a", now);
        if (found == verdict::fits) in.begin(stream);
        return found;
    };
    {
        worker_share second(board, 1);
        user_limits there(&second);
        there.set({.streams = 2, .events = 10});
        EXPECT_EQ(begin(here, 0), verdict::fits);
        EXPECT_EQ(begin(there, 0), verdict::fits);
        EXPECT_EQ(begin(here, 1), verdict::too_many_streams);
        EXPECT_EQ(begin(there, 1), verdict::too_many_streams);
        here.end(0, now);
        EXPECT_EQ(begin(there, 1), verdict::fits);
        there.end(0, now);
        here.note_events(0, 5, now);  // of no stream
        there.note_events(1, 10, now);
        EXPECT_EQ(begin(here, 0), verdict::too_many_events);
        EXPECT_EQ(here.admit("a", now + 1min), verdict::fits);
        here.drop(now);
        there.end(1, now);
        EXPECT_EQ(begin(here, 0), verdict::too_many_events) << "it is kept for the minute";
    }
    EXPECT_EQ(begin(here, 0), verdict::fits) << "a worker that has ended has no users";
}

TEST(user_table, has_no_entry_where_the_bucket_is_full) {
    const auto board = must(worker_board::make());
    worker_share mine(board, 0);
    worker_share other(board, 1);
    std::vector<user_table::entry*> entries;
    for (std::size_t i = 0; i < user_table::ways; ++i) {
        entries.push_back(mine.add_user(7 + i * user_table::buckets));
        ASSERT_NE(entries.back(), nullptr);
        entries.back()->streams.store(3);
    }
    const std::uint64_t last = 7 + user_table::ways * user_table::buckets;
    EXPECT_EQ(mine.add_user(last), nullptr);
    EXPECT_EQ(other.others_of(7, 0).streams, 3U);
    EXPECT_EQ(mine.others_of(7, 0).streams, 0U) << "its own are none of the others'";
    EXPECT_EQ(other.others_of(last, 0).streams, 0U);
    user_table::remove(*entries[0]);
    EXPECT_EQ(other.others_of(7, 0).streams, 0U);
    EXPECT_NE(mine.add_user(last), nullptr);
    EXPECT_EQ(other.others_of(last, 0).streams, 0U) << "an entry begins at 0";
}

}  // namespace
}  // namespace eddy::runtime::stream
