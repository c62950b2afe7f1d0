// A runtime of this daemon: its desired state, its running state, its journal, and the lock of
// changes to it.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/semaphore.hpp>

#include "base/problem.hpp"
#include "daemon/journal/message_feed.hpp"
#include "daemon/journal/runtime_journal.hpp"
#include "daemon/runtimes/running_state.hpp"
#include "daemon/state/runtime_record.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/type.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon {

/// Desired state of a runtime: what is stored, and what that means to this Eddy.
struct desired_state {
    runtime_record record;
    const runtime::type* type = nullptr;       ///< null when this Eddy does not know the type
    std::optional<runtime::settings> options;  ///< none when the stored ones are not valid
};

/// An instance that another one has replaced, while its clients finish.
struct replaced_instance {
    loop_runtimes* where;
    std::uint64_t number;
    std::shared_ptr<runtime::host> host;
    std::uint64_t connections = 0;  ///< as of the last refresh
};

/// End of an instance by itself and for good: the runtime is not to run any more. It is kept until
/// that is stored.
struct instance_end {
    std::uint64_t number = 0;  ///< of the instance; running_state::number()
    std::string how;           ///< such as "exited with status 1"
    bool is_failure = false;
    bool has_stopped_owned = false;  ///< the stop of what the runtime owns has followed
};

/// Instances of a runtime at most whose clients finish; a restart beyond that waits for those of
/// the oldest, and closes them after surplus_patience.
inline constexpr std::size_t max_replaced_instances = 4;
/// So that edits in quick succession cut no client that is about to send its next request.
inline constexpr duration surplus_patience = std::chrono::seconds(2);

/// One runtime, running or not. The control loop's.
struct managed_runtime {
    managed_runtime(runtime_record record, std::shared_ptr<runtime_journal> journal)
        : desired{std::move(record), nullptr, std::nullopt}, journal(std::move(journal)) {}

    /// The feed of received messages, made with its first use.
    const std::shared_ptr<message_feed>& messages() {
        if (!feed_) feed_ = std::make_shared<message_feed>(loop::current());
        return feed_;
    }
    /// The runtime, or the daemon, ends: followers of its journal and messages come to their end.
    void end_followers() {
        journal->close();
        if (feed_) feed_->close();
    }

    const std::string& name() const noexcept { return desired.record.name; }

    /// Its last instance, which may still be there, has ended by itself.
    bool has_ended() const noexcept { return end && end->number == running.number(); }
    /// The same once the instance is gone, while the store still says that it is to run.
    bool has_unsaved_end() const noexcept { return has_ended() && !running.has_instance(); }

    desired_state desired;
    running_state running;
    const std::shared_ptr<runtime_journal> journal;
    bool is_removed = false;
    /// Runtimes that were removed with it: the ones it owned, and the ones that these owned.
    std::vector<std::shared_ptr<managed_runtime>> removed_with_it;
    /// One change at a time: held by each from its checks to its end.
    async_mutex change_lock;
    /// Set by a change that ends a start, until that change has the lock.
    event start_given_up;
    std::optional<instance_end> end;  ///< of an instance by itself
    bool is_restarting = false;       ///< its stop and start within are no events
    bool is_rereading = false;        ///< a reload or an edit is reading its files
    /// The oldest first. `replaced_ended` is set when one has ended.
    std::deque<replaced_instance> replaced;
    event replaced_ended;

private:
    std::shared_ptr<message_feed> feed_;
};

using runtime_ref = std::shared_ptr<managed_runtime>;

/// Effect of a stop that cannot write everything that must last.
enum class unsaved : std::uint8_t {
    kept,  ///< it is refused, and the runtime serves on
    lost,  ///< it is carried out, and the data is lost
};

/// Fate of a runtime's data in a restart.
enum class restart_data : std::uint8_t {
    kept,       ///< the next instance has it, or there is no restart
    discarded,  ///< the next instance begins with what its files have
};

/// Effect of an edit.
enum class edit_effect : std::uint8_t { none, saved, live, restarted };
std::string_view to_string(edit_effect effect) noexcept;

/// Plan of an edit: its effect, and what a restart means for clients.
struct edit_plan {
    edit_effect effect = edit_effect::none;
    /// Names of the changed options that need the restart; empty without one.
    std::vector<std::string_view> restart_options = {};
    /// Most time for connections to finish in a restart.
    duration drain{};
    runtime::type::restart_clients clients = runtime::type::restart_clients::served;

    friend bool operator==(const edit_plan& plan, edit_effect as) noexcept {
        return plan.effect == as;
    }
};

/// Permission of an edit to restart the runtime; without it an edit that has to is refused (409).
enum class edit_restart : std::uint8_t { allowed, refused };

/// Texts about running_state::handover() when it is about to be lost.
inline constexpr std::string_view handover_text =
    "the data of its last instance is in memory alone; start it, or lose that by --force";
inline constexpr std::string_view handover_loss = "the data of its last instance";

/// The same problem with what was attempted in front.
std::unexpected<problem> with_context(std::string_view attempt, problem cause);
/// The refusal (503) of a change that was cancelled.
std::unexpected<problem> interrupted();
/// The refusal (404) of a change to a runtime that another change has removed.
std::unexpected<problem> vanished(const managed_runtime& which);
/// The refusal (409) of what needs an instance.
std::unexpected<problem> not_running(const managed_runtime& which);

}  // namespace eddy::daemon
