// Command statistics: calls, latency and failures of each command, for INFO commandstats,
// latencystats and errorstats and LATENCY HISTOGRAM.
//
// Two readings of the clock cost as much as a GET. So of the commands with bounded work, see
// slow_log.hpp, one in timed_share is timed, and its time stands for all calls since the last timed
// one. All others are timed each time.
#pragma once

#include <eddy/base/histogram.hpp>

#include "cache/catalog/command_table.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

struct latency_options;

/// Belongs to one engine; one thread.
class command_stats {
public:
    static constexpr std::uint64_t timed_share = 256;
    /// Error codes that are counted separately, WRONGTYPE and so on; scripts may return any.
    /// Further ones count as other_errors.
    static constexpr std::size_t max_error_codes = 128;
    static constexpr std::string_view other_errors = "ERRORSTATS_OVERFLOW";
    /// An error whose first word has so many bytes or more has no code, and counts as ERR.
    static constexpr std::size_t max_error_code_bytes = 31;

    struct counts {
        std::uint64_t calls = 0;
        std::uint64_t spent_ns = 0;          ///< of timed calls, extrapolated to the others
        std::uint64_t accounted = 0;         ///< calls that spent_ns covers
        std::uint64_t errors = 0;            ///< error replies, including rejections
        std::uint64_t rejected = 0;          ///< rejected before execution
        std::unique_ptr<histogram> latency;  ///< nanoseconds; null until one is timed

        /// Calls that ran and replied with an error.
        std::uint64_t failed() const noexcept { return errors < rejected ? 0 : errors - rejected; }
    };
    /// A command's arguments, its name first: they select one of its forms.
    using arguments = std::span<const std::string_view>;
    using visitor = std::function<void(std::string_view name, const counts&)>;

    command_stats();

    /// Sets whether latencies are recorded from now on; recorded ones stay.
    void configure(const latency_options& options) noexcept;

    /// Counts a call, and returns whether to time it. A command with forms is counted by timed().
    bool count(const command_spec& what) noexcept {
        cell& its = cells_[index_of(what)];
        return its.has_forms || its.all.calls++ % timed_share == 0;
    }
    /// Duration of a call that count() has returned true for.
    void timed(const command_spec& what, arguments args, std::uint64_t took_ns) noexcept;
    /// The same for calls by lanes, of a command without forms: their number since the last add(),
    /// and the duration of one of them.
    void add(const command_spec& what, std::uint64_t calls) noexcept {
        cells_[index_of(what)].all.calls += calls;
    }
    void add_sample(const command_spec& what, std::uint64_t took_ns) noexcept;
    /// Counts an error reply. Null for an unknown command: nothing is counted.
    void failed(const command_spec* what, arguments args) noexcept;
    /// The same for a command that has waited, by its full name.
    void failed(std::string_view full_name) noexcept;
    /// Counts a rejection: an error before execution.
    void rejected(const command_spec* what, arguments args) noexcept;
    /// Counts an error by its code, the first word of `text`.
    void count_error(std::string_view text) noexcept;

    /// Calls what(name, counts) for commands that were called or rejected: "get", "config|set".
    void for_each(const visitor& what) const;
    const std::map<std::string, std::uint64_t, std::less<>>& errors() const noexcept {
        return errors_;
    }
    void reset();

private:
    struct alignas(64) cell {
        counts all;
        bool has_forms = false;  // "config|set": then `all` counts only calls without a form
    };

    std::size_t index_of(const command_spec& what) const noexcept {
        return static_cast<std::size_t>(&what - first_);
    }
    /// Null for an unknown form, or without memory.
    counts* of(const command_spec& what, arguments args) noexcept;
    void keep_latency(counts& of, std::uint64_t took_ns) const noexcept;

    const command_spec* first_ = all_commands().data();
    std::vector<cell> cells_;  // as all_commands()
    std::map<const command_spec*, counts> forms_;
    std::map<std::string, std::uint64_t, std::less<>> errors_;
    bool keeps_latency_ = true;
};

/// Totals that INFO shows as rates.
enum class flow : std::uint8_t { commands, bytes_in, bytes_out, rounds };

/// Mean over the last 16 tenths of a second, as in Redis.
class rate_meter {
public:
    static constexpr std::size_t flows = 4;
    using totals = std::array<std::uint64_t, flows>;

    bool is_due(std::int64_t now_ms) const noexcept {
        return now_ms >= next_ms_ || now_ms < last_ms_;  // the clock can be set back
    }
    /// When is_due(): records the totals until now.
    void note(std::int64_t now_ms, const totals& until_now) noexcept;
    std::uint64_t a_second(flow what) const noexcept;

private:
    static constexpr std::int64_t tenth_ms = 100;
    static constexpr std::size_t kept = 16;

    std::int64_t next_ms_ = INT64_MIN;
    std::int64_t last_ms_ = INT64_MIN;
    totals last_{};
    std::array<totals, kept> samples_{};
    std::size_t at_ = 0;
};

}  // namespace eddy::cache
