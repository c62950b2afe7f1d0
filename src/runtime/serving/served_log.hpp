// Log file of a runtime that serves streams: opened with its start, filled by its workers, and
// written by a thread of its own.
#pragma once

#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/logs/line_log.hpp"
#include "runtime/logs/shared_log.hpp"
#include "serving/counters.hpp"
#include "serving/journal.hpp"

#include <optional>
#include <string>

namespace eddy::runtime {

/// The home loop's thread.
class served_log {
public:
    /// Lines that are lost are added to `dropped`. Both outlive it.
    served_log(serving::journal& events, serving::tally& dropped) noexcept
        : dropped_(dropped), file_(events, &dropped) {}

    /// As line_log::open(); without a path it stays closed. `is_shared`: workers of several loops
    /// append.
    outcome<> open(const std::string& path, bool is_shared);
    bool is_open() const noexcept { return file_.is_open(); }
    /// From open() to the end of close().
    shared_log& lines() noexcept { return *lines_; }
    /// Begins to write what workers append.
    void begin();
    /// As line_log::reopen(); nothing where it is closed.
    outcome<> reopen();
    /// Writes what there is. No worker appends any more.
    task<void> close();

private:
    serving::tally& dropped_;
    line_log file_;
    std::optional<shared_log> lines_;
    std::optional<scope> writing_;
    std::optional<scope> collecting_;
};

}  // namespace eddy::runtime
