// CONFIG GET and SET: the few parameters that the cache has, and those that clients expect.
//
// The room config holds redis.conf's parameters. Files in reading order:
//
//   config.hpp               the table of parameters that have an effect; GET and SET
//   config_values.hpp        parsers of values
//   ignored_parameters.hpp   parameters without an effect, checked as Redis checks them
//
// It stands on base, and on the engine's floor for the options that it changes; CONFIG itself is in
// commands/server.cpp.
#pragma once

#include "cache/engine/engine.hpp"

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache {

/// Parameters changed by CONFIG SET: names and values.
std::vector<std::pair<std::string, std::string>> changed_parameters(const engine_options& now,
                                                                    const engine_options& from);
/// Sets one by its name, before there is an engine; fails with the reason, as a sentence.
std::expected<void, std::string> set_parameter(engine_options& of, std::string_view name,
                                               std::string_view value);

/// The same in a running engine, as CONFIG SET: all of them, or none with the reason.
std::expected<void, std::string> set_parameters(
    engine::state& s, const std::vector<std::pair<std::string, std::string>>& values);

/// "noeviction" or "allkeys-lru".
std::string_view policy_name(eviction policy) noexcept;

}  // namespace eddy::cache
