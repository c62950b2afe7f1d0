// Report of a load of handoffs: a table for a terminal, and JSON in the form that load generators
// of streaming daemons have.
#pragma once

#include "cli/bench/handoff/handoff_load.hpp"

#include <string>

namespace eddy::cli::bench {

struct handoff_report {
    handoff_options wanted;
    handoff_result result;

    /// Every stream was answered whole.
    bool is_right() const {
        return result.counts.failed() == 0 && result.counts.completed == wanted.connections;
    }
    /// The generator had hardly any time left, or started streams late.
    bool is_limited() const;
    std::string verdict() const;

    std::string text() const;
    std::string json() const;
    /// SVG: time to the first byte by percentile.
    std::string figure() const;
};

}  // namespace eddy::cli::bench
