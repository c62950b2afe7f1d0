// Expiration of hash fields: on access to the hash, and by the sweep.
#pragma once

#include "cache/engine/call.hpp"
#include "cache/memory/slice_limit.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace eddy::cache {

/// At most so many expired fields are removed by a command on their hash, besides its named fields.
/// The command does not see the others either; the sweep removes them.
inline constexpr std::size_t fields_expired_by_command = 64;

/// Removes expired fields of the slot's hash: the `named` ones, up to `most` others, and the hash
/// with the last one; returns their number. Removes none on a replica or during a load, where
/// removals come from the master or the file.
std::size_t expire_fields(engine_state& s, keyspace& in, keyspace::slot* place, std::uint64_t hash,
                          std::size_t most, std::span<const std::string_view> named = {});

/// True while sweep_fields() has work.
bool has_fields_to_end(const engine_state& s) noexcept;
/// Removes expired fields of all hashes, until the end of the slice; true while more remain. A
/// field takes four steps.
bool sweep_fields(engine_state& s, std::size_t steps, slice_limit& slice);

/// Notification of expired fields of a hash, once they are removed; with the last one, of the key.
/// Replicas and the append-only file get HDEL of these fields.
void notify_fields_expired(engine_state& s, keyspace& in, std::string_view key,
                           std::span<const std::string> fields, bool key_is_gone);

/// The value found under args[1], or null, after removal of expired fields.
keyspace::slot* without_expired(call& c, keyspace::slot* place);

inline keyspace::slot* hash_to_read(call& c) {
    keyspace::slot* const place = c.find_to_read();
    if (place == nullptr || keyspace::at(place)->held_as != encoding::timed_table) [[likely]]
        return place;
    return without_expired(c, place);
}
inline keyspace::slot* hash_to_write(call& c) {
    keyspace::slot* const place = c.find_to_write();
    if (place == nullptr || keyspace::at(place)->held_as != encoding::timed_table) [[likely]]
        return place;
    return without_expired(c, place);
}

}  // namespace eddy::cache
