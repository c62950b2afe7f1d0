// Rounds of observations.
#include "cluster/member_table.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <utility>

namespace eddy::cluster {

bool outranks(const beat& other, const beat& own) noexcept {
    return other.term != own.term ? other.term > own.term : other.id < own.id;
}

bool member_table::judge(const sightings& seen, time_point now) {
    const duration before = clock_;
    if (has_begun_) clock_ += std::clamp(now - last_round_, duration::zero(), longest_step);
    last_round_ = now;
    std::vector<entry> next;
    next.reserve(seen.size());
    auto known = entries_.begin();
    // A known name that was not seen.
    const auto miss = [&] {
        const bool is_in_doubt = clock_ < doubt_until_;
        const bool was_missing = std::exchange(known->is_missing, !is_in_doubt);
        age(*known);
        const bool has_left = was_missing && !is_in_doubt;
        if (!has_left && known->state != liveness::gone) next.push_back(std::move(*known));
        ++known;
    };
    for (const auto& each : seen) {
        EDDY_ASSERT(next.empty() || next.back().last->name < each->name);
        while (known != entries_.end() && known->last->name < each->name) miss();
        if (known != entries_.end() && known->last->name == each->name) {
            see(*known, each, before);
            next.push_back(std::move(*known++));
        } else {
            // A name that appears between two rounds has just been written.
            const auto state = has_begun_ ? liveness::alive : liveness::unproven;
            next.push_back({each, state, false, false, before});
        }
    }
    while (known != entries_.end()) miss();
    entries_ = std::move(next);
    has_begun_ = true;
    return collect();
}

void member_table::skip(time_point now) noexcept {
    last_round_ = now;
    doubt();
    for (entry& each : entries_)
        if (each.state != liveness::gone) each.silent_since = clock_;
}

/// A known member that is there.
void member_table::see(entry& its, const std::shared_ptr<const sighting>& now, duration before) {
    its.is_missing = false;
    if (its.last == now || its.last->its == now->its) {
        // The same beat may have become readable.
        its.last = now;
        return age(its);
    }
    its.last = now;
    its.state = liveness::alive;
    its.is_forgotten = false;
    its.silent_since = before;
}

void member_table::age(entry& its) {
    const duration silent = clock_ - its.silent_since;
    if (silent >= silence_) its.state = liveness::gone;
    if (silent < silence_ + memory_ || its.is_forgotten) return;
    its.is_forgotten = true;
    forgotten_.push_back(its.last);
}

/// Makes members_ anew. False if it stays the same: an equal member keeps its object.
bool member_table::collect() {
    member_list next;
    next.reserve(members_.size());
    auto before = members_.begin();
    for (const entry& each : entries_) {
        if (each.state != liveness::alive || !each.last->info) continue;
        const std::string& name = each.last->name;
        EDDY_ASSERT(each.last->info->name == name);
        while (before != members_.end() && (*before)->name < name) ++before;
        const bool is_known = before != members_.end() && (*before)->name == name &&
                              (*before == each.last->info || **before == *each.last->info);
        next.push_back(is_known ? *before : each.last->info);
    }
    if (next == members_) return false;
    members_ = std::move(next);
    return true;
}

duration member_table::next_end() const noexcept {
    duration least = duration::max();
    for (const entry& each : entries_) {
        if (each.is_missing) return duration::zero();
        if (each.state != liveness::gone)
            least = std::min(least, each.silent_since + silence_ - clock_);
    }
    return least;
}

bool member_table::has_unproven() const noexcept {
    return std::ranges::any_of(entries_,
                               [](const entry& each) { return each.state == liveness::unproven; });
}

const member_table::entry* member_table::entry_of(std::string_view name) const noexcept {
    const auto found = std::ranges::lower_bound(
        entries_, name, {}, [](const entry& each) -> std::string_view { return each.last->name; });
    return found != entries_.end() && found->last->name == name ? &*found : nullptr;
}

const sighting* member_table::find(std::string_view name) const noexcept {
    const entry* const its = entry_of(name);
    return its ? its->last.get() : nullptr;
}

liveness member_table::state_of(std::string_view name) const noexcept {
    const entry* const its = entry_of(name);
    return its ? its->state : liveness::gone;
}

}  // namespace eddy::cluster
