// The dump file: written from a snapshot and read at the start, a slice at a time, so that neither
// holds up the loop.
#pragma once

#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "cache/config/server_settings.hpp"
#include "cache/engine/engine.hpp"
#include "cache/rdb/load.hpp"
#include "cache/rdb/snapshot.hpp"
#include "serving/journal.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace eddy::runtime::cache {

/// Name of a dump file until it is whole.
std::string temporary_of(const std::string& path);

/// Message to users about a failed `what`, such as "open", of the file.
std::unexpected<problem> disk_problem(std::string_view what, const std::string& path,
                                      std::error_code error);

/// Refusal of a save before a stop that was given up.
std::unexpected<problem> stop_given_up();

/// Writes the engine's snapshot to `path` and syncs it. Yields its size in bytes. The snapshot must
/// stay until the end, and is the caller's to end; so must the settings, whose pauses for test
/// suites count. A partial file stays on failure.
task<outcome<std::uint64_t>> write_snapshot(const eddy::cache::server_settings& by,
                                            eddy::cache::rdb::snapshot& data, std::string path);

/// Writes the engine's snapshot to `path`: under another name first, synced, then renamed, and the
/// folder synced; on failure the old file stays. Yields its size in bytes. The snapshot must stay
/// until the end, and is the caller's to end. Fails with 503 when it is cancelled.
task<outcome<std::uint64_t>> write_dump(const eddy::cache::server_settings& by,
                                        eddy::cache::rdb::snapshot& data, std::string path);

/// Fills the engine, which is empty, from the file at `path`; none when there is no such file. The
/// error names the file and the byte; the file stays as it is, and the engine is not to be used.
/// All given must stay until the end.
task<outcome<std::optional<eddy::cache::rdb::load_counts>>> load_dump(
    eddy::cache::engine& to, const eddy::cache::server_settings& by, std::string path,
    eddy::cache::rdb::load_options options, serving::journal& events);

/// Checks that files can be made in the folder, which is made where it is missing, with those above
/// it.
task<outcome<>> check_folder(std::string folder);

}  // namespace eddy::runtime::cache
