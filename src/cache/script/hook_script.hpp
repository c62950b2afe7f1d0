// Hooks in a script: on_miss(), on_write(), on_delete(), on_expire(), and for each of its threads
// on_start(), on_tick() and on_stop(), in a Lua state that may load libraries and block. It runs on
// a thread that serves no clients; see read_through.hpp for the other side.
#pragma once

#include "cache/read_through/read_through.hpp"
#include "lua/blocking_state.hpp"

#include <array>
#include <chrono>
#include <expected>
#include <string>
#include <vector>

namespace eddy::cache {

/// Names of the hooks, for lua::blocking_state::load().
inline constexpr std::array<const char*, 7> hook_names = {
    "on_miss", "on_write", "on_delete", "on_expire", "on_start", "on_tick", "on_stop"};

/// Pause between calls of on_tick: the global tick_ms of a script, in milliseconds, at least the
/// shortest; by default the usual one.
inline constexpr std::chrono::milliseconds shortest_tick{10};
inline constexpr std::chrono::milliseconds usual_tick{100};
inline constexpr std::chrono::hours longest_tick{24};

/// Hooks that a script defines.
struct hook_functions {
    bool miss = false;
    bool write = false;
    bool erase = false;
    bool expire = false;
    bool start = false;
    bool tick = false;
    bool stop = false;
    bool any() const noexcept { return miss || write || erase || expire || start || tick || stop; }
    /// True if each thread has calls of its own.
    bool has_own() const noexcept { return start || tick || stop; }
};

/// From lua::blocking_state::defined() of a state that was loaded with the names above.
hook_functions hooks_of(const std::vector<bool>& defined) noexcept;

/// Result of a hook's call.
struct hook_answer {
    hook_result result;
    std::string error;  ///< reason of the failure, with the position if known
};

/// Calls the hook for the job; it must be defined. Aborts it after `limit`, unless it is within a
/// function of C. Throws std::bad_alloc.
hook_answer run_hook(lua::blocking_state& in, const hook_job& job, std::chrono::nanoseconds limit);

// Calls of a thread by itself; what the script does not define succeeds. Errors begin with the name
// of the function. They throw std::bad_alloc.

/// on_start(). Yields the pause between ticks; zero: the script has no on_tick().
std::expected<std::chrono::nanoseconds, std::string> run_start(lua::blocking_state& in,
                                                               std::chrono::nanoseconds limit);
/// on_tick() with the milliseconds since the last one. Yields why it has failed, or empty.
std::string run_tick(lua::blocking_state& in, std::chrono::nanoseconds since_last,
                     std::chrono::nanoseconds limit);
/// on_stop(); the same.
std::string run_stop(lua::blocking_state& in, std::chrono::nanoseconds limit);

}  // namespace eddy::cache
