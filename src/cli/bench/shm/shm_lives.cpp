// Begin and end of connections: what connecting costs, and how soon a killed peer is noticed.
#include "cli/bench/shm/shm_processes.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <exception>
#include <thread>

namespace eddy::cli::bench {
namespace {

/// Connections, or kills, between two updates of the progress line.
constexpr std::uint64_t progress_every = 256;

/// Room for what a peer sends.
using tiny = std::array<std::byte, 1>;

/// Connections over shared memory.
struct shm_ends {
    static shm::connection connect(const shm_bench_options& wanted) {
        return require(shm::connection::connect(name_of(wanted), connection_options_of(wanted)),
                       "connecting");
    }
    static shm::connection accept(listening& from) {
        return require(from.shared.accept(), "accepting");
    }
};

/// Connections over a socket.
struct socket_ends {
    static blocking::stream connect(const shm_bench_options& wanted) {
        return require(blocking::connect(socket_address(wanted), connect_patience), "connecting");
    }
    static blocking::stream accept(listening& from) {
        return require(from.plain.accept(), "accepting");
    }
};

void record(shm_bench_result& into, std::uint64_t begun) {
    into.latencies.push_back(
        static_cast<std::uint32_t>(std::min<std::uint64_t>(now_ns() - begun, UINT32_MAX)));
}

void pause_between(const shm_bench_options& wanted) {
    if (wanted.pause_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(wanted.pause_ns));
}

/// Runs `body` in a child, on the server's processor.
template <class Body>
pid_t start(const shm_bench_options& wanted, Body body) {
    const pid_t id = ::fork();
    if (id < 0) give_up(fmt::format("cannot start a process: {}", std::strerror(errno)));
    if (id > 0) return id;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        pin(wanted.server_cpu);
        body();
        ::_exit(exit_ok);
    } catch (const std::exception& error) {
        complain(fmt::format("the other process: {}", error.what()));
        ::_exit(exit_fatal);
    }
}

template <class Ends>
void connect_often(const shm_bench_options& wanted, shm_bench_result& into,
                   progress_line& progress) {
    listening from(wanted);
    const std::uint64_t count = wanted.warmup + wanted.reps;
    child server(start(wanted, [&] {
        tiny none;
        for (std::uint64_t i = 0; i < count; ++i) {
            auto client = Ends::accept(from);
            while (client.read_some(none)) {
            }
        }
    }));
    pin(wanted.client_cpu);
    into.latencies.reserve(count);
    std::uint64_t test_begun = now_ns();
    const std::uint64_t warmup_begun = test_begun;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (i == wanted.warmup) {
            into.latencies.clear();
            test_begun = now_ns();
        }
        pause_between(wanted);
        const std::uint64_t begun = now_ns();
        Ends::connect(wanted).close();
        record(into, begun);
        if (i % progress_every == 0) show(progress, "Connecting  ", i, count);
    }
    into.test_seconds = static_cast<double>(now_ns() - test_begun) / 1e9;
    into.warmup_seconds = static_cast<double>(test_begun - warmup_begun) / 1e9;
    progress.clear();
    if (!server.join()) give_up("the server failed");
}

template <class Ends>
void kill_often(const shm_bench_options& wanted, shm_bench_result& into, progress_line& progress) {
    listening from(wanted);
    const std::uint64_t count = wanted.warmup + wanted.reps;
    pin(wanted.client_cpu);
    std::uint64_t test_begun = now_ns();
    const std::uint64_t warmup_begun = test_begun;
    into.latencies.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        if (i == wanted.warmup) {
            into.latencies.clear();
            test_begun = now_ns();
        }
        const pid_t id = start(wanted, [&] {
            auto made = Ends::connect(wanted);
            require(made.write_all(as_bytes("x")), "writing");
            for (;;) ::pause();
        });
        const child victim(id);
        auto survivor = Ends::accept(from);
        tiny buffer;
        require(survivor.read_exactly(buffer), "reading");
        pause_between(wanted);
        const std::uint64_t begun = now_ns();
        ::kill(id, SIGKILL);
        if (survivor.read_some(buffer)) give_up("a killed peer sent more");
        record(into, begun);
        if (i % progress_every == 0) show(progress, "Killing     ", i, count);
    }
    into.test_seconds = static_cast<double>(now_ns() - test_begun) / 1e9;
    into.warmup_seconds = static_cast<double>(test_begun - warmup_begun) / 1e9;
    progress.clear();
}

shm_bench_result finished(shm_bench_result of) {
    of.messages = of.latencies.size();
    std::ranges::sort(of.latencies);
    return of;
}

}  // namespace

shm_bench_result measure_connects(const shm_bench_options& wanted, progress_line& progress) {
    shm_bench_result made;
    if (wanted.over == carrier::shm)
        connect_often<shm_ends>(wanted, made, progress);
    else
        connect_often<socket_ends>(wanted, made, progress);
    return finished(std::move(made));
}

shm_bench_result measure_kills(const shm_bench_options& wanted, progress_line& progress) {
    shm_bench_result made;
    if (wanted.over == carrier::shm)
        kill_often<shm_ends>(wanted, made, progress);
    else
        kill_often<socket_ends>(wanted, made, progress);
    return finished(std::move(made));
}

}  // namespace eddy::cli::bench
