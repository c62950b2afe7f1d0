// CONFIG GET and SET: the parameters with an effect, and others that clients expect.
//
// The room config holds redis.conf's parameters. Files in reading order:
//
//   configuration.hpp        configured state: options, users, names of commands
//   server_settings.hpp      settings of the server, which the engine only shows
//   config.hpp               the table of parameters that have an effect; GET and SET
//   config_values.hpp        parsers of values
//   ignored_parameters.hpp   parameters without an effect, checked as Redis checks them
//
// It stands on base, and on the engine's floor for the options that it changes; HELP, RESETSTAT and
// REWRITE are in commands/server/server.cpp.
#pragma once

#include "cache/config/server_settings.hpp"
#include "cache/engine/engine.hpp"

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache {

/// The objects that parameters belong to: options of an engine, and settings of its server.
struct parameters_view {
    const engine_options& engine;
    const server_settings& server;
};
struct parameters_target {
    engine_options& engine;
    server_settings& server;
};

/// Parameters changed by CONFIG SET: names and values.
std::vector<std::pair<std::string, std::string>> changed_parameters(parameters_view now,
                                                                    parameters_view from);
/// Sets a parameter by its name, before there is an engine; fails with the reason, as a sentence.
std::expected<void, std::string> set_parameter(parameters_target of, std::string_view name,
                                               std::string_view value);

/// The same in a running engine, as CONFIG SET: sets all, or none with the reason.
std::expected<void, std::string> set_parameters(
    engine_state& s, const std::vector<std::pair<std::string, std::string>>& values);

/// "noeviction" or "allkeys-lru".
std::string_view policy_name(eviction policy) noexcept;

}  // namespace eddy::cache
