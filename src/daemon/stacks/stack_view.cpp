// Stacks from and to JSON.
#include "daemon/stacks/stack_view.hpp"

#include "daemon/control/runtime_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace eddy::daemon {
namespace {

constexpr std::array<std::string_view, 7> member_names = {
    "name", "type", "owner", "on_parent_stop", "group", "options", "start"};

outcome<stack_member> member_from_json(const json& value) {
    if (!value.is_object()) return refuse(400, "a runtime of a stack must be an object");
    for (const auto& [name, ignored] : value.items())
        if (std::ranges::find(member_names, name) == member_names.end())
            return refuse(400, fmt::format("a runtime of a stack has an unknown member \"{}\"; it "
                                           "may have {}",
                                           name, fmt::join(member_names, ", ")));
    stack_member made;
    for (auto [name, to] : {std::pair("name", &made.name), std::pair("type", &made.type),
                            std::pair("owner", &made.owner), std::pair("group", &made.group)}) {
        auto text = text_member(value, name);
        if (!text) return std::unexpected(std::move(text.error()));
        *to = std::move(*text);
    }
    auto policy_name = text_member(value, "on_parent_stop");
    if (!policy_name) return std::unexpected(std::move(policy_name.error()));
    auto policy = parse_on_parent_stop(*policy_name);
    if (!policy) return std::unexpected(std::move(policy.error()));
    made.policy = *policy;
    if (const auto options = value.find("options"); options != value.end()) {
        if (!options->is_object()) return refuse(400, "\"options\" must be an object");
        made.options = *options;
    }
    auto start = flag_member(value, "start", true);
    if (!start) return std::unexpected(std::move(start.error()));
    made.is_to_run = *start;
    return made;
}

json show_change(const stack_change& change) {
    json shown = {{"name", change.name},
                  {"type", change.type},
                  {"change", to_string(change.step)},
                  {"starts", change.starts},
                  {"values", json::array()}};
    for (const value_change& each : change.values)
        shown["values"].push_back(
            {{"name", each.name}, {"before", each.before}, {"after", each.after}});
    if (change.step == stack_step::edit) shown.update(show_edit(change.plan));
    if (!change.risk.empty()) shown["risk"] = change.risk;
    if (!change.removed_with.empty()) shown["removed_with"] = change.removed_with;
    return shown;
}

}  // namespace

outcome<stack_request> stack_from_json(std::string name, const json& body) {
    stack_request made;
    made.name = std::move(name);
    const auto runtimes = body.find("runtimes");
    if (runtimes == body.end() || !runtimes->is_array())
        return refuse(400, "\"runtimes\" must be a list: all runtimes of the stack");
    for (const json& each : *runtimes) {
        auto member = member_from_json(each);
        if (!member) return std::unexpected(std::move(member.error()));
        made.members.push_back(std::move(*member));
    }
    auto adopts = flag_member(body, "adopt", false);
    if (!adopts) return std::unexpected(std::move(adopts.error()));
    made.adopts = *adopts;
    auto starts = flag_member(body, "start", true);
    if (!starts) return std::unexpected(std::move(starts.error()));
    made.starts = *starts;
    if (const auto accept = body.find("accept"); accept != body.end()) {
        const bool is_list = accept->is_array() && std::ranges::all_of(*accept, [](const json& of) {
                                 return of.is_string();
                             });
        if (!is_list) return refuse(400, "\"accept\" must be a list of names, or of * for all");
        made.accepted = accept->get<std::vector<std::string>>();
    }
    return made;
}

json show_plan(const stack_plan& plan) {
    json shown = {{"changes", json::array()}, {"unchanged", plan.unchanged}, {"notes", plan.notes}};
    for (const stack_change& each : plan.changes) shown["changes"].push_back(show_change(each));
    return shown;
}

json show_refusal(const stack_refusal& refusal) {
    json error = {{"status", refusal.why.status}, {"message", refusal.why.message}};
    for (const stack_fault& each : refusal.faults)
        error["faults"].push_back({{"name", each.name}, {"message", each.message}});
    for (const stack_change& each : refusal.risks) error["risks"].push_back(show_change(each));
    return {{"error", std::move(error)}};
}

}  // namespace eddy::daemon
