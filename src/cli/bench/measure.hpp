// Common parts of the load generators: CPU time of both sides, the progress line, numbers of the
// command line, and the flags that all of them have.
#pragma once

#include <eddy/io/loop.hpp>

#include "cli/program.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli::bench {

using steady = std::chrono::steady_clock;

/// From this share of a core on, the generator counts as the limit.
inline constexpr double busy_share = 0.9;

/// Ends the benchmark with a message: throws std::runtime_error.
[[noreturn]] void give_up(const std::string& message);

/// CPU time of all threads of this process so far.
double own_cpu_seconds();

/// CPU time of all threads of a process so far, from the scheduler's own nanosecond counts
/// (proc(5)); 0 for the process 0. Gives up when there is no such process.
double process_cpu_seconds(int pid);

/// Raises the limit of open files to `needed`, or as far as it goes; the limit is then at least the
/// value that is returned.
std::size_t raise_descriptor_limit(std::size_t needed);

/// One line on standard error that is overwritten, at most every 100 ms. One thread.
class progress_line {
public:
    explicit progress_line(bool is_shown) noexcept : is_shown_(is_shown) {}
    void show(const std::string& text);
    /// Removes it.
    void clear();

private:
    bool is_shown_;
    steady::time_point shown_{};
};

/// True where a progress line is wanted: on a terminal, without --no-progress.
bool wants_progress(const arguments& given);

/// Reads the flag `name`, if it is given, as a whole number from `least` to `most`. False, after a
/// complaint, when it is none.
bool read_whole(const arguments& given, std::string_view name, std::uint64_t least,
                std::uint64_t most, std::uint64_t& into);

/// The same for an integer of any kind.
template <class T>
bool read_number(const arguments& given, std::string_view name, std::uint64_t least,
                 std::uint64_t most, T& into) {
    auto number = static_cast<std::uint64_t>(into);
    if (!read_whole(given, name, least, most, number)) return false;
    into = static_cast<T>(number);
    return true;
}

/// The same for seconds, with a fraction if need be.
bool read_seconds(const arguments& given, std::string_view name, double least, double most,
                  double& into);

/// The same for a duration from zero to a day: "10s", "1m30s", "500ms", as Go's programs take them;
/// a number alone is seconds.
bool read_duration(const arguments& given, std::string_view name, duration& into);

/// Reads --io-backend: auto, uring or epoll.
bool read_io_backend(const arguments& given, io_backend_kind& into);

/// --server-pid, --timeout, --io-backend and --no-progress.
std::vector<flag> common_flags();

}  // namespace eddy::cli::bench
