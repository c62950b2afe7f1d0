// One check of a program's health.
#pragma once

#include <eddy/io/process.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/program/options.hpp"

#include <string>

namespace eddy::runtime::program {

/// Yields why the check failed, within `timeout`; empty when it succeeded. `how` starts the command
/// of exec, which has no input and whose output is discarded.
task<std::string> check_health(const health_check& by, duration timeout, process_options how);

}  // namespace eddy::runtime::program
