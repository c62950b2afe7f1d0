// Lifecycle of the daemon's runtimes: start, stop, restart, and the end of all of them. It spreads
// instances over the loops and is what changes a runtime's running state.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "daemon/runtimes/loop_runtimes.hpp"
#include "daemon/runtimes/managed_runtime.hpp"
#include "daemon/runtimes/runtime_registry.hpp"
#include "daemon/state/state_access.hpp"
#include "runtime/host/host.hpp"
#include "runtime/options/settings.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// Longest wait of a change for a runtime that is starting, before it is refused.
inline constexpr duration starting_patience = std::chrono::seconds(2);

/// Time for clients of a replaced instance to finish, unless its drain is longer. A stop ends it.
inline constexpr duration replaced_drain = std::chrono::minutes(10);

/// Pauses between two attempts to store the end of an instance.
inline constexpr duration first_save_pause = std::chrono::seconds(1);
inline constexpr duration longest_save_pause = std::chrono::minutes(1);

/// Pause between two looks for faults while events are followed.
inline constexpr duration fault_pause = std::chrono::seconds(1);

struct lifecycle_options {
    /// For a runtime whose own options do not say how long its connections may take to finish.
    duration drain{};
    /// Folder of the files that take data from one instance to the next.
    std::string handover_folder;
};

/// Parts of an instance on their way to one of another process.
struct departure {
    std::shared_ptr<runtime::passed_listeners> sockets = nullptr;  ///< null: it has none
    std::shared_ptr<runtime::handover> data = nullptr;             ///< null: it needs none
    /// Living connections.
    std::vector<runtime::passed_client> clients = {};
    /// For come_back(): its own ones, and their loop.
    std::shared_ptr<runtime::inherited_listeners> listeners = nullptr;
    loop_runtimes* where = nullptr;
};

/// The control loop's. Everything given outlives it.
class runtime_lifecycle {
public:
    /// Makes the host of instance `number` of a runtime.
    using host_factory =
        std::function<std::shared_ptr<runtime::host>(std::string name, std::uint64_t number)>;

    runtime_lifecycle(runtime_registry& registry, const state_access& state, blocking_pool& disk,
                      loop_group& loops, lifecycle_options options, host_factory make_host);

    /// Removes a runtime, for owned ones that go with their owner's stop.
    using remover = std::function<task<outcome<>>(runtime_ref which, unsaved data)>;
    void set_remover(remover remove) { remove_ = std::move(remove); }

    // Changes. Each takes the runtime's change_lock; start() and stop() save what is desired, too.

    task<outcome<>> start(runtime_ref which);
    /// Stops a runtime and the ones that it owns. running_state::lost() is then what each has lost.
    task<outcome<>> stop(runtime_ref which, unsaved data = unsaved::kept);
    /// The same on behalf of its instance `number`: nothing happens once it has another one, or
    /// none.
    task<outcome<>> stop_instance(runtime_ref which, std::uint64_t number);
    /// The same when the instance has ended by itself. An end that cannot be stored is kept for
    /// save_ends().
    task<outcome<>> end_instance(runtime_ref which, instance_end how);
    /// Stores ends that could not be stored, after pauses that grow, and once something else has
    /// been stored. Ends with its cancellation.
    task<void> save_ends();
    /// Something has been stored: state_access::observe_saves().
    void note_saved() noexcept { saved_.set(); }
    /// Restarts the runtime with its data, or starts one that does not run.
    task<outcome<>> restart(runtime_ref which, restart_data data = restart_data::kept);
    /// Reads the runtime's files again while it runs; where that is not possible, restarts it.
    task<outcome<>> reload(runtime_ref which, restart_data data = restart_data::kept);
    /// Loads the script of the runtime's --lua again; its connections stay. On failure the script
    /// stays that it has.
    task<outcome<>> reload_script(runtime_ref which);
    task<outcome<std::uint64_t>> send(runtime_ref which, std::string message);

