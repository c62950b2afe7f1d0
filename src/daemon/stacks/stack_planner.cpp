// Checks of a stack, and the changes that bring it about.
#include "daemon/stacks/stack_planner.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/nearest.hpp>
#include <eddy/io/loop.hpp>

#include "base/text/text.hpp"
#include "daemon/runtimes/runtime_editor.hpp"
#include "daemon/runtimes/runtime_options.hpp"
#include "daemon/state/runtime_name.hpp"
#include "runtime/claimed_addresses.hpp"
#include "runtime/host/host.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>
#include <variant>

namespace eddy::daemon {
namespace {

/// Faults that a refusal lists at most.
constexpr std::size_t most_faults = 100;

std::string counted(std::uint64_t number, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", number, number == 1 ? one : many);
}

std::uint64_t connections_of(const managed_runtime& which) {
    return which.running.vitals().counted.connections_now.value();
}

/// The refusal of a text that has the mask of a secret in its place.
outcome<> check_secrets(const runtime::type& type, const json& options) {
    json copy = options;
    return unmask_secrets(type, json::object(), copy);
}

void note_value(std::vector<value_change>& all, std::string name, json before, json after) {
    if (before == after) return;
    all.push_back({std::move(name), std::move(before), std::move(after)});
}

json text_or_null(const std::string& text) { return text.empty() ? json() : json(text); }

/// The options that differ, with their secrets masked, those `before` by the type of before.
void note_options(std::vector<value_change>& all, const runtime::type& type, const json& before,
                  const json& after, const runtime::type& type_before) {
    const json masked_before = mask_secrets(&type_before, before);
    const json masked_after = mask_secrets(&type, after);
    std::set<std::string> names;
    for (const json* const each : {&before, &after})
        for (const auto& [name, value] : each->items()) names.insert(name);
    for (const std::string& name : names) {
        if (before.value(name, json()) == after.value(name, json())) continue;
        all.push_back({name, masked_before.value(name, json()), masked_after.value(name, json())});
    }
}

bool is_held(const managed_runtime& which) {
    return which.running.has_instance() || which.running.status() == runtime_status::starting ||
           which.desired.record.running;
}

/// Effect of a restart on clients. Empty where present connections may finish in their time.
std::string restart_risk(const runtime::type& type, const edit_plan& plan, std::uint64_t clients) {
    using enum runtime::type::restart_clients;
    const bool has_short_time = type.replaced_time > duration{};
    if (plan.clients == none || (plan.clients == served && !has_short_time)) return {};
    // A program has no keys, and a change of its options is meant to start it anew.
    if (plan.clients == wait && type.uses_others) return {};
    std::string text =
        fmt::format("it restarts for --{}: ", fmt::join(plan.restart_options, ", --"));
    if (clients > 0 || plan.clients == served)
        text += fmt::format("{} closed after up to {}",
                            clients == 0 ? std::string("connections are")
                                         : counted(clients, "connection is", "connections are"),
                            runtime::format_duration(plan.drain.count()));
    if (plan.clients == served) return text;
    return text + fmt::format("{}clients that connect wait until it serves again; its keys stay",
                              clients > 0 ? ", " : "");
}

std::vector<transport::address> addresses_of(const managed_runtime& which) {
    if (!which.desired.type || !which.desired.options) return {};
    return runtime::claimed_addresses(*which.desired.type, *which.desired.options);
}

}  // namespace

std::string_view to_string(stack_step step) noexcept {
    switch (step) {
        case stack_step::create: return "create";
        case stack_step::edit: return "edit";
        case stack_step::start: return "start";
        case stack_step::stop: return "stop";
        case stack_step::remove: return "remove";
    }
    EDDY_ASSERT(false);
}

/// The state of one plan() call.
struct stack_planner::draft {
    const stack_request& wanted;
    std::map<std::string, const stack_member*, std::less<>> members = {};
    std::vector<stack_fault> faults = {};
    std::vector<planned_change> changes = {};
    std::size_t unchanged = 0;
    std::map<std::string, runtime_ref, std::less<>> removed = {};
    std::vector<runtime_ref> freed = {};  // of no file; their owner is removed

