// CONFIG GET and SET: the few parameters that the cache has, and those that clients look for.
#pragma once

#include "cache/engine.hpp"

#include <string_view>

namespace eddy::cache {

struct call;

/// args[2..]: patterns.
void config_get(call& c);
/// args[2..]: names and values in turn; all of them are set, or none with an error.
void config_set(call& c);

/// "noeviction" or "allkeys-lru".
std::string_view policy_name(eviction policy) noexcept;

}  // namespace eddy::cache
