// The engine's persistence for the server's files: saves, loading, the append-only file.
#pragma once

#include "cache/engine/engine.hpp"
#include "cache/persistence/save_host.hpp"

#include <cstdint>
#include <string_view>

namespace eddy::cache {

class append_host;
class append_log;
namespace rdb {
class snapshot;
}

/// Reference to the engine, which must outlive it; freely copied. The engine's thread.
class engine_files {
public:
    explicit engine_files(engine& of) noexcept : state_(of.internals()) {}

    // --- The dump file ---

    /// Enables saves by commands. There is one writer; it must outlive the engine's last command.
    void set_writer(save_host& writer) noexcept;
    bool has_writer() const noexcept;
    /// The snapshot of a save in progress; null if there is none.
    rdb::snapshot* snapshot() const noexcept;
    /// Begins a snapshot and notifies the writer, which writes snapshot() and calls end_save().
    /// False during another snapshot, without a writer, and while is_loading() or lacks_data().
    bool begin_save(save_kind kind = save_kind::background);
    /// Completes a save: the file is written, or `fault` is the reason of the failure; the snapshot
    /// has ended. Replies to waiting sessions.
    void end_save(std::string_view fault);
    /// True if a save point or BGSAVE SCHEDULE requires a save. After a failure the next try waits
    /// some seconds.
    bool save_is_due() const noexcept;
    /// Cancels the save requested by BGSAVE SCHEDULE.
    void unschedule_save() noexcept;
    /// Restarts the times of save points.
    void note_saved_time() noexcept;
    /// Number of successful saves.
    std::uint64_t saves() const noexcept;
    /// Number of changes since the last dump.
    std::uint64_t unsaved_changes() const noexcept;
    /// True if the last dump has another replication offset than the current one: with it replicas,
    /// or this server, could not continue after a restart.
    bool has_unsaved_position() const;
    /// True if there are keys or libraries of functions.
    bool has_data() const;

    // --- Loading ---

    /// Starts a load of so many bytes, of all files together; 0 if unknown.
    void begin_load(std::uint64_t total_bytes) noexcept;
    /// Bytes of the load that are parsed so far.
    std::uint64_t loaded_bytes() const noexcept;
    void set_loaded_bytes(std::uint64_t bytes) noexcept;
    /// The whole dataset came from files that stay.
    void note_loaded(std::uint64_t keys, std::uint64_t expired);
    /// The whole dataset came from another instance, and no file has it.
    void note_taken_over(std::uint64_t keys, std::uint64_t expired);
    /// A master's dataset has replaced the keys.
    void note_copied(std::uint64_t keys) noexcept;
    /// Resets the statistics of commands: those of the append-only file are not clients'.
    void forget_commands();
    /// While the dataset is incomplete, clients get LOADING.
    void set_loading(bool now) noexcept;
    bool is_loading() const noexcept;
    /// The same while the files are not read, or not created, yet.
    void set_starting(bool now) noexcept;
    bool is_starting() const noexcept;
    /// True on a replica without its master's data: it must not be written to files.
    bool lacks_data() const noexcept;

    // --- The end ---

    /// True if a late script, or its transaction, has changed data. When it is cut off, the changes
    /// are incomplete.
    bool script_has_changed() const noexcept;
    /// Text of a wait for the late script: "wait for its end" or "end it with SCRIPT KILL".
    std::string_view script_remedy() const noexcept;
    /// The server stops, for good. A script cut off from now on leaves nothing in files and
    /// replicas: its changes are in memory alone, and no further snapshot begins.
    void begin_end() noexcept;
    /// Cuts off a late script, and closes its client.
    void cut_script();
    /// True if a script was cut off that had changed data.
    bool has_half_script() const noexcept;

    // --- The append-only file ---

    /// Null without an append-only file.
    append_log* append() const noexcept;
    /// Creates it; there must be none. The writer must outlive it.
    append_log& make_append(append_host& writer);
    void drop_append() noexcept;

private:
    engine_state& state_;
};

}  // namespace eddy::cache
