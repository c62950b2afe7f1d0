// Create, edit and remove.
#include "daemon/runtimes/runtime_editor.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>

#include "base/text/text.hpp"
#include "daemon/runtimes/runtime_options.hpp"
#include "daemon/state/runtime_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

/// Empty for none.
outcome<> check_group(const std::string& group) {
    return group.empty() ? outcome<>() : check_group_name(group);
}

/// True when a new record changes the options of a running instance; else it is for the next start.
bool is_applied_at_once(const managed_runtime& which, const runtime_record& fresh) {
    const desired_state& desired = which.desired;
    const bool has_same_options = desired.options && fresh.options == desired.record.options;
    return which.running.has_instance() && !has_same_options;
}

}  // namespace

std::string changed_members(const runtime_record& before, const runtime_record& after) {
    std::vector<std::string> flags;
    if (before.type != after.type) flags.push_back(fmt::format("type {}", after.type));
    const auto add = [&flags](const json& from, const json& to) {
        for (const auto& [name, value] : from.items())
            if (!to.contains(name) || to.at(name) != value)
                if (const std::string flag = "--" + option_flag(name);
                    std::ranges::find(flags, flag) == flags.end())
                    flags.push_back(flag);
    };
    add(before.options, after.options);
    add(after.options, before.options);
    if (before.owner != after.owner) flags.emplace_back("--owner");
    if (before.group != after.group) flags.emplace_back("--group");
    if (before.policy != after.policy) flags.emplace_back("--on-parent-stop");
    return fmt::format("{}", fmt::join(flags, ", "));
}

std::string new_runtime_id() {
    // Twelve hexadecimal digits: unique among the few that one daemon keeps.
    return fmt::format("{:012x}", entropy_seed() >> 16);
}

void end_journal(managed_runtime& which) {
    which.end_followers();
    which.journal->discard();
}

runtime_ref runtime_editor::adopt(runtime_record stored, std::vector<journal_line> earlier) {
    auto journal = std::make_shared<runtime_journal>(loop::current());
    journal->keep(journals_, stored.name, std::move(earlier));
    if (const auto type = registry_.find_type(stored.type))
        runtime::use_current_names((*type)->options, stored.options);
    auto fresh = std::make_shared<managed_runtime>(std::move(stored), std::move(journal));
    registry_.add(fresh);
    return fresh;
}

// --- Create and remove ----------------------------------------------------------------------

task<outcome<runtime_ref>> runtime_editor::create(runtime_request request) {
    if (auto valid = check_runtime_name(request.name); !valid)
        co_return std::unexpected(std::move(valid.error()));
    if (auto valid = check_group(request.group); !valid)
        co_return std::unexpected(std::move(valid.error()));
    const auto type = registry_.find_type(request.type);
    if (!type) co_return std::unexpected(type.error());
    auto options = check_options(**type, request.options);
    if (!options) co_return std::unexpected(std::move(options.error()));
    if (auto valid = check_files(**type, *options); !valid)
        co_return std::unexpected(std::move(valid.error()));
    if (auto valid = registry_.check_owner(request.owner, request.name); !valid)
        co_return std::unexpected(std::move(valid.error()));
    if (registry_.get(request.name) != nullptr)
        co_return refuse(409, fmt::format("there is a runtime \"{}\" already. Choose another name, "
                                          "or remove it with: eddy remove {}",
                                          request.name, request.name));
    if (registry_.is_reserved(request.name))
        co_return refuse(409,
                         fmt::format("a runtime \"{}\" is being renamed; try again", request.name));
    if (registry_.is_full())
        co_return refuse(409, fmt::format("there are {} runtimes, which is the limit; remove one "
                                          "first, or start the daemon with a higher --max-runtimes",
                                          registry_.limit()));

    runtime_record record;
    record.id = new_runtime_id();
    record.name = request.name;
    record.type = request.type;
    record.owner = request.owner;
    record.group = request.group;
    record.policy = request.policy;
    // The file knows whole seconds.
    record.created = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    record.options = options->to_json();
    const runtime_ref fresh = adopt(std::move(record), {});
    EDDY_ASSERT(fresh->desired.options && fresh->running.status() == runtime_status::created);
    const permit held = fresh->change_lock.try_lock();
    EDDY_ASSERT(held);
    auto saved = co_await state_.save(fresh->desired.record);
    if (!saved) {
        fresh->is_removed = true;
        end_journal(*fresh);
        registry_.forget(*fresh);
        co_return with_context(fmt::format("\"{}\" was not created", fresh->name()),
                               std::move(saved.error()));
    }
    fresh->journal->write("created");
    registry_.note(*fresh, event_kind::created);
    log_info(fresh->name(), fmt::format("created, type {}", fresh->desired.record.type));
    co_return fresh;
}

