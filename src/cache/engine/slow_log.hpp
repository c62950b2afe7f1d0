// Logs of commands above a threshold, of time for SLOWLOG and LATENCY, of time and of bytes for
// COMMANDLOG. running.hpp fills them.
//
// Two readings of the clock cost as much as a GET. So commands with bounded work and few arguments
// are not timed, unless the threshold is low enough to log them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache {

struct command_spec;
struct slow_log_options;

/// The logs of COMMANDLOG; SLOWLOG shows the first.
enum class command_log : std::uint8_t { slow, large_request, large_reply };
inline constexpr std::size_t command_logs = 3;

/// Bytes of a command as an array of RESP, and of its reply.
struct command_sizes {
    std::size_t request = 0;
    std::size_t reply = 0;
};

/// Belongs to one engine; one thread.
class slow_log {
public:
    /// Below this threshold every command is timed.
    static constexpr std::int64_t times_all_below_us = 1000;
    /// Any command with more arguments is timed.
    static constexpr std::size_t few_arguments = 32;
    /// Arguments kept of one command, and bytes of each.
    static constexpr std::size_t max_arguments = 32;
    static constexpr std::size_t max_argument_bytes = 128;
    /// At most so many samples of one latency event; the oldest are dropped first.
    static constexpr std::size_t max_samples = 160;

    struct record {
        std::uint64_t id;
        std::int64_t at_s;    ///< since 1970
        std::int64_t amount;  ///< microseconds, or bytes
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

    /// True if a command with these flags and so many arguments is not timed.
    bool skips(std::uint64_t flags, std::size_t count) const noexcept {
        return (flags & untimed_) != 0 && count <= few_arguments;
    }

    bool keeps_records() const noexcept { return log_of(command_log::slow).max_records != 0; }
    /// True if a command that took so long belongs in the log.
    bool is_slow(std::int64_t took_us) const noexcept {
        return slower_than_us_ >= 0 && took_us >= slower_than_us_;
    }
    /// True if a command of these sizes belongs in one of the other logs.
    bool is_large(command_sizes its) const noexcept {
        return its.request >= large_from_.request || its.reply >= large_from_.reply;
    }
    /// The record of a command, its arguments shortened and without secrets.
    static record record_of(const command_spec& what, std::span<const std::string_view> args);
    /// Keeps a record of a slow command; `now_us` is the time since 1970.
    void keep(record made, std::int64_t now_us, std::int64_t took_us) {
        keep_in(command_log::slow, std::move(made), now_us, took_us);
    }
    /// Keeps a record in the logs in which a command of these sizes belongs.
    void keep_large(record made, std::int64_t now_us, command_sizes its);
    /// Keeps a latency event, if it took long enough for one.
    void keep_event(const command_spec& what, std::int64_t now_us, std::int64_t took_us);

    /// A command whose script was suspended, at most one at a time; its arguments are gone when it
    /// ends.
    struct late_command {
        const command_spec* spec;
        std::chrono::steady_clock::time_point began;
        record slow;
        std::size_t request_bytes;
    };
    std::optional<late_command> late;

    /// DEBUG SLEEP: the running command counts as this much longer, without a real delay.
    void pretend(std::int64_t us) noexcept { pretended_us_ = us; }
    std::int64_t pretended_us() const noexcept { return pretended_us_; }

    /// Records, the newest first.
    const std::deque<record>& records(command_log of = command_log::slow) const noexcept {
        return log_of(of).records;
    }
    void clear(command_log which = command_log::slow) noexcept { log_of(which).records.clear(); }

    std::vector<event>& events() noexcept { return events_; }
    event* find_event(std::string_view name) noexcept;

private:
    struct log {
        std::size_t max_records = 0;
        std::uint64_t next_id = 0;
        std::deque<record> records;
    };

    log& log_of(command_log which) noexcept { return logs_[static_cast<std::size_t>(which)]; }
    const log& log_of(command_log which) const noexcept {
        return logs_[static_cast<std::size_t>(which)];
    }
    void keep_in(command_log which, record made, std::int64_t now_us, std::int64_t amount);

    std::uint64_t untimed_ = ~std::uint64_t{0};
    std::int64_t slower_than_us_ = -1;
    command_sizes large_from_{SIZE_MAX, SIZE_MAX};
    std::int64_t event_from_ms_ = 0;
    std::int64_t pretended_us_ = 0;
    std::array<log, command_logs> logs_;
    std::vector<event> events_;
};

}  // namespace eddy::cache
