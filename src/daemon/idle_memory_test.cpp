// Tests of when free memory is given back.
#include "daemon/idle_memory.hpp"

#include <gtest/gtest.h>

namespace eddy::daemon {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t mebibyte = 1 << 20;

/// Readings of a process, one each ten seconds.
class readings {
public:
    bool next(duration used, std::uint64_t resident) {
        last_.at += 10s;
        last_.processor_time += used;
        last_.resident_bytes = resident;
        return memory.is_due(last_);
    }

    idle_memory memory;

private:
    idle_memory::reading last_;
};

TEST(idle_memory, is_given_back_once_a_growth_and_when_the_process_is_idle) {
    readings of;
    EXPECT_FALSE(of.next(0s, 166 * mebibyte)) << "nothing is known of the time before";
    EXPECT_FALSE(of.next(9s, 166 * mebibyte)) << "busy";
    EXPECT_FALSE(of.next(201ms, 166 * mebibyte)) << "busy";
    EXPECT_TRUE(of.next(200ms, 166 * mebibyte));
    of.memory.note_returned(40 * mebibyte);
    EXPECT_FALSE(of.next(0s, 40 * mebibyte));
    EXPECT_FALSE(of.next(0s, 56 * mebibyte - 1));
    EXPECT_TRUE(of.next(0s, 56 * mebibyte));
    of.memory.note_returned(56 * mebibyte);
    EXPECT_FALSE(of.next(0s, 56 * mebibyte)) << "it is in use: another attempt would be in vain";
}

TEST(idle_memory, of_a_large_process_is_given_back_after_a_larger_growth) {
    readings of;
    of.next(0s, 1024 * mebibyte);
    of.memory.note_returned(1024 * mebibyte);
    EXPECT_FALSE(of.next(0s, 1100 * mebibyte));
    EXPECT_TRUE(of.next(0s, 1200 * mebibyte));
}

TEST(idle_memory, what_has_gone_by_itself_counts) {
    readings of;
    of.next(0s, 200 * mebibyte);
    of.memory.note_returned(200 * mebibyte);
    EXPECT_FALSE(of.next(0s, 50 * mebibyte));
    EXPECT_TRUE(of.next(0s, 100 * mebibyte));
}

TEST(idle_memory, is_read_more_seldom_while_the_process_does_nothing) {
    readings of;
    EXPECT_EQ(of.memory.interval(), 10s);
    of.next(0s, mebibyte);
    EXPECT_EQ(of.memory.interval(), 10s);
    of.next(1ms, mebibyte);
    EXPECT_EQ(of.memory.interval(), 20s);
    for (int i = 0; i < 9; ++i) of.next(0s, mebibyte);
    EXPECT_EQ(of.memory.interval(), 5min);
    of.next(100ms, mebibyte);
    EXPECT_EQ(of.memory.interval(), 10s) << "it may have grown";
}

TEST(idle_memory, is_read_from_the_kernel) {
    const auto before = idle_memory::now();
    EXPECT_GT(before.resident_bytes, mebibyte);
    EXPECT_GE(idle_memory::now().at, before.at);
    EXPECT_GE(idle_memory::now().processor_time, before.processor_time);
}

}  // namespace
}  // namespace eddy::daemon
