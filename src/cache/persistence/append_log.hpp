// Append-only file, engine side: the bytes to be written, the progress of writing, and the requests
// of commands. The server writes the files.
//
// Bytes are counted from the start of the process: `appended` bytes were recorded, `written` are in
// the file, `synced` are on the disk.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/engine/engine_state.hpp"
#include "cache/persistence/propagation.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace eddy::cache {

/// Writer of the files.
class append_host {
public:
    /// Called within a command: there are bytes, a rewrite was requested, or options have changed.
    virtual void append_wanted() noexcept = 0;
    /// Appending has stopped: only a snapshot holds later changes.
    virtual void append_interrupted() noexcept = 0;
    /// Changes are missing: has_missed().
    virtual void append_missed() noexcept = 0;

protected:
    ~append_host() = default;
};

/// Created by the server if there is a folder. One thread.
class append_log final : public change_sink {
public:
    /// At most so many bytes wait to be written before a master's stream waits, and before the file
    /// ends when the disk fails; one command, transaction or script may exceed it.
    static constexpr std::size_t max_pending = 64U << 20;

    append_log(engine_state& s, append_host& host) noexcept : state_(s), host_(host) {}
    append_log(const append_log&) = delete;
    append_log& operator=(const append_log&) = delete;
    ~append_log();

    /// Starts and stops the recording of changes.
    void begin();
    void end() noexcept;
    bool is_on() const noexcept { return on_; }

    /// The dataset is about to be replaced by a master's, which is not propagated as commands. The
    /// files keep the old data until their rewrite, which starts by itself. Until then no write
    /// would survive a crash: with `always` it waits.
    void interrupt() noexcept;
    /// A start will load the files now appended to.
    void set_listed();
    /// True while write commands wait until the files hold the dataset.
    bool holds_writes() const noexcept {
        return is_interrupted_ && fault.empty() && state_.settings.options.append.enabled &&
               waits_for_disk();
    }
    /// To be called after a change of options.
    void note_options() noexcept;
    /// Makes sessions that wait for the disk check again; may allocate.
    void notify_waiting();

    /// Start of a new file: the next change names its database.
    void begin_file() noexcept { writer_.forget(); }

    void changed(std::span<const change> unit) noexcept override;
    /// Counts as a byte that is never written, so that sessions that wait for the disk get no
    /// confirmation.
    void missed() noexcept override;
    /// True if a change could not be recorded for lack of memory. Then nothing is appended and
    /// write commands are refused, until end() and begin().
    bool has_missed() const noexcept { return missed_; }

    /// True while replies to executed commands must wait: with `always` for the disk, else for the
    /// kernel, which keeps the bytes if this process is killed. False while the disk fails, as
    /// write commands are then refused.
    bool holds_replies() const noexcept {
        return on_ && (fault.empty() || missed_) && is_behind(appended, given_up);
    }
    /// True while replies to commands that only read must wait, too: with `always` alone.
    bool holds_reads() const noexcept { return waits_for_disk() && holds_replies(); }
    /// True if replies wait for the disk, not just for the kernel.
    bool waits_for_disk() const noexcept {
        return state_.settings.options.append.fsync == fsync_policy::always;
    }
    /// True if the session's output confirms a change whose wait was given up, so that the disk may
    /// lack it. Check it whenever its output is taken.
    bool was_given_up(client_session& of) const noexcept;
    /// True if more bytes wait to be written than permitted, though the disk works.
    bool lags() const noexcept { return on_ && fault.empty() && appended - written > max_pending; }
    /// True if changes up to this byte must wait.
    bool is_behind(std::uint64_t position, std::uint64_t excused) const noexcept {
        return position > excused && (waits_for_disk() ? synced : written) < position;
    }

    /// True if changes up to this byte survive a crash of the machine.
    bool has_on_disk(std::uint64_t position) const noexcept {
        return on_ && is_listed && fault.empty() && synced >= position;
    }
    /// Changes up to this byte are on the disk.
    void note_synced(std::uint64_t position);
    /// True if the first snapshot, or a requested one, begins as soon as the server runs.
    bool is_about_to_rewrite() const noexcept;

    /// The disk has failed; the text is the reason. Write commands are refused until recover().
    void fail(std::string why);
    /// Without effect while changes are missing.
    void recover();
    bool has_failed() const noexcept { return !fault.empty(); }

    // For the server, and INFO.
    byte_buffer pending;  ///< appended and not taken by the server yet
    std::uint64_t appended = 0;
    std::uint64_t written = 0;
    std::uint64_t synced = 0;
    std::uint64_t syncs = 0;         ///< of the disk, that succeeded
    bool is_listed = false;          ///< a start loads the files now appended to
    std::uint64_t given_up = 0;      ///< no session waits for bytes up to here: the clients were
                                     ///< closed
    std::string fault;               ///< reason of a write failure; empty: none
    std::uint64_t base_size = 0;     ///< bytes of the files at the last rewrite, or the start
    std::uint64_t current_size = 0;  ///< the same now
    bool rewrite_wanted = false;     ///< by BGREWRITEAOF
    bool rewriting = false;
    bool rewrite_succeeded = true;      ///< result of the last one
    std::int64_t rewrite_began_us = 0;  ///< of the steady clock
    std::int64_t rewrite_took_s = -1;
    std::uint64_t rewrites = 0;
    std::uint64_t failures_in_a_row = 0;

    append_host& host() noexcept { return host_; }

private:
    void note_changed_by() noexcept;
    void let_or_hold_writes() noexcept;

    engine_state& state_;
    append_host& host_;
    change_writer writer_;
    bool on_ = false;
    bool missed_ = false;
    bool is_interrupted_ = false;  // and a start does not load the files yet
};

/// Notifies the server of changed parameters of redis.conf.
void note_append_options(engine_state& s);

}  // namespace eddy::cache
