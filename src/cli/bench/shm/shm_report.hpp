// Report of `eddy bench shm`: the table of percentiles, JSON, the dump for gnuplot, and a figure.
#pragma once

#include "cli/bench/shm/shm_rounds.hpp"

#include <span>
#include <string>

namespace eddy::cli::bench {

struct shm_report {
    shm_bench_options wanted;
    shm_bench_result result;

    std::string text() const;
};

/// An array where there are several.
std::string to_json(std::span<const shm_report> reports);
/// The latencies in microseconds, sorted, one a line.
std::string dump(const shm_report& of);
/// SVG of the latencies of all; those of one-way messages have none.
std::string figure(std::span<const shm_report> reports);

}  // namespace eddy::cli::bench
