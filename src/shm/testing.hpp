// Helpers of this layer's tests: what a process has open and mapped, and children that are killed.
#pragma once

#include <eddy/base/assert.hpp>

#include "shm/futex.hpp"
#include "shm/hello.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace eddy::testing {

/// A child of a process with several threads may then start none.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool is_thread_sanitized = true;
#else
inline constexpr bool is_thread_sanitized = false;
#endif
#else
inline constexpr bool is_thread_sanitized = false;
#endif

inline std::size_t open_descriptors() {
    std::size_t count = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        static_cast<void>(each);
        ++count;
    }
    return count;
}

/// Mappings of memory files of streams.
inline std::size_t mappings() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        if (line.find("eddy-shm") != std::string::npos) ++count;
    return count;
}

/// A peer without threads and loops, for children of fork(2): makes the exchange, writes "written",
/// and waits to be killed.
[[noreturn]] inline void write_and_wait(shm::side own, int socket) {
    using namespace shm;
    exchange with(own, socket, {});
    for (auto next = with.step(); !next || *next != exchange::wait::none; next = with.step()) {
        if (!next) ::_exit(1);
        pollfd watched{socket, POLLIN, 0};
        ::poll(&watched, 1, -1);
    }
    const std::unique_ptr<channel> shared = with.take_channel();
    bool wakes = false;
    if (!shared || !shared->write(as_bytes("written"), wakes)) ::_exit(1);
    if (wakes && shared->peer_doorbell() == EDDY_SHM_DOORBELL_FUTEX)
        futex_wake(shared->raise_reader_bell());
    else if (wakes)
        ::send(socket, "!", 1, MSG_NOSIGNAL);
    for (;;) ::pause();
}

inline void kill_and_reap(pid_t child) {
    ::kill(child, SIGKILL);
    EDDY_ASSERT(::waitpid(child, nullptr, 0) == child);
}

}  // namespace eddy::testing
