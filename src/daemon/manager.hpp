// Runtime manager: the runtimes of this daemon, the loops that run them, and all changes to them.
//
// The manager lives on the control loop. A change is saved before it is reported, and undone when
// it cannot be saved. Changes to one runtime take turns; different runtimes do not wait for each
// other.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "daemon/journal_files.hpp"
#include "daemon/json.hpp"
#include "daemon/loop_runtimes.hpp"
#include "daemon/problem.hpp"
#include "daemon/runtime_journal.hpp"
#include "daemon/state_store.hpp"
#include "runtime/host.hpp"
#include "runtime/instance.hpp"
#include "runtime/message_bus.hpp"
#include "runtime/registry.hpp"
#include "runtime/settings.hpp"
#include "runtime/type.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// How long a change waits for a runtime that is starting, before it is refused.
inline constexpr duration starting_patience = std::chrono::seconds(2);

/// How many runtimes a daemon keeps.
inline constexpr std::size_t runtime_limit = 1000;

enum class runtime_status { created, starting, running, stopping, stopped, failed };
std::string_view to_string(runtime_status status) noexcept;

/// Lets one coroutine at a time pass. One loop.
class turnstile {
public:
    /// Waits for the turn; fails when cancelled.
    task<result<>> enter();
    void leave() noexcept;

private:
    bool taken_ = false;
    event freed_;
};

/// What a stop does when not everything that must last can be written.
enum class unsaved : std::uint8_t {
    kept,  ///< it is refused, and the runtime serves on
    lost,  ///< it goes on
};

/// What becomes of a runtime's data in a restart.
enum class restart_data : std::uint8_t {
    kept,       ///< the next instance has it, or there is no restart
    discarded,  ///< the next instance begins with what its files have
};

/// One runtime, running or not. The control loop's.
struct managed_runtime {
    runtime_record record;
    const runtime::type* type = nullptr;       ///< null when this Eddy does not know the type
    std::optional<runtime::settings> options;  ///< none when the saved ones are not valid
    runtime_status status = runtime_status::created;
    std::string reason;  ///< why it failed
    std::shared_ptr<runtime_journal> journal;
    bool removed = false;

    loop_runtimes* where = nullptr;       ///< set while an instance exists
    std::uint64_t number = 0;             ///< of the instance, on its loop
    std::shared_ptr<runtime::host> host;  ///< of the last instance
    time_point started_at{};
    runtime_vitals last;  ///< as of the last refresh
    std::string lost;     ///< by the last stop, see runtime::instance::lost()
    /// Runtimes that remove() has removed with it: those it owned, and those that these owned.
    std::vector<std::shared_ptr<managed_runtime>> removed_with_it;
    /// Data of the last instance for the next one, until that has started.
    std::shared_ptr<const runtime::handover> carried;
    turnstile turn;
    event start_given_up;  ///< set by what ends a start, until it has the turn
};

using runtime_ref = std::shared_ptr<managed_runtime>;

/// What is wanted of a new runtime.
struct runtime_request {
    std::string type;
    std::string name;
    std::string owner = {};
    std::string group = {};
    json options = json::object();
};

/// What edit() made of a change.
enum class edit_effect { none, saved, live, restarted };
std::string_view to_string(edit_effect effect) noexcept;

struct manager_options {
    std::span<const runtime::type> types;
    /// For a runtime whose own options do not say how long its connections may take to finish.
    duration drain = std::chrono::seconds(5);
    std::size_t runtimes = runtime_limit;  ///< kept at most
    /// For so long start_loaded() tries again to start what finds its address taken: after a crash
    /// the kernel may still be closing the sockets of the daemon before.
    duration address_grace{};
};

class manager {
public:
    /// Everything given outlives the manager; it is used on the control loop's thread alone.
    manager(const state_store& store, blocking_pool& disk, loop_group& loops,
            manager_options options);
    ~manager();

    /// Reads the state folder. What is to run is "starting" from then on; the error is one of the
    /// folder as a whole.
    task<outcome<>> load();
    /// Starts what load() has found, each on its loop, and returns when all have started or failed.
    /// Failures are logged and shown as the runtime's status. Other requests are served meanwhile,
    /// and stop(), remove() and shut_down() end a start.
    task<void> start_loaded();

    /// What reread() came to.
    struct reread_summary {
        std::size_t created = 0;
        std::size_t changed = 0;
        std::size_t unchanged = 0;
        std::vector<std::string> problems;
    };
    /// Applies what was changed in the state folder by hand: SIGHUP. Runtimes whose file did not
    /// change are left alone; one whose file is gone keeps running, and its file is written anew.
    task<outcome<reread_summary>> reread();

    /// Has every instance write what must last, and hold changes until shut_down(). Refuses with
    /// the reasons of those that cannot; all go on as before then.
    task<outcome<>> prepare_shutdown(duration drain);
    /// Stops every instance, with `drain` for all of them together, and keeps the saved state, so
    /// that they run again with the next daemon. Nothing is started from then on. False when a loop
    /// did not answer.
    task<bool> shut_down(duration drain);

