// SAVE and BGSAVE: the dump file's schedule, requests and results. The server writes the file;
// rdb/snapshot.hpp produces the bytes.
//
// The room persistence makes data outlive the process. Files in reading order:
//
//   persistence.hpp      the dump file: SAVE, BGSAVE, save points, loading
//   engine_files.hpp     interface for the server's files
//   persistence_state.hpp  an engine's state of its files
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
/// end_save(). False during another snapshot, or without a writer.
bool begin_save(engine_state& s, save_kind kind = save_kind::background);
/// Completes a save: the file is written, or `fault` is the reason of the failure; the snapshot has
/// ended. Replies to waiting sessions.
void end_save(engine_state& s, std::string_view fault);
/// Restarts the times of save points.
void note_saved_time(engine_state& s) noexcept;
/// True if a save point or BGSAVE SCHEDULE requires a save. After a failure the next try waits some
/// seconds.
bool save_is_due(const engine_state& s) noexcept;
/// True if there is a change since the last dump.
bool has_unsaved_changes(const engine_state& s) noexcept;
/// True if the last dump has another replication offset than the current one: with that file
/// replicas, or this server, could not continue after a restart.
bool has_unsaved_position(const engine_state& s);
/// Starts a load of so many bytes, of all files together, or of a master's data; 0 if unknown. The
/// reader counts load_progress::loaded_bytes.
void note_load_began(engine_state& s, std::uint64_t total_bytes) noexcept;
/// The whole dataset came from the dump file.
void note_loaded(engine_state& s, std::uint64_t keys, std::uint64_t expired);
/// Updates whether write commands are refused.
void note_save_trouble(engine_state& s) noexcept;

/// Reason to refuse write commands while saving fails, "MISCONF ..."; empty: none.
std::string save_trouble_text(const engine_state& s);
/// Replies with MISCONF, and returns true, if the command must be refused while saving fails.
bool refused_by_save_trouble(call& c, std::uint64_t flags);

/// DEBUG RELOAD and LOADAOF. O(size of the dataset), without a pause.
void debug_reload(call& c);
void debug_load_append(call& c);

/// Parses "3600 1 300 100"; none when malformed.
std::optional<std::vector<save_point>> parse_save_points(std::string_view text);
std::string to_text(const std::vector<save_point>& points);

}  // namespace eddy::cache
