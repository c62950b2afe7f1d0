// Timers of a script: functions that run once, or again and again.
#pragma once

#include <eddy/io/timer.hpp>

#include "script/library.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace eddy::runtime {

/// One loop's thread.
class script_timers {
public:
    /// Runs the functions.
    class runner {
    public:
        /// The timer is due. ended() must follow.
        virtual void run(script_timers& from, std::uint64_t id,
                         std::shared_ptr<script::kept_function> function) = 0;

    protected:
        ~runner() = default;
    };

    /// Least time between two calls of a repeated one.
    static constexpr duration least_interval = std::chrono::milliseconds(1);
    static constexpr duration longest = std::chrono::hours(24 * 365);

    /// `most`: timers at a time, those included whose function has not ended.
    script_timers(runner& by, std::size_t most) noexcept : runner_(by), most_(most) {}

    /// Number of the new timer, or 0 at the limit. Throws std::bad_alloc.
    std::uint64_t add(duration time, bool repeats, script::kept_function function);
    /// False when there is none.
    bool cancel(std::uint64_t id) noexcept { return all_.erase(id) > 0; }
    /// The timer's function has ended: a repeated one is due again after its time.
    void ended(std::uint64_t id) noexcept;
    /// Ends all timers. Later ones have a number, and never fire.
    void clear() noexcept;
    std::size_t count() const noexcept { return all_.size() + last_calls_.size(); }
    std::size_t most() const noexcept { return most_; }

private:
    class entry final : private timer {
    public:
        entry(script_timers& of, std::uint64_t id, duration time, bool repeats,
              script::kept_function function);
        ~entry();
        void arm() noexcept;
        bool repeats() const noexcept { return repeats_; }

    private:
        void fire() noexcept override;
        script_timers& of_;
        std::uint64_t id_;
        duration time_;
        bool repeats_;
        std::shared_ptr<script::kept_function> function_;
    };

    runner& runner_;
    const std::size_t most_;
    std::unordered_map<std::uint64_t, std::unique_ptr<entry>> all_;
    std::unordered_set<std::uint64_t> last_calls_;  // of timers that are not in all_ any more
    std::uint64_t last_ = 0;
    bool is_over_ = false;
};

}  // namespace eddy::runtime