    task<outcome<runtime_ref>> create(runtime_request request);
    task<outcome<>> start(runtime_ref which);
    /// managed_runtime::lost says then what was lost. The same for those that it owns.
    task<outcome<>> stop(runtime_ref which, unsaved data = unsaved::kept);
    /// Has it read its files again while it runs; where that is not possible, restarts it.
    task<outcome<>> reload(runtime_ref which, restart_data data = restart_data::kept);
    /// Those that it owns, too: managed_runtime::removed_with_it says then which.
    task<outcome<>> remove(runtime_ref which, unsaved data = unsaved::kept);
    /// Merges `options` into those of the runtime (null takes one back) and sets owner and group
    /// where given. A running runtime is notified, or restarted with its data where that is not
    /// enough. What can be checked is checked before it stops; when it still does not start with
    /// the new options, it goes on with the old ones.
    task<outcome<edit_effect>> edit(runtime_ref which, json options,
                                    std::optional<std::string> owner,
                                    std::optional<std::string> group,
                                    restart_data data = restart_data::kept);
    task<outcome<std::uint64_t>> send(runtime_ref which, std::string message);
    /// Merges `options` into those of the runtime, for its next start: one that runs is not
    /// notified, because it was itself that asked for it.
    task<outcome<>> keep_options(runtime_ref which, json options);

    /// By name, or by id. Refuses (404) with the name that was probably meant.
    outcome<runtime_ref> find(std::string_view name_or_id) const;
    /// By name; all that match a glob pattern, or are of a group ("@group").
    std::vector<runtime_ref> match(std::string_view pattern) const;
    std::vector<runtime_ref> all() const;

    /// Brings `last` of every running runtime up to date. A loop that does not answer leaves its
    /// runtimes' numbers as they were.
    task<void> refresh();

    /// A runtime as the control API shows it.
    json describe(const managed_runtime& which) const;
    std::size_t loops() const noexcept { return loops_.size(); }
    std::span<const runtime::type> types() const noexcept { return options_.types; }

private:
    /// Earlier lines by the runtime's name.
    using journal_lines = std::map<std::string, std::vector<journal_line>, std::less<>>;

    task<outcome<reread_summary>> reread_alone();
    const runtime::type* find_type(std::string_view name) const noexcept;
    runtime_ref adopt(runtime_record record, std::vector<journal_line> earlier = {});
    void disown(const std::string& name);
    void set_record(managed_runtime& which, runtime_record fresh);
    void interpret(managed_runtime& which) const;
    loop_runtimes& least_loaded() noexcept;
    duration drain_of(const managed_runtime& which) const;
    outcome<> check_owner(std::string_view owner, std::string_view of) const;
    std::vector<std::string> owner_circles() const;
    bool is_own_owner(std::string_view name) const;
    std::vector<runtime_ref> children_of(std::string_view owner) const;

    task<outcome<>> save(runtime_record record);
    task<outcome<>> erase(std::string name);
    task<bool> has_file(std::string name);

    // These expect the caller to have the runtime's turn, and leave the saved state alone.
    task<outcome<>> bring_up(runtime_ref which);
    task<outcome<>> prepare_stop(runtime_ref which, duration drain);
    task<outcome<>> take_down(runtime_ref which, duration drain);
    task<outcome<>> take_down(runtime_ref which, duration drain, unsaved data);
    outcome<> cannot_stop(managed_runtime& which, problem why);
    static duration file_time_of(const managed_runtime& which);

    /// The task that starts it has the turn, maybe for long. Yields whether one does.
    static task<bool> give_up_start(runtime_ref which);
    /// Waits for the turn, but not for long while the runtime is starting. `change` is the command
    /// that wants it.
    static task<outcome<>> take_turn(runtime_ref which, std::string_view change);
    task<outcome<>> stop_children(std::string owner, unsaved data);
    task<void> start_restored(runtime_ref which, duration grace);
    task<void> prepare_for_shutdown(runtime_ref which, duration drain,
                                    std::vector<std::string>& refusals);
    task<void> stop_for_shutdown(runtime_ref which, duration drain, bool& complete);
    task<outcome<>> apply_record(runtime_ref which, const runtime_record& read,
                                 runtime_record fresh);
    task<outcome<edit_effect>> put_into_effect(runtime_ref which, runtime_record fresh,
                                               runtime::settings options, restart_data data);
    task<outcome<>> restart(runtime_ref which, runtime::settings next, restart_data data);
    task<outcome<std::shared_ptr<runtime::handover>>> prepare_restart(runtime_ref which,
                                                                      runtime::settings next,
                                                                      restart_data data);
    task<std::shared_ptr<runtime::handover>> make_handover();
    task<void> refresh_from(loop_runtimes& where);
    bool all_live(const managed_runtime& which, const runtime::settings& fresh) const;

    /// For the runtimes, which may ask for something when it is gone: null then. The control
    /// loop's.
    std::shared_ptr<manager*> self_ = std::make_shared<manager*>(this);
    const state_store& store_;
    blocking_pool& disk_;
    manager_options options_;
    journal_files journals_;
    std::vector<std::unique_ptr<loop_runtimes>> loops_;
    std::map<std::string, runtime_ref, std::less<>> runtimes_;
    /// What the runtimes' hosts share; the registry follows runtimes_.
    const std::shared_ptr<runtime::registry> registry_ = std::make_shared<runtime::registry>();
    const std::shared_ptr<runtime::message_bus> messages_ =
        std::make_shared<runtime::message_bus>();
    std::vector<runtime_ref> loaded_;  // to be started by start_loaded()
    turnstile owning_;                 // of changes of owners
    turnstile rereading_;
    bool is_rereading_ = false;
    std::set<std::string, std::less<>> removed_meanwhile_;  // since that began
    std::uint64_t last_number_ = 0;
    bool shutting_down_ = false;
};

}  // namespace eddy::daemon
