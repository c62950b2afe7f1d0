// Order of the changes of a stack.
#include <eddy/base/assert.hpp>

#include "daemon/stacks/stack_planner.hpp"
#include "runtime/claimed_addresses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

constexpr std::size_t no_round = static_cast<std::size_t>(-1);

using holders = std::multimap<std::string, planned_change*, std::less<>>;

/// A change, and those of others that release what it wants.
struct waiting_change {
    planned_change* one;
    std::vector<planned_change*> awaited;
};

std::vector<planned_change*> awaited_by(const planned_change& of, const holders& held) {
    std::vector<planned_change*> found;
    for (const transport::address& each : of.wanted) {
        const auto [begin, end] = held.equal_range(claim_key(each));
        for (auto at = begin; at != end; ++at) {
            if (at->second == &of) continue;
            for (const transport::address& theirs : at->second->held)
                if (runtime::is_same_claim(each, theirs)) found.push_back(at->second);
        }
    }
    return found;
}

bool comes_first(const planned_change& a, const planned_change& b) {
    if (a.round != b.round) return a.round < b.round;
    if (a.depth != b.depth) return a.is_stop() ? a.depth > b.depth : a.depth < b.depth;
    return a.shown.name < b.shown.name;
}

/// True once a round before releases its addresses.
bool is_released(const planned_change* of) { return of->is_set_aside || of->round != no_round; }

/// True for one whose clients any restart closes: to set it aside costs them little more.
bool is_cheap(const planned_change& of) {
    return of.type->over_restart != runtime::type::restart_clients::served;
}

/// The changes of a circle; each of `waiting` waits for another one.
std::vector<planned_change*> circle_of(const std::vector<waiting_change>& waiting) {
    EDDY_ASSERT(!waiting.empty());
    std::map<const planned_change*, planned_change*> next;
    for (const waiting_change& each : waiting)
        next[each.one] = *std::ranges::find_if_not(each.awaited, is_released);
    std::vector<planned_change*> path;
    planned_change* at = waiting.front().one;
    while (std::ranges::find(path, at) == path.end()) {
        path.push_back(at);
        at = next.at(at);
    }
    return {std::ranges::find(path, at), path.end()};
}

/// Sets one change of a circle aside.
void break_circle(const std::vector<waiting_change>& waiting) {
    const auto circle = circle_of(waiting);
    planned_change* const chosen = *std::ranges::min_element(circle, {}, [](const auto* each) {
        return std::pair(!is_cheap(*each), std::string_view(each->shown.name));
    });
    EDDY_ASSERT(!chosen->is_set_aside && chosen->which != nullptr);
    chosen->is_set_aside = true;
}

/// Rounds of the changes that wait. The round after all of them.
std::size_t order_waiting(std::vector<waiting_change>& waiting) {
    std::size_t round = stopping_round + 1;
    while (!waiting.empty()) {
        std::vector<planned_change*> ready;
        std::erase_if(waiting, [&](const waiting_change& each) {
            const bool is_ready = std::ranges::all_of(each.awaited, is_released);
            if (is_ready) ready.push_back(each.one);
            return is_ready;
        });
        if (ready.empty()) {
            break_circle(waiting);
            continue;
        }
        for (planned_change* const each : ready) each->round = round;
        ++round;
    }
    return round;
}

}  // namespace

std::string claim_key(const transport::address& where) {
    return where.path.empty() ? fmt::format("{}", where.port) : where.path;
}

void order_changes(std::vector<planned_change>& changes) {
    holders held;
    for (planned_change& each : changes)
        for (const transport::address& where : each.held) held.emplace(claim_key(where), &each);
    std::vector<waiting_change> waiting;
    std::set<const planned_change*> awaited_stops;
    for (planned_change& each : changes) {
        each.round = each.is_stop() ? stopping_round : 0;
        if (each.is_stop()) continue;
        auto awaited = awaited_by(each, held);
        if (awaited.empty() && !each.is_set_aside) continue;
        each.round = no_round;
        for (const planned_change* const other : awaited)
            if (other->is_stop()) awaited_stops.insert(other);
        waiting.push_back({&each, std::move(awaited)});
    }
    const std::size_t last = order_waiting(waiting);
    for (planned_change& each : changes) {
        EDDY_ASSERT(each.round != no_round);
        if (each.is_stop() && !awaited_stops.contains(&each)) each.round = last;
    }
    std::ranges::sort(changes, comes_first);
}

}  // namespace eddy::daemon
