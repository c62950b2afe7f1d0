// Push output: messages that sessions cause for each other, and the output limits of slow
// receivers.
#pragma once

#include "cache/clients/session_extras.hpp"
#include "cache/engine/engine_state.hpp"

#include <cstddef>
#include <string_view>

namespace eddy::cache {

/// The session's extras, made when they are first asked for.
session_extras& extras_of(session& who);

/// Puts whole RESP values behind everything that the session is sent already; one that is
/// executing gets them behind the reply that is being written.
void push_to(engine::state& s, session& who, std::string_view bytes);

/// Checks the session's unsent output against its limits, and closes it above one.
void check_output(engine::state& s, session& who);
/// All outputs must be checked from that time on; see engine::outputs_due_us().
void note_outputs_due(engine::state& s, std::int64_t at_us) noexcept;

client_class class_of(const session& who) noexcept;

/// Closes another session, or one's own behind its reply.
void kill(engine::state& s, session& who);

/// Sends to all subscribers of the channel or, if requested, of a pattern that it matches. Returns
/// the number of receivers.
std::size_t publish(engine::state& s, std::string_view channel, std::string_view message);
std::size_t publish_to_shard(engine::state& s, std::string_view channel, std::string_view message);

/// Drops all subscriptions, without a word.
void unsubscribe_all(engine::state& s, session& who);

/// Sends a line to clients in MONITOR: the session's command. Not for commands of administrators,
/// and without secret arguments.
void feed_monitors(const call& c);
void stop_monitoring(engine::state& s, session& who) noexcept;

}  // namespace eddy::cache
