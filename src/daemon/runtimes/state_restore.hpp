// Restoration of runtimes from the state store: at the daemon's start, and again when the stored
// state was changed by hand.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "daemon/journal/journal_files.hpp"
#include "daemon/journal/runtime_journal.hpp"
#include "daemon/runtimes/managed_runtime.hpp"
#include "daemon/runtimes/runtime_editor.hpp"
#include "daemon/runtimes/runtime_lifecycle.hpp"
#include "daemon/runtimes/runtime_registry.hpp"
#include "daemon/state/state_access.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace eddy::daemon {

/// Effect of a reread.
struct reread_summary {
    std::size_t created = 0;
    std::size_t changed = 0;
    std::size_t unchanged = 0;
    std::vector<std::string> problems;
};

/// The control loop's. Everything given outlives it.
class state_restore {
public:
    /// For `address_grace` start_loaded() tries again to start what finds its address taken.
    state_restore(runtime_registry& registry, runtime_lifecycle& lifecycle, runtime_editor& editor,
                  const state_access& state, const journal_files& journals, blocking_pool& disk,
                  duration address_grace)
        : registry_(registry),
          lifecycle_(lifecycle),
          editor_(editor),
          state_(state),
          journals_(journals),
          disk_(disk),
          address_grace_(address_grace) {}

    /// Reads the stored state. What is to run is "starting" from then on; the error is one of the
    /// store as a whole.
    task<outcome<>> load();
    /// Starts what load() has found, each on its loop, and returns when all have started or failed.
    /// Failures are logged and shown as the runtime's status. Other requests are served meanwhile,
    /// and a stop, a removal or the shutdown ends a start.
    task<void> start_loaded();
    /// Applies what was changed in the store by hand: SIGHUP. Runtimes whose record did not change
    /// are left alone; one whose record is gone keeps running, and its record is saved anew. One at
    /// a time.
    task<outcome<reread_summary>> reread();

private:
    using records = std::map<std::string, runtime_record, std::less<>>;
    /// Earlier lines by the runtime's name.
    using journal_lines = std::map<std::string, std::vector<journal_line>, std::less<>>;

    task<outcome<journal_lines>> load_journals(std::vector<std::string> names);
    task<void> start_restored(runtime_ref which, duration grace);
    task<void> add_found(runtime_record found, std::vector<journal_line> earlier,
                         reread_summary& summary);
    task<outcome<>> save_anew(runtime_ref which, reread_summary& summary);

    runtime_registry& registry_;
    runtime_lifecycle& lifecycle_;
    runtime_editor& editor_;
    const state_access& state_;
    const journal_files& journals_;
    blocking_pool& disk_;
    const duration address_grace_;
    std::vector<runtime_ref> loaded_;  // to be started by start_loaded()
    async_mutex rereading_;
};

}  // namespace eddy::daemon
