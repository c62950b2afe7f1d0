// Places where fuzz targets cut their input.
#pragma once

#include <eddy/base/random.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace eddy {

/// Nowhere for 0, everywhere for 1, else at places that `how` seeds, at most that far apart.
inline std::vector<std::size_t> cut(std::size_t size, std::uint8_t how) {
    std::vector<std::size_t> cuts;
    if (how == 0) return cuts;
    if (how == 1) {
        for (std::size_t at = 1; at < size; ++at) cuts.push_back(at);
        return cuts;
    }
    random_generator random(how);
    for (std::size_t at = random.below(how); at < size; at += 1 + random.below(how))
        cuts.push_back(at);
    return cuts;
}

}  // namespace eddy
