// The engine of beats in virtual time, over memory with faults: names, deaths, outages, partitions,
// and a cluster of a thousand members.
#include "cluster/memory/memory_membership.hpp"

#include "base/test_rounds.hpp"
#include "cluster/beats/testing.hpp"
#include "cluster/member_codec.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cluster {
namespace {

using namespace cluster::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class memory_members : public clusters<memory_membership> {
protected:
    std::unique_ptr<memory_membership> make_engine(observer& reports) override {
        return std::make_unique<memory_membership>(shared, reports, rules);
    }
    void prepare_end() override {
        shared.set_faults({});
        for (const auto& each : nodes) each->its->process().resume();
    }

    /// Members a, b, … that see each other.
    task<std::vector<node*>> joined(std::size_t count) {
        std::vector<node*> all;
        for (std::size_t i = 0; i < count; ++i)
            all.push_back(&add(std::string(1, static_cast<char>('a' + i))));
        co_await join_all(all);
        for (const node* const each : all)
            co_await wait_until([&] { return each->its->current()->members.size() == count; });
        co_return all;
    }
    /// Joins after a moment; `to` is "none" or the refusal.
    task<void> join_late(std::string name, std::string& to) {
        node& one = add(name);
        const duration late(random().below(300'000'000));
        co_await pass(late);
        to = co_await refusal_of_join(one);
    }
    static bool has_trouble(const node& of, std::string_view part) {
        return std::ranges::any_of(of.reports.troubles, [&](const std::string& each) {
            return each.find(part) != std::string::npos;
        });
    }

    beat_rules rules;
    memory_cluster shared{eddy::testing::seed_of_this_run()};
};
INSTANTIATE_TEST_SUITE_P(cluster, memory_members, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(memory_members, see_each_other_when_they_have_joined) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        EXPECT_EQ(a.its->current()->number, 0U);
        co_await join(a);
        EXPECT_EQ(a.names(), "a");
        node& b = add("b");
        const time_point begun = here().now();
        co_await join(b);
        EXPECT_LE(here().now() - begun, 1s);
        EXPECT_EQ(b.names(), "a b") << "in its first snapshot";
        EXPECT_EQ(b.its->current()->number, 1U);
        EXPECT_EQ(*b.find("a"), a.info);
        const result<> changed = co_await a.its->changed(1);
        EXPECT_TRUE(changed);
        EXPECT_EQ(a.names(), "a b");
        EXPECT_THAT(a.reports.troubles, IsEmpty());
    });
}

TEST_P(memory_members, spread_a_change_once) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        const std::uint64_t before = all[1]->its->current()->number;
        const time_point begun = here().now();
        for (std::uint64_t i = 1; i <= 20; ++i) {
            all[0]->info.runtimes[0].connections = i;
            all[0]->its->publish(all[0]->info);
        }
        EXPECT_EQ(all[0]->find("a")->runtimes[0].connections, 20U) << "by itself at once";
        const result<> changed = co_await all[1]->its->changed(before);
        EXPECT_TRUE(changed);
        EXPECT_LE(here().now() - begun, rules.pause + rules.poll + 1ms);
        EXPECT_EQ(all[1]->find("a")->runtimes[0].connections, 20U);
        co_await pass(5s);
        EXPECT_EQ(all[1]->its->current()->number, before + 1) << "20 changes are one";
        all[0]->its->publish(all[0]->info);
        co_await pass(5s);
        EXPECT_EQ(all[1]->its->current()->number, before + 1) << "equal content is none";
    });
}

TEST_P(memory_members, know_of_a_kill_within_three_seconds) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        for (int i = 0; i < 50; ++i) {
            node& victim = add("v");
            co_await join(victim);
            for (const node* const each : all)
                co_await wait_until([&] { return each->find("v") != nullptr; });
            co_await pass(duration(random().below(1'000'000'000)));
            victim.its->process().kill();
            const time_point killed = here().now();
            for (const node* const each : all)
                co_await wait_until([&] { return each->find("v") == nullptr; });
            EXPECT_LE(here().now() - killed, 3s);
            EXPECT_GE(here().now() - killed, 1s) << "two beats that are late are no death";
            co_await victim.its->end();
        }
        for (const node* const each : all) EXPECT_EQ(each->names(), "a b c");
    });
}

