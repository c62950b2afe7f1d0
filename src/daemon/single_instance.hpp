// One daemon a folder of state, and one a control socket.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include "daemon/problem.hpp"

#include <string>

namespace eddy::daemon {

/// Holds the lock on a folder of state. The kernel lets go of it when the process ends, however
/// that happens.
class state_lock {
public:
    /// Takes the lock on an existing folder. Refuses (409) with the pid of the daemon that has it.
    static outcome<state_lock> take(const std::string& directory);

private:
    explicit state_lock(unique_fd file) noexcept : file_(std::move(file)) {}
    unique_fd file_;
};

/// Refuses (409) with a pid when a process listens on the Unix socket `path`. A socket without a
/// listener is left over from a daemon that was killed; listening anew replaces it.
outcome<> check_socket_is_free(const std::string& path);

}  // namespace eddy::daemon
