// Append-only file: a folder with a snapshot of the keys, the commands that followed it, and a list
// of both, as in redis-server 7.0.
//
// The engine appends to a buffer. Without `always` the buffer is written in the loop's turn, before
// the replies of that turn go out: write(2) to the page cache takes a few microseconds. During a
// sync it might wait for the disk, so a task writes then, as it does with `always` and for large
// amounts. Two other tasks sync, and rewrite.
//
// A rewrite begins a new file of commands at the very instant of its snapshot, so that each command
// is either in the snapshot or in that file. The list is replaced as a whole: it names the new file
// before a byte of it counts, and the snapshot once that is complete.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "cache/config/server_settings.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/rdb/snapshot.hpp"
#include "runtime/cache/files/append_manifest.hpp"
#include "serving/journal.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::cache {

struct cache_context;

/// Append-only file of one engine with a folder, whose append_log it makes. One loop's thread;
/// threads that lock it for holds_replies(), present(), was_given_up(), write_now() and the
/// engine's calls. The tasks must have ended before it is destroyed.
class append_file final : public eddy::cache::append_host {
public:
    /// Limit of one write to the disk.
    static constexpr std::size_t largest_write = 4U << 20;
    /// Limit of one write within a turn of the loop: a third of a millisecond, for as many changes
    /// as take several to execute.
    static constexpr std::size_t largest_inline_write = 1U << 20;
    /// Limits of the delay of a sync, for others to share it: this, and a quarter of what a sync
    /// takes.
    static constexpr duration longest_gathering = std::chrono::milliseconds(2);

    /// `of` outlives it.
    explicit append_file(cache_context& of);
    append_file(const append_file&) = delete;
    append_file& operator=(const append_file&) = delete;
    ~append_file();

    /// Makes the folder this process's own and executes what is in it. False when there is nothing
    /// yet. The engine must be empty, and not be used meanwhile.
    task<outcome<bool>> load();
    /// Appends to what was loaded, or begins with a snapshot of the present keys.
    task<outcome<>> open();

    /// Write, sync and rewrite until they are cancelled; follow the options, which may change.
    task<void> write_on();
    task<void> sync_on();
    task<void> rewrite_on();
    /// Syncs all that was appended, and writes a base where it is missing, by the tasks above.
    /// Fails with the reason once they have tried; they continue in either case.
    task<outcome<>> save_all(std::function<bool()> is_given_up);
    /// Writes what is left and waits until the disk has it; then nothing more is appended. The
    /// tasks must have ended. False when the files lack something.
    task<bool> close();

    /// True while replies must wait; holds_reads(): also replies to commands that change nothing.
    bool holds_replies() const noexcept { return log().holds_replies(); }
    bool holds_reads() const noexcept { return log().holds_reads(); }
    /// Position of the appended bytes at an instant, and up to which of them replies no longer
    /// wait.
    struct mark {
        std::uint64_t position = 0;
        std::uint64_t given_up = 0;
        bool waits_for_disk = true;  ///< a write alone does not end the wait
    };
    /// True when the session must be notified of that; see append_log::was_given_up().
    bool was_given_up(eddy::cache::client_session& of) const noexcept {
        return log().was_given_up(of);
    }
    mark present() const noexcept {
        return {log().appended, log().given_up, log().waits_for_disk()};
    }
    /// Writes the waiting bytes, if that cannot block; else, and after an error, write_on() does
    /// it. True when replies to what was appended up to `by` need not wait any more.
    bool write_now(mark by) noexcept;
    /// Waits until replies to what was appended up to `by` need not wait. False when the disk has
    /// refused it: no reply may report success.
    task<bool> await_written(mark by);
    /// Waits until more may be appended: append_log::lags(). Ends early when it is cancelled.
    task<void> await_room();

    void append_wanted() noexcept override {
        if (!wanted_.is_set()) wanted_.set();
    }
    void append_interrupted() noexcept override;
    void append_missed() noexcept override { append_wanted(); }

private:
    /// The file that takes what comes from this byte on.
    struct successor {
        file opened;
        std::uint64_t from;
    };

    eddy::cache::append_log& log() const noexcept;
    const eddy::cache::append_options& options() const noexcept;
    const eddy::cache::append_file_settings& settings() const noexcept;
    std::string path_of(const std::string& name) const;
    std::string manifest_path() const;
    task<outcome<>> take_folder();
    task<outcome<bool>> read_manifest();
    task<outcome<bool>> adopt_single_file();
    task<outcome<>> write_manifest(append_manifest changed);
    task<void> remove_history();

    bool write_inline() noexcept;
    void note_written(std::size_t bytes) noexcept;
    task<bool> flush(bool sync_all);
    task<bool> sync_if_due();
    task<void> gather();
    task<bool> write_part(std::size_t bytes);
    task<bool> sync_file();
    task<bool> switch_files();
    void note_progress();
    void fail(std::string_view what, std::error_code why);
    bool sync_is_due() const noexcept;
    std::size_t company() const noexcept { return std::max(waited_, waited_before_); }

    bool rewrite_is_due() const noexcept;
    bool lacks_whole_data() const noexcept;
    task<outcome<>> rewrite();
    task<outcome<>> write_base(append_manifest::part increment, bool appends);
    task<outcome<>> begin_snapshot(std::optional<file> increment, bool goes_on,
                                   eddy::cache::rdb::file_form form);
    task<outcome<>> list_base(append_manifest::part base, append_manifest::part increment,
                              bool appends, std::uint64_t size);
    task<void> end_snapshot();
    bool has_lost_files() const;
    bool lacks_base() const;
    task<bool> write_anew();
    void forget_files();
    void abandon(std::string_view why);

    eddy::cache::engine& engine_;
    serving::journal& events_;
    cache_context& context_;
    std::string folder_;
    std::optional<file> lock_;  // the folder
    append_manifest manifest_;

    // Syncs hold them, too.
    std::shared_ptr<file> file_;     // what is appended to
    std::shared_ptr<file> older_;    // what was before, until it is synced
    std::optional<successor> next_;  // what is appended to next
    std::uint64_t size_ = 0;         // of file_
    std::uint64_t older_size_ = 0;   // of the parts before it
    byte_buffer writing_;            // taken from the log
    bool dirty_ = false;             // written and not synced
    int syncs_under_way_ = 0;
    bool leaving_ = false;  // no more is appended to the files, which are still in use
    eddy::cache::rdb::snapshot* snapshot_ = nullptr;  // the rewrite's
    bool sync_failed_ = false;  // what the disk has is unknown until all is written anew
    time_point synced_at_{};
    duration sync_took_{};           // the last one
    std::size_t waiting_ = 0;        // clients that have come since the last sync ended
    std::size_t waited_ = 0;         // for the last sync, or the next one, as it ended
    std::size_t waited_before_ = 0;  // the same of the one before
    time_point rewrite_from_{};      // not before, after failures

    bool whole_flush_wanted_ = false;  // the next flush is to sync everything
    std::uint64_t whole_flushes_ = 0;  // that synced everything, or failed to
    bool flushed_whole_ = false;       // the last one of them did
    std::string rewrite_fault_;        // of the last rewrite; empty: it succeeded

    event wanted_;
    event rewrite_wanted_;
    event sync_wanted_;
    event progress_;
    event gathered_;
};

}  // namespace eddy::runtime::cache