TEST_P(memory_members, are_continued_by_another_process) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(2);
        bool is_gone = false;
        scope watching;
        watching.spawn([](node& of, bool& gone) -> task<void> {
            while (co_await of.its->changed(of.its->current()->number))
                gone = gone || of.find("b") == nullptr;
        }(*all[0], is_gone));
        for (int i = 1; i <= 3; ++i) {
            node& before = *nodes.back();
            co_await before.its->pass_on();
            node& after = add("b");
            after.info = before.info;
            after.info.label = "process " + std::to_string(i);
            const time_point begun = here().now();
            co_await join(after);
            EXPECT_LE(here().now() - begun, 1s);
            EXPECT_EQ(after.names(), "a b") << "in its first snapshot";
            co_await wait_until([&] { return all[0]->find("b")->label == after.info.label; });
            // Both have published once: the content is known to be another one.
            co_await before.its->end();
        }
        co_await pass(10s);
        watching.cancel();
        co_await watching.join();
        EXPECT_FALSE(is_gone);
        EXPECT_EQ(all[0]->find("b")->id, all[1]->info.id);
        EXPECT_THAT(all[0]->reports.troubles, IsEmpty());
    });
}

TEST_P(memory_members, that_leave_are_dropped_at_once) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        co_await all[1]->its->end();
        const time_point left = here().now();
        co_await wait_until([&] { return all[0]->names() == "a c" && all[2]->names() == "a c"; });
        EXPECT_LE(here().now() - left, rules.poll + rules.pause + 1ms);
        const result<> waited = co_await all[1]->its->changed(99);
        EXPECT_EQ(eddy::testing::error_of(waited), errc::closed);
        all[1]->its->publish(all[1]->info);
        co_await all[1]->its->end();
        EXPECT_EQ(all[1]->names(), "a b c") << "its last snapshot stays";
    });
}

TEST_P(memory_members, end_what_waits_for_a_change) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(1);
        std::error_code seen;
        co_await join_scope([&](scope& children) -> task<void> {
            children.spawn([](node& of, std::error_code& to) -> task<void> {
                const result<> waited = co_await of.its->changed(of.its->current()->number);
                to = eddy::testing::error_of(waited);
            }(*all[0], seen));
            co_await here().yield();
            co_await all[0]->its->end();
            all[0]->its.reset();
            nodes.clear();
        });
        EXPECT_EQ(seen, errc::closed);
    });
}

// --- Names ------------------------------------------------------------------------------------

TEST_P(memory_members, refuse_a_name_that_a_living_one_has) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(2);
        node& second = add("a");
        second.info.host = "other.example";
        const std::string refused = co_await refusal_of_join(second);
        EXPECT_THAT(refused, StartsWith("409 the name \"a\" belongs to a living member"));
        EXPECT_THAT(refused, HasSubstr("at a.example"));
        EXPECT_EQ(second.its->current()->number, 0U);
        co_await pass(5s);
        EXPECT_EQ(all[1]->find("a")->id, all[0]->info.id);
        EXPECT_THAT(all[0]->reports.troubles, IsEmpty());
        co_await all[0]->its->end();
        co_await join(second);
        EXPECT_EQ(second.names(), "a b") << "the same object may try again";
    });
}

TEST_P(memory_members, take_their_name_again_after_a_kill) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(2);
        all[0]->its->process().kill();
        const time_point killed = here().now();
        node& again = add("a");
        co_await join(again);
        EXPECT_GE(here().now() - killed, rules.silence) << "the old one might have lived";
        EXPECT_LE(here().now() - killed, rules.silence + 2 * rules.beat);
        co_await wait_until([&] {
            const member_info* const seen = all[1]->find("a");
            return seen && seen->id == again.info.id;
        });
        co_await pass(10s);
        EXPECT_EQ(all[1]->names(), "a b");
        EXPECT_THAT(again.reports.troubles, IsEmpty());
    });
}

