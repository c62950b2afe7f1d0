// Commands of `eddy bench`: load generators.
#pragma once

#include "cli/program.hpp"

namespace eddy::cli::bench {

/// `eddy bench resp`: commands to a cache. resp.cpp.
command resp_command();
/// `eddy bench http URL`: requests. http.cpp.
command http_command();
/// `eddy bench ws URL`: echoed messages. ws.cpp.
command ws_command();
/// `eddy bench handoff`: clients handed over to a stream runtime. handoff.cpp.
command handoff_command();
/// `eddy bench shm`: round trips over shared memory. shm.cpp.
command shm_command();

}  // namespace eddy::cli::bench
