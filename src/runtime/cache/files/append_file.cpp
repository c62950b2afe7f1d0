// Append-only file: start, writes, and waits for the disk.
#include "runtime/cache/files/append_file.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "cache/persistence/engine_files.hpp"
#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/files/append_load.hpp"
#include "runtime/cache/files/background_io.hpp"
#include "runtime/cache/files/dump_file.hpp"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::fsync_policy;

/// Between two syncs with everysec.
constexpr duration sync_pause = std::chrono::seconds(1);
/// Before the next attempt when the disk has refused.
constexpr duration retry_pause = std::chrono::seconds(1);
constexpr mode_t folder_mode = 0755;

/// In bytes; none when there is no such file.
std::optional<std::uint64_t> size_of(const std::string& path) noexcept {
    struct ::stat found{};
    if (::stat(path.c_str(), &found) != 0) return std::nullopt;
    return static_cast<std::uint64_t>(found.st_size);
}

/// True while the path leads to that folder.
bool is_at(const file& folder, const std::string& path) noexcept {
    struct ::stat held{};
    struct ::stat found{};
    return ::fstat(folder.native_handle(), &held) == 0 && ::stat(path.c_str(), &found) == 0 &&
           held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

task<result<std::string>> read_all(const std::string& path, std::size_t most) {
    result<file> opened = co_await file::open_regular(path, O_RDONLY);
    if (!opened) co_return std::unexpected(opened.error());
    std::string text(most + 1, '\0');
    const result<std::size_t> got =
        co_await opened->read_at(0, std::as_writable_bytes(std::span(text)));
    if (!got) co_return std::unexpected(got.error());
    if (*got > most) co_return fail(errc::limit_reached);
    text.resize(*got);
    co_return text;
}

}  // namespace

append_file::append_file(cache_context& of)
    : engine_(of.engine),
      events_(of.events),
      context_(of),
      folder_(of.settings.dir + "/" + of.settings.append_file.dirname) {
    eddy::cache::engine_files(engine_).make_append(*this);
}

append_file::~append_file() { eddy::cache::engine_files(engine_).drop_append(); }

eddy::cache::append_log& append_file::log() const noexcept {
    return *eddy::cache::engine_files(engine_).append();
}

const eddy::cache::append_options& append_file::options() const noexcept {
    return engine_.options().append;
}

const eddy::cache::append_file_settings& append_file::settings() const noexcept {
    return context_.settings.append_file;
}

std::string append_file::path_of(const std::string& name) const { return folder_ + "/" + name; }

std::string append_file::manifest_path() const {
    return path_of(settings().filename + ".manifest");
}

// --- The folder ------------------------------------------------------------------------------