    /// Every instance writes what must last, and holds changes until shut_down(). Fails with the
    /// reasons of the instances that cannot; all of them serve as before then.
    task<outcome<>> prepare_shutdown(duration drain);
    /// Stops every instance, with `drain` for all of them together, and leaves the stored state
    /// alone; those of types that use other runtimes begin, see type::uses_others. Nothing is
    /// started from then on. False when a loop did not answer.
    task<bool> shut_down(duration drain);

    /// Brings the vitals of every instance up to date. A loop that does not answer leaves those of
    /// its instances as they were.
    task<void> refresh();
    /// The same for the vitals of runtime_brief alone, in far less time.
    task<void> refresh_briefly();
    /// Brings the vitals of one runtime up to date, in a time that does not depend on the others.
    task<void> refresh(runtime_ref which);
    /// Looks for faults each fault_pause while events are followed, so that a runtime's degradation
    /// is one of them. Ends with its cancellation.
    task<void> watch_faults();
    std::size_t loops() const noexcept { return loops_.size(); }

    // For other changes. Those below expect the caller to hold the change_lock, and leave the
    // stored state alone.

    /// Ends a start that is under way soon: it holds the lock, maybe for long. The caller locks
    /// next, and resets start_given_up then. True when a start was under way.
    static task<bool> give_up_start(runtime_ref which);
    /// Awaits the change_lock, but not for long while the runtime is starting. `change` is the
    /// command, for the refusal.
    static task<outcome<permit>> lock_unless_starting(runtime_ref which, std::string_view change);

    task<outcome<>> bring_up(runtime_ref which);
    /// By the drain of its options. Nothing happens without an instance.
    task<outcome<>> take_down(runtime_ref which, unsaved data);
    /// Stops the instance for a later start with the options `next`, or for one of its own as it
    /// was. Yields the data of the instance that this start does not find in files, null if there
    /// are none. On failure it serves as before, where that is possible.
    task<outcome<std::shared_ptr<runtime::handover>>> set_aside(runtime_ref which,
                                                                runtime::settings next);
    /// Time for connections to finish in a take_down() or set_aside().
    duration stop_time_of(const managed_runtime& which) const { return drain_of(which); }
    /// Plan of apply() for a running instance.
    edit_plan plan(const managed_runtime& which, const runtime::settings& next) const;
    // An upgrade of the daemon: instances of another process take the place of those here.

    /// An instance serves on, while one of the other process gets copies of its sockets.
    static task<outcome<departure>> share(runtime_ref which);
    /// No other instance came of it.
    static void unshare(const managed_runtime& which);
    /// Stops an instance whose type does not serve in two processes, with its data and listeners
    /// kept: clients that connect wait. On failure it serves as before.
    task<outcome<departure>> depart(runtime_ref which);
    /// Closes the sockets of an instance that ended by itself and has departed: none takes its
    /// place.
    static task<void> abandon(departure& from);
    /// Starts it again after depart(), since the other process has failed.
    task<outcome<>> come_back(runtime_ref which, departure from);
    /// Passes living connections on to the other process, in parts; none are the last part.
    using client_sender =
        std::function<task<void>(std::string name, std::vector<runtime::passed_client> clients)>;
    /// The other process serves: accepts no more, passes on the clients that can be moved, and
    /// stops once the others have finished. Yields its listeners, which are closed: as long as they
    /// live, runtimes of this process find the other's by its name. Null where it has none.
    task<std::shared_ptr<runtime::inherited_listeners>> leave(runtime_ref which,
                                                              client_sender pass_on);
    /// Starts what the other process has shared, or what has departed there. It accepts no
    /// client before open().
    task<outcome<>> arrive(runtime_ref which, departure from);
    /// In place of that for an instance that ended by itself there, which is not stored: that
    /// follows by save_ends(), with the stop of what the runtime owns.
    task<outcome<>> arrive_ended(runtime_ref which, instance_end how);
    static task<outcome<>> open(runtime_ref which);
    static task<outcome<>> take_clients(runtime_ref which,
                                        std::vector<runtime::passed_client> clients);

