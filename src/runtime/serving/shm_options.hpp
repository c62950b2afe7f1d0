// Options of runtimes that serve streams over shared memory, too: --shm --shm-path.
#pragma once

#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace eddy::runtime {

/// Rows of a type's table.
std::vector<option> shm_options();

/// Address by those rows, of a runtime that serves on `first`; none without --shm. Without
/// --shm-path the address has no path: shm_address() names it once the port is known.
outcome<std::optional<transport::address>> read_shm(const settings& chosen,
                                                    const transport::address& first);

/// `of` with the path that it has, or the name of a port as of shm://:6379.
transport::address shm_address(transport::address of, std::uint16_t port);

}  // namespace eddy::runtime
