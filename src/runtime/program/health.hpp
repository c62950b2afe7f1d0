// One check of a program's health.
#pragma once

#include <eddy/io/process.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/program/options.hpp"

#include <string>

namespace eddy::runtime::program {

/// End of a check.
struct health_result {
    std::string fault = {};  ///< why it failed; empty when it succeeded
    /// A command did not end by itself: its group was killed, what has left that may be there.
    bool was_killed = false;
};

/// Ends within `timeout`. `how` starts the command of exec, which has no input and whose output is
/// discarded.
task<health_result> check_health(const health_check& by, duration timeout, process_options how);

}  // namespace eddy::runtime::program
