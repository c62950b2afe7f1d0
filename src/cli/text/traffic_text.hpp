// Traffic of runtimes as a table: of `eddy stats` for several, and of `eddy top`.
#pragma once

#include "cli/text/table.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

using nlohmann::json;

/// Traffic of one runtime: counts since its start, or rates a second.
struct traffic {
    std::string name;
    std::string type;
    std::string status;
    double connections = 0;
    double messages_in = 0;  ///< requests or commands, of types that have them
    double messages_out = 0;
    double bytes_in = 0;
    double bytes_out = 0;
    double errors = 0;
    std::optional<double> p50_us = {};
    std::optional<double> p99_us = {};
    std::optional<double> memory_bytes = {};
};

/// The counts of a runtime's statistics, as the daemon gives them.
traffic traffic_of(const json& stats);

/// Rates between two counts of `seconds`. A runtime that was not there before, or that began anew,
/// counts from 0.
std::vector<traffic> rates_between(const std::vector<traffic>& before,
                                   const std::vector<traffic>& now, double seconds);

/// Rates for programs.
json rates_json(const std::vector<traffic>& rates);

/// Names of the orders of sort_traffic().
std::vector<std::string> traffic_orders();
/// Orders by a key: names and types up, numbers down. False for an unknown key.
bool sort_traffic(std::vector<traffic>& rows, std::string_view key);

struct traffic_style {
    std::size_t width = 0;   ///< of the terminal; 0: lines of any length
    std::size_t height = 0;  ///< lines at most; 0: any number
    bool colours = false;
    bool is_rate = false;
};

/// A line each below a header. Where it is too wide columns are left out; where it is too high, the
/// last line has the number of the others.
std::string traffic_text(const std::vector<traffic>& rows, const traffic_style& style);

}  // namespace eddy::cli
