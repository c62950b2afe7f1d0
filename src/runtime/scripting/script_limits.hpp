// Limits of scripts that are no options.
#pragma once

#include <eddy/io/timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace eddy::runtime {

/// Calls of a script that still wait at its end, or when it was replaced, may take so long.
inline constexpr duration script_farewell = std::chrono::seconds(5);
/// The same of calls that have not begun, also where waiting ones have no time: a stop may last so
/// much longer than it was given.
inline constexpr duration script_least_farewell = std::chrono::seconds(1);
/// on_start() and on_reload() hold up a start, or a renewal, for so long at most.
inline constexpr duration script_start_patience = std::chrono::seconds(10);
/// Versions of a script with calls that still wait, beside the present one, at most.
inline constexpr std::size_t max_old_scripts = 4;
/// Least, usual and longest time between two calls of on_tick().
inline constexpr std::chrono::milliseconds least_tick{10};
inline constexpr std::chrono::milliseconds usual_tick{100};
inline constexpr std::chrono::hours longest_tick{24};
/// Calls of a script that fail in a row, on a thread, before its runtime is degraded.
inline constexpr std::uint64_t script_errors_until_degraded = 10;
/// Lines of a script's failures of one callback in the journal: one in each such time.
inline constexpr std::chrono::seconds script_failure_interval{1};

}  // namespace eddy::runtime
