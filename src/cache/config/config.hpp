// CONFIG GET and SET: the few parameters that the cache has, and those that clients look for.
#pragma once

#include "cache/engine/engine.hpp"

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache {

struct call;

/// args[2..]: patterns.
void config_get(call& c);
/// args[2..]: names and values in turn; all of them are set, or none with an error.
void config_set(call& c);

/// What CONFIG SET has made different: names and values.
std::vector<std::pair<std::string, std::string>> changed_parameters(const engine_options& now,
                                                                    const engine_options& from);
/// Sets one by its name, before there is an engine; or why not, as a sentence.
std::expected<void, std::string> set_parameter(engine_options& of, std::string_view name,
                                               std::string_view value);

/// The same in a running engine, as CONFIG SET: all of them, or none and why not.
std::expected<void, std::string> set_parameters(
    engine::state& s, const std::vector<std::pair<std::string, std::string>>& values);

/// "noeviction" or "allkeys-lru".
std::string_view policy_name(eviction policy) noexcept;

}  // namespace eddy::cache
