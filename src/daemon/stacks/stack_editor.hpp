// Editor of stacks: brings about the runtimes that one file declares, all or none of the changes.
//
// All is checked before the first change. The changes are then made to what runs, and stored in one
// step at the end; when one fails, those before are undone.
#pragma once

#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "daemon/runtimes/runtime_editor.hpp"
#include "daemon/runtimes/runtime_lifecycle.hpp"
#include "daemon/runtimes/runtime_registry.hpp"
#include "daemon/stacks/stack.hpp"
#include "daemon/stacks/stack_planner.hpp"
#include "daemon/state/state_access.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace eddy::daemon {

/// The control loop's. Everything given outlives it. One stack is changed at a time.
class stack_editor {
public:
    stack_editor(runtime_registry& registry, runtime_lifecycle& lifecycle, runtime_editor& editor,
                 const state_access& state)
        : registry_(registry),
          lifecycle_(lifecycle),
          editor_(editor),
          state_(state),
          planner_(registry, &lifecycle) {}

    /// Plan of an apply() made now, whatever its risks, or the reason for its refusal. Changes
    /// nothing.
    task<stack_outcome<stack_plan>> plan(stack_request wanted);
    /// Brings the stack about. Refuses (409) with the risks that are not accepted.
    task<stack_outcome<stack_plan>> apply(stack_request wanted);

private:
    /// A change that was made to what runs, and how to undo it.
    struct made_change;
    struct execution;

    static stack_plan plan_of(const stack_planner::found& found);
    task<outcome<>> lock_all(std::vector<planned_change>& changes);
    outcome<> check_unchanged(const std::vector<planned_change>& changes) const;
    task<outcome<>> check_restarts(std::vector<planned_change>& changes);
    void add_fresh(std::vector<planned_change>& changes);
    task<outcome<>> execute(execution& all);
    task<outcome<>> execute_round(execution& all, std::span<planned_change> round);
    task<outcome<>> edit_one(execution& all, planned_change& one);
    static task<void> await_release(const managed_runtime& which);
    task<outcome<>> stop_one(execution& all, planned_change& one);
    task<outcome<>> start_one(execution& all, planned_change& one);
    task<outcome<>> set_aside(execution& all, planned_change& one);
    task<outcome<>> set_all_aside(execution& all);
    void retype(execution& all, planned_change& one);
    void set_desired(managed_runtime& which, desired_state fresh);
    task<void> change_one(execution& all, planned_change& one, outcome<>& all_done);
    task<void> undo(execution& all);
    task<outcome<>> undo_one(execution& all, made_change& one);
    task<outcome<>> undo_start(execution& all, const made_change& one);
    void finish(execution& all);
    static const runtime_record& record_before(execution& all, const planned_change& one);
    void finish_one(execution& all, planned_change& one);

    runtime_registry& registry_;
    runtime_lifecycle& lifecycle_;
    runtime_editor& editor_;
    const state_access& state_;
    stack_planner planner_;
    async_mutex stacks_;
};

}  // namespace eddy::daemon
