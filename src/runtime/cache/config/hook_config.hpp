// Configuration of a cache's hooks: the script and how it is called.
#pragma once

#include <eddy/io/timer.hpp>

#include "cache/read_through/read_through.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace eddy::runtime::cache {

/// Options of hooks; without a file there are none.
struct hook_config {
    std::string file;  ///< empty: there are no hooks
    std::size_t threads = 2;
    bool has_threads = false;                     ///< their number was given
    std::size_t memory = std::size_t{256} << 20;  ///< of each thread's values
    duration time = std::chrono::seconds(30);     ///< of a call but on_miss
    duration flush = std::chrono::seconds(10);    ///< how long a stop waits for what is queued
    eddy::cache::hook_options options;
};

}  // namespace eddy::runtime::cache
