// Log of failures: lines of the journal, of each kind at most one in an interval, so that what
// fails for all clients does not fill the journal.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/timer.hpp>

#include "serving/journal.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace eddy::runtime {

/// The least time between two lines about failures of one kind of a stream's source.
inline constexpr std::chrono::seconds failure_log_interval{10};

/// Subjects of such lines; in static storage.
struct failure_words {
    std::string_view one = "a stream failed";
    std::string_view many = "streams failed by";
};

/// One loop's thread.
class failure_log {
public:
    /// Kinds that are counted apart. Further ones are one kind together.
    static constexpr std::size_t max_kinds = 100;

    /// The journal outlives it.
    failure_log(serving::journal& to, duration interval, failure_words words = {}) noexcept
        : to_(to), interval_(interval), words_(words) {}
    /// Writes how many failures were left out since the last line of their kind.
    ~failure_log();
    failure_log(const failure_log&) = delete;
    failure_log& operator=(const failure_log&) = delete;

    /// True when the next line of that kind is written.
    bool is_due(std::string_view kind) const noexcept;
    /// Writes "ONE: LINE", with the number of failures of its kind that were left out
    /// before, or counts it for the next line. Throws std::bad_alloc.
    void write(std::string_view kind, std::string_view line);

private:
    struct report {
        time_point next{};  ///< of its kind, at the earliest
        std::uint64_t left_out = 0;
    };

    serving::journal& to_;
    duration interval_;
    failure_words words_;
    std::map<std::string, report, std::less<>> kinds_;
};

}  // namespace eddy::runtime
