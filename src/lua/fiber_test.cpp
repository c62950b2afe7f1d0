// Tests of calls that are left in the middle.
#include "lua/fiber.hpp"

#include "lua/native_stack.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace eddy::lua {
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

// Down to the reserve. What is left then is used, too.
int deepest(int level) {
    volatile char room[1024] = {};
    room[0] = static_cast<char>(level);
    if (!native_stack::has_room()) return level;
    return deepest(level + 1) + room[1];
}

TEST(fiber, its_stack_is_the_one_that_is_measured) {
    struct {
        fiber outer;
        fiber inner;
        int levels = 0;
        int inner_levels = 0;
        int after = 0;
    } all;
    using everything = decltype(all);
    EXPECT_TRUE(all.outer.start(
        [](void* of) {
            everything& its = *static_cast<everything*>(of);
            its.levels = deepest(0);
            its.inner.start(
                [](void* same) {
                    everything& mine = *static_cast<everything*>(same);
                    mine.inner_levels = deepest(0);
                },
                of);
            its.after = deepest(0);
        },
        &all));
    EXPECT_GT(all.levels, 500);
    EXPECT_LT(all.levels, static_cast<int>(fiber::stack_bytes / 1024));
    EXPECT_NEAR(all.inner_levels, all.levels, 10);
    EXPECT_NEAR(all.after, all.levels, 10);
    EXPECT_TRUE(native_stack::has_room());
}

TEST(fiber, a_stack_that_goes_on_on_another_thread_is_measured_there) {
    fiber f;
    const auto body = [](void* of) {
        EXPECT_TRUE(native_stack::has_room());
        static_cast<fiber*>(of)->suspend();
        EXPECT_TRUE(native_stack::has_room());
        EXPECT_GT(deepest(0), 500);
    };
    EXPECT_FALSE(f.start(body, &f));
    EXPECT_TRUE(native_stack::has_room());
    std::thread([&f] {
        EXPECT_TRUE(native_stack::has_room());
        EXPECT_TRUE(f.resume());
        EXPECT_TRUE(native_stack::has_room());
    }).join();
    EXPECT_TRUE(native_stack::has_room());
}

TEST(native_stack, a_thread_has_its_own) {
    int levels = 0;
    std::thread([&levels] { levels = deepest(0); }).join();
    EXPECT_GT(levels, 500);
}

// Functions of one kind, as the interpreter calls them: each frame lies below the one before.
[[gnu::noinline]] int enter_levels(int wanted) {
    volatile char room[64] = {};
    if (wanted == 0 || !native_stack::enter_level(__builtin_frame_address(0))) return room[0];
    return 1 + enter_levels(wanted - 1) + room[1];
}

TEST(native_stack, levels_that_were_left_do_not_count) {
    constexpr int most = native_stack::max_levels;
    EXPECT_EQ(enter_levels(most), most);
    EXPECT_EQ(enter_levels(most + 1), most);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(enter_levels(1), 1);
    EXPECT_EQ(enter_levels(most), most);
}

TEST(native_stack, lower_limits_hold_for_levels_and_for_a_fibers_bytes) {
    // A thread of its own: levels are distinguished by the places of their frames on one stack.
    const auto levels_entered = [](int wanted) {
        int entered = 0;
        std::thread([&] { entered = enter_levels(wanted); }).join();
        return entered;
    };
    native_stack::set_limits({.levels = 5});
    EXPECT_EQ(levels_entered(6), 5);
    const auto levels_of_a_fiber = [] {
        int levels = 0;
        fiber f;
        EXPECT_TRUE(f.start([](void* to) { *static_cast<int*>(to) = deepest(0); }, &levels));
        return levels;
    };
    // A level's bytes differ by build: with sanitizers its variables may be elsewhere.
    const int unlimited = levels_of_a_fiber();
    native_stack::set_limits({.bytes = std::size_t{64} << 10});
    const int limited = levels_of_a_fiber();
    native_stack::set_limits({});
    EXPECT_GT(limited, 5);
    EXPECT_LT(limited, unlimited / 4);
    constexpr int most = native_stack::max_levels;
    EXPECT_EQ(levels_entered(most + 1), most);
}

int endless(const volatile char* above) {
    if (above == nullptr) return 0;
    volatile char room[4096] = {};
    room[0] = *above;
    return endless(room) + room[1];
}

// The last defence: no other memory is written.
TEST(fiber, a_stack_that_is_full_ends_the_process) {
    const auto overflow = [] {
        fiber f;
        f.start(
            [](void*) {
                char first = 0;
                endless(&first);
            },
            nullptr);
    };
    EXPECT_DEATH(overflow(), "");
}

}  // namespace
}  // namespace eddy::lua
