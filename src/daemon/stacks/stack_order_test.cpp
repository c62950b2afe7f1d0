// Tests of the order of a stack's changes: addresses that pass from one runtime to another.
#include "daemon/stacks/stack_planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using ::testing::ElementsAre;
using ports = std::vector<std::uint16_t>;
using clients = runtime::type::restart_clients;

std::vector<transport::address> addresses(const ports& of) {
    std::vector<transport::address> all;
    for (const std::uint16_t port : of) {
        all.emplace_back();
        all.back().port = port;
    }
    return all;
}

const runtime::type& type_with(clients over_restart) {
    static const runtime::type served = [] {
        runtime::type made;
        made.over_restart = clients::served;
        return made;
    }();
    static const runtime::type waits = [] {
        runtime::type made;
        made.over_restart = clients::wait;
        return made;
    }();
    return over_restart == clients::served ? served : waits;
}

planned_change edit(std::string name, const ports& held, const ports& wanted,
                    clients over_restart = clients::served) {
    planned_change made;
    runtime_record record;
    record.name = name;
    made.which = std::make_shared<managed_runtime>(std::move(record), nullptr);
    made.shown.name = std::move(name);
    made.shown.step = stack_step::edit;
    made.held = addresses(held);
    made.wanted = addresses(wanted);
    made.type = &type_with(over_restart);
    return made;
}

planned_change removal(std::string name, const ports& held) {
    planned_change made = edit(std::move(name), held, {});
    made.shown.step = stack_step::remove;
    return made;
}

/// Names in their order, with a star where one is set aside.
std::vector<std::string> ordered(std::vector<planned_change> changes) {
    order_changes(changes);
    EXPECT_TRUE(std::ranges::is_sorted(changes, {}, &planned_change::round));
    std::vector<std::string> names;
    for (const planned_change& each : changes) {
        names.push_back(each.shown.name + (each.is_set_aside ? "*" : ""));
        EXPECT_TRUE(!each.is_set_aside || each.round > stopping_round);
    }
    return names;
}

template <class... Changes>
std::vector<std::string> order_of(Changes... changes) {
    std::vector<planned_change> all;
    (all.push_back(std::move(changes)), ...);
    return ordered(std::move(all));
}

TEST(stack_order, an_address_is_released_before_it_is_taken) {
    EXPECT_THAT(order_of(edit("a", {1}, {2}), edit("b", {2}, {3}), edit("c", {3}, {4})),
                ElementsAre("c", "b", "a"));
}

TEST(stack_order, removals_come_last_where_nothing_awaits_them) {
    EXPECT_THAT(
        order_of(removal("a", {1}), removal("b", {2}), edit("c", {}, {2}), edit("d", {}, {})),
        ElementsAre("d", "b", "c", "a"));
}

TEST(stack_order, one_of_a_circle_is_set_aside) {
    EXPECT_THAT(order_of(edit("a", {1}, {2}), edit("b", {2}, {1})), ElementsAre("b", "a*"));
    EXPECT_THAT(order_of(edit("a", {1}, {2}), edit("b", {2}, {3}), edit("c", {3}, {1})),
                ElementsAre("c", "b", "a*"));
}

TEST(stack_order, a_restart_that_closes_clients_anyway_is_preferred) {
    EXPECT_THAT(
        order_of(edit("a", {1}, {2}), edit("b", {2}, {3}, clients::wait), edit("c", {3}, {1})),
        ElementsAre("a", "c", "b*"));
}

TEST(stack_order, what_waits_for_a_circle_is_not_part_of_it) {
    EXPECT_THAT(order_of(edit("a", {4}, {6}, clients::wait), edit("b", {1, 6}, {2}),
                         edit("c", {2}, {1, 3}), edit("d", {3}, {5})),
                ElementsAre("d", "a", "c", "b*"));
}

TEST(stack_order, each_circle_is_broken_once) {
    EXPECT_THAT(order_of(edit("a", {1}, {2}), edit("b", {2}, {1}), edit("c", {3}, {4}),
                         edit("d", {4}, {3})),
                ElementsAre("b", "a*", "d", "c*"));
    // Both circles have b.
    EXPECT_THAT(order_of(edit("a", {1}, {2}), edit("b", {2, 3}, {1, 4}), edit("c", {4}, {3})),
                ElementsAre("a*", "c", "b*"));
}

TEST(stack_order, one_that_changes_its_type_keeps_its_address) {
    planned_change retyped = edit("a", {1}, {1});
    retyped.is_retyped = retyped.is_set_aside = true;
    EXPECT_THAT(order_of(std::move(retyped), edit("b", {}, {2})), ElementsAre("b", "a*"));
}

}  // namespace
}  // namespace eddy::daemon
