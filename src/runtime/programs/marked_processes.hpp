// Marked processes: a variable of their environment says what started them. A program's children
// inherit it, wherever they went by fork(2) and setsid(2).
#pragma once

#include <cstddef>
#include <string>

namespace eddy::runtime {

/// Kills each process whose environment, as it began, has `variable` ("NAME=value"), as far as this
/// process may. Yields how many there were. A process that has changed its environment's memory is
/// not found. It reads all of /proc, once for all threads that call it meanwhile: not on a loop's
/// thread.
std::size_t kill_marked(const std::string& variable);

/// A child of this process that kill_marked() leaves out, since it has a mark of its own. From its
/// start to include_process(), which comes before it is reaped. Any thread.
void exempt_process(int pid);
void include_process(int pid) noexcept;

}  // namespace eddy::runtime
