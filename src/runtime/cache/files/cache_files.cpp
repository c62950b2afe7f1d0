// Files of a running cache. One task writes all dumps; others begin a snapshot and wait for its
// end.
#include "runtime/cache/files/cache_files.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "cache/rdb/snapshot.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/script_gap.hpp"
#include "runtime/cache/files/dump_file.hpp"
#include "runtime/cache/files/handover.hpp"
#include "runtime/cache/files/yield.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

namespace eddy::runtime::cache {
namespace {

constexpr std::string_view no_memory_text = "there is no memory";

}  // namespace

task<outcome<>> await_instant(cache_context& of, last_save how, std::function<bool()> begin) {
    EDDY_ASSERT(how.is_given_up && begin);
    loop& here = loop::current();
    const eddy::cache::engine_files files(of.engine);
    time_point patience_ends = here.now() + how.patience;
    eddy::cache::script_gap gap(of.engine);
    while (!gap.is_there(files.snapshot() == nullptr) || !begin()) {
        // A save that is under way is awaited without patience's limit.
        const duration limit = files.snapshot() != nullptr
                                   ? cache_context::longest_wait
                                   : std::max(patience_ends - here.now(), duration(1));
        if (how.is_given_up() || !co_await of.await_progress(limit)) co_return stop_given_up();
        of.update_time();
        if (here.now() < patience_ends || files.snapshot() != nullptr) continue;
        if (of.engine.script_is_late())
            co_return refuse(409, fmt::format("a script is running, and half of what it does would "
                                              "be saved; {}",
                                              files.script_remedy()));
        // The replica gets another copy later.
        if (auto* const links = eddy::cache::replication::find(of.engine); links != nullptr)
            links->disconnect_replicas();
        patience_ends = here.now() + how.patience;
    }
    co_return outcome<>();
}

task<outcome<>> save_all(cache_context& of, last_save how) {
    if (of.files == nullptr) co_return outcome<>();
    try {
        co_return co_await of.files->save_before_stop(std::move(how));
    } catch (const std::bad_alloc&) {
        ++of.counted.errors;
    }
    co_return refuse(503, "not saved: there is no memory");
}

cache_files::cache_files(cache_context& of)
    : engine_(of.engine), context_(of), counted_(of.counted), events_(of.events), append_(of) {}

std::string cache_files::dump_path() const {
    return context_.settings.dir + "/" + context_.settings.dbfilename;
}

// --- The start -------------------------------------------------------------------------------

/// Clients get and change keys only once all data is loaded. Of the two kinds of files the
/// append-only file has the later changes.
task<outcome<>> cache_files::open(std::shared_ptr<const handover> inherited) {
    context_.update_time();
    bool has_loaded = inherited != nullptr;
    if (inherited) {
        if (auto loaded = co_await load_handover(engine_, context_.settings, *inherited, events_);
            !loaded)
            co_return loaded;
    } else if (options().append.enabled) {
        const outcome<bool> loaded = co_await append_.load();
        if (!loaded) co_return std::unexpected(loaded.error());
        has_loaded = *loaded;
        // The file's commands are no commands of clients.
        files().forget_commands();
    }
    if (!has_loaded) {
        if (auto loaded = co_await load(); !loaded) co_return loaded;
    }
    if (inherited && inherited->has_new_files && ::access(dump_path().c_str(), F_OK) != 0) {
        if (auto written = co_await write_first_dump(); !written) co_return written;
    }
    if (!options().append.enabled) co_return outcome<>();
    co_return co_await append_.open();
}

/// First dump of a cache that had another folder before, or none.
task<outcome<>> cache_files::write_first_dump() {
    files().set_writer(*this);
    if (!files().begin_save(eddy::cache::save_kind::foreground)) co_return outcome<>();
    co_await write_save();
    if (save_fault_.message.empty()) co_return outcome<>();
    co_return std::unexpected(save_fault_);
}

void cache_files::attach() {
    files().set_writer(*this);
    files().note_saved_time();
}

task<outcome<>> cache_files::load() {
    const std::string path = dump_path();
    // Left by a daemon that was killed.
    static_cast<void>(co_await file::remove(temporary_of(path)));
    context_.update_time();
    const time_point began = loop::current().now();
    eddy::cache::rdb::load_options options;
    options.goes_on = true;
    const auto loaded = co_await load_dump(engine_, context_.settings, path, options, events_);
    if (!loaded) co_return std::unexpected(loaded.error());
    if (!*loaded) {
        events_.write(fmt::format("there is no {} yet: it begins without keys", path));
        co_return outcome<>();
    }
    const eddy::cache::rdb::load_counts& counts = **loaded;
    files().note_loaded(counts.keys, counts.expired);
    const std::chrono::duration<double> took = loop::current().now() - began;
    events_.write(fmt::format("loaded {} keys from {} in {:.3f} s; {} had expired", counts.keys,
                              path, took.count(), counts.expired));
    if (counts.libraries > 0)
        events_.write(fmt::format("loaded {} libraries of functions", counts.libraries));
    co_return outcome<>();
}

// --- While it runs ---------------------------------------------------------------------------

task<void> cache_files::keep_saved() {
    constexpr duration save_point_pause = std::chrono::seconds(1);
    cancel_source* const source = co_await current_source();
    eddy::cache::script_gap gap(engine_);
    // Its task has lacked memory; what it has given would be missing in another file.
    abort_save(no_memory_text);
    bool waits_for_script = false;
    for (;;) {
        if (waits_for_script) {
            if (!co_await context_.await_progress()) co_return;
        } else {
            const result<> woken = co_await with_timeout(save_point_pause, wanted_.wait());
            if (!woken && woken.error() != errc::timed_out) co_return;
        }
        wanted_.reset();
        context_.update_time();
        // Half of what a script does must not be in the file without the other half.
        const bool is_due = files().save_is_due();
        waits_for_script = is_due && !gap.is_there();
        if (is_due && !waits_for_script) files().begin_save();
        if (!waits_for_script) gap.release();
        while (files().snapshot() != nullptr) {
            co_await write_save();
            if (source != nullptr && source->requested()) co_return;
        }
    }
}

/// Ends the snapshot that has begun, if there is one.
void cache_files::abort_save(std::string_view fault) {
    if (files().snapshot() == nullptr) return;
    files().snapshot()->end();
    files().end_save(fault);
    context_.progress.set();
}

/// Writes the snapshot that has begun.
task<void> cache_files::write_save() {
    EDDY_ASSERT(files().snapshot() != nullptr);
    eddy::cache::rdb::snapshot& data = *files().snapshot();
    const std::string path = dump_path();
    const std::uint64_t keys = data.keys();
    const time_point began = loop::current().now();
    const outcome<std::uint64_t> written = co_await write_dump(context_.settings, data, path);
    data.end();
    // Clears the rest of the snapshot before its end is reported, so that the next one can begin
    // then.
    try {
        while (eddy::cache::rdb::snapshot::is_clearing(engine_)) {
            static_cast<void>(engine_.upkeep());
            co_await yield();
        }
    } catch (const std::bad_alloc&) {  // keep_up() continues
    }
    context_.update_time();
    EDDY_ASSERT(files().snapshot() == &data);
    save_fault_ = written ? problem() : written.error();
    files().end_save(save_fault_.message);
    context_.progress.set();
    // Memory of keys that were removed meanwhile is freed only now.
    context_.ask_upkeep();
    if (written) {
        const std::chrono::duration<double> took = loop::current().now() - began;
        events_.write(fmt::format("saved {} keys, {} bytes, to {} in {:.3f} s", keys, *written,
                                  path, took.count()));
    } else {
        ++counted_.errors;
        events_.write(fmt::format("not saved: {}; the last file stays", save_fault_.message));
    }
}

// --- The end ---------------------------------------------------------------------------------

bool cache_files::lacks_dump() const {
    if (files().unsaved_changes() != 0) return true;
    if (files().has_unsaved_position()) return true;
    return files().has_data() && ::access(dump_path().c_str(), F_OK) != 0;
}

bool cache_files::wants_dump(last_save::saving wanted) const noexcept {
    return wanted == last_save::saving::always ||
           (wanted == last_save::saving::by_points && !options().save_points.empty());
}

task<outcome<>> cache_files::save_before_stop(last_save how) {
    // The data in memory is not whole: the files stay as they are.
    const eddy::cache::engine_files its = files();
    if (its.is_loading() || its.is_starting() || its.lacks_data()) co_return outcome<>();
    if (how.wanted != last_save::saving::never) {
        if (options().append.enabled || wants_dump(how.wanted)) {
            if (auto ended = co_await await_script(how); !ended) co_return ended;
        }
        if (auto kept = co_await append_.save_all(how.is_given_up); !kept) co_return kept;
    }
    if (!wants_dump(how.wanted) || (!how.even_unchanged && !lacks_dump())) co_return outcome<>();
    co_return co_await write_dump_before_stop(how);
}

/// Waits for scripts that have changed data: the stop would cut them off, and no file would have
/// their changes.
task<outcome<>> cache_files::await_script(const last_save& how) {
    const time_point patience_ends = loop::current().after(how.patience);
    while (files().script_has_changed()) {
        const duration left = patience_ends - loop::current().now();
        if (left <= duration::zero())
            co_return refuse(409, fmt::format("a script that has written is running, and would be "
                                              "cut off; {}",
                                              files().script_remedy()));
        if (how.is_given_up() || !co_await context_.await_progress(left)) co_return stop_given_up();
        context_.update_time();
    }
    co_return outcome<>();
}

task<outcome<>> cache_files::write_dump_before_stop(const last_save& how) {
    auto begun = co_await await_instant(
        context_, how, [this] { return files().begin_save(eddy::cache::save_kind::foreground); });
    if (!begun) co_return begun;
    const std::uint64_t before = files().saves();
    while (files().snapshot() != nullptr) {
        if (how.is_given_up() || !co_await context_.await_progress()) co_return stop_given_up();
    }
    if (files().saves() != before) co_return outcome<>();
    co_return std::unexpected(save_fault_);
}

task<void> cache_files::close(last_save::saving wanted, bool is_saved) {
    bool lacked_memory = false;
    bool is_appended = true;
    try {
        abort_save(no_memory_text);
        is_appended = co_await append_.close();
    } catch (const std::bad_alloc&) {
        lacked_memory = true;
        is_appended = false;
    }
    try {
        if (!is_saved) co_await save_at_end(wanted);
        if (lacked_memory)
            events_.write("not everything could be saved at the stop: there was no memory");
        note_loss(wanted, is_saved, is_appended);
    } catch (const std::bad_alloc&) {
        ++counted_.errors;
    }
}

void cache_files::note_loss(last_save::saving wanted, bool is_saved, bool is_appended) {
    if (options().append.enabled) {
        if (!is_appended) lost_ = "the latest changes: the append-only file could not be written";
        return;
    }
    const std::uint64_t changes = files().unsaved_changes();
    if (files().has_half_script() && wants_dump(wanted)) {
        lost_ = fmt::format(
            "{} changes since the last save: a script was cut off, and half of what "
            "it does is not saved",
            changes);
        return;
    }
    if (changes == 0 || (is_saved && wants_dump(wanted))) return;
    std::string_view why = "saving was not wanted";
    if (!save_fault_.message.empty())
        why = save_fault_.message;
    else if (wants_dump(wanted))
        why = "there was no time to save";
    lost_ = fmt::format("{} changes since the last save: {}", changes, why);
}

std::string cache_files::lost() const { return lost_; }

/// Saves the changes that no file has yet, when there are save points, as in Redis.
task<void> cache_files::save_at_end(last_save::saving wanted) {
    if (!files().has_writer() || !wants_dump(wanted)) co_return;
    if (!lacks_dump()) co_return;
    context_.update_time();
    files().unschedule_save();
    if (files().begin_save(eddy::cache::save_kind::foreground)) co_await write_save();
}

}  // namespace eddy::runtime::cache