task<outcome<>> runtime_editor::remove(runtime_ref which, unsaved data) {
    static_cast<void>(co_await runtime_lifecycle::give_up_start(which));
    {
        const auto held = co_await which->change_lock.lock();
        if (!held) co_return interrupted();
        if (which->is_removed) co_return outcome<>();
        which->start_given_up.reset();
        auto removed = co_await remove_alone(which, data);
        if (!removed) co_return removed;
    }
    const std::string name = which->name();
    outcome<> all_removed;
    for (const runtime_ref& child : registry_.children_of(name)) {
        auto removed = co_await end_owned(child, data);
        if (!removed)
            all_removed =
                with_context(fmt::format("\"{}\" was removed, but not all that it owns", name),
                             std::move(removed.error()));
        if (!child->is_removed) continue;
        which->removed_with_it.push_back(child);
        for (runtime_ref& each : std::exchange(child->removed_with_it, {}))
            which->removed_with_it.push_back(std::move(each));
    }
    co_return all_removed;
}

/// The owner is removed. One that is to be kept has none from then on.
task<outcome<>> runtime_editor::end_owned(runtime_ref child, unsaved data) {
    if (child->desired.record.policy != on_parent_stop::keep)
        co_return co_await remove(child, data);
    auto freed = co_await edit(child, {.owner = std::string()});
    if (!freed) co_return std::unexpected(std::move(freed.error()));
    co_return outcome<>();
}

/// Removes the runtime without the ones that it owns. The caller has the lock.
task<outcome<>> runtime_editor::remove_alone(runtime_ref which, unsaved data) {
    EDDY_ASSERT(which->change_lock.locked());
    const std::string name = which->name();
    running_state& running = which->running;
    running.set_lost({});
    auto down = co_await lifecycle_.take_down(which, data);
    if (!down) co_return down;
    if (running.handover() && data == unsaved::kept)
        co_return refuse(409, fmt::format("\"{}\" was not removed: {}", name, handover_text));
    auto erased = co_await state_.erase(name);
    if (!erased)
        co_return with_context(fmt::format("\"{}\" is stopped, but was not removed", name),
                               std::move(erased.error()));
    if (running.handover()) {
        running.keep_handover(nullptr);
        running.set_lost(std::string(handover_loss));
    }
    which->is_removed = true;
    which->journal->write("removed");
    registry_.note(*which, event_kind::removed, running.lost());
    end_journal(*which);
    registry_.remove(*which);
    log_info(name, "removed");
    co_return outcome<>();
}

// --- Edit -----------------------------------------------------------------------------------

struct runtime_editor::prepared_edit {
    permit change;  // of the runtime
    permit owners;  // of all owners, where it changes its own
    runtime_record fresh;
    runtime::settings options;
    edit_plan plan;
};

task<outcome<runtime_editor::prepared_edit>> runtime_editor::prepare_edit(runtime_ref which,
                                                                          edit_request wanted) {
    auto held = co_await runtime_lifecycle::lock_unless_starting(which, "edit");
    if (!held) co_return std::unexpected(std::move(held.error()));
    if (which->is_removed) co_return vanished(*which);
    const desired_state& desired = which->desired;
    if (!desired.type) co_return refuse(409, which->running.reason());

    prepared_edit made{std::move(*held), {}, desired.record, {}, {}};
    runtime_record& fresh = made.fresh;
    if (wanted.owner) {
        // Two edits that make runtimes each other's owner must not both pass the check.
        auto owners = co_await owners_.lock();
        if (!owners) co_return interrupted();
        made.owners = std::move(*owners);
        if (auto valid = registry_.check_owner(*wanted.owner, fresh.name); !valid)
            co_return std::unexpected(std::move(valid.error()));
        fresh.owner = std::move(*wanted.owner);
    }
    if (wanted.group) {
        if (auto valid = check_group(*wanted.group); !valid)
            co_return std::unexpected(std::move(valid.error()));
        fresh.group = std::move(*wanted.group);
    }
    if (wanted.policy) fresh.policy = *wanted.policy;
    runtime::use_current_names(desired.type->options, wanted.options);
    if (auto known = unmask_secrets(*desired.type, fresh.options, wanted.options); !known)
        co_return std::unexpected(std::move(known.error()));
    // Merging would drop the name of an option that does not exist.
    json taken_back = json::object();
    for (const auto& [name, value] : wanted.options.items())
        if (value.is_null()) taken_back[name] = nullptr;
    if (auto known = runtime::settings::parse(desired.type->options, taken_back); !known)
        co_return std::unexpected(std::move(known.error()));
    fresh.options.merge_patch(wanted.options);
    auto checked = check_options(*desired.type, fresh.options);
    if (!checked) co_return std::unexpected(std::move(checked.error()));
    if (!wanted.options.empty())
        if (auto valid = check_files(*desired.type, *checked); !valid)
            co_return std::unexpected(std::move(valid.error()));
    fresh.options = checked->to_json();
    made.options = std::move(*checked);
    if (fresh == desired.record) co_return made;
    made.plan.effect = edit_effect::saved;
    if (is_applied_at_once(*which, fresh)) made.plan = lifecycle_.plan(*which, made.options);
    if (made.plan == edit_effect::restarted && wanted.restart == edit_restart::refused)
        co_return refuse(409,
                         fmt::format("\"{}\" was not changed: --{} cannot change without a restart",
                                     fresh.name, fmt::join(made.plan.restart_options, ", --")));
    co_return made;
}