TEST_P(memory_members, of_which_two_join_with_one_name_are_one) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        run_cluster([&]() -> task<void> {
            memory_faults slow;
            slow.max_delay = seed % 3 == 0 ? 0ms : 100ms;
            shared.set_faults(slow);
            std::vector<std::string> results(4);
            co_await join_scope([&](scope& joins) -> task<void> {
                for (std::string& each : results) joins.spawn(join_late("a", each));
                co_return;
            });
            EXPECT_EQ(std::ranges::count(results, "none"), 1) << ::testing::PrintToString(results);
            for (const std::string& each : results)
                EXPECT_TRUE(each == "none" || each.starts_with("409 ")) << each;
            co_await pass(5s);
            for (const auto& each : nodes)
                EXPECT_THAT(each->reports.troubles, IsEmpty()) << "the one that joined stays";
        });
        EXPECT_EQ(shared.size(), 0U) << "and none of the others left anything";
    }
}

TEST_P(memory_members, that_were_stopped_come_back) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        all[0]->its->process().stop();
        co_await wait_until([&] { return all[1]->names() == "b c" && all[2]->names() == "b c"; });
        co_await pass(1min);
        all[0]->its->process().resume();
        const time_point woken = here().now();
        co_await wait_until([&] { return all[1]->names() == "a b c"; });
        EXPECT_LE(here().now() - woken, 1100ms);
        co_await pass(5s);
        for (const node* const each : all) EXPECT_EQ(each->names(), "a b c");
        EXPECT_FALSE(all[0]->its->current()->is_stale);
        EXPECT_THAT(all[1]->reports.troubles, IsEmpty());
    });
}

TEST_P(memory_members, that_were_stopped_yield_their_name_to_another) {
    run_cluster([this]() -> task<void> {
        // The moment of the stop decides which step of a call is late.
        for (int i = 0; i < 20; ++i) {
            shared.set_faults({.min_delay = 1ms, .max_delay = 50ms, .lost = 0});
            const std::vector<node*> all = co_await joined(2);
            co_await pass(duration(random().below(1'000'000'000)));
            all[0]->its->process().stop();
            node& heir = add("a");
            heir.info.host = "heir.example";
            co_await join(heir);
            co_await pass(duration(random().below(3'000'000'000)));
            all[0]->its->process().resume();
            co_await wait_until([&] { return has_trouble(*all[0], "has the name \"a\""); });
            EXPECT_THAT(all[0]->reports.troubles.back(), HasSubstr("at heir.example"));
            co_await pass(10s);
            EXPECT_EQ(all[1]->find("a")->id, heir.info.id);
            EXPECT_EQ(heir.find("a")->id, heir.info.id);
            EXPECT_EQ(all[0]->find("a")->id, heir.info.id) << "it sees the cluster as it is";
            EXPECT_FALSE(has_trouble(heir, "has the name"));
            const auto reports = all[0]->reports.troubles.size();

            co_await heir.its->end();
            co_await wait_until([&] {
                const member_info* const seen = all[1]->find("a");
                return seen && seen->id == all[0]->info.id;
            });
            EXPECT_THAT(all[0]->reports.recoveries.back(), HasSubstr("its name \"a\""));
            EXPECT_EQ(all[0]->reports.troubles.size(), reports);
            for (node* const each : all) co_await each->its->end();
            shared.set_faults({});
        }
    });
}

// --- Outages ----------------------------------------------------------------------------------

TEST_P(memory_members, stay_as_known_last_while_the_store_is_away) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        shared.set_away(true);
        co_await wait_until([&] { return all[0]->its->current()->is_stale; });
        EXPECT_THAT(all[0]->its->current()->stale_reason, HasSubstr("is away"));
        co_await pass(1min);
        shared.set_away(false);
        co_await wait_until([&] { return !all[0]->its->current()->is_stale; });
        co_await pass(10s);
        for (const node* const each : all) {
            EXPECT_EQ(each->names(), "a b c");
            EXPECT_EQ(each->its->current()->number, all[0]->its->current()->number);
            EXPECT_THAT(each->reports.troubles, ElementsAre(HasSubstr("is away")));
            EXPECT_THAT(each->reports.recoveries, ElementsAre(HasSubstr("can be used again")));
        }
    });
}

TEST_P(memory_members, that_died_in_an_outage_are_gone_behind_it) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        shared.set_away(true);
        co_await pass(10s);
        all[2]->its->process().kill();
        EXPECT_EQ(all[0]->names(), "a b c");
        shared.set_away(false);
        const time_point healed = here().now();
        co_await wait_until([&] { return all[0]->names() == "a b" && all[1]->names() == "a b"; });
        EXPECT_LE(here().now() - healed, 4s);
    });
}

