// Handover of a cache's keys from one instance to the next, in a file without a name.
#pragma once

#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "cache/config/server_settings.hpp"
#include "cache/engine/engine.hpp"
#include "cache/rdb/snapshot.hpp"
#include "runtime/instance.hpp"
#include "serving/journal.hpp"

namespace eddy::runtime::cache {

/// Writes the engine's snapshot, which stays the caller's to end. All given must stay until the
/// end.
task<outcome<>> write_handover(const eddy::cache::server_settings& by,
                               eddy::cache::rdb::snapshot& data, const handover& to);

/// Fills the engine, which is empty. All of it then counts as changes that no file has. All
/// given must stay until the end.
task<outcome<>> load_handover(eddy::cache::engine& to, const eddy::cache::server_settings& by,
                              const handover& from, serving::journal& events);

}  // namespace eddy::runtime::cache
