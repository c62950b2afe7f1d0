// Merge of two snapshots by names.
#include "daemon/cluster/cluster_changes.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

namespace eddy::daemon {
namespace {

using cluster::member_info;
using cluster::runtime_info;

/// Calls `what(before, after)` for each name of two sorted lists, with null where one has it not.
template <class List, class Of, class F>
void merge(const List& before, const List& after, Of item, F what) {
    auto old = before.begin();
    auto fresh = after.begin();
    while (old != before.end() || fresh != after.end()) {
        const int order = old == before.end()    ? 1
                          : fresh == after.end() ? -1
                                                 : item(*old)->name.compare(item(*fresh)->name);
        what(order <= 0 ? item(*old) : nullptr, order >= 0 ? item(*fresh) : nullptr);
        if (order <= 0) ++old;
        if (order >= 0) ++fresh;
    }
}

std::string plural(std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

runtime_event member_event(const member_info& of, event_kind kind, std::string detail) {
    runtime_event made;
    made.kind = kind;
    made.name = of.name;
    made.id = of.id;
    made.type = member_type;
    made.detail = std::move(detail);
    return made;
}

std::string facts_of(const member_info& member) {
    return fmt::format("on {}, with {}", member.host, plural(member.runtimes.size(), "runtime"));
}

runtime_event runtime_event_of(const member_info& member, const runtime_info& its, event_kind kind,
                               std::string detail) {
    runtime_event made;
    made.kind = kind;
    made.name = fmt::format("{}/{}", member.name, its.name);
    made.id = its.id;
    made.type = its.type;
    made.group = its.group;
    made.detail = std::move(detail);
    return made;
}

std::string addresses_of(const runtime_info& its) {
    return its.addresses.empty() ? std::string()
                                 : fmt::format("on {}", fmt::join(its.addresses, ", "));
}

void add_state(std::vector<runtime_event>& to, const member_info& member, const runtime_info& its) {
    if (its.state == "running")
        to.push_back(runtime_event_of(member, its, event_kind::started, addresses_of(its)));
    else if (its.state == "stopped")
        to.push_back(runtime_event_of(member, its, event_kind::stopped, {}));
    else if (its.state == "failed")
        to.push_back(runtime_event_of(member, its, event_kind::failed, {}));
}

void add_runtime(std::vector<runtime_event>& to, const member_info& member,
                 const runtime_info& before, const runtime_info& after) {
    if (before.group != after.group)
        to.push_back(
            runtime_event_of(member, after, event_kind::edited,
                             fmt::format("group: \"{}\" -> \"{}\"", before.group, after.group)));
    if (before.state != after.state)
        add_state(to, member, after);
    else if (after.state == "running" && before.addresses != after.addresses)
        to.push_back(runtime_event_of(member, after, event_kind::edited, addresses_of(after)));
}

void add_runtimes(std::vector<runtime_event>& to, const member_info& before,
                  const member_info& after) {
    merge(
        before.runtimes, after.runtimes, [](const runtime_info& each) { return &each; },
        [&](const runtime_info* old, const runtime_info* fresh) {
            if (fresh == nullptr) {
                to.push_back(runtime_event_of(after, *old, event_kind::removed, {}));
            } else if (old == nullptr) {
                to.push_back(runtime_event_of(after, *fresh, event_kind::created, {}));
                if (fresh->state == "running") add_state(to, after, *fresh);
            } else {
                add_runtime(to, after, *old, *fresh);
            }
        });
}

void add_member(std::vector<runtime_event>& to, const member_info* before,
                const member_info* after) {
    if (before == after) return;
    const bool is_other = before != nullptr && after != nullptr && before->id != after->id;
    if (before != nullptr && (after == nullptr || is_other))
        to.push_back(member_event(*before, event_kind::left, facts_of(*before)));
    if (after != nullptr && (before == nullptr || is_other))
        to.push_back(member_event(*after, event_kind::joined, facts_of(*after)));
    if (before == nullptr || after == nullptr || is_other) return;
    if (after->is_leaving && !before->is_leaving)
        to.push_back(member_event(*after, event_kind::leaving, facts_of(*after)));
    add_runtimes(to, *before, *after);
}

}  // namespace

std::vector<runtime_event> changes_between(const cluster::snapshot& before,
                                           const cluster::snapshot& after) {
    std::vector<runtime_event> made;
    if (before.is_stale != after.is_stale) {
        runtime_event state;
        state.kind = after.is_stale ? event_kind::degraded : event_kind::recovered;
        state.name = cluster_type;
        state.type = cluster_type;
        state.detail = after.stale_reason;
        made.push_back(std::move(state));
    }
    merge(
        before.members, after.members, [](const auto& each) { return each.get(); },
        [&](const member_info* old, const member_info* fresh) { add_member(made, old, fresh); });
    return made;
}

bool is_member_event(const runtime_event& of) noexcept { return of.type == member_type; }

}  // namespace eddy::daemon
