// SAVE and BGSAVE: the dump file's schedule, requests and results. The file itself is the server's
// part; rdb/snapshot.hpp gives the bytes.
//
// The room persistence makes data outlive the process. Files in reading order:
//
//   persistence.hpp      the dump file: SAVE, BGSAVE, save points, loading
//   engine_files.hpp     all of it, as the server's files see it
//   persistence_state.hpp  what an engine has of its files
//   snapshot_gate.hpp    commands that wait for a snapshot of a huge value
//   propagation.hpp      changes as commands, for the append-only file and for replicas
//   stream_changes.hpp   the same for consumer groups
//   append_log.hpp       the append-only file's buffer and its fsync policy
//
// It stands on keyspace and types, and on rdb of the same floor for the bytes of a snapshot. Files
// and disks are in src/runtime/cache.
#pragma once

#include "cache/engine/call.hpp"
#include "cache/persistence/save_host.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// Begins a snapshot and notifies the server, which writes state.saves.snapshot and calls
/// end_save(). False while there is a snapshot already, or no writer.
bool begin_save(engine_state& s, save_kind kind = save_kind::background);
/// The file is written, or `fault` is the reason that it is not; the snapshot has ended. Replies to
/// waiting sessions.
void end_save(engine_state& s, std::string_view fault);
/// The times of save points count from now on.
void note_saved_time(engine_state& s) noexcept;
/// Whether a save point says that it is time, or BGSAVE SCHEDULE. After a failure the next try
/// waits some seconds.
bool save_is_due(const engine_state& s) noexcept;
/// Whether there is a change that no file has yet.
bool has_unsaved_changes(const engine_state& s) noexcept;
/// Whether the last file names another position in the stream of replication than that of now: with
/// that file replicas, or this one, could not go on after a restart.
bool has_unsaved_position(const engine_state& s);
/// From now on so many bytes are read, of all files together, or of a master's data; 0 if that is
/// not known. load_progress::loaded_bytes is the reader's to count.
void note_load_began(engine_state& s, std::uint64_t total_bytes) noexcept;
/// All that is there came from the dump file.
void note_loaded(engine_state& s, std::uint64_t keys, std::uint64_t expired);
/// Works out anew whether commands that write are refused.
void note_save_trouble(engine_state& s) noexcept;

/// Why commands that write are refused since nothing can be saved, "MISCONF ..."; empty: they are
/// not.
std::string save_trouble_text(const engine_state& s);
/// Replies with MISCONF when the command must be refused since saving fails.
bool refused_by_save_trouble(call& c, std::uint64_t flags);

/// DEBUG RELOAD and LOADAOF. O(all there is), at once.
void debug_reload(call& c);
void debug_load_append(call& c);

/// "3600 1 300 100"; none when it is not such a row.
std::optional<std::vector<save_point>> parse_save_points(std::string_view text);
std::string to_text(const std::vector<save_point>& points);

}  // namespace eddy::cache
