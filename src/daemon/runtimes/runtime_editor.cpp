// Create, edit and remove.
#include "daemon/runtimes/runtime_editor.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>

#include "daemon/runtimes/runtime_options.hpp"
#include "daemon/state/runtime_name.hpp"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <utility>

namespace eddy::daemon {
namespace {

std::string new_id() {
    // Twelve hexadecimal digits: unique among the few that one daemon keeps.
    return fmt::format("{:012x}", entropy_seed() >> 16);
}

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

/// The last lines of a runtime that is no more.
void end_journal(runtime_journal& journal) {
    journal.close();
    journal.discard();
}

}  // namespace

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
    if (auto valid = registry_.check_owner(request.owner, request.name); !valid)
        co_return std::unexpected(std::move(valid.error()));
    if (registry_.get(request.name) != nullptr)
        co_return refuse(409, fmt::format("there is a runtime \"{}\" already. Choose another name, "
                                          "or remove it with: eddy remove {}",
                                          request.name, request.name));
    if (registry_.is_full())
        co_return refuse(409, fmt::format("there are {} runtimes, which is the limit; remove one "
                                          "first",
                                          registry_.limit()));

    runtime_record record;
    record.id = new_id();
    record.name = request.name;
    record.type = request.type;
    record.owner = request.owner;
    record.group = request.group;
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
        end_journal(*fresh->journal);
        registry_.forget(*fresh);
        co_return with_context(fmt::format("\"{}\" was not created", fresh->name()),
                               std::move(saved.error()));
    }
    fresh->journal->write("created");
    log_info(fresh->name(), fmt::format("created, type {}", fresh->desired.record.type));
    co_return fresh;
}

task<outcome<>> runtime_editor::remove(runtime_ref which, unsaved data) {
    const std::string name = which->name();
    static_cast<void>(co_await runtime_lifecycle::give_up_start(which));
    {
        const auto held = co_await which->change_lock.lock();
        if (!held) co_return interrupted();
        if (which->is_removed) co_return outcome<>();
        which->start_given_up.reset();
        auto removed = co_await remove_alone(which, data);
        if (!removed) co_return removed;
    }
    outcome<> all_removed;
    for (const runtime_ref& child : registry_.children_of(name)) {
        auto removed = co_await remove(child, data);
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
    end_journal(*which->journal);
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
    runtime::use_current_names(desired.type->options, wanted.options);
    if (auto known = unmask_secrets(*desired.type, fresh.options, wanted.options); !known)
        co_return std::unexpected(std::move(known.error()));
    fresh.options.merge_patch(wanted.options);
    auto checked = check_options(*desired.type, fresh.options);
    if (!checked) co_return std::unexpected(std::move(checked.error()));
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
    // An instance that has ended meanwhile was not restarted.
    if (prepared->plan != *effect) co_return edit_plan{.effect = *effect};
    co_return std::move(prepared->plan);
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
    if (!which->running.has_instance() && is_to_run) co_return co_await lifecycle_.bring_up(which);
    co_return outcome<>();
}

}  // namespace eddy::daemon
