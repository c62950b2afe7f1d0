// Reopener: repeated attempts, with backoff, to open addresses that a runtime has lost, as they
// could not be put back after a restart that failed.
#pragma once

#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "serving/journal.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace eddy::runtime {

/// One loop's thread. `events` outlives it; end() must have ended before it dies.
class reopener {
public:
    /// Pauses between attempts.
    static constexpr duration first_pause = std::chrono::milliseconds(100);
    static constexpr duration longest_pause = std::chrono::seconds(10);

    explicit reopener(serving::journal& events) noexcept : events_(events) {}

    /// Calls `open` until it succeeds, the first time after a pause. `why` is the failure of the
    /// attempt before.
    void begin(const problem& why, std::function<outcome<>()> open);
    /// Ends the attempts; begin() may follow.
    task<void> end();

    /// Failure of the last attempt; empty once one has succeeded, and while there are none.
    const std::string& fault() const noexcept { return fault_; }

private:
    task<void> run();

    serving::journal& events_;
    std::function<outcome<>()> open_;
    std::string fault_;
    std::optional<scope> attempts_;
    bool is_trying_ = false;
};

}  // namespace eddy::runtime
