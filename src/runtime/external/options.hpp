// Options of `eddy create external`, which `eddy attach` gives.
#pragma once

#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/settings.hpp"

#include <cstdint>
#include <string>

namespace eddy::runtime::external {

/// Checked and converted.
struct config {
    std::string kind;
    std::uint16_t port = 0;
    std::int64_t pid = 0;         ///< 0: any process
    std::int64_t start_time = 0;  ///< of that, in the kernel's ticks; 0: any
    duration interval{};
};

/// Rows of the options, in the order of help.
const bound_options<config>& option_rows();
outcome<config> read_config(const settings& chosen);

}  // namespace eddy::runtime::external
