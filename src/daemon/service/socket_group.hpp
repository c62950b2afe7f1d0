// Group whose members may control the daemon.
#pragma once

#include "base/problem.hpp"

#include <sys/types.h>

#include <string>

namespace eddy::daemon {

/// Gives the socket at `path`, which this process has just made for itself alone, to that group:
/// mode 0660. Refuses (500) what is no socket of this user, and a group that this user may not give
/// a file to.
outcome<> give_to_group(const std::string& path, gid_t group);

}  // namespace eddy::daemon
