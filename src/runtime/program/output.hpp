// Output of a program: its lines, to the journal and a file, within limits on their length and rate
// and on the bytes that are read in a second.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/logs/line_log.hpp"
#include "runtime/program/options.hpp"
#include "serving/counters.hpp"
#include "serving/journal.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::program {

/// One loop's thread. Its memory is bounded, whatever the program prints.
class output {
public:
    /// Bytes that are read in a second, of both descriptors together. A program that prints more
    /// waits, as for any slow reader of its pipe.
    static constexpr std::size_t max_bytes_a_second = 8 * 1024 * 1024;

    /// All of them outlive it. `limits` may change at any time.
    output(serving::journal& to, serving::counters& counted, const config& limits) noexcept
        : to_(to), counted_(counted), limits_(limits), file_(to, &counted.dropped) {}

    /// Opens --log, if there is one.
    outcome<> open();
    /// Opens that file by its name again.
    outcome<> reopen() { return file_.is_open() ? file_.reopen() : outcome<>(); }
    /// Writes what waits, and closes the file. No read() runs.
    task<void> close();

    /// Reads until the end of what the program writes; `mark` begins its lines in the journal.
    task<void> read(stream from, std::string_view mark);
    /// Writes how many lines were left out since the last such line.
    void report_left_out();

private:
    void take(std::string_view line, bool is_cut, std::string_view mark);
    void begin_second(time_point now);

    serving::journal& to_;
    serving::counters& counted_;
    const config& limits_;
    line_log file_;
    std::optional<scope> writing_;  // while the file is open
    time_point second_{};           // when the present one began
    std::size_t bytes_ = 0;         // read in it
    std::uint64_t lines_ = 0;       // written in it
    std::uint64_t left_out_ = 0;    // lines, not reported yet
};

}  // namespace eddy::runtime::program
