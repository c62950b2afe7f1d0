// Host of a runtime: what the daemon does for a running instance.
#pragma once

#include <eddy/io/task.hpp>

#include "runtime/problem.hpp"

#include <nlohmann/json_fwd.hpp>

namespace eddy::runtime {

/// What a running runtime may ask of whoever runs it, about itself. Its loop's thread.
class supervisor {
public:
    virtual ~supervisor() = default;

    /// Has the runtime stopped soon, as `eddy stop` does; returns at once.
    virtual void request_stop() = 0;
    /// Keeps changed options, by their names in JSON (null takes one back), for the next start. The
    /// runtime itself is not told.
    virtual task<outcome<>> keep_options(nlohmann::json changed) = 0;
};

}  // namespace eddy::runtime
