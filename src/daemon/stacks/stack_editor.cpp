// Execution of the plan of a stack, and its undoing.
#include "daemon/stacks/stack_editor.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ranges>
#include <utility>

namespace eddy::daemon {
namespace {

/// Runtimes that start at the same time at most: more would hold up the clients of a loop.
constexpr std::size_t starts_at_once = 16;

std::unexpected<problem> about(const planned_change& which, problem why) {
    return with_context(fmt::format("\"{}\"", which.shown.name), std::move(why));
}

bool is_accepted(const stack_request& by, const std::string& name) {
    return std::ranges::any_of(
        by.accepted, [&](const std::string& each) { return each == name || each == "*"; });
}

/// The part of the changes that have the same value as the first one.
template <class Value>
std::span<planned_change> same_as_first(std::span<planned_change> in, Value value) {
    const auto end = std::ranges::find_if(
        in, [&](const planned_change& each) { return value(each) != value(in.front()); });
    return in.first(static_cast<std::size_t>(end - in.begin()));
}

}  // namespace

struct stack_editor::made_change {
    enum class kind : std::uint8_t { edited, configured, retyped, set_aside, started, stopped };
    kind what;
    runtime_ref which;
    std::optional<runtime::settings> before = {};  ///< options
    std::optional<desired_state> former = {};      ///< of what was retyped
    std::string reason = {};                       ///< why that did not run
    /// Data for the start of what was set aside.
    std::shared_ptr<runtime::handover> data = {};
    /// Data that waited for the start of what was retyped.
    std::shared_ptr<const runtime::handover> kept = {};
    /// The start of what was set aside, and has its data.
    bool has_data = false;
};

struct stack_editor::execution {
    std::vector<planned_change>& changes;
    std::vector<made_change> made = {};
    std::vector<std::string> notes = {};
    /// Runtimes whose data the next type does not have.
    std::vector<runtime_ref> emptied = {};

