// Rows of members, runtimes and groups.
#include "daemon/cluster/cluster_view.hpp"

#include <eddy/base/glob.hpp>
#include <eddy/base/nearest.hpp>

#include "runtime/host/registry.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using cluster::member_info;
using cluster::runtime_info;

/// Facts in front of each answer: whether it is of now.
json head(const cluster_service& of) {
    const std::string stale = of.stale_reason();
    json made = {{"self", of.name()},
                 {"engine", of.engine()},
                 {"joined", of.has_joined()},
                 {"stale", !stale.empty()}};
    if (!stale.empty()) made["stale_reason"] = stale;
    return made;
}

/// The time of another machine's clock as text; null where it is beyond what calendars have.
json time_json(std::int64_t seconds) {
    constexpr std::int64_t last = 253'402'300'799;  // of the year 9999
    if (seconds <= 0 || seconds > last) return nullptr;
    return format_time(std::chrono::system_clock::time_point(std::chrono::seconds(seconds)));
}

json member_json(const cluster_service& of, const member_info& member) {
    std::size_t running = 0;
    std::uint64_t connections = 0;
    for (const runtime_info& each : member.runtimes) {
        running += each.state == "running" ? 1U : 0U;
        connections += each.connections;
    }
    return {{"name", member.name},
            {"id", member.id},
            {"host", member.host},
            {"control", member.control},
            {"version", member.version},
            {"label", member.label},
            {"started", time_json(member.started)},
            {"self", member.name == of.name()},
            {"leaving", member.is_leaving},
            {"runtimes", member.runtimes.size()},
            {"running", running},
            {"connections", connections}};
}

json runtime_json(const member_info& member, const runtime_info& its) {
    return {{"member", member.name},
            {"name", its.name},
            {"id", its.id},
            {"type", its.type},
            {"group", its.group},
            {"status", its.state},
            {"addresses", its.addresses},
            {"connections", its.connections}};
}

bool is_chosen(std::string_view pattern, const member_info& member, const runtime_info& its) {
    if (pattern.starts_with('@') || !pattern.contains('/'))
        return runtime::is_match(pattern, its.name, its.id, its.group);
    const std::size_t slash = pattern.find('/');
    return glob_match(pattern.substr(0, slash), member.name) &&
           runtime::is_match(pattern.substr(slash + 1), its.name, its.id, its.group);
}

}  // namespace

json show_cluster(const cluster_service& of) {
    json made = head(of);
    json& members = made["members"] = json::array();
    for (const auto& each : of.current()->members) members.push_back(member_json(of, *each));
    return made;
}

json show_cluster_runtimes(const cluster_service& of, std::string_view pattern) {
    json made = head(of);
    json& runtimes = made["runtimes"] = json::array();
    for (const auto& member : of.current()->members)
        for (const runtime_info& each : member->runtimes)
            if (is_chosen(pattern, *member, each)) runtimes.push_back(runtime_json(*member, each));
    return made;
}

json show_cluster_groups(const cluster_service& of, std::string_view pattern) {
    const auto all = of.current();
    std::map<std::string_view, std::vector<std::pair<const member_info*, const runtime_info*>>>
        groups;
    for (const auto& member : all->members)
        for (const runtime_info& each : member->runtimes)
            if (!each.group.empty() && glob_match(pattern, each.group))
                groups[each.group].emplace_back(member.get(), &each);
    json made = head(of);
    json& listed = made["groups"] = json::array();
    for (const auto& [name, runtimes] : groups) {
        json group = {{"name", name}, {"running", 0}, {"runtimes", json::array()}};
        std::size_t running = 0;
        for (const auto& [member, its] : runtimes) {
            running += its->state == "running" ? 1U : 0U;
            group["runtimes"].push_back(runtime_json(*member, *its));
        }
        group["running"] = running;
        listed.push_back(std::move(group));
    }
    return made;
}

outcome<json> show_member(const cluster_service& of, std::string_view name) {
    const auto all = of.current();
    const member_info* const found = all->find(name);
    if (found == nullptr) {
        std::vector<std::string_view> names;
        for (const auto& each : all->members) names.emplace_back(each->name);
        const std::string_view meant = nearest_word(name, names);
        return refuse(404, meant.empty()
                               ? fmt::format("the cluster has no member \"{}\"; `eddy cluster ls` "
                                             "shows those there are",
                                             name)
                               : fmt::format("the cluster has no member \"{}\"; did you mean "
                                             "\"{}\"?",
                                             name, meant));
    }
    json made = member_json(of, *found);
    made["runtimes"] = json::array();
    for (const runtime_info& each : found->runtimes)
        made["runtimes"].push_back(runtime_json(*found, each));
    const std::string stale = of.stale_reason();
    made["stale"] = !stale.empty();
    if (!stale.empty()) made["stale_reason"] = stale;
    return made;
}

}  // namespace eddy::daemon