    /// Checks of apply() before a restart.
    static task<outcome<>> check_restart(runtime_ref which, runtime::settings next,
                                         restart_data data);
    /// Applies options that were checked to a running instance: as it runs if it can, else by a
    /// restart with its data. They are desired_state::options then. On failure it runs as before,
    /// where that is possible.
    task<outcome<edit_effect>> apply(runtime_ref which, runtime::settings next, restart_data data);

private:
    loop_runtimes& least_loaded() noexcept;
    duration drain_of(const managed_runtime& which) const;
    /// Time limit for a runtime's files to be written.
    static duration file_time_of(const managed_runtime& which);
    duration restart_drain_of(const managed_runtime& which) const;
    /// Time after which clients of the instance before are closed at the latest, as users see it.
    duration restart_time_of(const managed_runtime& which) const;

    task<outcome<>> save_is_to_run(runtime_ref which, bool is_to_run);
    void note_unsaved_end() noexcept;
    task<void> save_end(runtime_ref which);
    task<outcome<>> save_end_now(runtime_ref which);
    task<outcome<>> stop_alone(runtime_ref which, unsaved data, bool was_starting);
    task<outcome<>> stop_children(std::string owner, unsaved data);
    outcome<> fail_stop(managed_runtime& which, problem why);
    task<outcome<>> prepare_stop(runtime_ref which, duration drain);
    task<outcome<>> take_down_within(runtime_ref which, duration drain);
    task<outcome<>> bring_up_on(runtime_ref which, loop_runtimes& where, inheritance from);
    task<outcome<>> restart(runtime_ref which, runtime::settings next, restart_data data,
                            std::string reason);
    task<outcome<>> restart_prepared(runtime_ref which, runtime::settings next, restart_data data,
                                     std::shared_ptr<runtime::handover> handed_over);
    task<outcome<>> restart_with_data(runtime_ref which, runtime::settings next, restart_data data,
                                      std::shared_ptr<runtime::handover> handed_over,
                                      std::shared_ptr<runtime::inherited_listeners> listeners);
    task<outcome<>> replace(runtime_ref which, runtime::settings next,
                            std::shared_ptr<runtime::inherited_listeners> listeners);
    task<void> end_replaced(runtime_ref which, std::uint64_t number, duration drain);
    static task<void> await_replaced(runtime_ref which, std::size_t most, duration patience);
    task<outcome<std::shared_ptr<runtime::handover>>> prepare_restart(runtime_ref which,
                                                                      runtime::settings next,
                                                                      restart_data data,
                                                                      std::string remedy);
    task<std::shared_ptr<runtime::handover>> make_handover();
    task<void> prepare_for_shutdown(runtime_ref which, duration drain,
                                    std::vector<std::string>& refusals);
    task<void> stop_users(duration drain, bool& complete, event& end);
    task<void> stop_for_shutdown(runtime_ref which, duration drain, bool& complete);
    task<void> refresh_from(loop_runtimes& where);
    static task<void> ask_briefs(loop_runtimes& where, outcome<brief_list>& into);
    template <class Vitals>
    void refresh_one(managed_runtime& which, Vitals fresh);

    runtime_registry& registry_;
    const state_access& state_;
    blocking_pool& disk_;
    const lifecycle_options options_;
    const host_factory make_host_;
    remover remove_;
    std::vector<std::unique_ptr<loop_runtimes>> loops_;
    std::uint64_t last_number_ = 0;
    bool is_shutting_down_ = false;
    event unsaved_ends_;  // some runtime has an end that is not stored
    event saved_;         // something has been stored since then
    scope ending_;        // instances that were replaced; joined by shut_down()
};

}  // namespace eddy::daemon
