// Snapshot gate: commands that wait for a snapshot, because they change a value that takes long to
// write, or one that it has no room for.
//
// A snapshot has each value as it was at its instant, so a value is written before it changes. For
// a huge value that would block all clients: instead its command waits, the value is written in
// slices, and all other commands go on. The command is executed anew then. While too much of what
// was written ahead is still to be taken, commands that change more of it wait until there is room
// again. Commands from another server or a file do not wait, nor does a script for a key that it
// did not declare: the value is written at once.
#pragma once

#include "cache/engine/call.hpp"

namespace eddy::cache {

/// True when the command is to wait, and does. While the snapshot is at the value, see
/// engine::is_behind().
bool waits_for_snapshot(call& c);

}  // namespace eddy::cache
