// Yielding between the slices of work for which no client waits: upkeep, snapshots, the rest of a
// script.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

namespace eddy::runtime::cache {

/// Between two slices: two turns of the loop. The first one serves the clients that have sent
/// something during the slice before. In the second their replies go out, which wait for the turn's
/// end (worker::wait_for_turn_end) and would wait for the next slice, too.
inline task<void> yield() {
    for (int turn = 0; turn < 2; ++turn) co_await loop::current().yield();
}

}  // namespace eddy::runtime::cache
