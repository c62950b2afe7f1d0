// How work for which no client waits goes on in slices: upkeep, snapshots, what is left of a
// script.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

namespace eddy::runtime::cache {

/// Between two slices. The loop has two turns meanwhile: in the first one those are served who have
/// sent something during the slice before, and in the second their replies go out, which wait for
/// the turn's end (worker::wait_for_turn_end) and would wait for the slice that follows, too.
inline task<void> give_way() {
    for (int turn = 0; turn < 2; ++turn) co_await loop::current().yield();
}

}  // namespace eddy::runtime::cache
