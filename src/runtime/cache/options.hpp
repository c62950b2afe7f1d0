// The options of `eddy create cache`, as a table and as the cache's configuration.
#pragma once

#include <eddy/io/timer.hpp>
#include <eddy/transport/transport.hpp>

#include "cache/config/server_settings.hpp"
#include "cache/engine/engine.hpp"
#include "runtime/cache/cache_hooks.hpp"
#include "runtime/option.hpp"
#include "runtime/problem.hpp"
#include "runtime/serving/listeners.hpp"
#include "runtime/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace eddy::runtime::cache {

/// Checked and converted.
struct config {
    transport::address where;
    std::optional<transport::address> secure;  ///< tls, beside `where`
    std::optional<transport::address> shared;  ///< shm, beside `where`
    bool is_tls_by_option = false;             ///< `where` is tls by --tls
    eddy::cache::engine_options engine;
    eddy::cache::server_settings server;
    serving::accept_rules rules = {};  ///< keepalive is the engine's parameter, in `server`
    duration write_timeout{};          ///< 0: none
    std::size_t max_queue = 0;
    hook_config hooks;

    listener_addresses addresses() const { return {where, secure, shared, rules}; }
};

std::vector<option> option_table();
outcome<config> read_config(const settings& chosen);

}  // namespace eddy::runtime::cache
