// Editor of desired state: creation, changes and removal of runtimes. A change is saved before it
// is reported, and undone when it cannot be saved or put into effect.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "daemon/control/json.hpp"
#include "daemon/journal/journal_files.hpp"
#include "daemon/journal/runtime_journal.hpp"
#include "daemon/runtimes/managed_runtime.hpp"
#include "daemon/runtimes/runtime_lifecycle.hpp"
#include "daemon/runtimes/runtime_registry.hpp"
#include "daemon/state/state_access.hpp"
#include "runtime/options/settings.hpp"

#include <optional>
#include <string>
#include <vector>

namespace eddy::daemon {

/// A new runtime as the user asks for it.
struct runtime_request {
    std::string type;
    std::string name;
    std::string owner = {};
    std::string group = {};
    on_parent_stop policy = on_parent_stop::stop;
    json options = json::object();
};

/// A change as the user asks for it.
struct edit_request {
    json options = json::object();  ///< merged into those of the runtime; null takes one back
    std::optional<std::string> owner = {};
    std::optional<std::string> group = {};
    std::optional<on_parent_stop> policy = {};
    restart_data data = restart_data::kept;
    edit_restart restart = edit_restart::allowed;
};

/// The flags of what differs: "--max-line, --group"; "type cache" before them where that is new.
std::string changed_members(const runtime_record& before, const runtime_record& after);
/// A new runtime's id.
std::string new_runtime_id();
/// The end of the journal and messages of a runtime that is removed.
void end_journal(managed_runtime& which);

/// The control loop's. Everything given outlives it. Each change but adopt() takes the runtime's
/// change_lock.
class runtime_editor {
public:
    runtime_editor(runtime_registry& registry, runtime_lifecycle& lifecycle,
                   const state_access& state, journal_files& journals, blocking_pool& disk)
        : registry_(registry),
          lifecycle_(lifecycle),
          state_(state),
          journals_(journals),
          disk_(disk) {}

    task<outcome<runtime_ref>> create(runtime_request request);
    /// Removes a runtime and the ones that it owns: then managed_runtime::removed_with_it.
    task<outcome<>> remove(runtime_ref which, unsaved data = unsaved::kept);
    /// Changes options, owner and group. A running runtime is notified, or restarted with its data
    /// where that is not enough. What can be checked is checked before it stops; when it still does
    /// not start with the new options, it continues with the old ones.
    task<outcome<edit_plan>> edit(runtime_ref which, edit_request wanted);
    /// Plan of an edit() made now, or the reason for its refusal. Changes nothing.
    task<outcome<edit_plan>> plan_edit(runtime_ref which, edit_request wanted);
    /// Gives a runtime another name. It runs on, its journal and the ones that it owns stay with
    /// it; other runtimes' options that name it are left alone.
    task<outcome<>> rename(runtime_ref which, std::string to);
    /// Merges `options` into those of the runtime, for its next start. A running one is not
    /// notified: the request is its own.
    task<outcome<>> keep_options(runtime_ref which, json options);

    /// Lock of changes of owners, taken behind the change_locks.
    async_mutex& owners() noexcept { return owners_; }

    /// Adds the runtime of a record that is stored; it does not run yet. Its journal continues
    /// behind `earlier` lines.
    runtime_ref adopt(runtime_record stored, std::vector<journal_line> earlier);
    /// Makes the runtime follow a record that was changed in the store, unless the runtime has
    /// changed since its own record was `read`.
    task<outcome<>> follow(runtime_ref which, const runtime_record& read, runtime_record stored);

private:
    /// An edit that has passed its checks.
    struct prepared_edit;
    task<outcome<prepared_edit>> prepare_edit(runtime_ref which, edit_request wanted);
    task<outcome<edit_effect>> put_into_effect(runtime_ref which, runtime_record fresh,
                                               runtime::settings options, restart_data data);
    task<outcome<>> save_renamed(runtime_ref which, std::string old_name);
    task<outcome<>> end_owned(runtime_ref child, unsaved data);
    task<outcome<>> remove_alone(runtime_ref which, unsaved data);

    runtime_registry& registry_;
    runtime_lifecycle& lifecycle_;
    const state_access& state_;
    journal_files& journals_;
    blocking_pool& disk_;
    async_mutex owners_;  // changes of owners
};

}  // namespace eddy::daemon
