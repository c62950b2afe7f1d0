// Hooks in a script: on_miss(), on_write(), on_delete(), on_expire(), in a Lua state that may load
// libraries and block. It runs on a thread that serves no clients; see read_through.hpp for the
// other side.
#pragma once

#include "cache/read_through/read_through.hpp"
#include "lua/blocking_state.hpp"

#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace eddy::cache {

/// Names of the hooks, for lua::blocking_state::load().
inline constexpr std::array<const char*, 4> hook_names = {"on_miss", "on_write", "on_delete",
                                                          "on_expire"};

/// Hooks that a script defines.
struct hook_functions {
    bool miss = false;
    bool write = false;
    bool erase = false;
    bool expire = false;
    bool any() const noexcept { return miss || write || erase || expire; }
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

}  // namespace eddy::cache
