// The options of `eddy create cache`, as a table and as the cache's configuration.
#pragma once

#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "cache/config/server_settings.hpp"
#include "cache/engine/engine.hpp"
#include "runtime/cache/config/hook_config.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/serving/serving_config.hpp"

#include <cstddef>
#include <cstdint>

namespace eddy::runtime::cache {

/// Checked and converted. Keepalive is the engine's parameter, in `server`.
struct config : serving_config {
    eddy::cache::engine_options engine;
    eddy::cache::server_settings server;
    duration write_timeout{};  ///< 0: none
    std::size_t max_queue = 0;
    hook_config hooks;
};

/// Rows of the options, in the order of help. Live changes go through the parameters of CONFIG.
const bound_options<config>& option_rows();
outcome<config> read_config(const settings& chosen);

}  // namespace eddy::runtime::cache
