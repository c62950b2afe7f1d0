// Rewrite of the append-only file: a snapshot of the keys in place of all the commands that made
// them.
#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "cache/persistence/append_log.hpp"
#include "cache/persistence/engine_files.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/script_gap.hpp"
#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/files/append_file.hpp"
#include "runtime/cache/files/background_io.hpp"
#include "runtime/cache/files/dump_file.hpp"
#include "runtime/cache/files/yield.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::rdb::file_form;
using eddy::cache::rdb::snapshot;

constexpr std::string_view temporary_name = "temp-rewriteaof-bg-0.aof";
constexpr std::int64_t second_us = 1'000'000;
/// After failures the next try waits 1, 2, 4, ... seconds, and no longer than this.
constexpr std::int64_t longest_pause_s = 3600;
/// The same while writing is refused until it has succeeded.
constexpr std::int64_t longest_pause_of_all_s = 60;
/// The problem's status when it is none of the disk: what was to be written changed, or all stops.
constexpr int unwanted = 503;

}  // namespace

bool append_file::rewrite_is_due() const noexcept {
    const eddy::cache::append_log& state = log();
    if (state.rewriting || leaving_) return false;
    if (eddy::cache::engine_files(engine_).lacks_data()) return false;
    if (state.rewrite_wanted) return true;
    if (loop::current().now() < rewrite_from_) return false;
    if (options().enabled && !state.is_on()) return true;
    if (!state.is_on()) return false;
    if (sync_failed_) return true;
    if (settings().rewrite_percentage == 0 || state.current_size <= settings().rewrite_min_size)
        return false;
    const std::uint64_t base = std::max<std::uint64_t>(state.base_size, 1);
    if (state.current_size <= base) return false;
    const auto growth = static_cast<double>(state.current_size - base) * 100.0;
    return growth / static_cast<double>(base) >= static_cast<double>(settings().rewrite_percentage);
}

bool append_file::lacks_whole_data() const noexcept {
    const eddy::cache::engine_files files(engine_);
    return files.is_loading() || files.lacks_data();
}

task<void> append_file::rewrite_on() {
    cancel_source* const source = co_await current_source();
    constexpr duration poll_pause = std::chrono::seconds(1);
    // Ends the snapshot of a rewrite that lacked memory.
    co_await end_snapshot();
    log().rewriting = false;
    if (log().is_on() && !log().is_listed) {
        leaving_ = true;
        log().end();
        note_progress();
        append_wanted();
    }
    for (;;) {
        result<> woken;
        if (log().failures_in_a_row > 0) {
            woken = co_await with_timeout(poll_pause, rewrite_wanted_.wait());
            if (!woken && woken.error() == errc::timed_out) woken = {};
        } else {
            woken = co_await rewrite_wanted_.wait();
        }
        if (!woken) co_return;
        rewrite_wanted_.reset();
        if (!rewrite_is_due()) continue;
        const outcome<> done = co_await rewrite();
        if (source != nullptr && source->requested()) co_return;
        if (!done) events_.write(fmt::format("not rewritten: {}", done.error().message));
        append_wanted();
    }
}

task<outcome<>> append_file::rewrite() {
    eddy::cache::append_log& state = log();
    state.rewrite_wanted = false;
    state.rewriting = true;
    context_.update_time();
    state.rewrite_began_us = engine_.steady_us();
    const bool was_on = state.is_on();
    // Changes that are appended before the option's change is noticed need their file.
    const bool appends = options().enabled || was_on;

    outcome<> done = co_await take_folder();
    if (done && !was_on && !manifest_.base && manifest_.increments.empty()) {
        // Numbers follow those in the folder.
        const outcome<bool> known = co_await read_manifest();
        if (!known) done = std::unexpected(known.error());
    }
    const std::uint64_t number = manifest_.last_increment + 1;
    append_manifest::part increment{fmt::format("{}.{}.incr.aof", settings().filename, number),
                                    number};
    try {
        if (done) done = co_await write_base(increment, appends);
    } catch (const std::bad_alloc&) {
        done = refuse(500, "there is no memory");
    }
    co_await end_snapshot();

    state.rewriting = false;
    context_.update_time();
    state.rewrite_took_s = (engine_.steady_us() - state.rewrite_began_us) / second_us;
    state.rewrite_succeeded = done.has_value();
    ++state.rewrites;
    rewrite_fault_ = done ? std::string() : done.error().message;
    context_.progress.set();
    if (done) {
        state.failures_in_a_row = 0;
        sync_failed_ = false;
        state.recover();
    } else {
        const bool is_of_disk = done.error().status != unwanted;
        // No reply may wait for a disk that refuses.
        if (is_of_disk && state.holds_writes()) state.fail(done.error().message);
        // The file that was begun has no base.
        if (!was_on && state.is_on()) {
            leaving_ = true;
            state.end();
            note_progress();
        }
        // Each try that gets far leaves a part in the list, which has a limit.
        const std::uint64_t failures = state.failures_in_a_row++;
        const auto shift = is_of_disk ? std::min<std::uint64_t>(failures, 12) : 0;
        const std::int64_t longest = state.has_failed() ? longest_pause_of_all_s : longest_pause_s;
        rewrite_from_ = loop::current().now() +
                        std::chrono::seconds(std::min(std::int64_t{1} << shift, longest));
    }
    co_return done;
}