TEST_P(memory_members, drop_none_while_nothing_can_be_written) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        shared.set_read_only(true);
        co_await pass(1min);
        for (const node* const each : all) {
            EXPECT_EQ(each->names(), "a b c");
            EXPECT_TRUE(each->its->current()->is_stale);
            EXPECT_EQ(each->reports.troubles.size(), 1U);
        }
        shared.set_read_only(false);
        co_await pass(10s);
        for (const node* const each : all) {
            EXPECT_EQ(each->names(), "a b c");
            EXPECT_FALSE(each->its->current()->is_stale);
            EXPECT_EQ(each->reports.recoveries.size(), 1U);
        }
    });
}

TEST_P(memory_members, fill_a_new_store_without_a_gap) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        const std::uint64_t before = all[0]->its->current()->number;
        shared.replace();
        co_await pass(1min);
        EXPECT_EQ(shared.size(), 3U);
        EXPECT_EQ(all[0]->its->current()->number, before) << "nothing to see";
        EXPECT_THAT(all[0]->reports.troubles, IsEmpty());
    });
}

TEST_P(memory_members, on_both_sides_of_a_partition_drop_each_other) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        shared.cut("a", "b");
        co_await wait_until([&] { return all[0]->names() == "a c" && all[1]->names() == "b c"; });
        EXPECT_EQ(all[2]->names(), "a b c") << "it sees both";
        shared.heal();
        const time_point healed = here().now();
        co_await wait_until(
            [&] { return all[0]->names() == "a b c" && all[1]->names() == "a b c"; });
        EXPECT_LE(here().now() - healed, 2 * rules.poll);
        for (const node* const each : all) EXPECT_THAT(each->reports.troubles, IsEmpty());
    });
}

TEST_P(memory_members, outlive_steps_of_a_clock) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        const std::uint64_t before = all[0]->its->current()->number;
        for (const duration step : {duration(1h), duration(-2h), duration(24h), duration(-1h)}) {
            all[0]->its->process().step_clock(step);
            co_await pass(10s);
        }
        EXPECT_EQ(all[0]->its->current()->number, before);
        EXPECT_EQ(all[1]->names(), "a b c");
        EXPECT_THAT(all[0]->reports.troubles, IsEmpty());
    });
}

TEST_P(memory_members, outlive_lost_beats) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        const std::uint64_t before = all[0]->its->current()->number;
        shared.set_faults({.min_delay = 0ms, .max_delay = 100ms, .lost = 0.1});
        co_await pass(1min);
        EXPECT_EQ(all[0]->its->current()->number, before) << "one of ten is none of a death";
    });
}

TEST_P(memory_members, may_join_later_what_cannot_be_reached_now) {
    run_cluster([this]() -> task<void> {
        shared.set_away(true);
        node& a = add("a");
        EXPECT_THAT(co_await refusal_of_join(a), StartsWith("503 "));
        EXPECT_EQ(a.its->current()->number, 0U);
        shared.set_away(false);
        shared.set_read_only(true);
        EXPECT_THAT(co_await refusal_of_join(a), StartsWith("503 "));
        shared.set_read_only(false);
        co_await join(a);
        EXPECT_EQ(a.names(), "a");
        EXPECT_THAT(a.reports.troubles, IsEmpty());
    });
}

