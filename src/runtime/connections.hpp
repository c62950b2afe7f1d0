// Connections of a runtime, by the names that its types use.
#pragma once

#include "serving/connections.hpp"

namespace eddy::runtime {

using serving::activity;
using serving::connection;
using serving::connections;
using serving::linger;

}  // namespace eddy::runtime