task<outcome<>> append_file::write_base(append_manifest::part increment, bool appends) {
    eddy::cache::append_log& state = log();
    EDDY_ASSERT(state.rewriting && snapshot_ == nullptr);
    const time_point began = loop::current().now();
    std::optional<file> opened;
    if (appends) {
        const std::string path = path_of(increment.name);
        result<file> made = co_await file::open_regular(path, O_WRONLY | O_CREAT | O_TRUNC);
        if (!made) co_return disk_problem("create", path, made.error());
        opened.emplace(std::move(*made));
    }
    const bool goes_on = state.is_on();
    if (appends && goes_on) {
        append_manifest more = manifest_;
        more.increments.push_back(increment);
        more.last_increment = increment.sequence;
        outcome<> listed = co_await write_manifest(std::move(more));
        if (!listed) co_return listed;
    }
    // The option may change before the end.
    const file_form form = settings().use_rdb_preamble ? file_form::rdb : file_form::commands;
    if (auto begun = co_await begin_snapshot(std::move(opened), goes_on, form); !begun)
        co_return begun;
    const std::string temporary = path_of(std::string(temporary_name));
    const outcome<std::uint64_t> written =
        co_await write_snapshot(context_.settings, *snapshot_, temporary);
    if (!written) {
        static_cast<void>(co_await background_remove(temporary));
        co_return std::unexpected(written.error());
    }
    while (next_) {
        if (!co_await progress_.wait()) co_return refuse(unwanted, "the cache is stopping");
    }
    if (appends && (!state.is_on() || state.has_missed()))
        co_return refuse(unwanted, "appendonly was turned off during the rewrite");
    append_manifest::part base{
        fmt::format("{}.{}.base.{}", settings().filename, manifest_.last_base + 1,
                    form == file_form::rdb ? "rdb" : "aof"),
        manifest_.last_base + 1};
    if (auto listed = co_await list_base(std::move(base), increment, appends, *written); !listed)
        co_return listed;
    co_await remove_history();
    const std::chrono::duration<double> took = loop::current().now() - began;
    events_.write(fmt::format("wrote a snapshot of {} bytes to {} in {:.3f} s", *written,
                              path_of(manifest_.base->name), took.count()));
    co_return outcome<>();
}

/// Begins the snapshot and, if there is one, the file of the changes behind it, at the same
/// instant.
task<outcome<>> append_file::begin_snapshot(std::optional<file> increment, bool goes_on,
                                            file_form form) {
    eddy::cache::append_log& state = log();
    // Half of what a script does must not be in the snapshot without the other half.
    eddy::cache::script_gap gap(engine_);
    while (!gap.is_there(snapshot::may_begin(engine_) && !lacks_whole_data())) {
        static_cast<void>(engine_.upkeep());
        if (!co_await context_.await_progress())
            co_return refuse(unwanted, "the cache is stopping");
    }
    if (goes_on && !state.is_on())
        co_return refuse(unwanted, "a master's data has replaced that of this cache");
    context_.update_time();
    // The instant: nothing is executed until all of this is done.
    snapshot_ = snapshot::begin(engine_, {.form = form, .aof_base = true});
    EDDY_ASSERT(snapshot_ != nullptr);
    if (!increment) co_return outcome<>();
    if (state.is_on()) {
        EDDY_ASSERT(file_ != nullptr);
        next_.emplace(std::move(*increment), state.appended);
    } else {
        state.written = state.synced = state.appended;
        file_ = std::make_shared<file>(std::move(*increment));
        size_ = 0;
        older_size_ = 0;
        dirty_ = false;
        state.begin();
    }
    state.begin_file();
    append_wanted();
    co_return outcome<>();
}

/// Lists the snapshot, which is complete under its temporary name, in the place of all that came
/// before its instant.
task<outcome<>> append_file::list_base(append_manifest::part base, append_manifest::part increment,
                                       bool appends, std::uint64_t size) {
    eddy::cache::append_log& state = log();
    append_manifest made;
    made.last_base = base.sequence;
    made.last_increment = appends ? increment.sequence : manifest_.last_increment;
    if (appends) made.increments.push_back(increment);
    made.history = manifest_.history;
    if (manifest_.base) made.history.push_back(*manifest_.base);
    for (const append_manifest::part& each : manifest_.increments) {
        if (each.sequence != increment.sequence) made.history.push_back(each);
    }
    const std::string path = path_of(base.name);
    made.base = std::move(base);
    const result<> renamed = co_await file::rename(path_of(std::string(temporary_name)), path);
    if (!renamed) co_return disk_problem("rename the new", path, renamed.error());
    outcome<> listed = co_await write_manifest(std::move(made));
    if (!listed) co_return listed;
    if (appends && (!state.is_on() || state.has_missed()))
        co_return refuse(unwanted, "appendonly was turned off during the rewrite");
    if (appends) state.set_listed();
    older_size_ = size;
    state.current_size = state.base_size = older_size_ + size_;
    co_return outcome<>();
}

/// The snapshot is not needed any more; what is left of it is cleared up.
task<void> append_file::end_snapshot() {
    snapshot* const data = std::exchange(snapshot_, nullptr);
    if (data == nullptr) co_return;
    data->end();
    while (snapshot::is_clearing(engine_)) {
        static_cast<void>(engine_.upkeep());
        co_await yield();
    }
}

}  // namespace eddy::runtime::cache
