// MIGRATE: connects to the other server, sends it the keys, and removes the keys that it has taken.
#pragma once

#include <eddy/io/task.hpp>

#include "cache/engine/engine.hpp"
#include "cache/replication/migration.hpp"
#include "runtime/cache/cache_context.hpp"

#include <cstdint>
#include <memory>

namespace eddy::runtime::cache {

/// Bytes of keys that are sent before answers are read; one key more, however large it is.
inline constexpr std::size_t most_migrated_at_once = 1U << 20;
/// The same in keys.
inline constexpr std::size_t most_keys_migrated_at_once = 1000;
/// A line of the other server's; a longer one ends the connection.
inline constexpr std::size_t most_migration_answer = 4096;

/// Carries out the order, and answers the session. Keys that the other server has taken are removed
/// here, also when a later one fails. It ends soon when it is cancelled, or the client has gone. On
/// the engine's loop's thread; `of` outlives it.
task<void> migrate_keys(cache_context& of, std::uint64_t session,
                        std::unique_ptr<eddy::cache::migration> what);

}  // namespace eddy::runtime::cache
