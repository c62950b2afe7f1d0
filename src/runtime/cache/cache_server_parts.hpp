// The parts of a running cache, for the files of cache_server.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/loop_lock.hpp>
#include <eddy/io/scope.hpp>

#include "runtime/cache/cache_hooks.hpp"
#include "runtime/cache/cache_server.hpp"
#include "runtime/cache/clients/worker.hpp"
#include "runtime/cache/config/protection.hpp"
#include "runtime/cache/files/cache_files.hpp"
#include "runtime/cache/replication/replicator.hpp"
#include "runtime/cache/server_commands.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {

inline constexpr std::string_view no_memory_text = "there is no memory";

/// From the beginning of a start to the end of a stop.
struct cache_server::parts {
    parts(eddy::cache::engine_options options, serving::journal& events, serving::counters& counted)
        : engine(std::move(options)), context(this->engine, events, counted) {}

    eddy::cache::engine engine;
    cache_context context;
    std::unique_ptr<cache_files> files;    // null without a folder
    std::optional<cancel_source> opening;  // while a start reads its files
    scope background;

    std::unique_ptr<replicator> replicating;
    std::unique_ptr<server_commands> commands;
    std::unique_ptr<cache_hooks> hooks;  // null without --hooks
};

}  // namespace eddy::runtime::cache
