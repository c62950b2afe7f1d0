// The parts of a running cache, for the files of cache_server.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/loop_lock.hpp>
#include <eddy/io/scope.hpp>

#include "cache/engine/engine_state.hpp"
#include "runtime/cache/cache_files.hpp"
#include "runtime/cache/cache_hooks.hpp"
#include "runtime/cache/cache_server.hpp"
#include "runtime/cache/protection.hpp"
#include "runtime/cache/replicator.hpp"
#include "runtime/cache/services.hpp"
#include "runtime/cache/worker.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {

inline constexpr std::string_view no_memory_text = "there is no memory";

struct cache_server::running {
    running(listeners opened, eddy::cache::engine_options options, journal& events,
            counters& counted)
        : listening(std::move(opened)),
          engine(std::move(options)),
          context(this->engine, events, counted) {}

    listeners listening;
    endpoint address;
    eddy::cache::engine engine;
    cache_context context;
    std::unique_ptr<cache_files> files;    // null without a folder
    std::optional<cancel_source> opening;  // while a start reads its files
    scope accepting;
    scope background;

    std::unique_ptr<worker> at_home;
    /// A worker on a loop of its own, which makes, uses and destroys it.
    struct remote_worker {
        executor where;
        std::unique_ptr<worker> its;
    };
    std::unique_ptr<loop_group> threads;  // null where there is but the worker at home
    std::vector<remote_worker> remote;
    std::size_t next_remote = 0;

    std::unique_ptr<replicator> replicating;
    std::unique_ptr<services> helper;
    std::unique_ptr<cache_hooks> hooks;  // null without --hooks
};

}  // namespace eddy::runtime::cache
