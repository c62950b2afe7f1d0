// Host of a runtime: what the daemon does for a running instance.
#pragma once

#include <eddy/io/task.hpp>

#include "runtime/problem.hpp"

#include <nlohmann/json_fwd.hpp>

namespace eddy::runtime {

/// The daemon as one instance sees it. The instance's loop's thread.
class host {
public:
    virtual ~host() = default;

    /// Requests a stop of the instance, as `eddy stop` does; returns at once.
    virtual void request_stop() = 0;
    /// Saves changed options for the next start, by their names in JSON (null takes one back). They
    /// are not applied to the instance.
    virtual task<outcome<>> keep_options(nlohmann::json changed) = 0;
};

}  // namespace eddy::runtime