task<outcome<edit_plan>> runtime_editor::plan_edit(runtime_ref which, edit_request wanted) {
    const restart_data data = wanted.data;
    auto prepared = co_await prepare_edit(which, std::move(wanted));
    if (!prepared) co_return std::unexpected(std::move(prepared.error()));
    if (prepared->plan == edit_effect::restarted) {
        auto good =
            co_await runtime_lifecycle::check_restart(which, std::move(prepared->options), data);
        if (!good)
            co_return with_context(fmt::format("\"{}\" keeps its old options", which->name()),
                                   std::move(good.error()));
    }
    co_return std::move(prepared->plan);
}

task<outcome<edit_plan>> runtime_editor::edit(runtime_ref which, edit_request wanted) {
    const bool changes_owner = wanted.owner.has_value();
    const restart_data data = wanted.data;
    auto prepared = co_await prepare_edit(which, std::move(wanted));
    if (!prepared) co_return std::unexpected(std::move(prepared.error()));
    if (prepared->plan == edit_effect::none) co_return edit_plan();

    runtime_record& fresh = prepared->fresh;
    const runtime_record before = which->desired.record;
    auto saved = co_await state_.save(fresh);
    if (!saved)
        co_return with_context(fmt::format("\"{}\" was not changed", fresh.name),
                               std::move(saved.error()));
    outcome<edit_effect> effect = edit_effect::none;
    // Its owner may have been removed while it was saved.
    if (auto valid = registry_.check_owner(fresh.owner, fresh.name); changes_owner && !valid)
        effect = std::unexpected(std::move(valid.error()));
    else
        effect =
            co_await put_into_effect(which, std::move(fresh), std::move(prepared->options), data);
    if (!effect) {
        EDDY_ASSERT(which->desired.record == before);
        auto restored = co_await state_.save(before);
        if (!restored) log_error(before.name, restored.error().message);
        co_return std::unexpected(std::move(effect.error()));
    }
    registry_.note(*which, event_kind::edited, changed_members(before, which->desired.record));
    // An instance that has ended meanwhile was not restarted.
    if (prepared->plan != *effect) co_return edit_plan{.effect = *effect};
    co_return std::move(prepared->plan);
}

task<outcome<>> runtime_editor::rename(runtime_ref which, std::string to) {
    if (auto valid = check_runtime_name(to); !valid) co_return valid;
    auto held = co_await runtime_lifecycle::lock_unless_starting(which, "rename");
    if (!held) co_return std::unexpected(std::move(held.error()));
    if (which->is_removed) co_return vanished(*which);
    const std::string old_name = which->name();
    if (to == old_name) co_return outcome<>();
    if (registry_.get(to) != nullptr || registry_.is_reserved(to))
        co_return refuse(
            409,
            fmt::format("\"{}\" was not renamed: there is a runtime \"{}\" already", old_name, to));
    // The old name may have to be given back.
    const auto reserved = registry_.reserve(old_name);
    const std::string former = which->desired.record.former_name;
    const std::vector<runtime_ref> children = registry_.children_of(old_name);
    registry_.rename(*which, to);
    auto saved = co_await save_renamed(which, old_name);
    if (!saved) {
        registry_.rename(*which, old_name);
        which->desired.record.former_name = former;
        co_return with_context(fmt::format("\"{}\" was not renamed", old_name),
                               std::move(saved.error()));
    }
    if (which->running.host()) which->running.host()->rename(to);
    for (const replaced_instance& each : which->replaced)
        if (each.host) each.host->rename(to);
    runtime_journal& journal = *which->journal;
    static_cast<void>(co_await run_blocking(disk_, [&, this] { journals_.rename(journal, to); }));
    journal.write(fmt::format("renamed from {}", old_name));
    registry_.note(*which, event_kind::renamed, fmt::format("from {}", old_name));
    log_info(to, fmt::format("renamed from {}", old_name));
    held->release();
    outcome<> all_saved;
    for (const runtime_ref& child : children) {
        const auto lock = co_await child->change_lock.lock();
        if (!lock) co_return interrupted();
        runtime_record& record = child->desired.record;
        // A change that was under way has saved the old one.
        if (!child->is_removed && record.owner == old_name && registry_.get(old_name) == nullptr)
            registry_.set_owner(*child, to);
        if (child->is_removed || record.owner != to) continue;
        if (auto kept = co_await state_.save(record); !kept)
            all_saved = with_context(fmt::format("\"{}\" is renamed, but the owner of \"{}\" was "
                                                 "not saved",
                                                 to, child->name()),
                                     std::move(kept.error()));
    }
    co_return all_saved;
}

