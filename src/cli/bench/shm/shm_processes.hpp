// Processes of `eddy bench shm`: their processors, listeners and connections, and children that end
// with their parent.
#pragma once

#include <eddy/io/endpoint.hpp>
#include <eddy/net/blocking.hpp>
#include <eddy/shm/connection.hpp>

#include "cli/bench/measure.hpp"
#include "cli/bench/shm/shm_rounds.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::cli::bench {

inline constexpr duration connect_patience = std::chrono::seconds(10);

inline void require(const result<>& done, std::string_view what) {
    if (!done) give_up(std::string(what) + " failed: " + done.error().message());
}
template <class T>
T require(result<T> done, std::string_view what) {
    if (!done) give_up(std::string(what) + " failed: " + done.error().message());
    return std::move(*done);
}

inline void pin(int cpu) {
    if (cpu < 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(cpu), &set);
    if (::sched_setaffinity(0, sizeof(set), &set) < 0)
        give_up("cannot run on processor " + std::to_string(cpu) + ": " + std::strerror(errno));
}

inline std::uint64_t now_ns() noexcept {
    return static_cast<std::uint64_t>(steady::now().time_since_epoch().count());
}

inline void show(progress_line& progress, std::string_view what, std::uint64_t done,
                 std::uint64_t all) {
    constexpr std::size_t width = 30;
    const std::size_t filled = all == 0 ? width : static_cast<std::size_t>(done * width / all);
    progress.show(std::string(what) + " [" + std::string(filled, '=') +
                  std::string(width - filled, ' ') + "] " + std::to_string(done) + " of " +
                  std::to_string(all));
}

inline std::string name_of(const shm_bench_options& wanted) {
    return "@eddy-bench-shm-" + std::to_string(wanted.port);
}

inline shm::connection_options connection_options_of(const shm_bench_options& wanted) {
    shm::connection_options made;
    made.ring_size = wanted.ring_size;
    made.wait = wanted.wait;
    made.asymmetric_fence = wanted.is_asymmetric;
    return made;
}

inline endpoint socket_address(const shm_bench_options& wanted) {
    if (wanted.over == carrier::tcp)
        return require(endpoint::ip("127.0.0.1", wanted.port), "making an address");
    return require(endpoint::unix_path(name_of(wanted)), "making an address");
}

/// Listener of the chosen carrier, made before the fork, so that the client can connect at once.
struct listening {
    shm::acceptor shared;
    blocking::listener plain;

    explicit listening(const shm_bench_options& wanted) {
        const std::string what = "listening (port " + std::to_string(wanted.port) + ")";
        if (wanted.over == carrier::shm)
            shared = require(shm::acceptor::listen(name_of(wanted), connection_options_of(wanted)),
                             what);
        else
            plain = require(blocking::listen(socket_address(wanted)), what);
    }
};

/// A process that ends with this one.
class child {
public:
    explicit child(pid_t id) noexcept : id_(id) {}
    ~child() {
        if (id_ <= 0) return;
        ::kill(id_, SIGKILL);
        ::waitpid(id_, nullptr, 0);
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    /// Waits for its own end.
    bool join() noexcept {
        int status = 0;
        ::waitpid(std::exchange(id_, 0), &status, 0);
        return WIFEXITED(status) && WEXITSTATUS(status) == exit_ok;
    }

private:
    pid_t id_;
};

/// Connects, closes, and yields the time of both, so many times; sorted, as those of the kills.
shm_bench_result measure_connects(const shm_bench_options& wanted, progress_line& progress);
/// Times from SIGKILL of a peer to the error that reading fails with.
shm_bench_result measure_kills(const shm_bench_options& wanted, progress_line& progress);

}  // namespace eddy::cli::bench
