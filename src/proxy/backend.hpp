// Backend: a server that a proxy passes clients on to, its counters, and whether it takes clients.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/transport/transport.hpp>

#include "serving/counters.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::proxy {

/// Backends of a proxy at most.
inline constexpr std::size_t max_backends = 64;

/// Counters of one worker for a backend: its loop changes them, any thread reads them. A cache line
/// of their own, as workers on other threads count beside them.
struct alignas(64) backend_counters {
    serving::tally connections;  ///< made
    serving::tally failures;     ///< to connect
    serving::tally bytes_sent;   ///< to the backend
    serving::tally bytes_received;
    serving::tally requests;        ///< sent to it; repeated ones count again
    serving::tally retries;         ///< of them, requests that another backend or connection had
    serving::tally failed_answers;  ///< requests without a whole response that can be read
    serving::tally server_errors;   ///< responses 5xx
};

/// Conditions under which a backend that fails, or is slow, gets no clients for a while.
struct ejection_rules {
    /// Failures in a row; 0: failures never eject.
    std::uint32_t failures = 3;
    /// Median response time, as a multiple of the others', that is too slow; 0: none is.
    std::uint32_t slow_factor = 0;
    /// Time without clients: this long the first time, twice as long each further time in a row.
    duration first_pause = std::chrono::seconds(1);
    duration longest_pause = std::chrono::seconds(30);
};

/// Response times are compared by windows of this length.
inline constexpr duration response_window = std::chrono::seconds(2);
/// Windows in a row in which a slow backend is too slow; one is enough after an ejection for that.
inline constexpr std::uint32_t slow_windows = 3;
/// With fewer responses a window says nothing about a backend.
inline constexpr std::uint64_t least_responses = 5;
/// A shorter median is never too slow.
inline constexpr duration least_slow_time = std::chrono::milliseconds(10);

/// Number of the window of a moment.
inline std::int64_t window_of(time_point at) noexcept {
    return at.time_since_epoch() / response_window;
}

/// States of a backend, as metrics and messages name them.
enum class backend_state : std::uint8_t {
    up,
    down,     ///< its health check fails
    ejected,  ///< its clients failed, or it was slow; after the pause one is let through
    drained,  ///< on request: it gets no new clients
};
std::string_view to_string(backend_state state) noexcept;

/// A backend. Any thread.
class backend {
public:
    /// Counted by so many workers. `name` is its label in metrics and messages; empty: its URI.
    /// `at` is the address, with its port, of one whose host is followed in DNS.
    backend(transport::address where, std::size_t workers, std::string name = {},
            std::optional<endpoint> at = {});

    const transport::address& where() const noexcept { return where_; }
    const std::string& name() const noexcept { return name_; }
    /// Its socket address, where that is known without a look-up: connecting is cheaper then.
    const std::optional<endpoint>& numeric() const noexcept { return numeric_; }

    /// Connections or requests of all workers, including the ones that are being made.
    std::uint64_t open() const noexcept { return open_.load(std::memory_order_relaxed); }
    void enter() noexcept { open_.fetch_add(1, std::memory_order_relaxed); }
    void leave() noexcept { open_.fetch_sub(1, std::memory_order_relaxed); }

    /// Counters of a worker, by worker_place::index.
    backend_counters& counted_by(std::size_t worker) noexcept { return counted_.at(worker); }
    /// The sum of one of them.
    std::uint64_t sum(serving::tally backend_counters::* of) const noexcept;
    std::size_t workers() const noexcept { return counted_.size(); }

    /// Records the time from a request to its response's head, in nanoseconds.
    void note_latency(duration took);
    histogram latency() const;
    /// Records it for the comparison with other backends.
    void note_response_time(duration took, time_point now);
    /// The median of those of a window; none of fewer than least_responses, and of a window before
    /// the last one.
    std::optional<duration> median_of(std::int64_t window) const;
    /// Records whether it was too slow in a window, once for each. Yields the windows in a row that
    /// it has been.
    std::uint32_t note_window(std::int64_t window, bool is_slow) noexcept;

    // --- Whether it takes clients ---

    backend_state state() const noexcept;
    /// True when a client may be sent to it: it is up, or its pause has passed and no client tries
    /// it yet.
    bool accepts(time_point now) const noexcept;
    /// Admission of a client.
    enum class admission : std::uint8_t {
        refused,
        taken,
        trial,  ///< the first client after a pause: the others wait for its result
    };
    /// For the client that is to be sent to it, at once. A trial ends with leave_trial().
    admission admit(time_point now) noexcept;

