// Metrics of a runtime.
#pragma once

#include <eddy/base/histogram.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime {

/// A count that one thread changes and any may read. It costs what a plain number does: adding to
/// it is no atomic addition.
class tally {
public:
    tally() noexcept = default;
    tally(std::uint64_t value) noexcept : value_(value) {}
    tally(const tally& other) noexcept : value_(other) {}
    tally& operator=(const tally& other) noexcept { return *this = std::uint64_t{other}; }
    tally& operator=(std::uint64_t value) noexcept {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }
    operator std::uint64_t() const noexcept { return value(); }
    tally& operator+=(std::uint64_t more) noexcept { return *this = *this + more; }
    tally& operator++() noexcept { return *this += 1; }

private:
    std::atomic<std::uint64_t> value_{0};
};

/// What a runtime counts; read on its loop, copied to whoever asks.
struct counters {
    tally connections_now;
    tally connections_total;
    tally connections_refused;  ///< by a limit
    tally messages_in;          ///< lines, datagrams, commands
    tally messages_out;
    tally bytes_in;
    tally bytes_out;
    tally reads;   ///< pieces that came from connections, where the type counts them
    tally writes;  ///< pieces that went out
    tally errors;
    tally dropped;  ///< by a slow reader's policy or a rate limit
    /// What only this type counts: name (Prometheus style, without prefix), value.
    std::vector<std::pair<std::string, double>> more;
    /// Time from a message's arrival to its answer, in nanoseconds, where the type measures it.
    std::shared_ptr<const histogram> latency;

    /// Adds the counts of a part of the same runtime; `more` and `latency` stay.
    void add(const counters& part) noexcept {
        for (tally counters::* const each :
             {&counters::connections_now, &counters::connections_total,
              &counters::connections_refused, &counters::messages_in, &counters::messages_out,
              &counters::bytes_in, &counters::bytes_out, &counters::reads, &counters::writes,
              &counters::errors, &counters::dropped})
            this->*each += part.*each;
    }
};

}  // namespace eddy::runtime
