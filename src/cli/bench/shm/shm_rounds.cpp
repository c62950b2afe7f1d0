// Processes of the benchmark: the server's loop, and the client's with its clock.
#include "cli/bench/shm/shm_rounds.hpp"

#include "cli/bench/shm/shm_processes.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <thread>
#include <utility>

namespace eddy::cli::bench {
namespace {

using options = shm_bench_options;

/// Round trips between two looks at the progress line.
constexpr std::uint64_t progress_every = 16'384;
/// A pause up to this long is spent spinning: sleeping takes longer to end.
constexpr std::uint64_t longest_spin_ns = 50'000;

void pause_for(std::uint64_t ns) {
    if (ns == 0) return;
    if (ns > longest_spin_ns) return std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    const std::uint64_t begun = now_ns();
    while (now_ns() - begun < ns) {
    }
}

/// The byte at a position of the server's replies.
std::byte pattern_at(std::size_t position) noexcept {
    return static_cast<std::byte>(position * 7 + 1);
}

// ---- both kinds of peers

/// Whole messages over a connection of either kind.
template <class Connection>
struct peer_calls {
    Connection over;

    void send(const_bytes bytes) { require(over.write_all(bytes), "writing"); }
    void receive(mutable_bytes into) { require(over.read_exactly(into), "reading"); }
    /// False at the end.
    bool receive_or_end(mutable_bytes into) {
        const auto got = over.read_exactly(into);
        if (!got && got.error() == errc::end_of_stream) return false;
        require(got, "reading");
        return true;
    }
};

/// Over shared memory.
struct shm_peer : peer_calls<shm::connection> {
    /// Bytes of what has come, used up at once; 0 at the end.
    std::size_t drain(mutable_bytes buffer, bool in_place) {
        if (!in_place) {
            const auto size = over.read_some(buffer);
            return size ? *size : 0;
        }
        const auto seen = over.peek_some();
        if (!seen) return 0;
        over.consume(seen->size());
        return seen->size();
    }
    /// Before send_in_place(), which leaves most bytes as they are: a peer ends a connection with
    /// pages that were never written.
    void write_all_pages() {
        constexpr std::size_t least_page = 4096;
        const auto room = require(over.room(), "writing");
        for (std::size_t i = 0; i < room.size(); i += least_page) room[i] = std::byte{};
    }
    void send_in_place(std::size_t size) {
        while (size > 0) {
            const auto room = require(over.room(), "writing");
            if (room.empty()) {
                // A message of one byte waits for room as write_all() does.
                const std::byte one{};
                send(const_bytes(&one, 1));
                --size;
                continue;
            }
            const std::size_t part = std::min(size, room.size());
            room[0] = std::byte{1};
            over.append(part);
            require(over.flush(), "writing");
            size -= part;
        }
    }
};

/// Over a socket.
struct socket_peer : peer_calls<blocking::stream> {
    std::size_t drain(mutable_bytes buffer, bool /*in_place*/) {
        const auto size = over.read_some(buffer);
        return size ? *size : 0;
    }
    void write_all_pages() {}
    void send_in_place(std::size_t size) {
        std::vector<std::byte> message(size);
        send(message);
    }
};

// ---- the server

template <class Peer>
void answer_pings(Peer& client, const options& wanted) {
    std::vector<std::byte> reply(wanted.reply_size);
    for (std::size_t i = 0; i < reply.size(); ++i) reply[i] = pattern_at(i);
    std::array<std::byte, options::ping_size> ping;
    while (client.receive_or_end(ping)) client.send(reply);
}

template <class Peer>
void send_messages(Peer& client, const options& wanted) {
    const std::vector<std::byte> message(wanted.message_size);
    std::array<std::byte, 1> begin;
    client.receive(begin);
    if (wanted.in_place) client.write_all_pages();
    const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(wanted.seconds * 1e9);
    for (std::uint64_t i = 0;; ++i) {
        if (wanted.in_place)
            client.send_in_place(wanted.message_size);
        else
            client.send(message);
        if (i % 64 == 0 && now_ns() >= end) return;
    }
}

template <class Peer>
void serve(Peer client, const options& wanted) {
    if (wanted.message_size > 0)
        send_messages(client, wanted);
    else
        answer_pings(client, wanted);
}

// ---- the client

template <class Peer>
double run_rounds(Peer& server, const options& wanted, std::uint64_t count,
                  std::vector<std::uint32_t>* latencies, std::string_view what,
                  progress_line& progress) {
    std::vector<std::byte> reply(wanted.reply_size);
    std::array<std::byte, options::ping_size> ping{};
    const std::uint64_t begun = now_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
        pause_for(wanted.pause_ns);
        const std::uint64_t sent = now_ns();
        server.send(ping);
        server.receive(reply);
        const std::uint64_t took = now_ns() - sent;
        if (latencies)
            latencies->push_back(
                static_cast<std::uint32_t>(std::min<std::uint64_t>(took, UINT32_MAX)));
        if (i % progress_every == 0) show(progress, what, i, count);
    }
    for (std::size_t i = 0; count > 0 && i < reply.size(); ++i)
        if (reply[i] != pattern_at(i)) give_up("the server's reply has other bytes");
    return static_cast<double>(now_ns() - begun) / 1e9;
}

template <class Peer>
void measure_rounds(Peer& server, const options& wanted, shm_bench_result& into,
                    progress_line& progress) {
    into.warmup_seconds =
        run_rounds(server, wanted, wanted.warmup, nullptr, "Warming up  ", progress);
    if (wanted.keeps_latencies) into.latencies.reserve(wanted.reps);
    const double cpu = own_cpu_seconds();
    into.test_seconds =
        run_rounds(server, wanted, wanted.reps, wanted.keeps_latencies ? &into.latencies : nullptr,
                   "Running test", progress);
    into.client_cpu = own_cpu_seconds() - cpu;
    into.messages = wanted.reps;
    std::ranges::sort(into.latencies);
}

template <class Peer>
void measure_stream(Peer& server, const options& wanted, shm_bench_result& into) {
    std::vector<std::byte> buffer(std::max<std::size_t>(wanted.message_size, 65'536));
    // A reader that takes one message at a time would measure its own calls.
    const std::byte begin{};
    server.send(const_bytes(&begin, 1));
    std::uint64_t bytes = server.drain(buffer, wanted.in_place);
    const std::uint64_t begun = now_ns();
    const double cpu = own_cpu_seconds();
    bytes = 0;
    while (const std::size_t size = server.drain(buffer, wanted.in_place)) bytes += size;
    into.test_seconds = static_cast<double>(now_ns() - begun) / 1e9;
    into.client_cpu = own_cpu_seconds() - cpu;
    into.messages = bytes / wanted.message_size;
}

template <class Peer>
void measure(Peer server, const options& wanted, shm_bench_result& into, progress_line& progress) {
    if (wanted.message_size > 0)
        measure_stream(server, wanted, into);
    else
        measure_rounds(server, wanted, into, progress);
}

// ---- the processes

/// Memory that both processes have: the cache line that they pass to and fro.
struct shared_page {
    alignas(128) std::atomic<std::uint64_t> ping{0};
    alignas(128) std::atomic<std::uint64_t> pong{0};
};

constexpr std::uint64_t line_rounds = 20'000;

/// Answers of one measurement. Without anything else, so that nothing but the line counts.
void answer_line(shared_page& page, std::uint64_t from) noexcept {
    for (std::uint64_t i = from + 1; i <= from + line_rounds; ++i) {
        while (page.ping.load(std::memory_order_acquire) != i) {
        }
        page.pong.store(i, std::memory_order_release);
    }
}

std::uint64_t measure_line(shared_page& page, std::uint64_t from) {
    std::vector<std::uint64_t> took(line_rounds);
    for (std::uint64_t i = 0; i < line_rounds; ++i) {
        const std::uint64_t begun = now_ns();
        page.ping.store(from + i + 1, std::memory_order_release);
        while (page.pong.load(std::memory_order_acquire) != from + i + 1) {
        }
        took[i] = now_ns() - begun;
    }
    std::ranges::nth_element(took, took.begin() + line_rounds / 2);
    return took[line_rounds / 2];
}

/// The child: its exit status.
int run_server(listening& from, const options& wanted, shared_page& page) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        pin(wanted.server_cpu);
        const bool has_line = wanted.client_cpu != wanted.server_cpu;
        if (has_line) answer_line(page, 0);
        if (wanted.over == carrier::shm)
            serve(shm_peer{{require(from.shared.accept(), "accepting")}}, wanted);
        else
            serve(socket_peer{{require(from.plain.accept(), "accepting")}}, wanted);
        if (has_line) answer_line(page, line_rounds);
        return exit_ok;
    } catch (const std::exception& error) {
        complain(fmt::format("the server: {}", error.what()));
        return exit_fatal;
    }
}

void connect_and_measure(const options& wanted, shm_bench_result& into, progress_line& progress) {
    if (wanted.over == carrier::shm) {
        auto server = require(
            shm::connection::connect(name_of(wanted), connection_options_of(wanted)), "connecting");
        return measure(shm_peer{{std::move(server)}}, wanted, into, progress);
    }
    auto server =
        require(blocking::connect(socket_address(wanted), connect_patience), "connecting");
    measure(socket_peer{{std::move(server)}}, wanted, into, progress);
}

}  // namespace

