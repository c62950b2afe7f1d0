// The list of an append-only file's parts, as redis-server 7.0 keeps it.
#pragma once

#include "base/problem.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::cache {

/// The keys of one instant are in `base`, and what came behind it in `increments`, in that order.
/// Files of the history are to be removed.
struct append_manifest {
    /// No manifest is longer.
    static constexpr std::size_t max_bytes = 1U << 20;

    struct part {
        std::string name;
        std::uint64_t sequence = 0;
    };
    std::optional<part> base;
    std::vector<part> increments;
    std::vector<part> history;
    std::uint64_t last_base = 0;       ///< the highest number that a base had
    std::uint64_t last_increment = 0;  ///< the same of an increment
};

/// The error names the line.
outcome<append_manifest> parse_manifest(std::string_view text);
std::string to_text(const append_manifest& of);

}  // namespace eddy::runtime::cache