    made_change* find(made_change::kind what, const runtime_ref& which) {
        const auto found = std::ranges::find_if(made, [&](const made_change& each) {
            return each.what == what && each.which == which;
        });
        return found == made.end() ? nullptr : &*found;
    }
};

stack_plan stack_editor::plan_of(const stack_planner::found& found) {
    stack_plan plan;
    plan.unchanged = found.unchanged;
    for (const planned_change& each : found.changes) plan.changes.push_back(each.shown);
    return plan;
}

task<stack_outcome<stack_plan>> stack_editor::plan(stack_request wanted) {
    const auto alone = co_await stacks_.lock();
    if (!alone) co_return refuse_stack(interrupted().error());
    co_await lifecycle_.refresh();
    auto found = co_await planner_.plan(wanted);
    if (!found) co_return std::unexpected(std::move(found.error()));
    co_return plan_of(*found);
}

task<stack_outcome<stack_plan>> stack_editor::apply(stack_request wanted) {
    const auto alone = co_await stacks_.lock();
    if (!alone) co_return refuse_stack(interrupted().error());
    co_await lifecycle_.refresh();
    auto found = co_await planner_.plan(wanted);
    if (!found) co_return std::unexpected(std::move(found.error()));
    stack_plan plan = plan_of(*found);
    stack_refusal risky{{409, "nothing was changed: clients or data are at risk"}};
    for (const stack_change& each : plan.changes)
        if (!each.risk.empty() && !is_accepted(wanted, each.name)) risky.risks.push_back(each);
    if (!risky.risks.empty()) co_return std::unexpected(std::move(risky));
    if (plan.changes.empty()) co_return plan;

    auto& changes = found->changes;
    if (auto held = co_await lock_all(changes); !held) co_return refuse_stack(held.error());
    const auto owners = co_await editor_.owners().lock();
    if (!owners) co_return refuse_stack(interrupted().error());
    if (auto good = check_unchanged(changes); !good) co_return refuse_stack(good.error());
    if (auto good = co_await check_restarts(changes); !good) co_return refuse_stack(good.error());
    if (auto good = check_unchanged(changes); !good) co_return refuse_stack(good.error());

    add_fresh(changes);
    execution all{changes};
    auto done = co_await execute(all);
    if (!done) {
        co_await undo(all);
        problem why = std::move(done.error());
        why.message = fmt::format("{}. All is as it was before", why.message);
        for (const std::string& each : all.notes) why.message += "; but " + each;
        co_return refuse_stack(std::move(why));
    }
    finish(all);
    plan.notes = std::move(all.notes);
    log_info("daemon", fmt::format("stack \"{}\": {} changed, {} unchanged", wanted.name,
                                   plan.changes.size(), plan.unchanged));
    co_return plan;
}

// --- Before the first change -------------------------------------------------------------------

/// In the order of the names. No other task waits for one of these locks while it has another.
task<outcome<>> stack_editor::lock_all(std::vector<planned_change>& changes) {
    std::vector<planned_change*> ordered;
    for (planned_change& each : changes)
        if (each.which != nullptr) ordered.push_back(&each);
    std::ranges::sort(ordered, {}, [](const planned_change* each) { return each->shown.name; });
    for (planned_change* const each : ordered) {
        const bool ends_start =
            each->is_stop() && each->which->running.status() == runtime_status::starting;
        if (ends_start) static_cast<void>(co_await runtime_lifecycle::give_up_start(each->which));
        auto held = co_await runtime_lifecycle::lock_unless_starting(each->which, "up");
        if (!held) co_return std::unexpected(std::move(held.error()));
        if (ends_start) each->which->start_given_up.reset();
        each->change = std::move(*held);
    }
    co_return outcome<>();
}

/// Refuses where the registry has changed since the plan was made.
outcome<> stack_editor::check_unchanged(const std::vector<planned_change>& changes) const {
    std::size_t created = 0;
    for (const planned_change& each : changes) {
        const runtime_ref known = registry_.get(each.shown.name);
        if (each.which == nullptr) ++created;
        const bool is_same = known == each.which;
        const bool is_startable = !is_same || !each.is_start() || each.which == nullptr ||
                                  !each.which->running.has_instance();
        if (!is_same || !is_startable)
            return refuse(409, fmt::format("\"{}\" was changed by another request meanwhile; try "
                                           "again",
                                           each.shown.name));
    }
    if (registry_.size() + created > registry_.limit() + changes.size())
        return refuse(409, "too many runtimes were created meanwhile");
    return {};
}

/// Checks that restarted runtimes could start with their new options.
task<outcome<>> stack_editor::check_restarts(std::vector<planned_change>& changes) {
    for (planned_change& each : changes) {
        if (each.shown.plan != edit_effect::restarted || !each.which->running.has_instance())
            continue;
        // Addresses that another change releases are taken still.
        if (each.round != 0) continue;
        EDDY_ASSERT(each.change && each.options);
        auto good = co_await runtime_lifecycle::check_restart(each.which, *each.options,
                                                              restart_data::kept);
        if (!good) co_return about(each, std::move(good.error()));
    }
    co_return outcome<>();
}

/// Adds the runtimes that are to be created, so that no other request takes their names.
void stack_editor::add_fresh(std::vector<planned_change>& changes) {
    for (planned_change& each : changes) {
        if (each.which != nullptr) continue;
        EDDY_ASSERT(each.shown.step == stack_step::create &&
                    registry_.get(each.fresh.name) == nullptr);
        each.fresh.id = new_runtime_id();
        each.fresh.created =
            std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
        each.which = editor_.adopt(each.fresh, {});
        each.change = each.which->change_lock.try_lock();
        EDDY_ASSERT(each.change);
        each.which->journal->write("created");
    }
}

// --- The changes -------------------------------------------------------------------------------

task<outcome<>> stack_editor::execute(execution& all) {
    EDDY_ASSERT(!all.changes.empty() && all.made.empty());
    state_change stored;
    for (const planned_change& each : all.changes) {
        if (each.shown.step == stack_step::remove)
            stored.erased.push_back(each.shown.name);
        else
            stored.saved.push_back(each.fresh);
    }
    // A disk without room is found before clients notice anything.
    auto staged = co_await state_.stage(stored);
    if (!staged) co_return staged;
    outcome<> done;
    bool has_set_aside = false;
    for (std::span<planned_change> rest(all.changes); done && !rest.empty();) {
        const auto round = same_as_first(rest, [](const auto& each) { return each.round; });
        rest = rest.subspan(round.size());
        if (round.front().round > stopping_round && !std::exchange(has_set_aside, true))
            done = co_await set_all_aside(all);
        if (done) done = co_await execute_round(all, round);
    }
    if (done) co_return co_await state_.commit(stored);
    co_await state_.discard(stored);
    co_return done;
}

task<outcome<>> stack_editor::execute_round(execution& all, std::span<planned_change> round) {
    EDDY_ASSERT(!round.empty() && round.front().round == round.back().round);
    for (std::span<planned_change> rest = round; !rest.empty();) {
        auto level = same_as_first(rest, [](const auto& each) { return each.depth; });
        // Stops wait for clients, all at the same time.
        if (!level.front().is_stop()) level = level.first(std::min(level.size(), starts_at_once));
        rest = rest.subspan(level.size());
        outcome<> done;
        scope changing(co_await current_source());
        for (planned_change& each : level) changing.spawn(change_one(all, each, done));
        co_await changing.join();
        if (!done) co_return done;
    }
    co_return outcome<>();
}

task<void> stack_editor::change_one(execution& all, planned_change& one, outcome<>& all_done) {
    EDDY_ASSERT(one.which != nullptr && one.change);
    auto done = one.is_stop() ? co_await stop_one(all, one) : co_await edit_one(all, one);
    if (done && (one.is_start() || one.is_next_start())) done = co_await start_one(all, one);
    if (!done && all_done) all_done = about(one, std::move(done.error()));
}

task<outcome<>> stack_editor::edit_one(execution& all, planned_change& one) {
    EDDY_ASSERT(one.change && !one.is_stop() && one.options);
    if (one.shown.step == stack_step::create) co_return outcome<>();
    managed_runtime& which = *one.which;
    if (one.is_retyped) {
        retype(all, one);
        co_return outcome<>();
    }
    auto before = which.desired.options;
    const bool has_same = before && one.fresh.options == which.desired.record.options;
    if (has_same) co_return outcome<>();
    if (!which.running.has_instance()) {
        all.made.push_back({made_change::kind::configured, one.which, std::move(before)});
        which.desired.options = one.options;
        co_return outcome<>();
    }
    auto effect = co_await lifecycle_.apply(one.which, *one.options, restart_data::kept);
    if (!effect) co_return std::unexpected(std::move(effect.error()));
    all.made.push_back({made_change::kind::edited, one.which, std::move(before)});
    if (!one.held.empty()) co_await await_release(which);
    co_return outcome<>();
}

/// The loop's frames of a restart have the listeners of before until its next turn: another loop
/// would find their addresses taken.
task<void> stack_editor::await_release(const managed_runtime& which) {
    const running_state& running = which.running;
    if (!running.has_instance()) co_return;
    static_cast<void>(co_await running.where()->on_instance(
        running.number(), loop_patience, [](runtime::instance&) { return outcome<>(); }));
}

task<outcome<>> stack_editor::stop_one(execution& all, planned_change& one) {
    EDDY_ASSERT(one.change && one.is_stop());
    running_state& running = one.which->running;
    running.set_lost({});
    if (!running.has_instance()) {
        if (running.status() == runtime_status::starting) running.mark_stopped();
    } else {
        auto down = co_await lifecycle_.take_down(one.which, unsaved::kept);
        if (!down) co_return down;
        all.made.push_back({made_change::kind::stopped, one.which});
        if (!running.lost().empty())
            all.notes.push_back(fmt::format("\"{}\" lost {}", one.shown.name, running.lost()));
    }
    if (one.shown.step == stack_step::stop && !running.has_instance()) {
        all.made.push_back({made_change::kind::configured, one.which, one.which->desired.options});
        one.which->desired.options = one.options;
    }
    co_return outcome<>();
}

task<outcome<>> stack_editor::start_one(execution& all, planned_change& one) {
    EDDY_ASSERT(one.change && !one.which->running.has_instance());
    auto up = co_await lifecycle_.bring_up(one.which);
    if (up)
        all.made.push_back({.what = made_change::kind::started,
                            .which = one.which,
                            .has_data = one.is_set_aside && !one.is_retyped});
    co_return up;
}

/// All that are to be set aside, at the same time.
task<outcome<>> stack_editor::set_all_aside(execution& all) {
    outcome<> all_done;
    const auto put = [&](planned_change& one) -> task<void> {
        auto done = co_await set_aside(all, one);
        if (!done && all_done) all_done = about(one, std::move(done.error()));
    };
    scope stopping(co_await current_source());
    for (planned_change& each : all.changes)
        if (each.is_set_aside) stopping.spawn(put(each));
    co_await stopping.join();
    co_return all_done;
}

/// One that has ended meanwhile stays so until its own round.
task<outcome<>> stack_editor::set_aside(execution& all, planned_change& one) {
    EDDY_ASSERT(one.is_set_aside && one.change && one.options);
    const managed_runtime& which = *one.which;
    if (!which.running.has_instance()) co_return outcome<>();
    EDDY_ASSERT(which.desired.options);
    auto data = co_await lifecycle_.set_aside(
        one.which, one.is_retyped ? *which.desired.options : *one.options);
    if (data) {
        all.made.push_back(
            {.what = made_change::kind::set_aside, .which = one.which, .data = *data});
        one.which->running.keep_handover(std::move(*data));
        co_return outcome<>();
    }
    // The next type has none of the data: as in a removal, only what files lack holds it up.
    if (!one.is_retyped) co_return std::unexpected(std::move(data.error()));
    auto down = co_await lifecycle_.take_down(one.which, unsaved::kept);
    if (!down) co_return down;
    all.made.push_back({.what = made_change::kind::set_aside, .which = one.which});
    if (!which.running.lost().empty())
        all.notes.push_back(fmt::format("\"{}\" lost {}", one.shown.name, which.running.lost()));
    co_return outcome<>();
}

/// The registry takes no record of another type.
void stack_editor::set_desired(managed_runtime& which, desired_state fresh) {
    EDDY_ASSERT(!which.running.has_instance());
    which.desired.type = fresh.type;
    which.desired.options = std::move(fresh.options);
    which.desired.record.type = fresh.record.type;
    registry_.set_record(which, std::move(fresh.record));
}

/// The record, too: the secrets of its options are known by the type of both.
void stack_editor::retype(execution& all, planned_change& one) {
    EDDY_ASSERT(one.is_retyped && one.change && one.options && one.type != nullptr);
    managed_runtime& which = *one.which;
    made_change made{.what = made_change::kind::retyped,
                     .which = one.which,
                     .former = which.desired,
                     .reason = which.running.reason()};
    // Data of a start that has failed before are lost with the commit.
    if (which.running.handover()) all.emptied.push_back(one.which);
    which.journal->write(
        fmt::format("its type changes from {} to {}", which.desired.record.type, one.fresh.type));
    made.kept = which.running.handover();
    which.running.keep_handover(nullptr);
    set_desired(which, {one.fresh, one.type, one.options});
    all.made.push_back(std::move(made));
}

// --- Back --------------------------------------------------------------------------------------

/// All that was made, in the reverse order.
task<void> stack_editor::undo(execution& all) {
    for (made_change& each : std::views::reverse(all.made)) {
        auto undone = co_await undo_one(all, each);
        if (undone) continue;
        const std::string& name = each.which->name();
        log_error(name, fmt::format("could not be put back: {}", undone.error().message));
        all.notes.push_back(
            fmt::format("\"{}\" could not be put back: {}", name, undone.error().message));
    }
    for (planned_change& each : all.changes) {
        if (each.shown.step != stack_step::create) continue;
        managed_runtime& fresh = *each.which;
        // One whose loop does not answer stays, as after a removal that failed.
        if (fresh.running.has_instance()) continue;
        fresh.is_removed = true;
        end_journal(fresh);
        registry_.forget(fresh);
    }
}

task<outcome<>> stack_editor::undo_one(execution& all, made_change& one) {
    EDDY_ASSERT(one.which != nullptr && one.which->change_lock.locked());
    desired_state& desired = one.which->desired;
    running_state& running = one.which->running;
    switch (one.what) {
        case made_change::kind::edited: {
            auto back = co_await lifecycle_.apply(one.which, *one.before, restart_data::kept);
            if (!back) co_return std::unexpected(std::move(back.error()));
            co_return outcome<>();
        }
        case made_change::kind::configured: desired.options = one.before; co_return outcome<>();
        case made_change::kind::retyped:
            if (running.has_instance()) co_return refuse(503, running.reason());
            set_desired(*one.which, std::move(*one.former));
            running.keep_handover(std::move(one.kept));
            if (!desired.options) running.reject(std::move(one.reason));
            co_return outcome<>();
        case made_change::kind::set_aside:
            if (running.has_instance()) co_return refuse(503, running.reason());
            // Its files may lack what they lacked before.
            if (one.data) one.data->has_new_files = false;
            running.keep_handover(one.data);
            co_return co_await lifecycle_.bring_up(one.which);
        case made_change::kind::started: co_return co_await undo_start(all, one);
        case made_change::kind::stopped: co_return co_await lifecycle_.bring_up(one.which);
    }
    EDDY_ASSERT(false);
}

/// Changes of clients since it was set aside are kept, where that can be written.
task<outcome<>> stack_editor::undo_start(execution& all, const made_change& one) {
    made_change* const aside =
        one.has_data ? all.find(made_change::kind::set_aside, one.which) : nullptr;
    const made_change* const configured =
        aside == nullptr ? nullptr : all.find(made_change::kind::configured, one.which);
    if (configured != nullptr && configured->before) {
        auto newer = co_await lifecycle_.set_aside(one.which, *configured->before);
        if (newer) {
            aside->data = std::move(*newer);
            co_return outcome<>();
        }
    }
    co_return co_await lifecycle_.take_down(one.which, unsaved::lost);
}

// --- After the commit --------------------------------------------------------------------------

void stack_editor::finish(execution& all) {
    for (const runtime_ref& each : all.emptied)
        all.notes.push_back(fmt::format("\"{}\" lost {}", each->name(), handover_loss));
    for (planned_change& each : all.changes) finish_one(all, each);
}

const runtime_record& stack_editor::record_before(execution& all, const planned_change& one) {
    if (!one.is_retyped) return one.which->desired.record;
    return all.find(made_change::kind::retyped, one.which)->former->record;
}

void stack_editor::finish_one(execution& all, planned_change& one) {
    EDDY_ASSERT(one.which != nullptr && one.change && !one.which->is_removed);
    managed_runtime& which = *one.which;
    running_state& running = which.running;
    switch (one.shown.step) {
        case stack_step::create:
            log_info(which.name(), fmt::format("created, type {}", one.shown.type));
            return;
        case stack_step::remove:
            if (running.handover()) {
                running.keep_handover(nullptr);
                all.notes.push_back(fmt::format("\"{}\" lost {}", which.name(), handover_loss));
            }
            which.is_removed = true;
            which.journal->write("removed");
            registry_.note(which, event_kind::removed);
            end_journal(which);
            registry_.remove(which);
            log_info(one.shown.name, "removed");
            return;
        case stack_step::edit:
            registry_.note(which, event_kind::edited,
                           changed_members(record_before(all, one), one.fresh));
            break;
        case stack_step::start:
        case stack_step::stop: break;
    }
    registry_.set_record(which, std::move(one.fresh));
    // The fault of the old options is gone.
    if (!running.has_instance() && running.status() == runtime_status::failed)
        running.mark_stopped();
}

}  // namespace eddy::daemon
