// CLIENT TRACKING: keys that clients cache, and the invalidation messages when such a key changes.
//
// A key that a tracking client has read is recorded once, whatever its database, with the numbers
// of its readers, until it changes; then they are notified and the record is dropped. A client in
// broadcast mode is not recorded with keys: it is notified of all changes below its prefixes, once
// for each batch of commands. Disconnected clients stay in the lists of keys until those change or
// grow.
#pragma once

#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking_table.hpp"
#include "cache/engine/call.hpp"
#include "cache/memory/slice_limit.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {

/// Bits of session_extras::tracking.
namespace tracking_option {
inline constexpr std::uint8_t broadcast = 1;
inline constexpr std::uint8_t opt_in = 2;
inline constexpr std::uint8_t opt_out = 4;
inline constexpr std::uint8_t no_loop = 8;
inline constexpr std::uint8_t caching = 16;  ///< CLIENT CACHING was given for the next command
inline constexpr std::uint8_t broken_redirection = 32;
}  // namespace tracking_option

/// At most so many prefixes of one client.
inline constexpr std::size_t max_tracking_prefixes = 1024;

/// Starts tracking for the session, or changes its options. `redirection` is another session's
/// number, or 0; of `options` those bits that a client chooses.
void start_tracking(engine_state& s, client_session& who, std::uint64_t redirection,
                    std::uint8_t options, std::span<const std::string_view> prefixes);
void stop_tracking(engine_state& s, client_session& who);
/// Removes all references to a session that closes.
void forget_tracked(engine_state& s, client_session& who);

/// The session of this number, or null. O(sessions).
client_session* find_session(engine_state& s, std::uint64_t id) noexcept;

/// Records the keys that a tracking session's command has read.
void remember_reads(call& c, const command_spec& spec, std::span<const std::string_view> args);

/// Sends invalidations to the key's readers and to subscribers of its prefix. `by` is the session
/// that changed it, or null.
void invalidate(engine_state& s, std::string_view key, const client_session* by);
/// Sends an invalidation of all keys to all tracking clients.
void invalidate_all(engine_state& s);

/// Sends the collected invalidations to subscribers of prefixes.
void send_broadcasts(engine_state& s);

/// True if more keys are recorded than tracking-table-max-keys allows.
bool is_over_tracking_limit(const engine_state& s) noexcept;
/// Invalidates random keys until the table is within the limit: at most `most`, and until the end
/// of the slice. True while work remains.
bool shrink_tracking_table(engine_state& s, std::size_t most, slice_limit& slice);
/// A command's share of that work; upkeep() does the rest.
void limit_tracking_table(engine_state& s);

}  // namespace eddy::cache
