// Living connection on its way to the server of another process, or to the next one of this.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include <string>

namespace eddy::serving {

/// Any thread.
struct passed_client {
    unique_fd socket;
    std::string state;  ///< the protocol's own
    std::string input;  ///< bytes that were received, and have had no effect
};

}  // namespace eddy::serving