TEST_P(memory_members, that_cancel_their_join_leave_nothing) {
    run_cluster([this]() -> task<void> {
        shared.set_faults({.min_delay = 10ms, .max_delay = 10ms, .lost = 0});
        for (duration after = 0ms; after < 1s; after += 25ms) {
            node& a = add("a");
            const outcome<> joined = co_await [](node& of, duration time) -> task<outcome<>> {
                deadline_source limit(co_await current_source(), loop::current().now() + time);
                co_return co_await of.its->join(of.info).under(limit.source());
            }(a, after);
            if (joined) break;
            EXPECT_EQ(joined.error().status, 503) << joined.error().message;
            EXPECT_EQ(shared.size(), 0U);
        }
    });
}

// --- Content ----------------------------------------------------------------------------------

TEST_P(memory_members, that_exceed_a_bound_stay_as_they_were) {
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(2);
        member_info large = all[0]->info;
        for (std::size_t i = 0; i <= max_runtimes; ++i)
            large.runtimes.push_back(simple_runtime("x" + std::to_string(i)));
        all[0]->its->publish(large);
        large.label = "again";
        all[0]->its->publish(large);
        EXPECT_THAT(all[0]->reports.troubles, ElementsAre(HasSubstr("at most 16384 may be")));
        co_await pass(5s);
        EXPECT_EQ(*all[1]->find("a"), all[0]->info);
        node& other = add("z");
        other.info.runtimes = large.runtimes;
        EXPECT_THAT(co_await refusal_of_join(other), StartsWith("400 "));
        other.info.runtimes.clear();
        other.info.name = "z/..";
        EXPECT_THAT(co_await refusal_of_join(other), StartsWith("400 "));
    });
}

TEST_P(memory_members, forget_remains_after_their_time) {
    rules.memory = 20s;
    run_cluster([this]() -> task<void> {
        const std::vector<node*> all = co_await joined(3);
        all[2]->its->process().kill();
        co_await pass(20s);
        EXPECT_EQ(shared.size(), 3U);
        co_await pass(5s);
        EXPECT_EQ(shared.size(), 2U);
        EXPECT_EQ(all[0]->names(), "a b");
    });
}

// --- Many members, and all faults at once -----------------------------------------------------

/// Figures of a cluster of `count` members with 20 runtimes each.
struct figures {
    duration spread{};             // of one change, until all members know
    std::uint64_t change = 0;      // messages that it took, beside those of the same time before
    double a_member_a_second = 0;  // messages while nothing changes
};

