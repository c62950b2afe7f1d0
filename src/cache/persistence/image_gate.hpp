// Commands that wait for a snapshot, because they change a value that takes long to write, or one
// that it has no room for.
//
// A snapshot has each value as it was at its instant, so what changes is written before. For a huge
// value that would hold up everybody: instead its command waits, the value is written in slices,
// and all others go on. It is executed anew then. Where much that was written before it changed is
// still to be taken, who changes more of it waits until there is room again. What another server or
// a file has done does not wait, nor does a script for a key that it did not declare: the value is
// written at once.
#pragma once

#include "cache/engine/call.hpp"

namespace eddy::cache {

/// True when the command is to wait, and does. While the snapshot is at the value, see
/// engine::is_behind().
bool waits_for_image(call& c);

}  // namespace eddy::cache
