// Liveness by beats, on a clock of the test's own.
#include "cluster/member_table.hpp"

#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "cluster/member_codec.hpp"
#include "cluster/testing.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace eddy::cluster {
namespace {

using namespace std::chrono_literals;
using namespace cluster::testing;

constexpr duration silence = 2500ms;
constexpr duration memory = 1h;

class member_table_test : public ::testing::Test {
protected:
    static std::shared_ptr<const sighting> seen(const std::string& name, std::uint64_t count,
                                                std::string id = "1f") {
        auto made = std::make_shared<sighting>();
        made->name = name;
        made->its = {.id = std::move(id), .term = 1, .count = count, .sequence = 1};
        auto info = std::make_shared<member_info>();
        info->name = name;
        info->id = made->its.id;
        made->info = std::move(info);
        return made;
    }
    bool round(duration later, sightings all) {
        now += later;
        return table.judge(all, now);
    }
    std::string names() const {
        std::string all;
        for (const auto& each : table.members()) all += each->name;
        return all;
    }

    member_table table{silence, memory};
    time_point now{1h};
};

TEST_F(member_table_test, a_member_is_proven_by_its_second_beat) {
    EXPECT_FALSE(round(0s, {seen("a", 1), seen("b", 1)}));
    EXPECT_EQ(names(), "") << "they may be remains";
    EXPECT_TRUE(table.has_unproven());
    EXPECT_TRUE(round(500ms, {seen("a", 2), seen("b", 1)}));
    EXPECT_EQ(names(), "a");
    EXPECT_EQ(table.state_of("b"), liveness::unproven);
    EXPECT_TRUE(round(500ms, {seen("a", 3), seen("b", 1), seen("c", 1)}));
    EXPECT_EQ(names(), "ac") << "one that appears between two rounds was just written";
    for (unsigned i = 0; i < 3; ++i)
        round(500ms, {seen("a", 4 + i), seen("b", 1), seen("c", 2 + i)});
    EXPECT_EQ(table.state_of("b"), liveness::gone);
    EXPECT_FALSE(table.has_unproven());
    EXPECT_TRUE(round(500ms, {seen("a", 9), seen("b", 2), seen("c", 9)}));
    EXPECT_EQ(names(), "abc");
}

TEST_F(member_table_test, a_silent_member_is_gone_on_time) {
    round(0s, {seen("a", 1)});
    round(500ms, {seen("a", 2)});
    EXPECT_EQ(table.next_end(), 2s) << "its last beat may be as old as the round before";
    EXPECT_FALSE(round(500ms, {seen("a", 2)}));
    EXPECT_FALSE(round(1s, {seen("a", 2)}));
    EXPECT_EQ(table.next_end(), 500ms);
    EXPECT_FALSE(round(499ms, {seen("a", 2)}));
    EXPECT_TRUE(round(1ms, {seen("a", 2)}));
    EXPECT_EQ(names(), "");
    EXPECT_EQ(table.state_of("a"), liveness::gone);
    EXPECT_EQ(table.next_end(), duration::max());
    EXPECT_NE(table.find("a"), nullptr) << "its remains are there";
}

TEST_F(member_table_test, any_difference_of_a_beat_is_a_sign_of_life) {
    round(0s, {seen("a", 9)});
    std::uint64_t count = 9;
    for (int i = 0; i < 20; ++i) {
        round(1s, {seen("a", --count / 2, i % 2 == 0 ? "1f" : "2e")});
        ASSERT_EQ(names(), "a") << "smaller counts and another start count, too";
    }
}

TEST_F(member_table_test, a_member_that_leaves_is_dropped_by_the_second_round) {
    round(0s, {seen("a", 1), seen("b", 1)});
    round(500ms, {seen("a", 2), seen("b", 2)});
    EXPECT_EQ(names(), "ab");
    EXPECT_FALSE(round(500ms, {seen("b", 3)}));
    EXPECT_EQ(table.next_end(), 0s) << "the second one is to come soon";
    EXPECT_TRUE(round(100ms, {seen("b", 3)}));
    EXPECT_EQ(names(), "b");
    EXPECT_EQ(table.find("a"), nullptr);
    round(500ms, {seen("b", 4)});
    EXPECT_FALSE(round(500ms, {}));
    EXPECT_FALSE(round(500ms, {seen("b", 5)})) << "it was replaced while the folder was read";
    EXPECT_EQ(names(), "b");
}

TEST_F(member_table_test, an_outage_counts_as_no_time) {
    round(0s, {seen("a", 1), seen("b", 1)});
    round(500ms, {seen("a", 2), seen("b", 2)});
    for (int i = 0; i < 120; ++i) {
        now += 500ms;
        table.skip(now);
    }
    EXPECT_FALSE(round(500ms, {seen("a", 2), seen("b", 2)})) << "they could not write, either";
    EXPECT_FALSE(round(1s, {seen("a", 3)})) << "b's file may not be there again yet";
    EXPECT_FALSE(round(400ms, {seen("a", 4)}));
    EXPECT_EQ(names(), "ab");
    round(500ms, {seen("a", 5)});
    EXPECT_TRUE(round(500ms, {seen("a", 6)}));
    EXPECT_EQ(names(), "a") << "b has not come back";
}

TEST_F(member_table_test, steps_of_the_clock_end_no_member) {
    round(0s, {seen("a", 1)});
    round(500ms, {seen("a", 2)});
    EXPECT_FALSE(round(1h, {seen("a", 2)})) << "counts as a second";
    EXPECT_EQ(names(), "a");
    EXPECT_FALSE(round(-1h, {seen("a", 2)}));
    EXPECT_EQ(names(), "a");
    EXPECT_FALSE(round(499ms, {seen("a", 2)}));
    EXPECT_TRUE(round(501ms, {seen("a", 2)}));
}

TEST_F(member_table_test, a_member_that_cannot_be_read_is_not_shown) {
    auto unreadable = std::make_shared<sighting>(*seen("a", 1));
    unreadable->info = nullptr;
    round(0s, {unreadable});
    unreadable = std::make_shared<sighting>(*unreadable);
    unreadable->its.count = 2;
    EXPECT_FALSE(round(500ms, {unreadable}));
    EXPECT_EQ(table.state_of("a"), liveness::alive) << "its name is taken even so";
    EXPECT_TRUE(round(500ms, {seen("a", 2)})) << "the same beat, but readable";
    EXPECT_EQ(names(), "a");
}

TEST_F(member_table_test, equal_content_keeps_its_object) {
    round(0s, {seen("a", 1)});
    round(500ms, {seen("a", 2)});
    const auto before = table.members().front();
    EXPECT_FALSE(round(500ms, {seen("a", 3)}));
    EXPECT_EQ(table.members().front(), before);
    auto other = std::make_shared<sighting>(*seen("a", 4));
    auto info = std::make_shared<member_info>(*other->info);
    info->is_leaving = true;
    other->info = std::move(info);
    EXPECT_TRUE(round(500ms, {other}));
    EXPECT_TRUE(table.members().front()->is_leaving);
}

TEST_F(member_table_test, remains_are_forgotten_once) {
    round(0s, {seen("a", 1), seen("b", 1)});
    std::uint64_t count = 1;
    std::size_t forgotten = 0;
    for (duration passed{}; passed < memory + 1min; passed += 1s) {
        round(1s, {seen("a", 1), seen("b", ++count)});
        for (const auto& each : table.take_forgotten()) {
            EXPECT_EQ(each->name, "a");
            EXPECT_GE(passed, memory);
            ++forgotten;
        }
    }
    EXPECT_EQ(forgotten, 1U);
    EXPECT_EQ(names(), "b");
}

TEST_F(member_table_test, a_thousand_members_take_less_than_50_mb) {
    if (eddy::testing::is_sanitized) GTEST_SKIP() << "a sanitizer's allocator counts otherwise";
    random_generator random(1);
    const auto used = [] {
        const struct mallinfo2 all = mallinfo2();
        return all.uordblks + all.hblkhd;
    };
    const std::size_t before = used();
    sightings all;
    for (int i = 0; i < 1000; ++i) {
        member_info shown = simple_member("member-" + std::to_string(10'000 + i), random, 20);
        for (runtime_info& each : shown.runtimes) each.addresses.assign(3, "tls://10.0.0.1:8080");
        auto made = std::make_shared<sighting>();
        made->name = shown.name;
        made->its = {.id = shown.id, .term = 1, .count = 1, .sequence = 1};
        auto read = decode_member(*encode_member(shown));
        ASSERT_TRUE(read) << read.error().message;
        made->info = std::make_shared<const member_info>(std::move(*read));
        all.push_back(std::move(made));
    }
    table.judge({}, now);
    EXPECT_TRUE(round(500ms, all));
    EXPECT_EQ(table.members().size(), 1000U);
    const std::size_t bytes = used() - before;
    std::printf("1000 members with 20 runtimes each: %zu KiB\n", bytes / 1024);
    EXPECT_LT(bytes, 50'000'000U);
}

TEST_F(member_table_test, of_two_starts_one_outranks_the_other) {
    const beat first{.id = "a", .term = 1, .count = 5, .sequence = 1};
    const beat twin{.id = "b", .term = 1, .count = 9, .sequence = 3};
    const beat later{.id = "c", .term = 2, .count = 1, .sequence = 1};
    EXPECT_TRUE(outranks(first, twin));
    EXPECT_FALSE(outranks(twin, first));
    EXPECT_TRUE(outranks(later, first));
    EXPECT_FALSE(outranks(first, later));
}

}  // namespace
}  // namespace eddy::cluster
