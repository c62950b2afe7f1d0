// Snapshot gate: commands that wait for a snapshot, because they change a value that is slow to
// write, or for which it has no room.
//
// A snapshot has each value as of its instant, so a value is written before it changes. For a huge
// value that would block all clients: instead its command waits while the value is written in
// slices and other commands run. Then the command is executed. While too many of the bytes written
// ahead are not taken yet, commands that would add to them wait until there is room. Commands from
// another server or a file do not wait, nor does a script for a key that it did not declare: the
// value is written at once.
#pragma once

#include "cache/engine/call.hpp"

namespace eddy::cache {

/// True when the command has to wait; it blocks the session. While the snapshot writes the value,
/// see engine::is_behind().
bool waits_for_snapshot(call& c);

}  // namespace eddy::cache
