// Upkeep of a cache: expired keys, memory, late scripts, and slow clients, in slices beside the
// commands.
#pragma once

#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include "runtime/cache/cache_context.hpp"

namespace eddy::runtime::cache {

/// One for each start of a cache. The home loop's thread. Its tasks run until they are cancelled,
/// and can be begun anew after lack of memory.
class cache_upkeep {
public:
    /// Both outlive it; `background` has its tasks.
    cache_upkeep(cache_context& of, scope& background) : context_(of), background_(background) {}

    /// Removes expired keys while any key has an expiration, and returns memory after commands.
    /// Without either it sleeps until a client does something.
    task<void> keep_up();
    /// Runs a script that takes too long, and writes huge values into a snapshot before they
    /// change, a little in each turn.
    task<void> catch_up();
    /// Closes clients that have exceeded their soft limit for too long. Sleeps while none exceeds
    /// it.
    task<void> check_outputs();

private:
    bool is_ending() const noexcept { return background_.source().requested(); }

    cache_context& context_;
    scope& background_;
};

}  // namespace eddy::runtime::cache
