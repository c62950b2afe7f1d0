// Deadlines of streams. All have the same time from their beginning, so one list in the order of
// their beginnings is the queue, and one timer serves it.
#pragma once

#include <eddy/io/timer.hpp>

#include "runtime/stream/due_queue.hpp"

#include <chrono>
#include <cstdint>

namespace eddy::runtime::stream {

/// Longest time that streams may be given. Their milliseconds wrap after 24 days.
inline constexpr duration longest_stream_time = std::chrono::hours(7 * 24);

/// One loop's thread.
class stream_deadlines final : timer {
public:
    /// Deadlines that are taken in a row before others on the loop have their turn.
    static constexpr unsigned burst = 64;

    /// Owner of the streams; it outlives the deadlines.
    class observer {
    public:
        /// A stream has had its time. It has no deadline any more.
        virtual void on_overdue(std::uint32_t stream) noexcept = 0;

    protected:
        ~observer() = default;
    };

    explicit stream_deadlines(observer& owner) noexcept;
    ~stream_deadlines();
    stream_deadlines(const stream_deadlines&) = delete;
    stream_deadlines& operator=(const stream_deadlines&) = delete;

    /// Sets the time of all streams, at most longest_stream_time; duration::max() for none. Streams
    /// that have begun while there was none keep having none.
    void set(duration time) noexcept;
    /// A stream begins. Throws std::bad_alloc.
    void begin(std::uint32_t stream);
    /// It has ended. Without effect for one without a deadline.
    void end(std::uint32_t stream) noexcept { begun_.remove(stream); }

private:
    void fire() noexcept override;
    void arm() noexcept;
    bool has_time() const noexcept { return time_ != duration::max(); }
    std::uint32_t clock_ms() const noexcept;

    observer& owner_;
    time_point start_;
    duration time_ = duration::max();
    std::uint32_t time_ms_ = 0;
    due_queue<due_entry> begun_;  // by their numbers; due_ms is the beginning
};

}  // namespace eddy::runtime::stream
