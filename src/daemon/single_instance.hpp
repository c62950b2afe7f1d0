// Single instance: at most one daemon a folder of state, and one a control socket.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include "base/problem.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace eddy::daemon {

/// Holds the lock on a folder of state. The kernel lets go of it when the process ends, however
/// that happens.
class state_lock {
public:
    /// Takes the lock on an existing folder. Refuses (409) with the pid of the daemon that has it,
    /// and (500) a lock file that is a link, no regular file or another user's, which stays as it
    /// is.
    static outcome<state_lock> take(const std::string& directory);

    /// True when the last daemon of this folder ended without release(): it was killed, or crashed.
    /// The kernel may still be closing its sockets then.
    bool after_a_crash() const noexcept { return after_a_crash_; }

    /// The lock of another process, which has passed on its descriptor: both have it, and the
    /// kernel lets go of it when both have ended.
    static state_lock adopt(unique_fd file) noexcept { return {std::move(file), false}; }
    int descriptor() const noexcept { return file_.get(); }
    /// Notes this process as the holder, in a file that has been another's.
    void note_holder() noexcept;

    /// Notes that this daemon ended in order.
    void release() noexcept;

private:
    state_lock(unique_fd file, bool after_a_crash) noexcept
        : file_(std::move(file)), after_a_crash_(after_a_crash) {}
    unique_fd file_;
    bool after_a_crash_;
};

/// Time for the kernel to close the sockets of a daemon that was killed: sockets that an io_uring
/// works on outlive their process by a moment.
inline constexpr std::chrono::milliseconds crash_grace{5000};

/// Refuses (409) with a pid when a process listens on the Unix socket `path`. A socket without a
/// listener is left over from a daemon that was killed; listening anew replaces it. Blocks for at
/// most crash_grace when the listener's process is gone and the kernel has not noticed.
outcome<> check_socket_is_free(const std::string& path);

}  // namespace eddy::daemon
