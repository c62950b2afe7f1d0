// Served listener: a listener whose connections a server accepts, and what its scheme adds to each.
#pragma once

#include <eddy/io/stream.hpp>
#include <eddy/transport/transport.hpp>

namespace eddy::serving {

/// One loop's thread.
struct served_listener {
    listener socket;
    /// Of one that listens in parts: see transport::listener_parts.
    transport::listener_parts::finisher finish = nullptr;
    transport::listener_parts::renewer renew = nullptr;
};

}  // namespace eddy::serving
