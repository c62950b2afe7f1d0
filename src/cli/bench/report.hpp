// Report of a load: text for a terminal, JSON for programs, and a figure of the latencies.
#pragma once

#include "cli/bench/load.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace eddy::cli::bench {

struct report {
    std::string test;  ///< "http" or "ws"
    std::string url;
    load_options wanted;
    load_result result;

    double rate() const { return static_cast<double>(result.counts.replies) / result.seconds; }
    /// The generator's CPU time as a share of its threads' time.
    double busy() const { return result.generator_cpu / static_cast<double>(wanted.threads); }
    /// The generator had hardly any time left.
    bool is_limited() const { return busy() > busy_share; }
    /// The same while the server had some: the rate is the generator's.
    bool is_void() const {
        return is_limited() && result.server_cpu > 0 && result.server_cpu < busy_share;
    }
    /// There were replies, and no errors.
    bool is_right() const { return result.counts.replies > 0 && result.counts.errors() == 0; }
    std::string verdict() const;

    std::string text() const;
    std::string json() const;
    /// SVG: latency by percentile, both axes logarithmic.
    std::string figure() const;
};

/// Words of a figure.
struct figure_words {
    std::string title;
    std::string subtitle;
    std::string counted;  ///< what has the latencies: "replies"
};

/// One line of a figure.
struct figure_line {
    const histogram* of;
    std::string name = {};
};

/// Lines of a figure at most: there are so many colours.
inline constexpr std::size_t max_figure_lines = 4;

/// SVG of latencies by percentile, both axes logarithmic. There is at least one line, with values.
std::string latency_figure(std::span<const figure_line> lines, const figure_words& words);
/// The same of one.
std::string latency_figure(const histogram& of, const figure_words& words);

/// Writes a report or a figure to a file. Gives up when that fails.
void write_report(const std::string& text, const std::string& path);

}  // namespace eddy::cli::bench
