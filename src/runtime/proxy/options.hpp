// Options of `eddy create proxy`, as a table and as what the proxy works with.
#pragma once

#include <eddy/io/timer.hpp>
#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/proxy/balancer.hpp"
#include "runtime/serving/serving_config.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace eddy::runtime::proxy {

/// Checked and converted. The keepalive of `rules` is that of backends, too.
struct config : serving_config {
    std::vector<transport::address> backends;  ///< 1 to max_backends, all different
    strategy balance = strategy::round_robin;
    duration connect_timeout{};  ///< of one backend
    duration idle_timeout{};     ///< 0: none
    std::uint64_t max_connections = 0;
};

/// Rows of the options, in the order of help.
const bound_options<config>& option_rows();
outcome<config> read_config(const settings& chosen);

}  // namespace eddy::runtime::proxy
