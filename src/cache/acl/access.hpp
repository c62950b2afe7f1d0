// Access control of a session: its user, and the checks before a command.
#pragma once

#include "cache/acl/acl.hpp"
#include "cache/engine/engine_state.hpp"

#include <string_view>

namespace eddy::cache {

struct call;

/// Sets the default user, for a new session or after RESET.
void use_default_user(configuration& s, client_session& who);
/// Recomputes the session's shortcuts for permission checks, after a change of its user.
void note_permissions(const configuration& s, client_session& who);
/// The same for all sessions.
void note_all_permissions(engine_state& s);

/// Logs the session in; false, with the error replied, if the user or password is wrong.
bool authenticate(call& c, std::string_view user, std::string_view password);

/// True if the session's user may run the command; otherwise logs and replies the refusal.
bool permits(call& c);
/// The same for EXEC: a queued command that was permitted when it was queued.
bool still_permits(call& c);
/// True if SORT's BY and GET may read keys that are named by values only.
bool may_read_all_keys(const call& c);

/// Closes the sessions of a user that is removed.
void close_sessions_of(engine_state& s, const acl::user& gone);
/// Closes the sessions with subscriptions that their user is no longer permitted.
void close_forbidden_subscribers(engine_state& s, const acl::user& changed);

}  // namespace eddy::cache
