// Append-only file, engine side: the bytes to be written, the progress of writing, and the requests
// of commands. The files are the server's part.
//
// Bytes are counted from the start of the process: `appended` of them came, `written` are in the
// file, `synced` are on the disk.
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
    /// Called within a command: there are bytes, a rewrite is wanted, or options were changed.
    virtual void append_wanted() noexcept = 0;
    /// Nothing more is appended: only a snapshot holds the changes from here on.
    virtual void append_interrupted() noexcept = 0;
    /// Changes are missing: has_missed().
    virtual void append_missed() noexcept = 0;

protected:
    ~append_host() = default;
};

/// Made by the server where there is a folder. One thread.
class append_log final : public change_sink {
public:
    /// Bytes that may wait to be written before a master's stream has to, and before the file ends
    /// where the disk refuses; what one command, transaction or script adds comes on top.
    static constexpr std::size_t max_pending = 64U << 20;

    append_log(engine_state& s, append_host& host) noexcept : state_(s), host_(host) {}
    append_log(const append_log&) = delete;
    append_log& operator=(const append_log&) = delete;
    ~append_log();

    /// From now on changes are appended, or no longer.
    void begin();
    void end() noexcept;
    bool is_on() const noexcept { return on_; }

    /// The keys are about to be replaced by those of a master, which is not propagated as commands.
    /// The files keep the old data until they are rewritten, which happens by itself. Until then no
    /// write would be found after a crash: with `always` it waits.
    void interrupt() noexcept;
    /// The files that are appended to count at a start.
    void set_listed();
    /// Whether commands that write wait until the files hold what there is.
    bool holds_writes() const noexcept {
        return is_interrupted_ && fault.empty() && state_.options.append.enabled &&
               waits_for_disk();
    }
    /// The options may have changed.
    void note_options() noexcept;
    /// Has sessions that wait for the disk check again; that may need memory.
    void notify_waiting();

    /// The next change begins a file: it names its database.
    void begin_file() noexcept { writer_.forget(); }

    void changed(std::span<const change> unit) noexcept override;
    /// Counts as a byte that is never written, so that sessions that wait for the disk get no
    /// confirmation.
    void missed() noexcept override;
    /// Whether there was no memory to note a change. Nothing is appended from then on, and commands
    /// that write are refused, until this ends and begins anew.
    bool has_missed() const noexcept { return missed_; }

    /// Whether what was executed must wait before it is answered: with `always` for the disk, else
    /// for the kernel, which keeps it though this process is killed. Not while the disk refuses, as
    /// commands that write are then refused, too.
    bool holds_replies() const noexcept {
        return on_ && (fault.empty() || missed_) && is_behind(appended, given_up);
    }
    /// Whether replies that show changes, and make none, must wait: with `always` alone.
    bool holds_reads() const noexcept { return waits_for_disk() && holds_replies(); }
    /// Whether replies wait for the disk, and not for the kernel alone.
    bool waits_for_disk() const noexcept {
        return state_.options.append.fsync == fsync_policy::always;
    }
    /// Whether the session's output confirms a change whose wait was given up, which the disk may
    /// lack. Check it whenever its output is taken.
    bool was_given_up(session& of) const noexcept;
    /// Whether more waits to be written than may, though the disk takes it.
    bool lags() const noexcept { return on_ && fault.empty() && appended - written > max_pending; }
    /// Whether what came up to this byte must wait.
    bool is_behind(std::uint64_t position, std::uint64_t excused) const noexcept {
        return position > excused && (waits_for_disk() ? synced : written) < position;
    }

    /// Whether a start would find what came up to this byte, whatever happens to the machine.
    bool has_on_disk(std::uint64_t position) const noexcept {
        return on_ && is_listed && fault.empty() && synced >= position;
    }
    /// The disk has what came up to this byte.
    void note_synced(std::uint64_t position);
    /// Whether the first snapshot, or one that was asked for, begins as soon as the server comes to
    /// it.
    bool is_about_to_rewrite() const noexcept;

    /// The disk has refused; the text says why. Commands that write are refused until it is well.
    void fail(std::string why);
    /// Not while changes are missing.
    void recover();
    bool has_failed() const noexcept { return !fault.empty(); }

    // For the server, and INFO.
    byte_buffer pending;  ///< appended and not taken yet
    std::uint64_t appended = 0;
    std::uint64_t written = 0;
    std::uint64_t synced = 0;
    std::uint64_t syncs = 0;         ///< of the disk, that succeeded
    bool is_listed = false;          ///< the files that are appended to count at a start
    std::uint64_t given_up = 0;      ///< up to here no session waits: the clients were closed
    std::string fault;               ///< why nothing can be written; empty: it can
    std::uint64_t base_size = 0;     ///< bytes of the files at the last rewrite, or the start
    std::uint64_t current_size = 0;  ///< and now
    bool rewrite_wanted = false;     ///< by BGREWRITEAOF
    bool rewriting = false;
    bool rewrite_succeeded = true;      ///< the last one
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
    bool is_interrupted_ = false;  // and the files do not count yet
};

/// Notifies the server of changed parameters of redis.conf.
void note_append_options(engine_state& s);

}  // namespace eddy::cache
