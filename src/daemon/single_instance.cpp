// The lock on the state folder and the probe of the socket.
#include "daemon/single_instance.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/endpoint.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

namespace eddy::daemon {
namespace {

std::string read_pid(int file) {
    char text[32] = {};
    const ssize_t size = ::pread(file, text, sizeof text, 0);
    const std::string_view pid(text, size > 0 ? static_cast<std::size_t>(size) : 0);
    return std::string(pid.substr(0, pid.find('\n')));
}

/// Listener on a Unix socket: none, or a process whose id is 0 when it cannot be known.
outcome<std::optional<pid_t>> find_listener(const endpoint& address) {
    const unique_fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!probe)
        return refuse(500, fmt::format("could not make a socket: {}",
                                       std::generic_category().message(errno)));
    // EAGAIN is a listener whose queue is full.
    if (::connect(probe.get(), address.data(), address.size()) != 0)
        return errno == EAGAIN ? std::optional<pid_t>(0) : std::nullopt;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
    return peer.pid;
}

/// Refuses what is not a regular file of this user alone.
outcome<> check_own_file(int file, const std::string& path) {
    struct stat info{};
    if (::fstat(file, &info) != 0)
        return refuse(500, fmt::format("could not examine {}: {}", path,
                                       std::generic_category().message(errno)));
    if (!S_ISREG(info.st_mode) || info.st_nlink != 1)
        return refuse(500, fmt::format("{} is {}; the lock must be a regular file. Remove it", path,
                                       S_ISREG(info.st_mode) ? "a hard link to another file"
                                                             : "not a regular file"));
    if (info.st_uid != ::geteuid())
        return refuse(500,
                      fmt::format("{} belongs to user id {}, and this daemon runs as {}. Start "
                                  "it as that user, or choose another folder with --state",
                                  path, info.st_uid, ::geteuid()));
    return {};
}

bool has_ended(pid_t process) { return process > 0 && ::kill(process, 0) != 0 && errno == ESRCH; }

}  // namespace

outcome<state_lock> state_lock::take(const std::string& directory) {
    const std::string path = directory + "/lock";
    // Any user with access to the folder can put anything there: neither a link's target nor
    // another user's file is touched, and nothing is written before the lock is held.
    unique_fd file(::open(path.c_str(),
                          O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
    if (!file && errno == ELOOP)
        return refuse(500, fmt::format("{} is a symbolic link; the lock must be a regular file. "
                                       "Remove the link",
                                       path));
    if (!file)
        return refuse(500, fmt::format("could not open {}: {}. Choose another folder with --state "
                                       "or EDDY_STATE_DIR",
                                       path, std::generic_category().message(errno)));
    if (auto own = check_own_file(file.get(), path); !own)
        return std::unexpected(std::move(own.error()));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return refuse(500, fmt::format("could not lock {}: {}", path,
                                           std::generic_category().message(errno)));
        const std::string pid = read_pid(file.get());
        return refuse(
            409, fmt::format("another daemon (pid {}) uses the state folder {}. Stop it "
                             "with `kill {}`, or give this one its own folder with "
                             "--state and its own --socket",
                             pid.empty() ? "unknown" : pid, directory, pid.empty() ? "PID" : pid));
    }
    const bool after_a_crash = !read_pid(file.get()).empty();
    state_lock taken(std::move(file), after_a_crash);
    taken.note_holder();
    return taken;
}

void state_lock::note_holder() noexcept {
    EDDY_ASSERT(file_);
    const std::string pid = fmt::format("{}\n", ::getpid());
    // The lock works without the pid, so a full disk does not matter here.
    if (::ftruncate(file_.get(), 0) == 0)
        static_cast<void>(::pwrite(file_.get(), pid.data(), pid.size(), 0));
}

void state_lock::release() noexcept { static_cast<void>(::ftruncate(file_.get(), 0)); }

outcome<> check_socket_is_free(const std::string& path) {
    const auto address = endpoint::unix_path(path);
    if (!address)
        return refuse(400,
                      fmt::format("\"{}\" cannot be a socket's path: use at most 107 bytes", path));
    constexpr std::chrono::milliseconds pause{10};
    for (auto waited = pause;; waited += pause) {
        const auto listener = find_listener(*address);
        if (!listener) return std::unexpected(listener.error());
        if (!*listener) return {};
        const pid_t process = **listener;
        if (has_ended(process) && waited < crash_grace) {
            std::this_thread::sleep_for(pause);
            continue;
        }
        if (process <= 0)
            return refuse(409, fmt::format("another daemon listens on {}. Stop it, or choose "
                                           "another path with --socket",
                                           path));
        return refuse(409, fmt::format("another daemon (pid {}) listens on {}. Stop it with `kill "
                                       "{}`, or choose another path with --socket",
                                       process, path, process));
    }
}

}  // namespace eddy::daemon