    /// A client has failed: ejects it under these rules, unless `may_eject` is false. True if this
    /// has ejected it.
    bool note_failure(const ejection_rules& rules, bool may_eject, time_point now) noexcept;
    /// Ejects it for its response times. False: it is ejected already.
    bool eject_slow(const ejection_rules& rules, time_point now) noexcept;
    /// True while it is ejected, also after the pause until a client was served.
    bool is_ejected() const noexcept { return ejected_until_.load(std::memory_order_relaxed) != 0; }
    /// A response has broken off amid its content. The same for such failures in a row, which
    /// note_success() does not end.
    bool note_cut(const ejection_rules& rules, bool may_eject, time_point now) noexcept;
    /// A client has been served; of HTTP: a response has begun. True if that ends an ejection.
    bool note_success(time_point now) noexcept;
    /// A response has come whole.
    void note_whole() noexcept;
    /// True if as many of its last clients have failed as eject it, which the last backend that
    /// takes clients never is; where failures eject none, as many as by default.
    bool is_failing(const ejection_rules& rules) const noexcept;
    /// Ends a trial.
    void leave_trial() noexcept { is_tried_.store(false, std::memory_order_relaxed); }
    /// Times that it was ejected.
    std::uint64_t ejections() const noexcept { return ejections_.load(std::memory_order_relaxed); }

    /// Result of its health check. True if that changes it.
    bool set_healthy(bool is_healthy, time_point now) noexcept;
    /// The last result; true before the first.
    bool is_healthy() const noexcept { return is_healthy_.load(std::memory_order_relaxed); }
    void set_drained(bool is_drained) noexcept {
        is_drained_.store(is_drained, std::memory_order_relaxed);
    }
    bool is_drained() const noexcept { return is_drained_.load(std::memory_order_relaxed); }
    /// It is wanted no more, and its clients are to be closed. For good.
    void abandon() noexcept { is_abandoned_.store(true, std::memory_order_relaxed); }
    bool is_abandoned() const noexcept { return is_abandoned_.load(std::memory_order_relaxed); }
    /// Since when it takes clients again; the epoch if it has never been away.
    time_point up_since() const noexcept {
        return time_point(duration(up_since_.load(std::memory_order_relaxed)));
    }

private:
    const transport::address where_;
    const std::string name_;
    std::optional<endpoint> numeric_;
    std::atomic<std::uint64_t> open_{0};
    std::vector<backend_counters> counted_;
    /// Median of a window.
    struct window_summary {
        std::int64_t window = -1;
        std::optional<duration> median = {};
    };

    bool eject(std::int64_t until_before, const ejection_rules& rules, time_point now) noexcept;

    mutable std::mutex latency_guard_;
    histogram latency_;
    std::unique_ptr<histogram> times_;  // of window_; null until one is recorded
    std::int64_t window_ = -1;
    window_summary last_;  // the window before
    std::int64_t judged_window_ = -1;
    std::uint32_t slow_windows_ = 0;  // in a row

    // Ticks of the loops' clock, which all loops share. 0: none.
    std::atomic<std::int64_t> ejected_until_{0};
    std::atomic<std::int64_t> up_since_{0};
    std::atomic<std::uint64_t> ejections_{0};
    std::atomic<std::uint32_t> failures_in_a_row_{0};
    std::atomic<std::uint32_t> cuts_in_a_row_{0};
    std::atomic<std::uint32_t> ejections_in_a_row_{0};
    std::atomic<bool> was_slow_{false};  // when it was ejected last, and never since in a window
    std::atomic<bool> is_tried_{false};
    std::atomic<bool> is_healthy_{true};
    std::atomic<bool> is_drained_{false};
    std::atomic<bool> is_abandoned_{false};
};

/// A connection or request of a backend counts as long as this lives. One loop's thread.
class backend_use {
public:
    backend_use() noexcept = default;
    /// `is_trial`: as admit() yielded.
    explicit backend_use(std::shared_ptr<backend> of, bool is_trial = false) noexcept
        : of_(std::move(of)), is_trial_(is_trial) {
        of_->enter();
    }
    backend_use(backend_use&& other) noexcept
        : of_(std::move(other.of_)), is_trial_(std::exchange(other.is_trial_, false)) {}
    backend_use& operator=(backend_use&& other) noexcept {
        // The argument, which dies here, ends what this was.
        std::swap(of_, other.of_);
        std::swap(is_trial_, other.is_trial_);
        return *this;
    }
    ~backend_use() {
        if (!of_) return;
        if (is_trial_) of_->leave_trial();
        of_->leave();
    }
    /// False of one that counts nothing.
    explicit operator bool() const noexcept { return of_ != nullptr; }
    backend& operator*() const noexcept { return *of_; }
    backend* operator->() const noexcept { return of_.get(); }
    const std::shared_ptr<backend>& shared() const noexcept { return of_; }

private:
    std::shared_ptr<backend> of_;
    bool is_trial_ = false;
};

}  // namespace eddy::proxy
