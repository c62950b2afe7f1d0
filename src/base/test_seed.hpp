// The seed of a test's random numbers. It is the same in each run, so that a run that fails can be
// repeated and says something about the change that it tests. EDDY_SEED=<number> chooses another
// one, EDDY_SEED=random a new one each time, which searches.
#pragma once

#include <eddy/base/random.hpp>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace eddy::testing {

inline std::uint64_t seed_of_this_run() {
    static const std::uint64_t seed = [] {
        const char* const given = std::getenv("EDDY_SEED");
        if (given == nullptr) return std::uint64_t{1};
        const std::uint64_t chosen =
            std::string_view(given) == "random" ? entropy_seed() : std::strtoull(given, nullptr, 0);
        std::cout << "EDDY_SEED=" << chosen << "\n" << std::flush;
        return chosen;
    }();
    return seed;
}

}  // namespace eddy::testing
