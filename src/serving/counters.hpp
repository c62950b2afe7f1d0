// Counters of a server, of any kind: for one loop or as a sum.
#pragma once

#include <atomic>
#include <cstdint>

namespace eddy::serving {

/// Count that one thread changes and any may read. As cheap as a plain number: adding to it is no
/// atomic addition.
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

/// Counters of every kind of server.
struct counters {
    tally connections_now;
    tally connections_total;
    tally connections_refused;  ///< by a limit
    tally handshakes_now;       ///< under way: connections not yet passed to take()
    tally messages_in;          ///< lines, datagrams, commands
    tally messages_out;
    tally bytes_in;
    tally bytes_out;
    tally reads;   ///< pieces that came from connections, where the server counts them
    tally writes;  ///< pieces that went out
    tally errors;
    tally dropped;  ///< by a slow reader's policy or a rate limit

    /// Adds the counts of a part of the same server.
    void add(const counters& part) noexcept {
        for (tally counters::* const each :
             {&counters::connections_now, &counters::connections_total,
              &counters::connections_refused, &counters::handshakes_now, &counters::messages_in,
              &counters::messages_out, &counters::bytes_in, &counters::bytes_out, &counters::reads,
              &counters::writes, &counters::errors, &counters::dropped})
            this->*each += part.*each;
    }
};

}  // namespace eddy::serving
