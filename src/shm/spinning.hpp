// Decision of a thread to spin before it sleeps, and for how long.
#pragma once

#include <eddy/io/timer.hpp>
#include <eddy/shm/connection.hpp>

#include <chrono>
#include <cstdint>

namespace eddy::shm {

/// Hint to the processor that this thread spins.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
}

inline time_point clock_now() noexcept { return std::chrono::steady_clock::now(); }

/// True if a thread that spins may keep its peer from running: with one processor, or under a quota
/// of processor time (cgroups(7), cpu.max). Read once.
bool spinning_takes_turns() noexcept;

/// 1 + the processor that this thread runs on; 0 if that is unknown.
std::uint32_t this_processor() noexcept;

/// Durations of the recent waits in one direction. One thread.
class spin_history {
public:
    explicit spin_history(waiting how) noexcept : how_(how) {}

    /// True if the peer can run while this thread spins; `peer` is its processor, as its
    /// this_processor().
    bool may_spin(std::uint32_t peer) const noexcept {
        if (how_ != waiting::adaptive) return how_ == waiting::spin;
        return !spinning_takes_turns() && (peer == 0 || peer != this_processor());
    }
    /// Time to spin now, where spinning is allowed.
    duration budget() noexcept {
        if (how_ == waiting::spin) return duration::max();
        // A spin longer than the cost of a wake-up does not pay off, but that may change.
        if (average_ > max_spin && ++skipped_ % retry_every != 0) return duration::zero();
        const duration wanted = 2 * average_ + least;
        return wanted < max_spin ? wanted : max_spin;
    }
    /// A wait took so long.
    void note(duration took) noexcept {
        const duration counted = took < longest_counted ? took : longest_counted;
        average_ += (counted - average_) / 8;
    }

private:
    static constexpr duration least = std::chrono::microseconds(2);
    // One wait for a peer that another program kept from running says little about the next ones.
    static constexpr duration longest_counted = 2 * max_spin;
    static constexpr std::uint32_t retry_every = 64;

    waiting how_;
    duration average_{};
    std::uint32_t skipped_ = 0;
};

}  // namespace eddy::shm
