// Return of free memory to the system while the process is idle.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <chrono>
#include <cstdint>

namespace eddy::daemon {

/// Decides when free memory is given back: the allocator keeps what a rush of clients needed, and
/// returning it holds the allocator's locks, so it is done in quiet times, and once a growth. After
/// 5,000 clients with half a head 178 MB became 24, in 0.25 s on a busy machine. One thread.
class idle_memory {
public:
    /// Time between two readings. It doubles while the process does nothing, up to the most, so
    /// that an idle one hardly wakes up.
    static constexpr duration least_interval = std::chrono::seconds(10);
    static constexpr duration most_interval = std::chrono::minutes(5);
    /// Processor time between two readings up to which the process does nothing: that of a reading.
    static constexpr duration nothing = std::chrono::milliseconds(2);
    /// The process is idle if it has used at most this part of a processor since the last reading.
    static constexpr std::int64_t idle_part = 50;
    /// Growth since the last return, in bytes, from which on another one is worth its time; of a
    /// larger process an eighth of its memory.
    static constexpr std::uint64_t least_growth = 16 << 20;

    /// Use of resources at a time.
    struct reading {
        duration at{};                     ///< on a clock that only advances
        duration processor_time{};         ///< of all threads, since their start
        std::uint64_t resident_bytes = 0;  ///< memory of the process in RAM
    };
    /// The present one; with 0 resident bytes where the kernel does not show them.
    static reading now() noexcept;

    /// Notes a reading. True if free memory should be given back: then note_returned() follows.
    bool is_due(const reading& next) noexcept;
    /// Time until the next reading.
    duration interval() const noexcept { return interval_; }
    /// Notes the memory that is left.
    void note_returned(std::uint64_t resident_bytes) noexcept { floor_ = resident_bytes; }

private:
    reading last_;
    bool has_last_ = false;
    duration interval_ = least_interval;
    std::uint64_t floor_ = 0;  // least memory since the last return
};

/// Gives free memory back to the system in idle times, on a thread of `threads`, until it is
/// cancelled. At most one task a process. The loop's thread.
task<void> return_idle_memory(blocking_pool& threads);

}  // namespace eddy::daemon
