// Serving of blocked sessions: when their key is ready, or at their deadline.
#pragma once

#include "cache/engine/engine_state.hpp"

#include <cstdint>

namespace eddy::cache {

/// Serves the sessions that wait for ready keys.
void serve_waiting(engine_state& s);

enum class unblocked_by : std::uint8_t { timeout, error };
/// Ends a wait for a key with the reply of a timeout or with an error.
void unblock(engine_state& s, client_session& who, unblocked_by why);

}  // namespace eddy::cache