class many_members : public memory_members {
protected:
    figures measure(std::size_t count) {
        figures found;
        run_cluster([&, count]() -> task<void> {
            shared.set_faults({.min_delay = 1ms, .max_delay = 20ms, .lost = 0});
            std::vector<node*> all;
            for (std::size_t i = 0; i < count; ++i) {
                node& each = add("member-" + std::to_string(10'000 + i));
                each.info = simple_member(each.info.name, random(), 20);
                all.push_back(&each);
            }
            co_await join_all(all);
            const auto know = [&](auto is_known) { return std::ranges::all_of(all, is_known); };
            while (!know(
                [&](const node* each) { return each->its->current()->members.size() == count; }))
                co_await pass(50ms);

            const std::uint64_t idle = shared.messages();
            co_await pass(5s);
            const std::uint64_t in_five = shared.messages() - idle;
            found.a_member_a_second = static_cast<double>(in_five) / static_cast<double>(count) / 5;

            node& origin = *all[count / 2];
            origin.info.runtimes[3].state = "stopped";
            const std::uint64_t before = shared.messages();
            const time_point begun = here().now();
            origin.its->publish(origin.info);
            while (!know([&](const node* each) {
                return each->find(origin.info.name)->runtimes[3].state == "stopped";
            }))
                co_await pass(10ms);
            found.spread = here().now() - begun;
            co_await pass(5s - found.spread);
            found.change = shared.messages() - before - in_five;
            for (const node* const each : all) EXPECT_THAT(each->reports.troubles, IsEmpty());
        });
        return found;
    }
};
INSTANTIATE_TEST_SUITE_P(cluster, many_members, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(many_members, a_change_is_known_everywhere_in_two_seconds) {
    const figures small = measure(125);
    const figures large = measure(1000);
    for (const figures& each : {small, large}) {
        EXPECT_LE(each.spread, 2s);
        EXPECT_LE(each.a_member_a_second, 5) << "a beat and a poll each half second";
    }
    EXPECT_LE(large.change, 1000 * 1.1) << "one message for each member";
    EXPECT_GE(large.change, 900U);
    EXPECT_LE(small.change, 125 * 1.3);
    EXPECT_NEAR(large.a_member_a_second, small.a_member_a_second, 0.5) << "in all linear";
    std::printf(
        "125 and 1000 members: a change takes %lld and %lld ms, %llu and %llu messages; "
        "%.2f and %.2f messages a member and second\n",
        static_cast<long long>(small.spread / 1ms), static_cast<long long>(large.spread / 1ms),
        static_cast<unsigned long long>(small.change),
        static_cast<unsigned long long>(large.change), small.a_member_a_second,
        large.a_member_a_second);
}

class chaos : public memory_members {
protected:
    node& random_node() { return *nodes[random().below(nodes.size())]; }

    /// Ends a member, or kills it, and starts another one with its name.
    task<void> restart(std::size_t which) {
        node& its = *nodes[which];
        its.its->process().resume();
        if (random().chance(0.5)) its.its->process().kill();
        co_await its.its->end();
        const std::string name = its.info.name;
        nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(which));
        node& next = add(name);
        std::string refused = co_await refusal_of_join(next);
        // A stopped one of the same name may have woken; in an outage none can join.
        for (int attempts = 0; refused != "none"; ++attempts) {
            if (attempts == 100) throw std::runtime_error(refused);
            EXPECT_THAT(refused, ::testing::AnyOf(StartsWith("503 "), StartsWith("409 ")));
            if (refused.starts_with("503 ")) shared.set_away(false);
            co_await pass(1s);
            refused = co_await refusal_of_join(next);
        }
    }
    task<void> disturb() {
        switch (random().below(8)) {
            case 0: {
                const std::string one = random_node().info.name;
                const std::string other = random_node().info.name;
                if (one != other) shared.cut(one, other);
                break;
            }
            case 1: shared.heal(); break;
            case 2: shared.set_away(random().chance(0.5)); break;
            case 3: random_node().its->process().stop(); break;
            case 4: random_node().its->process().resume(); break;
            case 5: random_node().its->process().step_clock(random().chance(0.5) ? 1h : -1h); break;
            case 6: {
                node& any = random_node();
                any.info.runtimes[0].connections = random().below(1000);
                any.its->publish(any.info);
                break;
            }
            default: co_await restart(random().below(nodes.size()));
        }
        co_await pass(duration(random().below(3'000'000'000)));
    }
};
INSTANTIATE_TEST_SUITE_P(cluster, chaos, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(chaos, ends_in_one_view) {
    for (int run_number = 0; run_number < eddy::testing::rounds(20); ++run_number) {
        run_with_threads([&]() -> task<void> {
            for (const char* const name : {"a", "b", "c", "d", "e", "f"}) co_await join(add(name));
            shared.set_faults({.min_delay = 0ms, .max_delay = 100ms, .lost = 0.1});
            for (int i = 0; i < 40; ++i) co_await disturb();
            shared.heal();
            shared.set_away(false);
            shared.set_faults({});
            for (const auto& each : nodes) each->its->process().resume();
            co_await pass(20s);
            for (const auto& each : nodes) {
                EXPECT_EQ(each->names(), "a b c d e f");
                EXPECT_FALSE(each->its->current()->is_stale);
                for (const auto& other : nodes) {
                    const member_info* const seen = each->find(other->info.name);
                    EXPECT_TRUE(seen && *seen == other->info) << other->info.name;
                }
            }
            for (const auto& each : nodes) co_await each->its->end();
            nodes.clear();
            EXPECT_EQ(shared.size(), 0U);
        });
    }
}

}  // namespace
}  // namespace eddy::cluster
