// Load of handoffs on a stream runtime: clients' sockets passed to it with data (SCM_RIGHTS), and
// the answers read to their end. Streams start at even times over the ramp-up; each is one of its
// own.
//
// A process has at most so many open files, so the streams are spread over processes, each with one
// loop and one coroutine a stream. They share memory with the process that started them: the start
// time, counts of what is under way, and their results.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/handoff/sender.hpp>
#include <eddy/io/loop.hpp>

#include "cli/bench/measure.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::cli::bench {

struct handoff_options {
    std::string socket = "/var/run/streaming-daemon.sock";
    std::size_t connections = 100;
    duration ramp_up = std::chrono::seconds(10);
    /// From the end of the ramp-up to when handoffs are given up that the runtime has not taken.
    duration hold = std::chrono::seconds(60);
    /// From a stream's handoff to when it is given up.
    duration stream_timeout = std::chrono::seconds(120);
    std::string data = R"({"prompt":"benchmark test","user_id":1})";
    handoff::socket_kind kind = handoff::socket_kind::automatic;
    bool over_tcp = false;       ///< clients are TCP connections, else socket pairs
    std::uint64_t messages = 0;  ///< events that a whole answer has at least, without the mark
    duration interval{};         ///< between events; zero: not known
    std::size_t processes = 0;   ///< 0: as many as the limit of open files asks for
    int server_pid = 0;
    bool is_verbose = false;
    io_backend_kind io_backend = io_backend_kind::automatic;
};

/// Streams of one process at most, so that it stays below a limit of 20,000 open files.
inline constexpr std::size_t streams_a_process = 17'000;
/// Processes at most.
inline constexpr std::size_t process_limit = 64;

/// Kinds of failed streams.
enum class handoff_fault : unsigned char {
    connect,   ///< no connection to the runtime, or no client could be made
    send,      ///< the descriptor could not be sent
    receive,   ///< the answer broke off, is no event stream, or has a wrong status
    timeout,   ///< it took longer than allowed
    rejected,  ///< 503: the runtime is full
};
inline constexpr std::array<std::string_view, 5> handoff_fault_names = {
    "connect", "send", "receive", "timeout", "rejected"};

/// Counts and latencies. They lie in shared memory, so they are copied as bytes.
struct handoff_counts {
    std::uint64_t started = 0;
    std::uint64_t completed = 0;
    std::uint64_t incomplete = 0;  ///< ended in order, without the mark or with too few events
    std::uint64_t bytes = 0;
    std::array<std::uint64_t, handoff_fault_names.size()> faults{};
    std::array<char, 200> first_fault{};  ///< ends with a zero
    double cpu_seconds = 0;
    handoff::socket_kind socket = handoff::socket_kind::automatic;  ///< the runtime's

    // Nanoseconds.
    histogram handoff;     ///< from connect() to the message sent
    histogram first_byte;  ///< from the message sent to the first byte of the answer
    histogram stream;      ///< from the message sent to the answer's end, of whole answers
    histogram drift;       ///< of that end from the ideal one, either way
    histogram lateness;    ///< of the generator's own starts behind their plan

    std::uint64_t failed() const noexcept;
    void count(handoff_fault kind, std::string_view what);
    void note(std::string_view what);
    void merge(const handoff_counts& other);
};

struct handoff_result {
    handoff_counts counts;
    std::size_t processes = 1;
    std::uint64_t peak_concurrent = 0;
    double seconds = 0;          ///< from the first start to the last end
    double generator_cpu = 0;    ///< cores, of all processes
    double generator_peak = 0;   ///< the same of the busiest half second
    double generator_cores = 1;  ///< that it could have used
    double server_cpu = 0;       ///< cores; 0 without a server_pid
};

/// Processes for so many streams. Gives up where the limit of open files allows too few streams
/// each.
std::size_t processes_for(const handoff_options& wanted);

/// Runs the load. It starts processes, so no other thread may run. Gives up when a process
/// cannot be started, or ends by a signal.
handoff_result run_handoffs(const handoff_options& wanted, progress_line& progress);

}  // namespace eddy::cli::bench
