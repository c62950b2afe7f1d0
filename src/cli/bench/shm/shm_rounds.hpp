// Round trips and streams of messages between two processes, over shared memory or a socket: what
// `eddy bench shm` measures. The server is a process of its own, made by fork(2).
#pragma once

#include <eddy/io/timer.hpp>
#include <eddy/shm/connection.hpp>

#include "cli/bench/measure.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli::bench {

/// Carrier of the bytes.
enum class carrier : std::uint8_t { shm, unix_socket, tcp };
/// "shared memory", "Unix socket", "TCP".
std::string_view to_string(carrier of) noexcept;

/// Measurement: round trips (or one-way messages), connecting and closing, or the time from SIGKILL
/// of a peer to the end that its survivor reads.
enum class shm_measurement : std::uint8_t { rounds, connects, kills };

struct shm_bench_options {
    carrier over = carrier::shm;
    shm_measurement measured = shm_measurement::rounds;
    std::uint64_t reps = 300'000;
    std::uint64_t warmup = 50'000;
    std::uint64_t pause_ns = 0;  ///< between two round trips
    std::size_t reply_size = 1024;
    std::uint16_t port = 3333;  ///< of TCP, and in the socket's name for the others
    bool keeps_latencies = true;
    std::size_t message_size = 0;  ///< of one-way messages for `seconds`; 0: round trips
    double seconds = 2;
    std::size_t ring_size = 256 * 1024;
    shm::waiting wait = shm::waiting::adaptive;
    bool is_asymmetric = false;
    bool in_place = false;  ///< one-way messages are neither copied in nor out
    int client_cpu = 0;     ///< -1: the kernel chooses
    int server_cpu = 1;

    /// Bytes of a ping.
    static constexpr std::size_t ping_size = 4;
    static constexpr std::size_t max_message = 16 * 1024 * 1024;
    static constexpr std::uint64_t max_reps = 100'000'000;
};

struct shm_bench_result {
    std::vector<std::uint32_t> latencies;  ///< ns, sorted; empty without round trips
    double warmup_seconds = 0;
    double test_seconds = 0;
    std::uint64_t messages = 0;  ///< of the test
    double client_cpu = 0;       ///< seconds of CPU in the test
    std::uint64_t line_ns_before =
        0;  ///< round trip of a cache line between both processors, median
    std::uint64_t line_ns_after = 0;

    /// The latency in ns that `percent` of the round trips do not exceed.
    std::uint32_t percentile(double percent) const noexcept;
};

/// Runs the benchmark. Replies are compared with what the server sends. Gives up (measure.hpp) when
/// a part of it fails.
shm_bench_result run_shm_bench(const shm_bench_options& wanted, progress_line& progress);

}  // namespace eddy::cli::bench
