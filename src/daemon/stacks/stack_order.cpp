// Order of the changes of a stack.
#include <eddy/base/assert.hpp>

#include "daemon/stacks/stack_planner.hpp"
#include "runtime/claimed_addresses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

constexpr std::size_t no_round = static_cast<std::size_t>(-1);

/// Changes by a part of their address that is equal where two addresses are the same: a comparison
/// of each with each would take long.
std::string key_of(const transport::address& where) {
    return where.path.empty() ? fmt::format("{}", where.port) : where.path;
}

using holders = std::multimap<std::string, const planned_change*, std::less<>>;

/// Changes of others that release what `of` wants.
std::vector<const planned_change*> awaited_by(const planned_change& of, const holders& held) {
    std::vector<const planned_change*> found;
    for (const transport::address& each : of.wanted) {
        const auto [begin, end] = held.equal_range(key_of(each));
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

}  // namespace

std::vector<stack_fault> order_changes(std::vector<planned_change>& changes) {
    holders held;
    for (const planned_change& each : changes)
        for (const transport::address& where : each.held) held.emplace(key_of(where), &each);
    std::vector<std::pair<planned_change*, std::vector<const planned_change*>>> waiting;
    for (planned_change& each : changes) {
        each.round = each.is_stop() ? stopping_round : 0;
        if (each.is_stop()) continue;
        auto awaited = awaited_by(each, held);
        if (awaited.empty()) continue;
        each.round = no_round;
        waiting.emplace_back(&each, std::move(awaited));
    }
    for (std::size_t round = stopping_round + 1; !waiting.empty(); ++round) {
        std::vector<planned_change*> ready;
        std::erase_if(waiting, [&](const auto& one) {
            const bool is_ready = std::ranges::all_of(
                one.second, [](const planned_change* each) { return each->round != no_round; });
            if (is_ready) ready.push_back(one.first);
            return is_ready;
        });
        if (ready.empty()) break;
        for (planned_change* const each : ready) each->round = round;
    }
    std::vector<stack_fault> faults;
    for (const auto& [each, awaited] : waiting)
        faults.push_back({each->shown.name,
                          fmt::format("it would take the address of \"{}\" while that takes "
                                      "another one's in turn; move one of them to a free address "
                                      "first",
                                      awaited.front()->shown.name)});
    for (const planned_change& each : changes)
        EDDY_ASSERT(each.round != no_round || !faults.empty());
    if (faults.empty()) std::ranges::sort(changes, comes_first);
    return faults;
}

}  // namespace eddy::daemon
