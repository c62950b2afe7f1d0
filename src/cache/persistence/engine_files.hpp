// The engine's persistence, as the server's files see it: saves, loading, the append-only file.
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

/// A reference, to be copied freely, which the engine outlives. The engine's thread.
class engine_files {
public:
    explicit engine_files(engine& of) noexcept : state_(of.internals()) {}

    // --- The dump file ---

    /// From now on commands can save. The writer is the only one, and outlives the engine's last
    /// command.
    void set_writer(save_host& writer) noexcept;
    bool has_writer() const noexcept;
    /// The save that has begun and not ended; null if there is none.
    rdb::snapshot* snapshot() const noexcept;
    /// Begins a snapshot and notifies the writer, which writes snapshot() and calls end_save().
    /// False while there is a snapshot already, without a writer, and while is_loading() or
    /// lacks_data().
    bool begin_save(save_kind kind = save_kind::background);
    /// The file is written, or `fault` is the reason that it is not; the snapshot has ended.
    /// Replies to waiting sessions.
    void end_save(std::string_view fault);
    /// Whether a save point says that it is time, or BGSAVE SCHEDULE. After a failure the next try
    /// waits some seconds.
    bool save_is_due() const noexcept;
    /// A save that BGSAVE SCHEDULE has asked for is not wanted any more.
    void unschedule_save() noexcept;
    /// The times of save points count from now on.
    void note_saved_time() noexcept;
    /// Saves that have succeeded.
    std::uint64_t saves() const noexcept;
    /// Changes that no dump has yet.
    std::uint64_t unsaved_changes() const noexcept;
    /// Whether the last dump names another position in the stream of replication than that of now:
    /// with it replicas, or this server, could not go on after a restart.
    bool has_unsaved_position() const;
    /// Whether there are keys or libraries of functions.
    bool has_data() const;

    // --- Loading ---

    /// From now on so many bytes are read, of all files together; 0 if that is not known.
    void begin_load(std::uint64_t total_bytes) noexcept;
    /// Of begin_load()'s, understood so far.
    std::uint64_t loaded_bytes() const noexcept;
    void set_loaded_bytes(std::uint64_t bytes) noexcept;
    /// All that is there came from files that stay.
    void note_loaded(std::uint64_t keys, std::uint64_t expired);
    /// All that is there came from another instance, and no file has it.
    void note_taken_over(std::uint64_t keys, std::uint64_t expired);
    /// A master's data has replaced what was there.
    void note_copied(std::uint64_t keys) noexcept;
    /// Statistics of commands begin anew: those of the append-only file are no clients'.
    void forget_commands();
    /// While the data is not whole, clients get LOADING.
    void set_loading(bool now) noexcept;
    bool is_loading() const noexcept;
    /// The same while the files are not read, or not made, yet.
    void set_starting(bool now) noexcept;
    bool is_starting() const noexcept;
    /// Whether this is a replica whose master's data is not there: files must not be written of it.
    bool lacks_data() const noexcept;

    // --- The end ---

    /// Whether a script that is late, or the transaction that it is in, has changed data. Cut off,
    /// it is half done.
    bool script_has_changed() const noexcept;
    /// The end of a wait for the late script: "wait for its end" or "end it with SCRIPT KILL".
    std::string_view script_remedy() const noexcept;
    /// The server ends, for good. A script that is cut off from now on leaves nothing in files and
    /// replicas: what it has changed is in memory alone, and no snapshot begins any more.
    void begin_end() noexcept;
    /// Cuts off a script that is late, and closes its client.
    void cut_script();
    /// Whether one was that had changed data.
    bool has_half_script() const noexcept;

    // --- The append-only file ---

    /// Null where there is none.
    append_log* append() const noexcept;
    /// Makes it; there is none yet. The writer outlives it.
    append_log& make_append(append_host& writer);
    void drop_append() noexcept;

private:
    engine_state& state_;
};

}  // namespace eddy::cache
