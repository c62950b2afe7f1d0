// Tests of the outbox: order, limits and policies.
#include "runtime/client/outbox.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::runtime::client {
namespace {

using enum admission::verdict;

std::string all_of(outbox& from) {
    std::string all;
    while (!from.empty()) {
        all += from.take() + ' ';
        from.finish();
    }
    return all;
}

TEST(outbox, keeps_the_order) {
    outbox queue;
    EXPECT_EQ(queue.add({"a"}).fate, queued);
    EXPECT_EQ(queue.add({"b", "c"}).fate, queued);
    EXPECT_EQ(queue.messages(), 3U);
    EXPECT_EQ(queue.bytes(), 3U);
    EXPECT_EQ(all_of(queue), "a b c ");
    EXPECT_EQ(queue.bytes(), 0U);
}

TEST(outbox, refuses_what_does_not_fit) {
    outbox queue({.max_bytes = 4});
    EXPECT_EQ(queue.add({"abc"}).fate, queued);
    EXPECT_EQ(queue.add({"d", "e"}).fate, refused) << "all or none";
    EXPECT_EQ(queue.add({"d"}).fate, queued);
    EXPECT_EQ(queue.add({""}).fate, queued);
    EXPECT_EQ(all_of(queue), "abc d  ");
}

TEST(outbox, drops_the_oldest_that_are_not_being_sent) {
    outbox queue({.max_bytes = 4, .policy = queue_policy::drop_oldest});
    queue.add({"aa", "b", "c"});
    const admission made = queue.add({"ddd"});
    EXPECT_EQ(made.fate, queued);
    EXPECT_EQ(made.dropped, 2U);
    EXPECT_EQ(queue.take(), "c");
    EXPECT_EQ(queue.add({"eeee"}).dropped, 1U);
    EXPECT_EQ(queue.bytes(), 5U) << "with the one that is being sent";
    queue.finish();
    EXPECT_EQ(all_of(queue), "eeee ");
}

TEST(outbox, drops_the_newest) {
    outbox queue({.max_bytes = 4, .policy = queue_policy::drop_newest});
    queue.add({"aaa"});
    const admission made = queue.add({"b", "c"});
    EXPECT_EQ(made.fate, dropped);
    EXPECT_EQ(made.dropped, 2U);
    EXPECT_EQ(all_of(queue), "aaa ");
}

TEST(outbox, refuses_under_every_policy_what_an_empty_queue_cannot_hold) {
    for (const queue_policy policy :
         {queue_policy::refuse, queue_policy::drop_oldest, queue_policy::drop_newest}) {
        outbox queue({.max_bytes = 4, .policy = policy});
        queue.add({"a"});
        EXPECT_EQ(queue.add({"bbbbb"}).fate, refused);
        EXPECT_EQ(all_of(queue), "a ");
    }
}

TEST(outbox, limits_the_number_of_messages) {
    outbox queue;
    const std::vector<std::string> all(outbox::max_messages);
    EXPECT_EQ(queue.add(all).fate, queued);
    EXPECT_EQ(queue.add({""}).fate, refused);
    queue.set_limits({.policy = queue_policy::drop_oldest});
    EXPECT_EQ(queue.add({"x"}).dropped, 1U);
    EXPECT_EQ(queue.clear(), outbox::max_messages);
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.add(std::vector<std::string>(outbox::max_messages + 1)).fate, refused);
}

TEST(outbox, a_lower_limit_leaves_what_is_queued) {
    outbox queue;
    queue.add({"abc"});
    queue.set_limits({.max_bytes = 2});
    EXPECT_EQ(queue.add({"d"}).fate, refused);
    EXPECT_EQ(all_of(queue), "abc ");
    EXPECT_EQ(queue.add({"d"}).fate, queued);
}

}  // namespace
}  // namespace eddy::runtime::client