/// Saves the record under its new name, then removes the old one. A crash between leaves both,
/// of which the next start keeps the new one.
task<outcome<>> runtime_editor::save_renamed(runtime_ref which, std::string old_name) {
    auto saved = co_await state_.save(which->desired.record);
    if (!saved) co_return saved;
    auto erased = co_await state_.erase(old_name);
    if (erased) co_return outcome<>();
    static_cast<void>(co_await state_.erase(which->name()));
    co_return erased;
}

task<outcome<>> runtime_editor::keep_options(runtime_ref which, json options) {
    const auto held = co_await which->change_lock.lock();
    if (!held) co_return interrupted();
    if (which->is_removed) co_return vanished(*which);
    EDDY_ASSERT(which->desired.type != nullptr);
    runtime_record fresh = which->desired.record;
    fresh.options.merge_patch(options);
    auto checked = check_options(*which->desired.type, fresh.options);
    if (!checked) co_return std::unexpected(std::move(checked.error()));
    fresh.options = checked->to_json();
    auto saved = co_await state_.save(fresh);
    if (!saved) co_return saved;
    registry_.set_record(*which, std::move(fresh));
    which->desired.options = std::move(*checked);
    co_return outcome<>();
}

/// Makes a runtime follow a record that was saved already. On failure it is as it was, running
/// again where that is possible.
task<outcome<edit_effect>> runtime_editor::put_into_effect(runtime_ref which, runtime_record fresh,
                                                           runtime::settings options,
                                                           restart_data data) {
    EDDY_ASSERT(which->change_lock.locked());
    desired_state& desired = which->desired;
    if (!is_applied_at_once(*which, fresh)) {
        registry_.set_record(*which, std::move(fresh));
        desired.options = std::move(options);
        // The fault of the old options is gone.
        if (!which->running.has_instance() && which->running.status() == runtime_status::failed)
            which->running.mark_stopped();
        co_return edit_effect::saved;
    }
    auto effect = co_await lifecycle_.apply(which, std::move(options), data);
    if (!effect)
        co_return with_context(fmt::format("\"{}\" keeps its old options", fresh.name),
                               std::move(effect.error()));
    registry_.set_record(*which, std::move(fresh));
    co_return effect;
}

task<outcome<>> runtime_editor::follow(runtime_ref which, const runtime_record& read,
                                       runtime_record stored) {
    const auto held = co_await which->change_lock.lock();
    if (!held) co_return interrupted();
    const desired_state& desired = which->desired;
    if (which->is_removed || desired.record != read) co_return outcome<>();
    const std::string name = stored.name;
    if (stored.type != desired.record.type || stored.id != desired.record.id)
        co_return refuse(400, fmt::format("the state file of \"{}\" changes its type or id, which "
                                          "a runtime keeps for life; remove it and create another",
                                          name));
    if (!desired.type)
        co_return refuse(409, fmt::format("\"{}\": {}", name, which->running.reason()));
    runtime::use_current_names(desired.type->options, stored.options);
    auto options = check_options(*desired.type, stored.options);
    if (!options)
        co_return with_context(fmt::format("the state file of \"{}\" is not valid", name),
                               std::move(options.error()));
    const bool is_to_run = stored.running;
    if (!is_to_run) {
        auto down = co_await lifecycle_.take_down(which, unsaved::kept);
        if (!down) co_return down;
    }
    auto effect =
        co_await put_into_effect(which, std::move(stored), std::move(*options), restart_data::kept);
    if (!effect) co_return std::unexpected(std::move(effect.error()));
    registry_.note(*which, event_kind::edited, changed_members(read, desired.record));
    if (!which->running.has_instance() && is_to_run) co_return co_await lifecycle_.bring_up(which);
    co_return outcome<>();
}

}  // namespace eddy::daemon
