// Who is told that a key changed: those who watch it, wait for it, or subscribed to its events.
#pragma once

#include "cache/engine/engine_state.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::cache {

/// notify-keyspace-events' letters as Redis shows them.
std::string event_letters(const engine_options& options);
/// Takes the letters over; false when one of them means nothing.
bool set_event_letters(engine_options& options, std::string_view letters);

/// Before all keys of a database go, or are exchanged for those of `instead`: tells the sessions
/// that watch a key of it.
void touch_watched(engine::state& s, const keyspace& gone, const keyspace* instead);
/// SWAPDB: the keys change places, those who watch them or wait for them are told.
void swap_databases(engine::state& s, std::size_t first, std::size_t second);

}  // namespace eddy::cache
