// Closing of sessions, and what their limits go by.
#pragma once

#include "cache/clients/client_state.hpp"
#include "cache/engine/options.hpp"

namespace eddy::cache {

client_class class_of(const session& who) noexcept;

/// Closes another session, or one's own behind its reply.
void kill(client_state& s, session& who);

}  // namespace eddy::cache
