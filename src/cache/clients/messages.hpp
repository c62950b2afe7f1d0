// Push output: messages that sessions cause for each other, and the output limits of slow
// receivers.
#pragma once

#include "cache/clients/closing.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/engine/engine_state.hpp"

#include <cstddef>
#include <string_view>

namespace eddy::cache {

/// Puts whole RESP values behind everything that the session is sent already; one that is
/// executing gets them behind the reply that is being written.
void push_to(engine_state& s, client_session& who, std::string_view bytes);

/// Checks the session's unsent output against its limits, and closes it above one.
void check_output(engine_state& s, client_session& who);
/// All outputs must be checked from that time on; see engine::outputs_due_us().
void note_outputs_due(engine_state& s, std::int64_t at_us) noexcept;

/// Sends to all subscribers of the channel or, if requested, of a pattern that it matches. Returns
/// the number of receivers.
std::size_t publish(engine_state& s, std::string_view channel, std::string_view message);
std::size_t publish_to_shard(engine_state& s, std::string_view channel, std::string_view message);

/// Drops all subscriptions, without a word.
void unsubscribe_all(client_state& s, client_session& who);

/// Sends a line to clients in MONITOR: the session's command. Not for commands of administrators,
/// and without secret arguments.
void feed_monitors(const call& c);
void stop_monitoring(client_state& s, client_session& who) noexcept;

}  // namespace eddy::cache