std::string_view to_string(carrier of) noexcept {
    switch (of) {
        case carrier::shm: return "shared memory";
        case carrier::unix_socket: return "Unix socket";
        case carrier::tcp: return "TCP";
    }
    return {};
}

std::uint32_t shm_bench_result::percentile(double percent) const noexcept {
    if (latencies.empty()) return 0;
    const auto rank =
        static_cast<std::size_t>(percent / 100 * static_cast<double>(latencies.size()));
    return latencies[std::min(rank, latencies.size() - 1)];
}

shm_bench_result run_shm_bench(const shm_bench_options& wanted, progress_line& progress) {
    if (wanted.measured == shm_measurement::connects) return measure_connects(wanted, progress);
    if (wanted.measured == shm_measurement::kills) return measure_kills(wanted, progress);
    void* const room = ::mmap(nullptr, sizeof(shared_page), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) throw std::bad_alloc();
    const auto unmap = [](shared_page* page) { ::munmap(page, sizeof(shared_page)); };
    const std::unique_ptr<shared_page, decltype(unmap)> page(new (room) shared_page, unmap);
    listening from(wanted);
    const pid_t id = ::fork();
    if (id < 0) give_up(fmt::format("cannot start a process: {}", std::strerror(errno)));
    if (id == 0) ::_exit(run_server(from, wanted, *page));
    child server(id);
    pin(wanted.client_cpu);
    const bool has_line = wanted.client_cpu != wanted.server_cpu;
    shm_bench_result made;
    if (has_line) made.line_ns_before = measure_line(*page, 0);
    connect_and_measure(wanted, made, progress);
    if (has_line) made.line_ns_after = measure_line(*page, line_rounds);
    progress.clear();
    if (!server.join()) give_up("the server failed");
    return made;
}

}  // namespace eddy::cli::bench
