// Tests of calls that are left in the middle.
#include "cache/script/fiber.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace eddy::cache {
namespace {

struct steps {
    fiber of;
    std::string seen;
};

TEST(fiber, goes_on_where_it_was_left) {
    steps s;
    const auto body = [](void* self) {
        steps& mine = *static_cast<steps*>(self);
        std::string local = "a";
        mine.seen += local;
        mine.of.suspend();
        mine.seen += local + "b";
        mine.of.suspend();
        mine.seen += "c";
    };
    for (int round = 0; round < 3; ++round) {
        s.seen.clear();
        EXPECT_FALSE(s.of.start(body, &s));
        EXPECT_TRUE(s.of.is_suspended());
        EXPECT_EQ(s.seen, "a");
        EXPECT_FALSE(s.of.resume());
        EXPECT_EQ(s.seen, "aab");
        EXPECT_TRUE(s.of.resume());
        EXPECT_EQ(s.seen, "aabc");
        EXPECT_FALSE(s.of.is_suspended());
    }
}

TEST(fiber, catches_what_is_thrown_within_it) {
    steps s;
    EXPECT_FALSE(s.of.start(
        [](void* self) {
            steps& mine = *static_cast<steps*>(self);
            try {
                mine.of.suspend();
                throw std::runtime_error("thrown");
            } catch (const std::runtime_error& e) {
                mine.seen = e.what();
            }
        },
        &s));
    EXPECT_TRUE(s.of.resume());
    EXPECT_EQ(s.seen, "thrown");
}

int deep(int left) {
    volatile char room[512] = {};
    room[0] = static_cast<char>(left);
    return left == 0 ? 0 : deep(left - 1) + 1 + room[1];
}

TEST(fiber, has_room_for_deep_recursion) {
    int reached = 0;
    fiber f;
    EXPECT_TRUE(f.start([](void* to) { *static_cast<int*>(to) = deep(5000); }, &reached));
    EXPECT_EQ(reached, 5000);
}

}  // namespace
}  // namespace eddy::cache
