// Output that sessions cause for each other: messages, and the limits on those who do not take
// them.
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

/// Looks whether what waits for the session passes a limit; if so it is closed.
void check_output(engine::state& s, session& who);
/// All outputs are to be looked at from that time on; see engine::outputs_due_us().
void note_outputs_due(engine::state& s, std::int64_t at_us) noexcept;

client_class class_of(const session& who) noexcept;

/// Closes another session, or one's own behind its reply.
void kill(engine::state& s, session& who);

/// Sends to all who subscribed to the channel or, if asked to look, to a pattern that it matches.
/// Returns how often it was sent.
std::size_t publish(engine::state& s, std::string_view channel, std::string_view message);
std::size_t publish_to_shard(engine::state& s, std::string_view channel, std::string_view message);

/// Drops all subscriptions, without a word.
void unsubscribe_all(engine::state& s, session& who);

/// A line for those who MONITOR: what the session executes. Nothing for what only administrators
/// do, and nothing that is secret.
void feed_monitors(const call& c);
void stop_monitoring(engine::state& s, session& who) noexcept;

}  // namespace eddy::cache
