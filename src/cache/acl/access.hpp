// Access control of a session: its user, and the checks before a command.
#pragma once

#include "cache/acl/acl.hpp"
#include "cache/engine/engine_state.hpp"

#include <string_view>

namespace eddy::cache {

struct call;

/// Makes a new session, or one that RESET, act for the default user.
void use_default_user(configuration& s, session& who);
/// Works out anew what the session need not be asked for, after its user has changed.
void note_permissions(const configuration& s, session& who);
/// The same for all sessions.
void note_all_permissions(engine_state& s);

/// Logs the session in; false, with the error replied, where that cannot be.
bool authenticate(call& c, std::string_view user, std::string_view password);

/// Whether the session's user may run the command; if not, that is logged, and the refusal replied.
bool permits(call& c);
/// The same for a command that was queued when it was permitted.
bool still_permits(call& c);
/// Whether SORT may read keys that are known only from values.
bool may_read_all_keys(const call& c);

/// Closes the sessions of a user that is removed.
void close_sessions_of(engine_state& s, const acl::user& gone);
/// Closes the sessions with subscriptions that their user is no longer permitted.
void close_forbidden_subscribers(engine_state& s, const acl::user& changed);

}  // namespace eddy::cache
