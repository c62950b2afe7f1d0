// Process-wide settings of a daemon, made before its first thread and descriptor.
#pragma once

#include <eddy/io/signals.hpp>

namespace eddy::daemon {

/// Takes descriptors 0 to 2 where they are free, lest a socket gets one of them and what is printed
/// goes there; raises the soft limit on open files; makes files private to this user by the umask;
/// ignores signals that have no meaning here; and takes SIGTERM, SIGINT and SIGHUP.
[[nodiscard]] result<signal_set> set_up_process();

}  // namespace eddy::daemon
