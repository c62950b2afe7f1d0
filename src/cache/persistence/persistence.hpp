// Saving the databases as a dump file: when, by whom, and how it went. The file itself is the
// server's part, who is asked for it here; rdb/snapshot.hpp gives the bytes.
#pragma once

#include "cache/engine/call.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// As in Redis, only a background save that fails has writes refused, waits before the next try and
/// is `rdb_last_bgsave_status`. SAVE tells its client of a failure, SHUTDOWN stays up.
enum class save_kind : bool { background, foreground };

/// Takes the instant and tells the server, which writes state.saves.image and calls end_save().
/// False while there is a snapshot already, or nowhere to write to.
bool begin_save(engine::state& s, save_kind kind = save_kind::background);
/// The file is there, or `fault` says why not; the snapshot has ended. Answers who waits for it.
void end_save(engine::state& s, std::string_view fault);
/// The times of save points count from now on.
void note_saved_time(engine::state& s) noexcept;
/// Whether a save point says that it is time, or BGSAVE SCHEDULE. After a failure the next try
/// waits some seconds.
bool save_is_due(const engine::state& s) noexcept;
/// Whether there is a change that no file has yet.
bool has_unsaved_changes(const engine::state& s) noexcept;
/// From now on so many bytes are read, of all files together, or of a master's data; 0 if that is
/// not known. load_progress::loaded_bytes is the reader's to count.
void note_load_began(engine::state& s, std::uint64_t total_bytes) noexcept;
/// All that is there came from the dump file.
void note_loaded(engine::state& s, std::uint64_t keys, std::uint64_t expired);
/// Works out anew whether commands that write are refused.
void note_save_trouble(engine::state& s) noexcept;

/// Why commands that write are refused since nothing can be saved, "MISCONF ..."; empty: they are
/// not.
std::string save_trouble_text(const engine::state& s);
/// Replies with MISCONF when the command is to be refused since nothing can be saved.
bool refused_by_save_trouble(call& c, std::uint32_t flags);

/// DEBUG RELOAD. O(all there is), at once.
void debug_reload(call& c);

/// "3600 1 300 100"; none when it is not such a row.
std::optional<std::vector<save_point>> parse_save_points(std::string_view text);
std::string to_text(const std::vector<save_point>& points);

}  // namespace eddy::cache
