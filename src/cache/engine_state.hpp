// What the commands see of the engine.
#pragma once

#include <eddy/base/intrusive_list.hpp>

#include "cache/engine.hpp"
#include "cache/environment.hpp"
#include "cache/keyspace.hpp"
#include "cache/slow_log.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace eddy::cache {

/// Forty hexadecimal digits.
std::string make_run_id(random_generator& random);

struct engine::state {
    explicit state(engine_options given);

    /// The database of this number, made when it is first asked for.
    keyspace& database(std::size_t number) {
        std::unique_ptr<keyspace>& of = keyspaces[number];
        if (!of) of = std::make_unique<keyspace>(env);
        return *of;
    }

    /// Makes room below max_memory. False when a command that needs memory is to be refused.
    bool make_room();

    engine_options options;
    environment env;
    std::array<std::unique_ptr<keyspace>, engine::databases> keyspaces;
    intrusive_list<session> sessions;
    std::uint64_t next_session_id = 1;
    std::int64_t started_us = 0;
    std::string run_id;  // 40 hexadecimal digits
    slow_log slow;
    std::size_t peak_memory = 0;
    std::uint64_t changes = 0;        // to keys, since the start
    bool sweeps = true;               // upkeep() looks for expired keys
    std::size_t upkeep_database = 0;  // whose turn it is
    std::size_t evict_database = 0;
};

}  // namespace eddy::cache
