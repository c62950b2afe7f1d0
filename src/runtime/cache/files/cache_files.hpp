// Files of a running cache, the dump file and the append-only file: loading at the start, saves by
// save points and commands, and the last save before an end.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/persistence/engine_files.hpp"
#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/files/append_file.hpp"
#include "runtime/instance.hpp"
#include "serving/counters.hpp"
#include "serving/journal.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::runtime::cache {

/// A save before an end.
struct last_save {
    using saving = eddy::cache::shutdown_request::saving;

    saving wanted = saving::by_points;
    bool even_unchanged = false;  ///< also when the dump file has everything
    duration patience{};          ///< for a script, and for replicas that take a copy
    std::function<bool()> is_given_up;
};

/// Waits until `begin` has begun a snapshot, of which there is one at a time, and no script is half
/// done. A replica that is slow to take a copy is closed after the patience.
task<outcome<>> await_instant(cache_context& of, last_save how, std::function<bool()> begin);

/// Writes to the files all that they lack, if there are files. The home loop's thread.
task<outcome<>> save_all(cache_context& of, last_save how);

/// Files of one engine with a folder. One loop's thread; all references outlive it.
class cache_files final : eddy::cache::save_host {
public:
    explicit cache_files(cache_context& of);
    cache_files(const cache_files&) = delete;
    cache_files& operator=(const cache_files&) = delete;

    /// Loads the folder's data into the empty engine, and opens the append-only file. With
    /// `inherited`, the data of the instance before counts in place of the folder's; the folder
    /// then gets a first dump, too.
    task<outcome<>> open(std::shared_ptr<const handover> inherited);
    /// After open(): commands can save from now on.
    void attach();
    append_file& append() noexcept { return append_; }

    /// Writes what the engine was asked to save, and what is due by the save points, until it is
    /// cancelled.
    task<void> keep_saved();

    /// Writes all that the files lack while clients are served; keep_saved() and the tasks of the
    /// append-only file do the work. Writes should be held. Fails with the reason; then nothing is
    /// different from before.
    task<outcome<>> save_before_stop(last_save how);
    /// Changes that the dump does not have, or data whose dump was removed by hand.
    bool lacks_dump() const;

    /// The end, once the tasks have ended: writes what is missing unless `is_saved`.
    task<void> close(last_save::saving wanted, bool is_saved);
    /// Data that no file has after close(); empty if none.
    std::string lost() const;

private:
    void save_began() noexcept override {
        wanted_.set();
        context_.progress.set();
    }
    task<outcome<>> load();
    task<outcome<>> write_first_dump();
    task<outcome<>> await_script(const last_save& how);
    task<outcome<>> write_dump_before_stop(const last_save& how);
    task<void> write_save();
    task<void> save_at_end(last_save::saving wanted);
    void note_loss(last_save::saving wanted, bool is_saved, bool is_appended);
    void abort_save(std::string_view fault);
    bool wants_dump(last_save::saving wanted) const noexcept;
    eddy::cache::engine_files files() const noexcept { return eddy::cache::engine_files(engine_); }
    const eddy::cache::engine_options& options() const noexcept { return engine_.options(); }
    std::string dump_path() const;

    eddy::cache::engine& engine_;
    cache_context& context_;
    serving::counters& counted_;
    serving::journal& events_;
    append_file append_;
    event wanted_;        // a snapshot is to be written
    problem save_fault_;  // of the last save; without a message it succeeded
    std::string lost_;
};

}  // namespace eddy::runtime::cache