/// Locks the folder: two processes that append to the same files would destroy them.
task<outcome<>> append_file::take_folder() {
    if (lock_ && is_at(*lock_, folder_)) co_return outcome<>();
    lock_.reset();  // what is locked there was moved away or removed
    if (::mkdir(folder_.c_str(), folder_mode) != 0) {
        if (errno != EEXIST)
            co_return disk_problem("make the folder", folder_, {errno, std::system_category()});
    } else {
        // Its files are synced; so must its own name be, for a start to find them.
        const std::string above = folder_.substr(0, folder_.rfind('/') + 1);
        result<file> parent = co_await file::open(above, O_RDONLY | O_DIRECTORY);
        if (!parent) co_return disk_problem("open", above, parent.error());
        if (const result<> synced = co_await parent->sync(); !synced)
            co_return disk_problem("sync", above, synced.error());
    }
    result<file> opened = co_await file::open(folder_, O_RDONLY | O_DIRECTORY);
    if (!opened) co_return disk_problem("open", folder_, opened.error());
    if (::flock(opened->native_handle(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            co_return refuse(
                409, fmt::format("{} is in use by another cache: choose another --dir", folder_));
        co_return disk_problem("lock", folder_, {errno, std::system_category()});
    }
    lock_.emplace(std::move(*opened));
    co_return outcome<>();
}

/// False when there is none.
task<outcome<bool>> append_file::read_manifest() {
    const std::string path = manifest_path();
    const result<std::string> text = co_await read_all(path, append_manifest::max_bytes);
    if (!text && text.error() == std::errc::no_such_file_or_directory) co_return false;
    if (!text) co_return disk_problem("read", path, text.error());
    outcome<append_manifest> read = parse_manifest(*text);
    if (!read)
        co_return refuse(500, fmt::format("could not load {}: {}. The file was left as it is: put "
                                          "a good copy in its place, or move the folder away to "
                                          "begin without it",
                                          path, read.error().message));
    manifest_ = std::move(*read);
    // The move of a single file that was cut short.
    if (manifest_.base && manifest_.base->name == settings().filename) {
        const std::string old = context_.settings.dir + "/" + settings().filename;
        const std::string here = path_of(settings().filename);
        const result<file> moved = co_await file::open_regular(here, O_RDONLY);
        if (!moved && moved.error() == std::errc::no_such_file_or_directory)
            static_cast<void>(co_await file::rename(old, here));
    }
    co_return true;
}

/// The file of redis-server 6 and older, which has no list, becomes the base.
task<outcome<bool>> append_file::adopt_single_file() {
    const std::string& name = settings().filename;
    const std::string old = context_.settings.dir + "/" + name;
    const result<file> opened = co_await file::open_regular(old, O_RDONLY);
    if (!opened && opened.error() == std::errc::no_such_file_or_directory) co_return false;
    if (!opened) co_return disk_problem("open", old, opened.error());
    append_manifest made;
    made.base = append_manifest::part{name, 1};
    made.last_base = 1;
    // First the list: a crash between the two is made good below, where the list is read.
    outcome<> listed = co_await write_manifest(std::move(made));
    if (!listed) co_return std::unexpected(listed.error());
    const result<> moved = co_await file::rename(old, path_of(name));
    if (!moved) co_return disk_problem("move", old, moved.error());
    events_.write(fmt::format("moved {} to {}", old, folder_));
    co_return true;
}

task<outcome<>> append_file::write_manifest(append_manifest changed) {
    const std::string path = manifest_path();
    const std::string temporary = path_of("temp-" + settings().filename + ".manifest");
    const std::string text = to_text(changed);
    {
        result<file> opened = co_await file::open_regular(temporary, O_WRONLY | O_CREAT | O_TRUNC);
        if (!opened) co_return disk_problem("create", temporary, opened.error());
        const result<> written = co_await opened->write_at(0, as_bytes(std::string_view(text)));
        if (!written) co_return disk_problem("write", temporary, written.error());
        const result<> synced = co_await opened->sync();
        if (!synced) co_return disk_problem("write", temporary, synced.error());
    }
    const result<> renamed = co_await file::rename(temporary, path);
    if (!renamed) co_return disk_problem("rename the new", path, renamed.error());
    manifest_ = std::move(changed);
    co_return outcome<>();
}

task<void> append_file::remove_history() {
    if (manifest_.history.empty()) co_return;
    for (const append_manifest::part& each : manifest_.history) {
        const result<> removed = co_await background_remove(path_of(each.name));
        if (!removed && removed.error() != std::errc::no_such_file_or_directory) co_return;
    }
    append_manifest rest = manifest_;
    rest.history.clear();
    static_cast<void>(co_await write_manifest(std::move(rest)));
}

task<outcome<bool>> append_file::load() {
    outcome<> taken = co_await take_folder();
    if (!taken) co_return std::unexpected(taken.error());
    outcome<bool> found = co_await read_manifest();
    if (found && !*found) found = co_await adopt_single_file();
    if (!found || !*found) co_return found;

    eddy::cache::engine_files files(engine_);
    const time_point began = loop::current().now();
    append_counts all;
    std::uint64_t sizes = 0;
    std::vector<append_manifest::part> parts = manifest_.increments;
    if (manifest_.base) parts.insert(parts.begin(), *manifest_.base);
    std::uint64_t total = 0;
    for (const append_manifest::part& each : parts)
        total += size_of(path_of(each.name)).value_or(0);
    context_.update_time();
    files.begin_load(total);
    files.set_loading(true);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        // A rewrite that had begun has made the next part, which nothing was appended to.
        const bool is_last = std::all_of(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                         parts.end(), [this](const append_manifest::part& later) {
                                             return size_of(path_of(later.name)) == 0;
                                         });
        // A base is listed once it is complete: that of a crash has nothing behind it.
        const bool is_whole = i == 0 && manifest_.base && !manifest_.increments.empty();
        const bool may_cut = !is_whole && settings().load_truncated;
        const append_place place = !is_last  ? append_place::followed
                                   : may_cut ? append_place::cuttable
                                             : append_place::last;
        const outcome<append_counts> part =
            co_await load_append_part(engine_, path_of(parts[i].name), place, events_);
        if (!part) co_return std::unexpected(part.error());
        all.commands += part->commands;
        all.refused += part->refused;
        sizes += part->size;
        size_ = part->size;
    }
    files.set_loading(false);
    older_size_ = manifest_.increments.empty() ? sizes : sizes - size_;
    const eddy::cache::statistics now = engine_.stats();
    files.note_loaded(now.keys, 0);
    const std::chrono::duration<double> took = loop::current().now() - began;
    events_.write(fmt::format("loaded {} keys from {} in {:.3f} s, by {} commands", now.keys,
                              folder_, took.count(), all.commands));
    if (all.refused > 0)
        events_.write(fmt::format("{} commands of {} had no effect", all.refused, folder_));
    co_return true;
}

task<outcome<>> append_file::open() {
    EDDY_ASSERT(!log().is_on() && !file_);
    outcome<> taken = co_await take_folder();
    if (!taken) co_return taken;
    static_cast<void>(co_await file::remove(path_of("temp-rewriteaof-bg-0.aof")));
    co_await remove_history();
    if (!manifest_.base && manifest_.increments.empty()) co_return co_await rewrite();

    if (manifest_.increments.empty()) {
        append_manifest more = manifest_;
        const std::uint64_t number = ++more.last_increment;
        more.increments.push_back(
            {fmt::format("{}.{}.incr.aof", settings().filename, number), number});
        result<file> made = co_await file::open_regular(path_of(more.increments.back().name),
                                                        O_WRONLY | O_CREAT | O_TRUNC);
        if (!made) co_return disk_problem("create", folder_, made.error());
        outcome<> listed = co_await write_manifest(std::move(more));
        if (!listed) co_return listed;
        size_ = 0;
        file_ = std::make_shared<file>(std::move(*made));
    } else {
        const std::string path = path_of(manifest_.increments.back().name);
        result<file> opened = co_await file::open_regular(path, O_WRONLY);
        if (!opened) co_return disk_problem("open", path, opened.error());
        file_ = std::make_shared<file>(std::move(*opened));
    }
    log().current_size = log().base_size = older_size_ + size_;
    log().begin();
    log().set_listed();
    synced_at_ = loop::current().now();
    co_return outcome<>();
}

// --- Writing ---------------------------------------------------------------------------------

task<void> append_file::write_on() {
    cancel_source* const source = co_await current_source();
    // One before this may have lacked memory for what waits.
    append_wanted();
    for (;;) {
        result<> woken;
        if (log().has_failed()) {
            woken = co_await loop::current().sleep_for(retry_pause);
        } else if (dirty_ && options().fsync == fsync_policy::everysec) {
            woken = co_await with_timeout(sync_pause, wanted_.wait());
            if (!woken && woken.error() == errc::timed_out) woken = {};
        } else {
            woken = co_await wanted_.wait();
        }
        if (!woken) co_return;
        wanted_.reset();
        const bool syncs_all = std::exchange(whole_flush_wanted_, false);
        const bool is_flushed = co_await flush(syncs_all);
        if (syncs_all) {
            flushed_whole_ = is_flushed;
            ++whole_flushes_;
            context_.progress.set();
        }
        if (log().has_missed()) {
            abandon("there was no memory to note a change");
        } else if (log().has_failed() &&
                   log().appended - log().written > eddy::cache::append_log::max_pending) {
            abandon(fmt::format("more than {} bytes wait for the disk",
                                eddy::cache::append_log::max_pending));
        }
        if (source != nullptr && source->requested()) co_return;
        if (!options().enabled && log().is_on() && !log().rewriting) {
            leaving_ = true;
            log().end();
            note_progress();
            co_await flush(true);
            events_.write("the append-only file is off");
        }
        if (leaving_ && !log().is_on()) forget_files();
        if (!options().enabled && !log().is_on()) log().recover();
        if (rewrite_is_due() && !rewrite_wanted_.is_set()) rewrite_wanted_.set();
    }
}

/// True when nothing waits any more.
bool append_file::write_inline() noexcept {
    byte_buffer& waiting = log().pending;
    if (log().waits_for_disk() || log().has_failed() || !writing_.empty()) return false;
    // The file is about to be replaced: flush() does that.
    if (next_) return false;
    if (waiting.empty()) return true;
    if (!file_ || syncs_under_way_ > 0 || waiting.size() > largest_inline_write) return false;
    ssize_t done = 0;
    do {
        done = ::pwrite(file_->native_handle(), waiting.text().data(), waiting.size(),
                        static_cast<off_t>(size_));
    } while (done < 0 && errno == EINTR);
    // The task writes all of it again, to the same place, and meets the error.
    if (done < 0 || static_cast<std::size_t>(done) != waiting.size()) return false;
    waiting.clear();
    note_written(static_cast<std::size_t>(done));
    return true;
}

bool append_file::write_now(mark by) noexcept {
    static_cast<void>(write_inline());
    return log().given_up <= by.given_up &&
           (!log().is_on() || !log().is_behind(by.position, by.given_up));
}

void append_file::note_written(std::size_t bytes) noexcept {
    size_ += bytes;
    log().written += bytes;
    EDDY_ASSERT(log().written <= log().appended);
    log().current_size = older_size_ + size_;
    dirty_ = true;
    note_progress();
}

/// Writes all that waits; with always, or `sync_all`, the disk has it then. False when the disk
/// refuses.
task<bool> append_file::flush(bool sync_all) {
    for (;;) {
        if (writing_.empty()) {
            if (!sync_all && write_inline()) break;
            if (!sync_all && !log().pending.empty()) co_await gather();
            writing_.swap(log().pending);
        }
        std::size_t now = std::min(writing_.size(), largest_write);
        if (next_) {
            EDDY_ASSERT(next_->from >= log().written);
            const std::uint64_t rest = next_->from - log().written;
            now = static_cast<std::size_t>(std::min<std::uint64_t>(now, rest));
            if (rest == 0) {
                if (!co_await switch_files()) co_return false;
                continue;
            }
        }
        if (now == 0) break;
        if (!file_ || !co_await write_part(now)) co_return false;
        // All that came meanwhile goes with the next write.
        if (!co_await sync_if_due()) co_return false;
    }
    if (sync_all && dirty_ && !co_await sync_file()) co_return false;
    if (!co_await sync_if_due()) co_return false;
    // Not while the first snapshot is still to come: it may fail, and then nothing counts.
    if (!sync_failed_ && log().is_on() && log().is_listed && !log().has_missed()) log().recover();
    co_return true;
}

/// With always, clients that the last syncs let go are likely to come back at once. A sync that
/// begins without them keeps them waiting for two, itself and theirs.
task<void> append_file::gather() {
    const duration limit = std::min(sync_took_ / 4, longest_gathering);
    if (!log().waits_for_disk() || limit <= duration::zero()) co_return;
    if (company() < 2 || waiting_ >= company()) co_return;
    gathered_.reset();
    static_cast<void>(co_await with_timeout(limit, gathered_.wait()));
}

task<bool> append_file::write_part(std::size_t bytes) {
    EDDY_ASSERT(file_ && bytes > 0 && bytes <= writing_.size());
    const const_bytes part = writing_.bytes().first(bytes);
    const result<> written = co_await file_->write_at(size_, part);
    if (!written) {
        // The same place is written again. Half a command must not stay: another part may follow.
        if (written.error() != errc::cancelled) static_cast<void>(co_await file_->truncate(size_));
        fail("write", written.error());
        co_return false;
    }
    writing_.consume(bytes);
    constexpr std::size_t kept = 1U << 20;
    if (writing_.empty() && writing_.capacity() > kept) writing_ = byte_buffer();
    note_written(bytes);
    co_return true;
}

/// Syncs at once with always; else another task does, and writes continue meanwhile.
task<bool> append_file::sync_if_due() {
    if (!sync_is_due()) co_return true;
    if (log().waits_for_disk()) co_return co_await sync_file();
    if (syncs_under_way_ == 0) sync_wanted_.set();
    co_return true;
}

task<void> append_file::sync_on() {
    while (co_await sync_wanted_.wait()) {
        sync_wanted_.reset();
        // Changes that could not be synced must be written anew, which the writing task begins.
        if (!co_await sync_file()) append_wanted();
    }
}

task<bool> append_file::sync_file() {
    // Others may take their place meanwhile.
    const std::shared_ptr<file> older = older_;
    const std::shared_ptr<file> newest = file_;
    if (!newest) co_return true;
    const std::uint64_t position = log().written;
    const time_point begun = loop::current().now();
    ++syncs_under_way_;
    // In this order: what comes first must not be missing where the rest is there.
    result<> synced;
    if (older) synced = co_await older->sync_data();
    if (synced) synced = co_await newest->sync_data();
    EDDY_ASSERT(syncs_under_way_ > 0);
    --syncs_under_way_;
    if (!synced) {
        // The kernel has dropped what it could not write: only a rewrite makes sure of it.
        if (synced.error() != errc::cancelled) sync_failed_ = true;
        fail("sync", synced.error());
        co_return false;
    }
    synced_at_ = loop::current().now();
    sync_took_ = synced_at_ - begun;
    ++log().syncs;
    waited_before_ = std::exchange(waited_, std::exchange(waiting_, 0));
    if (older_ == older) older_.reset();
    EDDY_ASSERT(position <= log().written);
    log().note_synced(std::max(position, log().synced));
    dirty_ = log().written != log().synced;
    note_progress();
    co_return true;
}

task<bool> append_file::switch_files() {
    // With everysec no reply waits for that.
    if (dirty_ && (log().waits_for_disk() || older_) && !co_await sync_file()) co_return false;
    // Another rewrite may have begun meanwhile: its part takes over later.
    if (!next_ || next_->from != log().written) co_return true;
    // The next changes begin the new file.
    auto opened = std::make_shared<file>(std::move(next_->opened));
    next_.reset();
    if (dirty_) {
        older_ = file_;
        sync_wanted_.set();
    }
    file_ = std::move(opened);
    older_size_ += size_;
    size_ = 0;
    note_progress();
    co_return true;
}

bool append_file::sync_is_due() const noexcept {
    if (!dirty_ || options().fsync == fsync_policy::no) return false;
    if (log().waits_for_disk()) return true;
    if (settings().no_fsync_on_rewrite && log().rewriting) return false;
    return loop::current().now() - synced_at_ >= sync_pause;
}

void append_file::note_progress() {
    progress_.set();
    progress_.reset();
    context_.progress.set();
}

task<void> append_file::await_room() {
    while (log().lags()) {
        if (!co_await progress_.wait()) co_return;
    }
}

void append_file::fail(std::string_view what, std::error_code why) {
    if (why == errc::cancelled) return;
    const bool is_new = !log().has_failed();
    // First what needs no memory: no reply may report success.
    log().given_up = log().appended;
    log().fail("disk trouble");
    note_progress();
    log().fail(why.message());
    if (is_new)
        events_.write(
            fmt::format("could not {} the append-only file in {}: {}. Commands that "
                        "write are refused until it can be",
                        what, folder_, why.message()));
}

task<bool> append_file::await_written(mark by) {
    // First whether it was given up: then nothing else counts as written.
    while (log().given_up <= by.given_up) {
        if (!log().is_on() || !log().is_behind(by.position, by.given_up)) co_return true;
        if (++waiting_ >= company() && !gathered_.is_set()) gathered_.set();
        const std::uint64_t syncs = log().syncs;
        const result<> woken = co_await progress_.wait();
        if (syncs == log().syncs) {
            EDDY_ASSERT(waiting_ > 0);
            --waiting_;
        }
        if (!woken) co_return false;
    }
    // Without `always` replies report success, as Redis's: later commands are refused.
    co_return !by.waits_for_disk;
}

/// Expirations and masters cannot be made to wait. Clients are refused until a rewrite has
/// succeeded.
void append_file::abandon(std::string_view why) {
    log().given_up = log().appended;
    if (!log().has_failed()) log().fail("no memory");
    leaving_ = true;
    log().end();
    note_progress();
    events_.write(
        fmt::format("{}: the append-only file in {} ends here. It is rewritten from all keys as "
                    "soon as possible",
                    why, folder_));
}

void append_file::append_interrupted() noexcept {
    leaving_ = true;
    // Writes may wait for it, whatever has failed before.
    rewrite_from_ = {};
    note_progress();
    append_wanted();
}

/// True when a file that a start needs was removed by hand.
bool append_file::has_lost_files() const {
    if (!log().is_on() || !log().is_listed) return false;
    const auto is_lost = [this](const append_manifest::part& each) {
        return !size_of(path_of(each.name));
    };
    return !size_of(manifest_path()) || (manifest_.base && is_lost(*manifest_.base)) ||
           std::any_of(manifest_.increments.begin(), manifest_.increments.end(), is_lost);
}

/// True when a start would find less than there is.
bool append_file::lacks_base() const {
    return options().enabled && (!log().is_on() || !log().is_listed || log().has_missed() ||
                                 sync_failed_ || has_lost_files());
}

task<outcome<>> append_file::save_all(std::function<bool()> is_given_up) {
    if (lacks_whole_data()) co_return outcome<>();
    const std::uint64_t rewrites = log().rewrites;
    while (lacks_base()) {
        if (log().rewrites != rewrites)
            co_return refuse(507, fmt::format("the append-only file in {} could not be written: {}",
                                              folder_, rewrite_fault_));
        rewrite_from_ = {};
        if (!log().rewriting && has_lost_files()) log().rewrite_wanted = true;
        append_wanted();
        if (!log().rewriting && !rewrite_wanted_.is_set()) rewrite_wanted_.set();
        if (is_given_up() || !co_await context_.await_progress()) co_return stop_given_up();
    }
    if (!log().is_on()) co_return outcome<>();
    const std::uint64_t flushes = whole_flushes_;
    whole_flush_wanted_ = true;
    append_wanted();
    while (whole_flushes_ == flushes) {
        if (is_given_up() || !co_await context_.await_progress()) co_return stop_given_up();
    }
    if (flushed_whole_) co_return outcome<>();
    co_return refuse(507, fmt::format("the append-only file in {} could not be written: {}",
                                      folder_, log().fault));
}

task<bool> append_file::close() {
    bool is_whole = true;
    co_await end_snapshot();
    if (log().is_on() && !co_await flush(true)) {
        is_whole = false;
        events_.write(fmt::format("{} bytes of changes are missing in the append-only file",
                                  log().appended - log().written));
    }
    if (options().enabled &&
        (!log().is_on() || !log().is_listed || log().has_missed() || has_lost_files()))
        is_whole = co_await write_anew();
    log().end();
    forget_files();
    co_return is_whole;
}

/// Rewrites the file at an orderly end, so that abandoned changes are not lost. False when they
/// are.
task<bool> append_file::write_anew() {
    log().end();
    forget_files();
    outcome<> done;
    // No task remains that could complete these.
    if (lacks_whole_data() || engine_.script_is_late() ||
        eddy::cache::engine_files(engine_).has_half_script())
        done = refuse(503, "the data in memory is incomplete");
    else
        done = co_await rewrite();
    if (!done)
        events_.write(fmt::format("the append-only file in {} lacks the latest changes: {}",
                                  folder_, done.error().message));
    co_return done.has_value();
}

void append_file::forget_files() {
    EDDY_ASSERT(!log().is_on());
    file_.reset();
    older_.reset();
    next_.reset();
    writing_ = byte_buffer();
    log().pending = byte_buffer();
    log().written = log().synced = log().appended;
    dirty_ = false;
    sync_failed_ = false;
    leaving_ = false;
    note_progress();
}

}  // namespace eddy::runtime::cache
