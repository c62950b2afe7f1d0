// Slow log and latency events: commands above a threshold, for SLOWLOG and LATENCY.
//
// Two readings of the clock cost as much as a GET. So those commands are not timed whose work is
// bounded by their few arguments, unless the threshold is low enough to log them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

struct call;
struct command_spec;
struct slow_log_options;

/// Belongs to one engine; one thread.
class slow_log {
public:
    /// Below this threshold every command is timed.
    static constexpr std::int64_t times_all_below_us = 1000;
    /// With more arguments any command is timed.
    static constexpr std::size_t few_arguments = 32;
    /// Arguments kept of one command, and bytes of each.
    static constexpr std::size_t max_arguments = 32;
    static constexpr std::size_t max_argument_bytes = 128;
    /// Samples of one latency event; the oldest go first.
    static constexpr std::size_t max_samples = 160;

    struct record {
        std::uint64_t id;
        std::int64_t at_s;  ///< since 1970
        std::int64_t took_us;
        std::vector<std::string> args;
        std::string address;
        std::string client;
    };
    struct sample {
        std::int64_t at_s;
        std::int64_t took_ms;
    };
    struct event {
        std::string_view name;
        std::deque<sample> samples;
        std::int64_t longest_ms = 0;
    };

    /// Takes the thresholds; drops records above the new length.
    void configure(const slow_log_options& options);

    /// Whether a command with these flags and so many arguments goes without the clock.
    bool skips(std::uint64_t flags, std::size_t count) const noexcept {
        return (flags & untimed_) != 0 && count <= few_arguments;
    }

    /// Runs the command, which command_stats has counted, and keeps it if it took long.
    void run(call& c);
    /// Counts and runs it, without the clock where that is not needed.
    void run_unless_skipped(call& c);
    /// Keeps a command that has waited for a key if it has worked for long before and after that:
    /// `served_us` after it. The wait itself does not count.
    void keep_waited(const call& c, std::int64_t served_us);

    /// A command has come to its end whose script was left in the middle; run() returned then.
    void end_late(call& c);

    /// DEBUG SLEEP: the running command counts as this much longer, without a real delay.
    void pretend(std::int64_t us) noexcept { pretended_us_ = us; }

    /// The newest first.
    const std::deque<record>& records() const noexcept { return records_; }
    void clear() noexcept { records_.clear(); }

    std::vector<event>& events() noexcept { return events_; }
    event* find_event(std::string_view name) noexcept;

private:
    /// One command at a time is left in the middle. Its arguments are gone when it ends.
    struct late_command {
        const command_spec* spec;
        std::chrono::steady_clock::time_point began;
        record slow;
    };

    void note_late(const call& c, std::chrono::steady_clock::time_point began) noexcept;
    record record_of(const call& c) const;
    void keep_if_slow(const call& c, std::int64_t took_us);
    void keep(record made, std::int64_t at_s, std::int64_t took_us);
    void keep_event_of(const call& c, std::int64_t took_us);
    void keep_event(std::string_view name, std::int64_t at_s, std::int64_t took_ms);

    std::uint64_t untimed_ = ~std::uint64_t{0};
    std::int64_t slower_than_us_ = -1;
    std::int64_t event_from_ms_ = 0;
    std::size_t max_records_ = 0;
    std::int64_t pretended_us_ = 0;
    std::optional<late_command> late_;
    std::uint64_t next_id_ = 0;
    std::deque<record> records_;
    std::vector<event> events_;
};

}  // namespace eddy::cache
