// Key notifications: delivery of a key's change to watchers, waiting clients and subscribers of
// events.
#pragma once

#include "cache/engine/engine_state.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::cache {

/// notify-keyspace-events' letters as Redis shows them.
std::string event_letters(const notification_options& options);
/// Takes the letters over; false when one of them means nothing.
bool set_event_letters(notification_options& options, std::string_view letters);

/// Notifies the sessions that watch a key of a database. Before all its keys are removed, or
/// exchanged for those of `instead`.
void touch_watched(engine_state& s, const keyspace& gone, const keyspace* instead);
/// SWAPDB: exchanges the keys, and notifies sessions that watch them or wait for them.
void swap_databases(engine_state& s, std::size_t first, std::size_t second);

}  // namespace eddy::cache