    void blame(std::string name, std::string message) {
        faults.push_back({std::move(name), std::move(message)});
    }
};

// --- Checks of the whole -----------------------------------------------------------------------

stack_outcome<> stack_planner::check_size(const stack_request& wanted) const {
    if (auto valid = check_runtime_name(wanted.name); !valid) {
        problem why = std::move(valid.error());
        why.message = fmt::format("the name of the stack: {}", why.message);
        return refuse_stack(std::move(why));
    }
    if (wanted.members.size() > registry_.limit())
        return refuse_stack({409, fmt::format("the stack has {} runtimes, and a daemon has at most "
                                              "{}; divide it among several daemons",
                                              wanted.members.size(), registry_.limit())});
    return {};
}

void stack_planner::check_names(draft& of) const {
    for (const stack_member& each : of.wanted.members) {
        if (auto valid = check_runtime_name(each.name); !valid)
            of.blame(each.name, std::move(valid.error().message));
        else if (!of.members.emplace(each.name, &each).second)
            of.blame(each.name, "two runtimes of the stack have this name");
    }
}

/// Owners are there, and none owns itself.
void stack_planner::check_owners(draft& of) const {
    const auto owner_of = [&](std::string_view name) -> std::optional<std::string> {
        const auto member = of.members.find(name);
        if (member != of.members.end()) return member->second->owner;
        const runtime_ref known = registry_.get(name);
        if (known == nullptr || of.removed.contains(name)) return std::nullopt;
        return known->desired.record.owner;
    };
    const std::size_t most = of.members.size() + registry_.size() + 1;
    for (const stack_member& each : of.wanted.members) {
        std::string above = each.owner;
        for (std::size_t steps = 0; !above.empty(); ++steps) {
            if (above == each.name || steps > most) {
                of.blame(each.name, fmt::format("it would own its own owner \"{}\"", each.owner));
                break;
            }
            auto next = owner_of(above);
            if (!next && steps == 0 && lifecycle_ != nullptr) {
                std::vector<std::string_view> names;
                for (const auto& [name, ignored] : of.members) names.push_back(name);
                const std::string_view meant = nearest_word(above, names);
                of.blame(each.name,
                         fmt::format("there is no runtime \"{}\" to own it{}", above,
                                     meant.empty() ? std::string()
                                                   : fmt::format("; did you mean \"{}\"?", meant)));
            }
            if (!next) break;
            above = std::move(*next);
        }
    }
}

/// Finds the stack's runtimes that it does not declare any more, and the ones that those own; what
/// they own and is to be kept stays.
void stack_planner::find_removed(draft& of) const {
    std::vector<runtime_ref> next;
    for (const runtime_ref& each : registry_.all())
        if (each->desired.record.stack == of.wanted.name && !of.members.contains(each->name()))
            next.push_back(each);
    while (!next.empty()) {
        const runtime_ref one = std::move(next.back());
        next.pop_back();
        if (!of.removed.emplace(one->name(), one).second) continue;
        for (runtime_ref& child : registry_.children_of(one->name())) {
            if (of.members.contains(child->name())) continue;
            const bool is_kept = child->desired.record.policy == on_parent_stop::keep &&
                                 child->desired.record.stack != of.wanted.name;
            (is_kept ? of.freed : next).push_back(std::move(child));
        }
    }
}

// --- Addresses ---------------------------------------------------------------------------------

/// No two runtimes, of the stack or beside it, have the same address afterwards.
void stack_planner::check_addresses(draft& of) const {
    struct claim {
        std::string name;
        transport::address where;
        bool is_member;
    };
    std::multimap<std::string, claim, std::less<>> claims;
    const auto take = [&](const std::string& name, const std::vector<transport::address>& all,
                          bool is_member) {
        for (const transport::address& each : all) {
            const std::string key = claim_key(each);
            const auto [begin, end] = claims.equal_range(key);
            const auto other = std::find_if(begin, end, [&](const auto& entry) {
                return runtime::is_same_claim(each, entry.second.where);
            });
            if (other != end && is_member)
                of.blame(name, fmt::format("{} is the address of \"{}\", too", each.to_string(),
                                           other->second.name));
            claims.emplace(key, claim{name, each, is_member});
        }
    };
    for (const runtime_ref& each : registry_.all())
        if (!of.members.contains(each->name()) && !of.removed.contains(each->name()) &&
            is_held(*each))
            take(each->name(), addresses_of(*each), false);
    std::map<std::string_view, const planned_change*> changes;
    for (const planned_change& each : of.changes) changes.emplace(each.shown.name, &each);
    for (const stack_member& each : of.wanted.members) {
        if (!each.is_to_run) continue;
        const auto found = changes.find(each.name);
        const planned_change* const change = found == changes.end() ? nullptr : found->second;
        if (change != nullptr && change->options)
            take(each.name, runtime::claimed_addresses(*change->type, *change->options), true);
        else if (const runtime_ref known = registry_.get(each.name))
            take(each.name, addresses_of(*known), true);
    }
}

/// Programs outside the daemon may have them.
void stack_planner::try_addresses(draft& of) const {
    const runtime::host none;
    std::multimap<std::string, const transport::address*, std::less<>> released;
    for (const planned_change& each : of.changes)
        for (const transport::address& where : each.held)
            released.emplace(claim_key(where), &where);
    const auto is_released = [&](const transport::address& where) {
        const auto [begin, end] = released.equal_range(claim_key(where));
        return std::any_of(begin, end, [&](const auto& entry) {
            return runtime::is_same_claim(where, *entry.second);
        });
    };
    for (const planned_change& each : of.changes) {
        if (!each.is_start() && !each.is_set_aside) continue;
        for (const transport::address& where : each.wanted) {
            using transport::scheme;
            if (where.kind == scheme::tls || where.kind == scheme::shm) continue;
            if (is_released(where)) continue;
            if (auto free = runtime::try_address(where, {}, none); !free)
                of.blame(each.shown.name, std::move(free.error().message));
        }
    }
}

// --- Changes of one runtime --------------------------------------------------------------------

/// Text about what the end of its instance loses.
std::string stack_planner::loss_text(const managed_runtime& of) const {
    EDDY_ASSERT(of.desired.type != nullptr);
    std::string text;
    if (const std::uint64_t clients = connections_of(of); clients > 0)
        text = fmt::format("{} closed", counted(clients, "connection is", "connections are"));
    double keys = 0;
    for (const runtime::metric_sample& each : of.running.vitals().counted.samples)
        if (const double* number = std::get_if<double>(&each.value);
            number != nullptr && each.of->name == "keys")
            keys = *number;
    const auto& options = of.desired.options;
    const auto& table = of.desired.type->options;
    const bool may_save =
        std::ranges::any_of(table,
                            [](const runtime::option& each) { return each.name == "dir"; }) &&
        options && options->has("dir");
    if (keys > 0 && !may_save)
        text += fmt::format(
            "{}{} lost: it has no --dir", text.empty() ? "" : ", and ",
            counted(static_cast<std::uint64_t>(std::llround(keys)), "key is", "keys are"));
    return text;
}

void stack_planner::note_edit(planned_change& made) const {
    EDDY_ASSERT(made.which != nullptr && made.options && made.type != nullptr);
    const managed_runtime& which = *made.which;
    const runtime_record& now = which.desired.record;
    const runtime_record& fresh = made.fresh;
    auto& values = made.shown.values;
    note_value(values, "owner", text_or_null(now.owner), text_or_null(fresh.owner));
    note_value(values, "on_parent_stop", to_string(now.policy), to_string(fresh.policy));
    note_value(values, "group", text_or_null(now.group), text_or_null(fresh.group));
    note_value(values, "stack", text_or_null(now.stack), text_or_null(fresh.stack));
    note_options(values, *made.type, now.options, fresh.options,
                 which.desired.type == nullptr ? *made.type : *which.desired.type);
    if (made.is_retyped) return note_retype(made);
    if (made.is_stop()) {
        const std::string loss = loss_text(which);
        made.shown.risk = loss.empty() ? "it is stopped" : "it is stopped: " + loss;
        return;
    }
    if (values.empty()) return;
    made.shown.step = stack_step::edit;
    made.shown.plan.effect = edit_effect::saved;
    if (!which.running.has_instance() || now.options == fresh.options || !which.desired.options)
        return;
    EDDY_ASSERT(lifecycle_ != nullptr);
    made.shown.plan = lifecycle_->plan(which, *made.options);
    if (made.shown.plan == edit_effect::restarted)
        made.shown.risk = restart_risk(*made.type, made.shown.plan, connections_of(which));
}

/// The values are noted. Nothing of the old type is the new one's.
void stack_planner::note_retype(planned_change& made) const {
    EDDY_ASSERT(made.which != nullptr && made.is_retyped);
    const managed_runtime& which = *made.which;
    stack_change& shown = made.shown;
    shown.values.insert(shown.values.begin(),
                        value_change{"type", which.desired.record.type, made.fresh.type});
    shown.step = stack_step::edit;
    shown.plan.effect = edit_effect::saved;
    const std::string becomes = fmt::format("it is stopped, and its type becomes {}", shown.type);
    if (made.is_set_aside) {
        EDDY_ASSERT(lifecycle_ != nullptr && which.desired.type != nullptr);
        shown.plan.effect = edit_effect::restarted;
        shown.plan.drain = lifecycle_->stop_time_of(which);
        const std::string loss = loss_text(which);
        shown.risk = loss.empty() ? becomes : fmt::format("{}: {}", becomes, loss);
    } else if (which.running.handover()) {
        shown.risk = fmt::format("its type becomes {}, and {} is lost", shown.type, handover_loss);
    }
}

/// A runtime of a circle that waits for each other's addresses: it does not serve for a moment.
void stack_planner::note_exchange(planned_change& made) const {
    EDDY_ASSERT(made.is_set_aside && !made.is_retyped && lifecycle_ != nullptr);
    const managed_runtime& which = *made.which;
    stack_change& shown = made.shown;
    shown.plan.drain = lifecycle_->stop_time_of(which);
    shown.risk = "it stops for a moment, to exchange addresses with others: ";
    if (const std::uint64_t clients = connections_of(which); clients > 0)
        shown.risk += fmt::format("{} closed after up to {}, ",
                                  counted(clients, "connection is", "connections are"),
                                  runtime::format_duration(shown.plan.drain.count()));
    shown.risk += "clients that connect meanwhile are refused";
    if (made.type->over_restart == runtime::type::restart_clients::wait && !made.type->uses_others)
        shown.risk += "; its keys stay";
}

/// An address that it has and keeps is neither released nor wanted.
void stack_planner::keep_addresses(planned_change& made) const {
    const auto is_kept = [](const std::vector<transport::address>& in) {
        return [&in](const transport::address& each) {
            return std::ranges::any_of(in, [&](const transport::address& other) {
                return runtime::is_same_claim(each, other);
            });
        };
    };
    const auto held = made.held;
    std::erase_if(made.held, is_kept(made.wanted));
    std::erase_if(made.wanted, is_kept(held));
}

outcome<> stack_planner::plan_edit(planned_change& made, const stack_request& wanted,
                                   const stack_member& member) const {
    EDDY_ASSERT(made.which != nullptr && made.options && made.type != nullptr);
    const managed_runtime& which = *made.which;
    const runtime_record& now = which.desired.record;
    if (now.stack != wanted.name && !wanted.adopts)
        return refuse(
            409, fmt::format("there is a runtime \"{}\" already, {}; --adopt makes it "
                             "this stack's, else choose another name",
                             now.name,
                             now.stack.empty() ? std::string("made by hand")
                                               : fmt::format("of the stack \"{}\"", now.stack)));
    made.fresh = now;
    made.fresh.type = member.type;
    made.is_retyped = now.type != member.type;
    made.fresh.owner = member.owner;
    made.fresh.policy = member.policy;
    made.fresh.group = member.group;
    made.fresh.stack = wanted.name;
    made.fresh.options = made.options->to_json();
    const bool is_idle =
        !which.running.has_instance() && which.running.status() != runtime_status::starting;
    made.shown.starts = member.is_to_run && wanted.starts && is_idle;
    if (!member.is_to_run && is_held(which))
        made.shown.step = stack_step::stop;
    else
        made.shown.step = stack_step::start;
    if (made.shown.starts || made.is_stop()) made.fresh.running = made.shown.starts;
    made.is_set_aside = made.is_retyped && !is_idle;
    if (!is_idle) made.held = addresses_of(which);
    if (!made.is_set_aside || made.fresh.running)
        made.wanted = runtime::claimed_addresses(*made.type, *made.options);
    note_edit(made);
    if (!made.is_stop() && !made.is_set_aside && !is_idle) keep_addresses(made);
    return {};
}

/// None where the runtime is as it should be.
outcome<std::optional<planned_change>> stack_planner::plan_member(
    const stack_request& wanted, const stack_member& member) const {
    const auto type = registry_.find_type(member.type);
    if (!type) return std::unexpected(type.error());
    if (!member.group.empty())
        if (auto valid = check_group_name(member.group); !valid)
            return std::unexpected(std::move(valid.error()));
    planned_change made;
    made.type = *type;
    made.which = registry_.get(member.name);
    made.shown.name = member.name;
    made.shown.type = member.type;
    if (auto valid = check_secrets(**type, member.options); !valid)
        return std::unexpected(std::move(valid.error()));
    auto options = runtime::settings::parse((*type)->options, member.options);
    if (!options) return std::unexpected(std::move(options.error()));
    made.options = std::move(*options);
    const bool is_known = made.which != nullptr;
    if (is_known) {
        if (auto valid = plan_edit(made, wanted, member); !valid)
            return std::unexpected(std::move(valid.error()));
        if (made.shown.step == stack_step::start && !made.shown.starts)
            return std::optional<planned_change>();
    } else {
        runtime_record& fresh = made.fresh;
        fresh.name = member.name;
        fresh.type = member.type;
        fresh.owner = member.owner;
        fresh.policy = member.policy;
        fresh.group = member.group;
        fresh.stack = wanted.name;
        fresh.options = made.options->to_json();
        fresh.running = member.is_to_run && wanted.starts;
        made.shown.step = stack_step::create;
        made.shown.starts = fresh.running;
        if (fresh.running) made.wanted = runtime::claimed_addresses(**type, *made.options);
        note_options(made.shown.values, **type, json::object(), fresh.options, **type);
        note_value(made.shown.values, "owner", {}, text_or_null(fresh.owner));
        if (fresh.policy != on_parent_stop::stop)
            note_value(made.shown.values, "on_parent_stop", {}, to_string(fresh.policy));
        note_value(made.shown.values, "group", {}, text_or_null(fresh.group));
    }
    // Scripts and files are read by these; those of runtimes that stay as they are need not be.
    if (auto valid = check_options(**type, member.options); !valid)
        return std::unexpected(std::move(valid.error()));
    if (auto valid = check_files(**type, *made.options); !valid)
        return std::unexpected(std::move(valid.error()));
    return std::optional(std::move(made));
}

/// It has no owner any more. None where it cannot be edited.
std::optional<planned_change> stack_planner::plan_release(const runtime_ref& which) const {
    EDDY_ASSERT(which != nullptr && !which->is_removed);
    const desired_state& desired = which->desired;
    if (desired.type == nullptr || !desired.options) return std::nullopt;
    planned_change made;
    made.which = which;
    made.type = desired.type;
    made.options = desired.options;
    made.shown.name = which->name();
    made.shown.type = desired.record.type;
    made.fresh = desired.record;
    made.fresh.owner.clear();
    note_edit(made);
    made.shown.step = stack_step::edit;
    return made;
}

planned_change stack_planner::plan_removal(const runtime_ref& which) const {
    EDDY_ASSERT(which != nullptr && !which->is_removed);
    planned_change made;
    made.which = which;
    made.type = which->desired.type;
    made.shown.name = which->name();
    made.shown.type = which->desired.record.type;
    made.shown.step = stack_step::remove;
    if (which->running.has_instance() || which->running.status() == runtime_status::starting) {
        made.held = addresses_of(*which);
        const std::string loss = loss_text(*which);
        made.shown.risk =
            loss.empty() ? "it is stopped and removed" : "it is stopped and removed: " + loss;
    } else if (which->running.handover()) {
        made.shown.risk = fmt::format("it is removed, and {} is lost", handover_loss);
    }
    return made;
}

// --- The plan ----------------------------------------------------------------------------------

task<stack_outcome<stack_planner::found>> stack_planner::plan(const stack_request& wanted) {
    if (auto valid = check_size(wanted); !valid) co_return std::unexpected(valid.error());
    draft made{wanted};
    check_names(made);
    find_removed(made);
    check_owners(made);
    std::size_t created = 0;
    for (const stack_member& each : wanted.members) {
        // A script may take long to check.
        co_await loop::current().yield();
        auto change = plan_member(wanted, each);
        if (!change) {
            made.blame(each.name, std::move(change.error().message));
        } else if (!*change) {
            ++made.unchanged;
        } else {
            if ((*change)->which == nullptr) ++created;
            made.changes.push_back(std::move(**change));
        }
    }
    for (const auto& [name, which] : made.removed) {
        made.changes.push_back(plan_removal(which));
        stack_change& shown = made.changes.back().shown;
        if (which->desired.record.stack != wanted.name)
            shown.removed_with = which->desired.record.owner;
    }
    for (const runtime_ref& each : made.freed)
        if (auto change = plan_release(each)) made.changes.push_back(std::move(*change));
    if (registry_.size() + created - made.removed.size() > registry_.limit())
        co_return refuse_stack(
            {409,
             fmt::format("there would be {} runtimes, and a daemon has at most {}",
                         registry_.size() + created - made.removed.size(), registry_.limit())});
    for (planned_change& each : made.changes) {
        const auto owner = [&](const std::string& name) -> std::string {
            const auto member = made.members.find(name);
            if (member != made.members.end()) return member->second->owner;
            const runtime_ref known = registry_.get(name);
            return known ? known->desired.record.owner : std::string();
        };
        for (std::string above = owner(each.shown.name);
             !above.empty() && each.depth <= made.members.size(); above = owner(above))
            ++each.depth;
    }
    check_addresses(made);
    if (made.faults.empty()) {
        order_changes(made.changes);
        for (planned_change& each : made.changes)
            if (each.is_set_aside && !each.is_retyped) note_exchange(each);
        if (lifecycle_ != nullptr) try_addresses(made);
    }
    if (!made.faults.empty()) {
        const std::size_t count = made.faults.size();
        problem why{
            409, count == 1 ? fmt::format("\"{}\": {}", made.faults[0].name, made.faults[0].message)
                            : fmt::format("{} faults; the first one, of \"{}\": {}", count,
                                          made.faults[0].name, made.faults[0].message)};
        if (count > most_faults) made.faults.resize(most_faults);
        co_return std::unexpected(stack_refusal{std::move(why), std::move(made.faults)});
    }
    co_return found{std::move(made.changes), made.unchanged};
}

}  // namespace eddy::daemon
