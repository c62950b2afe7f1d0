// Serving of sessions that wait: the key that they wait for is ready, or their time is over.
#pragma once

#include "cache/engine/engine_state.hpp"

#include <cstdint>

namespace eddy::cache {

/// Serves the sessions that wait for ready keys.
void serve_waiting(engine_state& s);

enum class unblocked_by : std::uint8_t { timeout, error };
/// Ends a wait for a key with a timeout's reply or an error.
void unblock(engine_state& s, session& who, unblocked_by why);

}  // namespace eddy::cache
