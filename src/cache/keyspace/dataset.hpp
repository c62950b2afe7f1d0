// Data of an engine: its databases and what they share.
#pragma once

#include "cache/keyspace/environment.hpp"
#include "cache/keyspace/keyspace.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace eddy::cache {

inline constexpr unsigned engine_databases = 16;

/// Member `data` of engine_state.
struct dataset {
    explicit dataset(std::uint64_t seed) : env(seed) {}

    /// The database of this number, created at the first call.
    keyspace& database(std::size_t number) {
        std::unique_ptr<keyspace>& of = keyspaces[number];
        if (!of) of = std::make_unique<keyspace>(env, static_cast<unsigned>(number));
        return *of;
    }

    environment env;
    std::array<std::unique_ptr<keyspace>, engine_databases> keyspaces;
    std::uint64_t changes = 0;  // to keys, since the start
};

}  // namespace eddy::cache
